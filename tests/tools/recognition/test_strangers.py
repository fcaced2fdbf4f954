"""Pictures of other things: which kinds ship, which are no strangers to a pack, and what a pack makes of them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agrotools.core import ToolError, UsageError
from agrotools_tools.recognition import strangers as of_strangers
from agrotools_tools.recognition.labelled_pictures import read_labelled, read_others
from agrotools_tools.recognition.pack_checks import MOST_STRANGERS, check_pack
from agrotools_tools.recognition.pack_features import shipped_features
from agrotools_tools.recognition.pack_heads import TrainingData
from agrotools_tools.recognition.pack_training import train_pack
from agrotools_tools.recognition.packs import read_pack
from agrotools_tools.recognition.strangers import (
    StrangerKind,
    Strangers,
    shown_kinds,
    stranger_kinds,
    strangers_for,
    write_strangers,
)
from support.command import run_command
from support.labelled_pictures import PLANTS, plant_picture, write_folders, write_kind
from support.tiny_nets import STRANGER_COLOURS, use_tiny_pack_nets, write_tiny_net

pytestmark = pytest.mark.tools


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    use_tiny_pack_nets(monkeypatch, tmp_path / "nets")
    return tmp_path


def test_the_strangers_that_ship_fit_the_nets_that_ship() -> None:
    kinds = stranger_kinds()
    every = strangers_for(shipped_features())
    assert len(every) == sum(kind.pictures for kind in kinds)
    assert np.bincount(every.kinds).tolist() == [kind.pictures for kind in kinds]
    assert np.isfinite(every.features).all()
    photographs = [kind for kind in kinds if kind.source]
    assert len(photographs) >= 10
    licences = ("CC BY 4.0", "CC BY 2.0", "MIT")
    assert all(any(one in kind.source for one in licences) for kind in photographs)


@pytest.mark.parametrize(
    ("labels", "shows", "expected"),
    [
        (("coffee_rust", "healthy"), (), ("leaves of coffee",)),
        (("rust", "healthy"), (), ()),
        (("rust", "healthy"), ("Coffee",), ("leaves of coffee",)),
        (("Lantana", "negative"), (), ("weeds of rangeland", "rangeland without weeds")),
        (("chinee_apple", "lantana"), (), ("weeds of rangeland",)),
        (("ripe apple", "unripe apple"), (), ("apples on trees", "fruit in shops")),
        (("pineappleweed", "coffeeberry"), (), ()),
        (("ruggine", "sana"), ("fagiolo",), ("leaves of bean",)),
        (("ferrugem do café", "café sadio"), (), ("leaves of coffee",)),
        (("fagiolo", "caffè"), (), ("leaves of bean", "leaves of coffee")),
        (("rust", "healthy"), ("urad",), ("leaves of black gram",)),
        (("rust", "healthy"), ("agrumi",), ("leaves of citrus",)),
        (("rust", "healthy"), ("fragola",), ()),
        (("rust", "healthy"), ("lenticchia",), ()),
    ],
)
def test_what_the_pictures_show_is_no_stranger(
    labels: tuple[str, ...], shows: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert shown_kinds(stranger_kinds(), labels, shows) == expected


def test_other_things_get_no_name_and_own_pictures_do(tiny: Path) -> None:
    train_pack(read_labelled(write_folders(tiny / "pictures")), tiny / "pack")
    pack = read_pack(tiny / "pack")

    def share_known(colours: dict[str, tuple[int, int, int]], seed: int) -> float:
        pictures = [
            plant_picture(colour, seed + n) for colour in colours.values() for n in range(6)
        ]
        return float(np.mean([pack.judge(one).is_known for one in pictures]))

    assert share_known(dict(PLANTS), 31_000) >= 0.7
    assert share_known(dict(STRANGER_COLOURS), 32_000) <= 0.05


def test_look_alikes_that_a_user_gives_get_no_name(tiny: Path) -> None:
    """Golden leaves look like the yellow ones: without pictures of them, many get their name."""
    golden = (205, 195, 40)
    pictures = read_labelled(write_folders(tiny / "pictures"))
    write_kind(tiny / "other" / "golden leaf", golden, range(41_000, 41_020))
    without = train_pack(pictures, tiny / "without").figures.strangers
    others = read_others(tiny / "other")
    given = train_pack(pictures, tiny / "with", others=others).figures.strangers
    assert without.look_alikes == {}
    assert set(given.look_alikes) == {"golden leaf"}
    new = [plant_picture(golden, 42_000 + n) for n in range(20)]

    def share_known(name: str) -> float:
        pack = read_pack(tiny / name)
        return float(np.mean([pack.judge(one).is_known for one in new]))

    assert share_known("with") <= 0.1
    assert share_known("without") > 0.3


def test_pictures_of_other_things_that_cannot_be_used(tiny: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        read_others(tiny / "absent")
    (tiny / "empty").mkdir()
    with pytest.raises(UsageError, match="there are no pictures"):
        read_others(tiny / "empty")
    folder = write_folders(tiny / "pictures")
    with pytest.raises(UsageError, match="is one of your labelled pictures, too"):
        train_pack(read_labelled(folder), tiny / "pack", others=read_others(folder / "green leaf"))
    assert not (tiny / "pack").exists()


def test_a_kind_that_the_user_names_is_not_learnt_as_a_stranger(tiny: Path) -> None:
    pictures = read_labelled(write_folders(tiny / "pictures"))
    info = train_pack(pictures, tiny / "sky", shows=("sky",))
    assert (info.shows, info.figures.strangers.not_strange) == (("sky",), ("sky",))
    assert "sky" not in info.figures.strangers.by_kind


def test_the_command_says_what_counts_as_other_things_and_what_the_pack_makes_of_them(
    tiny: Path,
) -> None:
    folder = write_folders(tiny / "pictures")
    words = ("tools", "packs", "train", "--images", str(folder), "--out", "mine")
    run = run_command(*words, "--shows", "any")
    assert run.returncode == 0, run.stderr
    assert "brick" in run.stderr  # which kinds are learnt, so that the user can object
    assert "--shows" in run.stderr
    for said in (
        "own pictures:",
        "pictures of other things (56 of 7 kinds",
        "left out",
        "accuracy by pictures",
        "the nearest to yours",
        "not tested against look-alikes",
    ):
        assert said in run.stdout
    again = run_command(
        "tools",
        "packs",
        "train",
        "--images",
        str(folder),
        "--out",
        "sky",
        "--shows",
        "sky",
        "--json",
    )
    figures = json.loads(again.stdout)["figures"]
    assert figures["strangers"]["not_strange"] == ["sky"]
    unknown = run_command(
        "tools", "packs", "train", "--images", str(folder), "--out", "moss", "--shows", "moss"
    )
    assert "warning: the knowledge base has no crop moss" in unknown.stderr
    assert "pictures of plum count as other things" in unknown.stderr
    assert "--shows plum" in unknown.stderr
    for shown in (run, again):
        assert "warning: the knowledge base" not in shown.stderr


def test_easy_kinds_of_other_things_do_not_loosen_the_limit() -> None:
    """Everyday photographs far from everything are learnt, yet as many of the hard strangers as before get a name."""
    draw = np.random.default_rng(3)
    own = draw.normal(0.0, 1.0, (40, 8)).astype(np.float32)
    own[:20, 0] += 3
    groups = tuple(str(number) for number in range(40))
    data = TrainingData(own, (8,), np.repeat([0, 1], 20), groups, ("a", "b"), ())
    near = draw.normal(0.8, 1.0, (80, 8)).astype(np.float32)
    far = draw.normal(9.0, 0.1, (400, 8)).astype(np.float32)
    numbers = np.concatenate([np.repeat([0, 1], 40), np.repeat([2, 3], 200)])
    names = ("near", "nearer", "far", "farther")
    every = Strangers(np.concatenate([near, far]), numbers, names)
    as_everyday = replace(every, everyday=frozenset({2, 3}))

    def named_of_near(strangers: Strangers) -> float:
        by_kind = check_pack(data, strangers).figures.strangers.by_kind
        return (by_kind["near"] + by_kind["nearer"]) / 2

    assert named_of_near(as_everyday) <= MOST_STRANGERS
    assert named_of_near(every) > MOST_STRANGERS


def test_strangers_of_another_folder_are_read_instead(tiny: Path) -> None:
    features, folder = shipped_features(), tiny / "more"
    folder.mkdir()
    pictures = {"moss": [plant_picture((60, 90, 20), seed) for seed in (51_000, 51_001)]}
    write_strangers(folder, [StrangerKind(name="moss", pictures=0)], pictures, features, "a test")
    read = strangers_for(features, folder=folder)
    assert (read.names, len(read)) == (("moss",), 2)
    assert "moss" not in strangers_for(features).names


def test_strangers_of_other_nets_are_refused(tiny: Path) -> None:
    write_tiny_net(tiny / "nets", "weeds", {"c": (10, 30, 30), "b": (30, 200, 30)})
    pictures = read_labelled(write_folders(tiny / "pictures"))
    with pytest.raises(ToolError, match="of other nets"):
        train_pack(pictures, tiny / "pack")


def test_damaged_strangers_are_refused(tiny: Path) -> None:
    (tiny / "nets" / of_strangers.FEATURES).write_bytes(b"no archive")
    of_strangers._read.cache_clear()  # pyright: ignore[reportPrivateUsage]
    pictures = read_labelled(write_folders(tiny / "pictures"))
    with pytest.raises(ToolError, match="not those that its description names"):
        train_pack(pictures, tiny / "pack")


def test_more_pictures_of_a_class_give_a_longer_curve(tiny: Path) -> None:
    """With 30 pictures a class, accuracy is also measured at 10 and 20."""
    pictures = read_labelled(
        write_folders(tiny / "pictures", ("green leaf", "brown leaf"), each=30)
    )
    curve = train_pack(pictures, tiny / "pack").figures.curve
    assert [point.pictures for point in curve] == [10, 20, 24]
    assert curve[-1].accuracy == 1
