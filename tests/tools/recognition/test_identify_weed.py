"""identify_weed with small nets made here: names, narrowing, refusals, back-ends, and bad input."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import artifacts_in
from agrotools.core import UsageError
from agrotools_tools.recognition.identify_weed import WeedIdentity
from agrotools_tools.recognition.labelled_pictures import read_labelled
from agrotools_tools.recognition.pack_training import train_pack
from agrotools_tools.recognition.packs import pack_path
from support.labelled_pictures import PLANTS, plant_picture, write_folders
from support.tiny_nets import Colour, use_tiny_strangers, write_tiny_net
from support.tool_errors import tool_error

WEEDS: dict[str, Colour] = {
    "lantana": (200, 60, 60),
    "rubber_vine": (60, 160, 60),
    "siam_weed": (60, 60, 200),
    "negative": (150, 130, 110),
}


@pytest.fixture(autouse=True)
def net_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "nets"
    write_tiny_net(folder, "weeds", WEEDS, threshold=0.6)
    monkeypatch.setattr("agrotools_tools.vision.nets.nets_folder", lambda: folder)
    use_tiny_strangers(monkeypatch, folder)
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    return folder


def saved(folder: Path, colour: Colour, name: str = "weed.png", size: int = 96) -> Path:
    Image.fromarray(plant_picture(colour, 1, size)).save(folder / name)
    return folder / name


def identified(image: Path, backend: str | None = None, **arguments: Any) -> WeedIdentity:
    with artifacts_in(image.parent / "made", backend=backend):
        return get_tool("identify_weed")(image=image, **arguments)


fault = partial(tool_error, identified)


def test_weeds_get_the_names_of_the_knowledge_base_and_other_plants_none(tmp_path: Path) -> None:
    found = identified(saved(tmp_path, WEEDS["lantana"]))
    assert (found.best, found.kb_id) == ("weed.lantana", "weed.lantana")
    assert (found.species, found.common_name) == ("Lantana camara", "lantana")
    assert (found.growth_form, found.is_weed, found.abstained) == ("shrub", True, False)
    assert (found.candidates[0].label, len(found.candidates)) == ("lantana", 3)
    scores = [one.score for one in found.candidates]
    assert scores == sorted(scores, reverse=True)
    assert (tmp_path / "made" / found.overlay.name).stat().st_size < 100_000
    assert any("net weeds" in note for note in found.notes)
    found = identified(saved(tmp_path, WEEDS["negative"]), top_k=1)
    assert (found.best, found.kb_id, found.is_weed) == ("negative", None, False)
    assert found.growth_form == "unknown"
    assert [one.kind for one in found.candidates] == ["other"]


def test_what_is_unknown_or_not_sure_is_not_named(tmp_path: Path, net_folder: Path) -> None:
    between = tuple(
        int(np.mean(part)) for part in zip(WEEDS["lantana"], WEEDS["siam_weed"], strict=True)
    )
    error = fault(saved(tmp_path, between))  # pyright: ignore[reportArgumentType]
    assert (error.kind, len(error.candidates)) == ("low_confidence", 3)
    assert {"weed.lantana", "weed.siam_weed"} & set(error.candidates)
    assert "packs train" in (error.setup or "")
    near: Any = tuple(
        round(0.7 * a + 0.3 * b) for a, b in zip(WEEDS["lantana"], WEEDS["negative"], strict=True)
    )
    assert identified(saved(tmp_path, near), candidates=["lantana"]).best == "weed.lantana"
    abstention = {"score": "max_softmax", "threshold": 0.5, "most_negative": 0.01}
    write_tiny_net(net_folder, "weeds", WEEDS, abstention=abstention)
    assert fault(saved(tmp_path, near), candidates=["lantana"]).kind == "low_confidence"
    write_tiny_net(net_folder, "weeds", WEEDS, threshold=0.0, temperature=10.0)
    between = tuple(int(np.mean(parts)) for parts in zip(*WEEDS.values(), strict=True))
    found = identified(saved(tmp_path, between))  # pyright: ignore[reportArgumentType]
    assert found.candidates[0].score < 0.5
    assert (found.best, found.species, found.is_weed, found.abstained) == (None, None, None, True)
    assert "uncertain" in found.flags


def test_candidates_narrow_the_choice(tmp_path: Path) -> None:
    image = saved(tmp_path, WEEDS["lantana"])
    found = identified(image, candidates=["Cryptostegia grandiflora", "weed.siam_weed"])
    assert {one.label for one in found.candidates} == {"rubber_vine", "siam_weed"}
    assert sum(one.score for one in found.candidates) == pytest.approx(1)
    assert "contradicts_candidates" in found.flags
    sure = identified(image, candidates=["Lantana", "rubber vine", "giant hogweed"])
    assert (sure.best, sure.flags) == ("weed.lantana", ("candidates_unknown",))
    assert any("giant hogweed" in note for note in sure.notes)
    error = fault(image, candidates=["giant hogweed"])
    assert (error.kind, error.argument) == ("backend_unavailable", "candidates")
    assert "rubber_vine" in error.candidates


def test_a_region_is_looked_at_alone_after_exif_turned_the_picture(tmp_path: Path) -> None:
    both = np.concatenate(
        [plant_picture(WEEDS["lantana"], 1, 96), plant_picture(WEEDS["siam_weed"], 2, 96)], axis=1
    )
    Image.fromarray(both).save(tmp_path / "two.png")
    assert identified(tmp_path / "two.png", region=[0, 0, 96, 96]).best == "weed.lantana"
    assert identified(tmp_path / "two.png", region=[96, 0, 192, 96]).best == "weed.siam_weed"
    small = identified(tmp_path / "two.png", region=[96, 0, 300, 40])
    assert {"low_resolution", "region_clipped"} <= set(small.flags)
    assert fault(tmp_path / "two.png", region=[500, 500, 600, 600]).kind == "region_empty"
    upright = np.concatenate(
        [plant_picture(WEEDS["lantana"], 1, 96), plant_picture(WEEDS["siam_weed"], 2, 96)]
    )
    stored = Image.fromarray(np.rot90(upright))
    exif = Image.Exif()
    exif[0x0112] = 6
    stored.save(tmp_path / "turned.jpg", exif=exif, quality=95)
    assert identified(tmp_path / "turned.jpg", region=[0, 0, 96, 96]).best == "weed.lantana"
    assert identified(tmp_path / "turned.jpg", region=[0, 96, 96, 192]).best == "weed.siam_weed"


def test_a_pack_names_own_plants(tmp_path: Path) -> None:
    pictures = write_folders(tmp_path / "pictures", each=6)
    train_pack(read_labelled(pictures), pack_path("mine"))
    image = saved(tmp_path, PLANTS["yellow leaf"], size=48)
    found = identified(image, "pack:mine")
    assert (found.best, found.kb_id, found.is_weed) == ("yellow leaf", None, None)
    assert any("out of fold" in note for note in found.notes)
    assert not {"seen_in_training", "not_of_weeds"} & {*found.flags}
    assert "seen_in_training" in identified(pictures / "green leaf" / "0.png", "pack:mine").flags
    assert fault(saved(tmp_path, (90, 140, 250), size=48), "pack:mine").kind == "low_confidence"
    error = fault(image, "pack:other")
    assert error.kind == "backend_unavailable"
    assert "mine" in (error.setup or "")


@pytest.mark.parametrize(
    "labels",
    [("bean rust", "angular leaf spot", "bean healthy"), ("own problem", "another", "healthy")],
)
def test_a_pack_of_diseases_is_flagged(tmp_path: Path, labels: tuple[str, ...]) -> None:
    pictures = write_folders(tmp_path / "pictures", each=6)
    for plant, label in zip(PLANTS, labels, strict=True):
        (pictures / plant).rename(pictures / label)
    train_pack(read_labelled(pictures), pack_path("bean"))
    found = identified(saved(tmp_path, PLANTS["green leaf"], size=48), "pack:bean")
    assert (found.best, found.is_weed) == (labels[0], None)
    assert "not_of_weeds" in found.flags
    assert any("diagnose_pest_disease" in note for note in found.notes)


@pytest.mark.process
@pytest.mark.parametrize("backend", ["pack:none", "pack:", "guess", "offline:x"])
def test_back_ends_that_lead_nowhere_are_refused_before_a_run(backend: str) -> None:
    with pytest.raises(UsageError) as caught:
        ToolExecutor(backends={"identify_weed": backend})
    assert caught.value.hint
