"""The back-end that knows agrotools' own drawings of pests and weeds, and nothing else."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from agrotools.build.scenes.insects import SPECIES
from agrotools.build.scenes.pest_plates import make_pest_plate
from agrotools.build.scenes.weed_plates import make_weed_plate
from agrotools.build.scenes.weed_shapes import WEED_SHAPES
from agrotools.core import ToolError
from agrotools.core.benchmark_header import BenchmarkHeader
from agrotools.formats.benchmark import ContentDigest
from agrotools.tools import diagnose_pest_disease, identify_weed
from agrotools.tools.workspace import artifacts_in


def _asked(tool: Any, image: Path, backend: str | None, **arguments: Any) -> Any:
    with artifacts_in(image.parent / "made", backend=backend):
        return tool(image=image, **arguments)


def _named(tool: Any, image: Path, **arguments: Any) -> Any:
    """What the back-end says; None where it names nothing because the picture is unlike all it knows."""
    try:
        return _asked(tool, image, "schematic", **arguments)
    except ToolError as error:
        if error.kind != "low_confidence":
            raise
        return None


def _plate(folder: Path, rgb: np.ndarray) -> Path:
    path = folder / "plate.png"
    Image.fromarray(rgb).save(path)
    return path


@pytest.mark.slow
def test_most_easy_drawings_of_pests_are_named_and_say_that_they_are_drawings(tmp_path: Path) -> None:
    right = 0
    for number, insect in enumerate(SPECIES):
        image = _plate(tmp_path, make_pest_plate(number + 900, 0, insect.slug).images["rgb"])
        if (found := _named(diagnose_pest_disease, image, kind="pest")) is None:
            continue
        assert "schematic" in found.flags
        assert any("no photograph" in note for note in found.notes)
        right += found.best == f"pest.{insect.slug}"
    assert right >= 0.7 * len(SPECIES)


@pytest.mark.slow
def test_most_easy_drawings_of_weeds_are_named(tmp_path: Path) -> None:
    right = 0
    for number, slug in enumerate(WEED_SHAPES):
        image = _plate(tmp_path, make_weed_plate(number + 900, 0, slug).images["rgb"])
        found = _named(identify_weed, image)
        right += found is not None and found.kb_id == f"weed.{slug}" and "schematic" in found.flags
    assert right >= 0.7 * len(WEED_SHAPES)


def test_without_it_drawings_are_not_named(tmp_path: Path) -> None:
    image = _plate(tmp_path, make_pest_plate(1, 0, "flea_beetle").images["rgb"])
    with pytest.raises(ToolError) as raised:
        _asked(diagnose_pest_disease, image, None, kind="pest")
    assert raised.value.kind == "backend_unavailable"


def test_a_texture_is_no_drawing_that_it_knows(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    coarse = rng.integers(40, 220, (24, 32, 3)).astype(np.uint8)
    image = _plate(tmp_path, np.asarray(Image.fromarray(coarse).resize((512, 384), Image.Resampling.NEAREST)))
    with pytest.raises(ToolError) as raised:
        _asked(diagnose_pest_disease, image, "schematic", kind="pest")
    assert raised.value.kind == "low_confidence"


def test_diseases_are_left_to_the_shipped_net(tmp_path: Path) -> None:
    image = _plate(tmp_path, make_pest_plate(1, 0, "flea_beetle").images["rgb"])
    with pytest.raises(ToolError) as plain:
        _asked(diagnose_pest_disease, image, None, kind="disease")
    with pytest.raises(ToolError) as schematic:
        _asked(diagnose_pest_disease, image, "schematic", kind="disease")
    assert str(plain.value) == str(schematic.value)


def test_a_benchmark_says_which_back_ends_it_needs_and_only_then_are_they_in_its_hash() -> None:
    plain = BenchmarkHeader(name="x", version="1", licence="CC0", toolset=("identify_weed",))
    needing = plain.model_copy(update={"backends": {"identify_weed": "schematic"}})
    hashes = [ContentDigest(header).hexdigest(lambda: ()) for header in (plain, needing)]
    assert hashes[0] != hashes[1]
    without = plain.model_dump_json(by_alias=True, exclude={"metadata", "backends"})
    assert "backends" not in without
