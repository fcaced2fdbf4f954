"""Comparison of back-ends on labelled photographs: what counts, what is left out, and what is refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import UsageError
from agrotools_tools.backend_comparison import BackendScore, compare_backends
from agrotools_tools.recognition.labelled_pictures import read_labelled
from agrotools_tools.recognition.pack_training import train_pack
from agrotools_tools.recognition.packs import pack_path
from support.command import run_command
from support.labelled_pictures import PLANTS, write_folders, write_table
from support.tiny_nets import use_tiny_strangers, write_tiny_net

pytestmark = pytest.mark.tools
BACKENDS = ("offline", "pack:plants")


@pytest.fixture(autouse=True)
def photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twelve photographs, a net that takes each class for another one, and a pack learnt from 24 others."""
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("agrotools_tools.vision.nets.nets_folder", lambda: tmp_path / "nets")
    write_tiny_net(tmp_path / "nets", "weeds", {"a": (200, 30, 30), "b": (30, 200, 30)})
    write_leaf_net(tmp_path / "nets", [*PLANTS][1:] + [*PLANTS][:1])
    use_tiny_strangers(monkeypatch, tmp_path)
    train_pack(read_labelled(write_folders(tmp_path / "learnt")), pack_path("plants"))
    return write_folders(tmp_path / "held", each=4, seed=50_000)


def write_leaf_net(folder: Path, names: Sequence[str]) -> None:
    leaves = dict(zip(names, PLANTS.values(), strict=True))
    write_tiny_net(folder, "leaves", leaves, crops={"bean": list(leaves)})


def compared(
    folder: Path, arguments: dict[str, Any] | None = None, **more: Any
) -> Sequence[BackendScore]:
    pictures = read_labelled(folder, to_learn=False)
    return compare_backends("diagnose_pest_disease", BACKENDS, pictures, arguments or {}, **more)


def test_packs_beat_nets_that_take_one_class_for_another(photographs: Path) -> None:
    net, pack = compared(photographs)
    assert net.score.value == 0
    assert (pack.likeliest, pack.difference.value) == (1, pytest.approx(pack.score.value))
    assert pack.better == round(12 * pack.score.value) > 0
    assert (pack.worse, pack.seen, pack.unreadable) == (0, 0, ())
    shown = run_command(
        "tools", "compare", "--backends", ",".join(BACKENDS), "--data", str(photographs)
    )
    right = [photo for photo in pack.photos if photo.agrees]
    assert len(right) == round(12 * pack.score.value)
    assert all(photo.tool == photo.table for photo in right)
    assert not any(photo.agrees for photo in net.photos)
    rows = [line for line in shown.stdout.splitlines() if ".png" in line]
    assert len(rows) == len(pack.photos) == 12


def test_labels_that_only_a_pack_knows_decide_nothing(tmp_path: Path, photographs: Path) -> None:
    """The net has another name for a "macchia bruna", so that it could never agree with this label."""
    for folder in (tmp_path / "learnt", photographs):
        (folder / "brown leaf").rename(folder / "macchia bruna")
    train_pack(read_labelled(tmp_path / "learnt"), pack_path("italian"))
    (photographs / "yellow leaf").rename(photographs / "coffee rust")
    backends = ("offline", "pack:italian")
    pictures = read_labelled(photographs, to_learn=False)
    said: list[str] = []
    scores = compare_backends("diagnose_pest_disease", backends, pictures, {}, progress=said.append)
    assert "macchia bruna" in said[0]
    for each in scores:
        assert each.not_compared == {"macchia bruna": 4}
        assert {photo.table for photo in each.photos} == {"green leaf", "coffee rust"}
        assert each.score.n == 8
        assert each.unknown == ("coffee rust",), "the knowledge base knows it, so that it counts"
    unknown = [one for one in pictures if one.label == "macchia bruna"]
    said.clear()
    net, pack = compare_backends(
        "diagnose_pest_disease", backends, unknown, {}, progress=said.append
    )
    assert "only back-ends that use your names can be right here" in said[0]
    assert net.unknown == ("macchia bruna",)
    assert (net.score.value, pack.score.n) == (0.0, 4)


def test_photographs_that_a_pack_learnt_from_are_counted(tmp_path: Path) -> None:
    net, pack = compared(tmp_path / "learnt")
    assert (net.seen, pack.seen) == (0, 24)
    shown = run_command(
        "tools", "compare", "--backends", ",".join(BACKENDS), "--data", str(tmp_path / "learnt")
    )
    assert "learnt from 24 of these photographs" in shown.stdout


def test_photographs_that_cannot_be_read_are_left_out_and_not_wrong(photographs: Path) -> None:
    for name in ("0.png", "1.png"):
        (photographs / "green leaf" / name).write_bytes(b"no picture")
    _, pack = compared(photographs)
    assert (pack.unreadable, pack.score.n, pack.likeliest) == (("0.png", "1.png"), 10, 1)
    for path in photographs.rglob("*.png"):
        path.write_bytes(b"no picture")
    with pytest.raises(UsageError, match="no photograph can be read"):
        compared(photographs)


def test_arguments_that_no_call_accepts_are_errors_not_refusals(photographs: Path) -> None:
    with pytest.raises(UsageError, match="unknown argument foo"):
        compared(photographs, {"foo": "1"})


def test_a_back_end_that_does_not_know_the_crop_has_no_answer(photographs: Path) -> None:
    """The pack's labels do not tell their crop, so only the net refuses; where all do, the call is wrong."""
    net, pack = compared(photographs, {"crop": "mango"})
    assert (net.refused, net.score.value) == (1, 0)
    assert pack.score.value > 0.5
    train_pack(read_labelled(photographs.parent / "learnt"), pack_path("mango"), shows=("mango",))
    pictures = read_labelled(photographs, to_learn=False)
    with pytest.raises(UsageError, match="knows no leaves of coffee"):
        compare_backends(
            "diagnose_pest_disease", ("offline", "pack:mango"), pictures, {"crop": "coffee"}
        )


def test_labels_of_counts_are_numbers_and_two_back_ends_are_needed(
    tmp_path: Path, photographs: Path
) -> None:
    table = write_table(
        tmp_path / "labels.csv", [("green leaf/0.png", "2"), ("green leaf/1.png", "many")]
    )
    pictures = read_labelled(photographs, table, to_learn=False)
    with pytest.raises(UsageError, match="'many', not a count"):
        compare_backends("count_objects", ("offline", "rules"), pictures, {"target": "apple"})
    for label in ("-3", "1e309", "nan"):
        wrong = [("green leaf/0.png", "2"), ("green leaf/1.png", label)]
        pictures = read_labelled(photographs, write_table(table, wrong), to_learn=False)
        with pytest.raises(
            UsageError, match=rf"row 3 of labels.csv: the label of 1.png is '{label}', not a count"
        ):
            compare_backends("count_objects", ("offline", "rules"), pictures, {"target": "apple"})
    offline, rules = compare_backends(
        "count_objects", ("offline", "rules"), pictures[:1], {"target": "apple"}
    )
    assert offline.metric == rules.metric == "mean absolute error of counts"
    assert rules.score.n == 1
    counted = rules.photos[0]
    assert (counted.table, counted.agrees) == (2, counted.tool == 2)
    if counted.tool is not None:
        assert counted.difference == counted.tool - 2
    pictures = read_labelled(photographs, to_learn=False)
    for tool, backends, message in (
        ("diagnose_pest_disease", ("offline", "offline"), "nothing to compare"),
        ("calculate", BACKENDS, "no names and no count"),
        ("diagnose_pest_disease", ("offline", "vlm"), "compared by runs"),
        ("diagnose_pest_disease", ("offline", "pack:none"), "there is no pack none"),
    ):
        with pytest.raises(UsageError, match=message):
            compare_backends(tool, backends, pictures, {})
