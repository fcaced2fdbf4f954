"""A small benchmark with every kind of slot and file, made by hand."""

from pathlib import Path

import numpy as np
from PIL import Image

from agrotools.core import Sample
from agrotools.core.files import sha256_of_file
from agrotools.formats.benchmark import FILES_FOLDER, BenchmarkHeader, SourceNote
from agrotools_build.export.folder import write_benchmark

TOOLS = ("count_objects", "calculate", "plot", "lookup_agronomy", "identify_weed")
HEADER = BenchmarkHeader(
    name="every-slot",
    version="3",
    licence="CC BY 4.0",
    description="One question of every kind.",
    toolset=TOOLS,
    sources=(
        SourceNote(
            name="Orchard <b>A</b> | north",
            licence="CC BY 4.0",
            url="https://example.org/a_b",
            citation="Miller: Apples.",
            note="Counted by hand.",
        ),
        SourceNote(name="Paddock", licence="MIT"),
    ),
    metadata={
        "seed": 7,
        "dropped": {"duplicate": 2, "a tool raised": 1},
        "orchard": {"tiles": 4, "tiles_dropped": {"empty": 3}},
        "absent": ["weedmap", "fpcd"],
    },
)
SPEC = {
    "kind": "bar", "series": [{"name": "apples", "x": ["left", "right"], "y": [12.0, 9.0]}], "title": "Apples",
    "x_label": "tree", "y_label": "apples", "x_unit": None, "y_unit": None, "legend": False,
}  # fmt: skip


def write_every_slot(folder: Path, header: BenchmarkHeader = HEADER) -> Path:
    """Write the benchmark into ``folder``: seven samples, on two photos, a raster, a class map and a table."""
    (folder / FILES_FOLDER / "deep").mkdir(parents=True)
    _files(folder)
    write_benchmark(folder, header, samples(folder))
    return folder


def samples(folder: Path) -> list[Sample]:
    """The samples whose files lie in ``folder``."""
    left, right = (
        _file(folder, "image_1.png", "left.png"),
        _file(folder, "image_2.png", "deep/right tree.png"),
    )
    bands = _file(
        folder,
        "bands_1.tif",
        "bands.tif",
        kind="raster",
        bands=["R", "G", "B", "NIR", "RE"],
        gsd_m=0.25,
    )
    classes = _file(folder, "labels_1.png", "labels.png", kind="mask", classes={"1": "crop"})
    table = _file(folder, "table_1.csv", "table.csv", kind="table")
    counts = [
        {"tool": "count_objects", "arguments": {"image": "image_1.png", "target": "apple"}, "group": 0,
         "observation": {"result": {"count": 11, "notes": ["by colour"]}}, "truth": {"count": 12}, "thought": "Left."},
        {"tool": "count_objects", "arguments": {"image": "image_2.png", "target": "apple"}, "group": 0,
         "observation": {"result": {"count": 9, "notes": []}}, "truth": {"count": 9}},
    ]  # fmt: skip
    first = {"$ref": "steps[0].observation.count", "value": 11}
    second = {"$ref": "steps[1].observation.count", "value": 9}
    calculated = {
        "tool": "calculate",
        "arguments": {"expression": "a - b", "variables": {"a": first, "b": second}},
        "observation": {"result": {"value": 2.0}},
        "truth": {"value": 3.0},
    }
    drawn = {
        "tool": "plot",
        "arguments": {"kind": "bar", "series": [{"name": "apples", "x": ["left", "right"], "y": [first, second]}]},
        "observation": {"result": {"spec": SPEC}, "artifacts": [{"name": "figure.png", "kind": "plot",
                                                                 "media_type": "image/png", "sha256": "ab"}]},
        "truth": {"spec": SPEC},
    }  # fmt: skip
    named = {
        "tool": "identify_weed",
        "arguments": {"image": "image_1.png"},
        "observation": {
            "error": {
                "kind": "low_confidence",
                "message": "none is likely",
                "candidates": ["Lantana"],
            }
        },
        "truth": {"best": {"name": "Lantana"}},
    }
    looked_up = {
        "tool": "lookup_agronomy",
        "arguments": {"query": "lantana", "topic": "management"},
        "observation": {"result": {"hits": []}},
        "truth": {"hits": []},
    }

    def sample(
        number: int, query: str, files: list, answer_type: str, steps: list, *answer: dict
    ) -> Sample:
        eligible = answer_type != "plot" and all(file["kind"] == "image" for file in files)
        return Sample.model_validate({
            "id": f"every-{number}", "query": query, "files": files, "family": "CM", "task_type": "organ_counting",
            "answer_type": answer_type, "template": "by_hand", "source": HEADER.sources[number > 4].name,
            "toolset": TOOLS, "reference": {"steps": steps}, "answer": answer, "no_tool_eligible": eligible,
            "metadata": {"subject": f"tree-{number}"},
        })  # fmt: skip

    both = [left, right]
    return [
        sample(1, "How many more apples hang on the left tree?", both, "tolerance", [*counts, calculated],
               {"type": "tolerance", "name": "more", "label": "more apples", "value": 3.0, "abs_tol": 1.0,
                "from": "steps[2].observation.value"}),
        sample(2, "Draw both counts as bars.", both, "plot", [*counts, drawn],
               {"type": "plot", "name": "chart", "label": "apples", "value": SPEC,
                "from": "steps[2].observation.spec"}),
        sample(3, "Which photo shows more apples, image_1.png or image_2.png?", both, "exact", counts,
               {"type": "file", "name": "fuller", "label": "fuller photo", "value": "image_1.png",
                "choices": ["image_1.png", "image_2.png"],
                "from": "'image_1.png' if steps[0].observation.count > steps[1].observation.count else 'image_2.png'"}),
        sample(4, "这棵树上有苹果吗？", [right], "exact",
               [counts[0] | {"arguments": {"image": "image_2.png", "target": "apple"}}],
               {"type": "boolean", "name": "any", "label": "any apple", "value": True,
                "from": "steps[0].observation.count > 0"}),
        sample(5, "Which weed is this, <script>alert(1)</script> | and `what` next to it?", [left], "exact", [named],
               {"type": "exact", "name": "weed", "label": "weed", "value": "Lantana",
                "aliases": {"Lantana": ["Lantana camara"]}, "choices": ["Lantana", "Parthenium"],
                "from": "steps[0].observation.best.name"}),
        sample(6, "What should be done about it?", [left], "open_text", [named, looked_up],
               {"type": "open_text", "name": "advice", "label": "advice",
                "facts": [{"phrases": ["pull it out", "remove by hand"], "not": ["spray it"]},
                          {"phrases": ["burn it"]}]}),
        sample(7, "Which bands tell them apart?", [bands, classes, table], "exact",
               [calculated | {"arguments": {"expression": "1 + 1"}}],
               {"type": "choice_set", "name": "bands", "label": "bands", "value": ["NIR", "RE"],
                "choices": ["R", "G", "B", "NIR", "RE"], "aliases": {"RE": ["red edge"]},
                "from": "['NIR', 'RE']"}),
    ]  # fmt: skip


def _files(folder: Path) -> None:
    random = np.random.default_rng(1)
    for name in ("left.png", "deep/right tree.png"):
        Image.fromarray(random.integers(0, 255, (24, 32, 3), dtype=np.uint8)).save(
            folder / FILES_FOLDER / name
        )
    Image.fromarray(random.integers(0, 2, (24, 32), dtype=np.uint8)).save(
        folder / FILES_FOLDER / "labels.png"
    )
    _write_bands(
        folder / FILES_FOLDER / "bands.tif", random.integers(0, 9000, (5, 24, 32), dtype=np.uint16)
    )
    (folder / FILES_FOLDER / "table.csv").write_text("n,yield\n0,4.1\n50,5.2\n")


def _write_bands(path: Path, bands: np.ndarray) -> None:
    import rasterio
    from rasterio.transform import from_origin

    profile = {"driver": "GTiff", "count": 5, "height": 24, "width": 32, "dtype": "uint16", "crs": "EPSG:32632",
               "transform": from_origin(500_000, 5_800_000, 0.25, 0.25)}  # fmt: skip
    with rasterio.open(path, "w", **profile) as target:
        target.write(bands)


def _file(folder: Path, name: str, stored: str, **more: object) -> dict:
    path = f"{FILES_FOLDER}/{stored}"
    size = {} if stored.endswith("csv") else {"width_px": 32, "height_px": 24}
    return {
        "name": name,
        "path": path,
        "kind": "image",
        "sha256": sha256_of_file(folder / path),
        **size,
        **more,
    }
