"""Packs: what is learnt from labelled pictures, how it is checked, kept and refused."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agrotools.core import BenchmarkError, ToolError, UndecidedError, UsageError
from agrotools.core.readings import Readings
from agrotools_tools.recognition import labelled_pictures as labelled
from agrotools_tools.recognition import pack_training
from agrotools_tools.recognition.labelled_pictures import LabelColumns, read_labelled
from agrotools_tools.recognition.pack_training import train_pack
from agrotools_tools.recognition.packs import (
    list_packs,
    load_pack,
    pack_path,
    packs_folder,
    read_pack,
)
from support.labelled_pictures import PLANTS, plant_picture, write_folders, write_table
from support.tiny_nets import STRANGER_COLOURS, use_tiny_pack_nets

SKY = (90, 140, 250)


@pytest.fixture(scope="module", autouse=True)
def net_folder(tmp_path_factory: pytest.TempPathFactory):
    """Tiny nets in the place of those of the package."""
    folder = tmp_path_factory.mktemp("nets")
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_pack_nets(patch, folder)
        yield folder


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folders(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory, pictures: Path, net_folder: Path) -> Path:
    folder = tmp_path_factory.mktemp("packs") / "leaves"
    train_pack(read_labelled(pictures), folder, licence_note="made up")
    return folder


def test_a_pack_names_pictures_it_has_not_seen(pack: Path) -> None:
    loaded = read_pack(pack)
    assert loaded.info.classes == tuple(sorted(PLANTS))
    named, kept = [], []
    for number, (name, colour) in enumerate(PLANTS.items()):
        for seed in range(6):
            judgement = loaded.judge(plant_picture(colour, 50_000 + 100 * number + seed))
            named.append(judgement.classes[int(judgement.probabilities().argmax())] == name)
            kept.append(judgement.is_known)
    assert np.mean(named) == 1
    assert np.mean(kept) >= 0.7
    strange = [loaded.judge(plant_picture(SKY, seed)).is_known for seed in range(6)]
    assert not any(strange)


def test_a_pack_is_two_plain_files_with_figures_of_what_was_checked(pack: Path) -> None:
    own = read_pack(pack).info.figures
    assert (own.pictures, own.groups, own.folds) == (24, 24, 5)
    assert own.accuracy == 1
    assert own.accuracy_95[0] < 0.9
    assert own.majority == pytest.approx(1 / 3)
    assert set(own.left_out) == set(PLANTS)
    assert own.named >= 0.6
    assert own.right_of_named == 1
    assert (own.strangers.pictures, set(own.strangers.by_kind)) == (56, set(STRANGER_COLOURS))
    assert own.strangers.named <= 0.05
    assert [point.pictures for point in own.curve] == [7]
    assert set(own.by_class) == set(PLANTS)
    assert all((one.n, one.recall, one.f1) == (8, 1, 1) for one in own.by_class.values())
    assert own.macro_f1 == 1
    assert sorted(path.name for path in pack.iterdir()) == ["pack.json", "weights.npz"]
    info = json.loads((pack / "pack.json").read_text())
    assert (info["licence_note"], list(info["nets"])) == ("made up", ["weeds"])
    with np.load(pack / "weights.npz", allow_pickle=False) as arrays:
        assert arrays["weights"].shape == (3 + 3 + 101, 3)


def test_training_again_gives_the_same_pack(pictures: Path, pack: Path, tmp_path: Path) -> None:
    train_pack(read_labelled(pictures), tmp_path / "again", licence_note="made up")
    again, first = read_pack(tmp_path / "again").info, read_pack(pack).info
    assert again.model_copy(update={"name": first.name}) == first


def test_labels_that_mean_nothing_are_not_learnt(tmp_path: Path) -> None:
    """Out-of-fold figures of a pack on labels thrown by dice must not look good."""
    draw = np.random.default_rng(1)
    rows = []
    for number in range(40):
        Image.fromarray(plant_picture(PLANTS["green leaf"], number)).save(
            tmp_path / f"{number}.png"
        )
        rows.append((f"{number}.png", "ab"[draw.integers(2)]))
    info = train_pack(
        read_labelled(tmp_path, write_table(tmp_path / "l.csv", rows)), tmp_path / "pack"
    )
    assert info.figures.accuracy < 0.75
    assert info.temperature > 1
    assert info.figures.left_out == {}


def test_groups_are_not_cut_apart(tmp_path: Path) -> None:
    """Each group has its own colour and label by dice: only who has seen the group can name it."""
    draw = np.random.default_rng(0)
    rows = []
    for group in range(12):
        colour = tuple(int(part) for part in draw.integers(40, 220, 3))
        for place in range(4):
            name = f"{group}_{place}.png"
            Image.fromarray(plant_picture(colour, 100 * group + place)).save(tmp_path / name)
            rows.append((name, "ab"[group % 2], f"plant {group}"))
    with_groups = write_table(tmp_path / "g.csv", rows, ("image", "label", "group"))
    without = write_table(tmp_path / "n.csv", [row[:2] for row in rows])
    honest = train_pack(read_labelled(tmp_path, with_groups), tmp_path / "honest")
    fooled = train_pack(read_labelled(tmp_path, without), tmp_path / "fooled")
    assert honest.figures.groups == 12
    assert fooled.figures.accuracy > 0.9
    assert honest.figures.accuracy < 0.8
    low, high = honest.figures.accuracy_95
    assert high - low > 0.3


def test_packs_are_found_by_name_and_by_path(pack: Path) -> None:
    with pytest.raises(ToolError, match="there is no pack mine") as caught:
        load_pack("mine")
    assert "packs train" in (caught.value.setup or "")
    assert list_packs() == ([], [])
    shutil.copytree(pack, packs_folder() / "mine")
    assert load_pack("mine").info.classes == load_pack(str(pack)).info.classes
    assert [info.name for info in list_packs()[0]] == ["mine"]
    assert pack_path("mine") == packs_folder() / "mine"
    assert pack_path("./mine") == Path("mine")
    for bad in ("..", "", "a b", ".hidden"):
        with pytest.raises(UsageError):
            pack_path(bad)


def copied(pack: Path, folder: Path) -> Path:
    shutil.copytree(pack, folder / "copy")
    return folder / "copy"


def unusable(folder: Path) -> str:
    with pytest.raises(ToolError) as caught:
        read_pack(folder)
    assert caught.value.kind == "backend_unavailable"
    return caught.value.message


def test_packs_that_were_tampered_with(pack: Path, tmp_path: Path) -> None:
    folder = copied(pack, tmp_path)
    weights = folder / "weights.npz"
    weights.write_bytes(weights.read_bytes() + b" ")
    assert "not those" in unusable(folder)
    weights.unlink()
    assert "cannot be read" in unusable(folder)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"classes": ["one"]}, "description"), ({"classes": ["a", "b"]}, "fit together"),
        ({"hand_features": 0}, "other features"), ({"nets": {"weeds": "0" * 64}}, "another net"),
        ({"temperature": -1}, "description"), ({"more": 1}, "description"),
        ({"encoder": "0" * 64}, "another net"), ({"format": 2}, "an earlier version of agrotools"),
    ],
)  # fmt: skip
def test_descriptions_that_do_not_fit(
    pack: Path, tmp_path: Path, fields: dict[str, object], said: str
) -> None:
    folder = copied(pack, tmp_path)
    path = folder / "pack.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    assert said in unusable(folder)


def refused(images: Path, table: Path | None = None) -> str:
    with pytest.raises(UsageError) as caught:
        read_labelled(images, table)
    assert caught.value.hint
    return caught.value.message


def test_folders_that_teach_nothing(tmp_path: Path) -> None:
    assert "is not a folder" in refused(tmp_path / "absent")
    assert "no pictures" in refused(tmp_path)
    write_folders(tmp_path / "one", ("green leaf",))
    assert "one class (green leaf)" in refused(tmp_path / "one")
    write_folders(tmp_path / "few", tuple(PLANTS), each=2)
    assert "fewer than 4 pictures of brown leaf (2), green leaf (2)" in refused(tmp_path / "few")


def test_pictures_in_no_folder_of_a_class_are_named(pictures: Path, tmp_path: Path) -> None:
    Image.fromarray(plant_picture(PLANTS["green leaf"], 1)).save(pictures / "loose.png")
    said = rf"1 picture in no folder of a class in {pictures}: loose.png"
    for to_learn in (True, False):
        with pytest.raises(UsageError, match=said):
            read_labelled(pictures, to_learn=to_learn)
    table = write_table(tmp_path / "labels.csv", [("loose.png", "weevil")], ("image", "pest"))
    assert [(one.label, one.place) for one in read_labelled(pictures, table, to_learn=False)] == [
        ("weevil", "row 2 of labels.csv")
    ]
    (pictures / "loose.png").unlink()


def test_tables_that_do_not_fit(
    tmp_path: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [(f"{name}/{place}.png", name) for name in PLANTS for place in range(8)]
    table = tmp_path / "labels.csv"
    assert len(read_labelled(pictures, write_table(table, good))) == 24
    assert "names 1 picture missing from" in refused(
        pictures, write_table(table, [*good, ("no.png", "a")])
    )
    assert "twice (rows 2 and 26)" in refused(pictures, write_table(table, [*good, good[0]]))
    assert "lacks an image or a label" in refused(pictures, write_table(table, [("a.png", "")]))
    outside = [good[0], ("../a.png", "a")]
    assert "is outside the picture folder" in refused(pictures, write_table(table, outside))
    assert "missing from" in refused(pictures, write_table(table, [good[0], ("/etc/passwd", "a")]))
    alone = write_table(table, [row[:1] for row in good], ("Photo",))
    assert "no column of labels beside Photo" in refused(pictures, alone)
    assert "there is no table" in refused(pictures, tmp_path / "absent.csv")
    table.write_text('image;label\na.png;"a\n')
    with pytest.raises(
        BenchmarkError, match=r"labels.csv, row 2 is not a row of a table: .*\(check the quotes"
    ):
        read_labelled(pictures, table)
    grouped = [(image, label, label) for image, label in good]
    said = refused(pictures, write_table(table, grouped, ("image", "label", "group")))
    assert "of one group" in said
    monkeypatch.setattr(labelled, "MOST_PICTURES", 20)
    assert "more than the 20" in refused(pictures, write_table(table, good))
    assert "more than the 20" in refused(pictures)


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_columns_of_a_table_are_found_by_their_content(
    tmp_path: Path, pictures: Path, suffix: str
) -> None:
    good = [(f"{name}/{place}.png", name) for name in PLANTS for place in range(8)]
    table = tmp_path / f"labels{suffix}"

    def write(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Path:
        if suffix == ".csv":
            return write_table(table, rows, header)
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in [header, *rows]:
            book.active.append(row)
        book.save(table)
        return table

    readings = Readings()
    found = read_labelled(pictures, write(("Photo", "Disease"), good), readings=readings)
    assert [(one.path.name, one.label) for one in found] == [(Path(a).name, b) for a, b in good]
    assert {one.column for one in found} == {"Disease"}
    assert "pictures from column Photo, labels from column Disease" in readings.taken
    # The place, the day and a remark of each picture are no labels; who looked may be.
    rows = [(b, f"plot {n}", "2024-05-01", a) for n, (a, b) in enumerate(good)]
    found = read_labelled(pictures, write(("Doença", "Nota", "Data", "Foto"), rows))
    assert [one.label for one in found] == [b for _, b in good]
    rows = [(a, b, f"observer {n % 2}") for n, (a, b) in enumerate(good)]
    with pytest.raises(UndecidedError, match=r"Which column of labels.* holds the labels") as asked:
        read_labelled(pictures, write(("Foto", "Doença", "Observador"), rows))
    assert asked.value.answers == ("--label-column=Doença",)
    given = LabelColumns(label="observador")
    assert {one.label for one in read_labelled(pictures, table, columns=given)} == {
        "observer 0",
        "observer 1",
    }
    named = read_labelled(pictures, write(("Foto", "Class", "Observador"), rows))
    assert {one.label for one in named} == {*PLANTS}
    with pytest.raises(UsageError, match="no such column"):
        read_labelled(pictures, table, columns=LabelColumns(label="Rust"))


def test_nothing_is_left_half_written(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pack_training, "_train", fail)
    with pytest.raises(KeyboardInterrupt):
        train_pack(read_labelled(pictures), tmp_path / "packs" / "mine")
    assert not (tmp_path / "packs").exists()


def test_a_place_that_is_taken_is_refused_at_once(
    pictures: Path, pack: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="exists already"):
        train_pack(read_labelled(pictures), pack)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="nothing can be written"):
        train_pack(read_labelled(pictures), tmp_path / "file" / "pack")


def test_spellings_of_one_class_are_not_two_classes(tmp_path: Path) -> None:
    folder = write_folders(tmp_path / "pictures")
    (folder / "green leaf").rename(folder / "Yellow  Leaf")
    assert "'Yellow  Leaf' and 'yellow leaf'" in refused(folder)


def test_a_table_of_held_pictures_overwrites_no_other_file(tmp_path: Path) -> None:
    photograph = tmp_path / "leaf.jpg"
    photograph.write_bytes(b"a photograph")
    with pytest.raises(UsageError, match="is no CSV file, so it is not overwritten"):
        labelled.check_writable(photograph, None)
    (tmp_path / "held.csv").write_text("image,label")
    labelled.check_writable(tmp_path / "held.csv", None)


def test_unreadable_pictures_stop_or_are_left_out(tmp_path: Path) -> None:
    folder = write_folders(tmp_path / "pictures", ("green leaf", "brown leaf"), each=6)
    (folder / "green leaf" / "0.png").write_bytes(b"no picture")
    (folder / "green leaf" / "1.png").write_bytes(b"")
    said: list[str] = []
    with pytest.raises(UsageError, match="2 of 12 pictures cannot be read") as caught:
        train_pack(read_labelled(folder), tmp_path / "pack")
    assert "--skip-unreadable" in (caught.value.hint or "")
    assert not (tmp_path / "pack").exists()
    info = train_pack(
        read_labelled(folder), tmp_path / "pack", skip_unreadable=True, progress=said.append
    )
    assert info.figures.pictures == 10
    assert "left out 2 pictures that cannot be read" in said
    for place in (2, 3):
        (folder / "green leaf" / f"{place}.png").write_bytes(b"")
    with pytest.raises(UsageError, match="fewer than 4"):
        train_pack(read_labelled(folder), tmp_path / "other", skip_unreadable=True)


def test_one_picture_with_two_labels_is_refused(tmp_path: Path) -> None:
    folder = write_folders(tmp_path / "pictures", ("green leaf", "brown leaf"), each=5)
    shutil.copy(folder / "green leaf" / "0.png", folder / "brown leaf" / "copy.png")
    with pytest.raises(UsageError, match="same picture with two labels"):
        train_pack(read_labelled(folder), tmp_path / "pack")


def test_copies_stay_on_one_side_of_a_split(tmp_path: Path) -> None:
    folder = write_folders(tmp_path / "pictures", ("green leaf", "brown leaf"), each=6)
    shutil.copy(folder / "green leaf" / "0.png", folder / "green leaf" / "copy.png")
    info = train_pack(read_labelled(folder), tmp_path / "pack")
    assert (info.figures.pictures, info.figures.groups) == (13, 12)


def test_a_column_of_fields_gives_the_groups_and_two_of_them_are_named(tmp_path: Path) -> None:
    pictures = write_folders(tmp_path / "pictures", each=4)
    files = sorted(pictures.rglob("*.png"))
    rows = [
        (path.relative_to(pictures).as_posix(), path.parent.name, f"F{place % 4}", "Nord")
        for place, path in enumerate(files)
    ]
    header = ("image", "malattia", "Appezzamento")
    one = write_table(tmp_path / "one.csv", [row[:3] for row in rows], header)
    readings = Readings()
    found = read_labelled(pictures, one, readings=readings)
    assert {each.group for each in found} == {f"group F{place}" for place in range(4)}
    assert {each.column for each in found} == {"malattia"}
    assert any("groups from column Appezzamento" in line for line in readings.taken)
    two = write_table(tmp_path / "two.csv", rows, (*header, "azienda"))
    readings = Readings()
    found = read_labelled(pictures, two, readings=readings)
    assert len({each.group for each in found}) == len(files)
    assert any("Appezzamento, azienda" in line for line in readings.left)


@pytest.mark.parametrize(
    ("header", "values", "groups", "taken", "left"),
    [
        (("Gruppo",), ("1",), 12, None, ["column Gruppo"]),
        (("Campo",), ("",), 12, None, ["column Campo (no values)"]),
        (("group",), ("",), 12, None, ["column group (no values)"]),
        (
            ("Campo", "Lote", "Nota"),
            ("", "{}", "x"),
            4,
            "Lote",
            ["column Campo (no values)", "column Nota"],
        ),
        (("group", "Campo"), ("{}", "1"), 4, "group", ["column Campo"]),
        (("group", "Campo"), ("", "{}"), 4, "Campo", ["column group (no values)"]),
    ],
)
def test_columns_that_are_not_read_are_named(
    tmp_path: Path,
    header: tuple[str, ...],
    values: tuple[str, ...],
    groups: int,
    taken: str | None,
    left: list[str],
) -> None:
    pictures = write_folders(tmp_path / "pictures", each=4)
    rows = [
        (
            path.relative_to(pictures).as_posix(),
            path.parent.name,
            *(value.format(place % 4) for value in values),
        )
        for place, path in enumerate(sorted(pictures.rglob("*.png")))
    ]
    table = write_table(tmp_path / "labels.csv", rows, ("image", "label", *header))
    readings = Readings()
    found = read_labelled(pictures, table, readings=readings)
    assert len({each.group for each in found}) == groups
    assert [line for line in readings.taken if "groups" in line] == (
        [] if taken is None else [f"groups from column {taken}"]
    )
    assert readings.left == left


def test_groups_are_held_out_whole_and_every_class_is_on_both_sides() -> None:
    pictures = [
        labelled.LabelledImage(
            Path(f"{label}-{number}.png"), label, f"{label if own else ''}{number // 2}"
        )
        for label, own in (("rust", True), ("healthy", True), ("mixed", False))
        for number in range(12)
    ]
    kept, held = labelled.hold_out(pictures, 0.3)
    assert not {one.group for one in kept} & {one.group for one in held}
    assert [sum(one.label == label for one in held) for label in ("rust", "healthy", "mixed")] == [
        4,
        4,
        4,
    ]
    assert labelled.hold_out(pictures, 0.3) == (kept, held)


def test_a_class_that_keeps_too_few_pictures_to_learn_from_is_named() -> None:
    pictures = [
        labelled.LabelledImage(Path(f"{label}-{number}.png"), label, f"{label}{number}")
        for label in ("rust", "healthy")
        for number in range(5)
    ]
    with pytest.raises(
        UsageError, match=r"healthy \(3\), rust \(3\) left to learn from, with 4 held out"
    ):
        labelled.hold_out(pictures, 0.4)
    with pytest.raises(UsageError, match=r"healthy \(0\), rust \(0\)"):
        labelled.hold_out(pictures, 1.0)
