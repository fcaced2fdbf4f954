"""A folder in the dialog form of GTA and ThinkGeo with AgroTools' tasks, tools and answer types: made-up questions."""

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support.made_gta import draw

Entry = dict[str, Any]


class Call(NamedTuple):
    """A call, and what it returned: a text, or the path of a picture."""

    tool: str
    arguments: Entry
    returned: str


class Question(NamedTuple):
    """A made-up question. ``said``: the last message of the dialog; ``more``: fields beside those of GTA."""

    query: str
    task: str
    files: tuple[str, ...]
    calls: tuple[Call, ...]
    gold: Any
    said: str
    more: Entry


def _label(*names: str, wrong: Sequence[str] = ()) -> Entry:
    return {"whitelist": [[*names]], "blacklist": [[*wrong]] if wrong else None}


_ADVICE = (
    "The leaf has brown rust. Remove the infected leaves and burn them. Spray a fungicide with"
    " tebuconazole before heading, and not in wind."
)
_FIGURE = """```python
def solution():
    import matplotlib.pyplot as plt
    figure = plt.figure()
    plt.bar(["NDVI", "NDRE"], [0.71, 0.44])
    return figure
```"""
QUESTIONS = (
    Question(
        "Which insect feeds on this rice leaf?",
        "Pest Identification and Diagnosis",
        ("images/pest/leaf_1.jpg",),
        (Call("PestDiagnosis", {"image": "images/pest/leaf_1.jpg"}, "rice leaf roller, 0.91"),),
        _label("rice leaf roller", "rice leaf folder"),
        "It is the rice leaf roller.",
        {"answer_type": "exact"},
    ),
    Question(
        "Which weed grows in this photo?",
        "Weed Identification and Retrieval",
        ("images/weed_1.jpg",),
        (
            Call("WeedIdentification", {"image": "images/weed_1.jpg"}, "parthenium, 0.83"),
            Call("AgronomyKnowledge", {"query": "parthenium"}, "Parthenium hysterophorus, a weed."),
        ),
        _label("parthenium", wrong=("Lantana", "siam weed", "snake weed")),
        "The weed is parthenium.",
        {"answer_type": "exact"},
    ),
    Question(
        "By how much is the mean apple of the first photo larger than that of the second, in millimetres?",
        "Apple Size Estimation",
        ("images/fruit_1.jpg", "images/fruit_2.jpg"),
        (
            Call("FruitSize", {"image": "images/fruit_1.jpg", "fruit": "apple"}, "80.5 mm"),
            Call("FruitSize", {"image": "images/fruit_2.jpg", "fruit": "apple"}, "72.5 mm"),
            Call("Calculator", {"expression": "80.5 - 72.5"}, "8.0"),
        ),
        _label("8.0", "8"),
        "The difference is 8.0.",
        {"answer_type": "tolerance", "abs_tol": 0.5, "unit": "mm"},
    ),
    Question(
        "How many trees are there in the plot?",
        "Tree Counting and Measurement",
        ("images/trees/plot_7.jpg",),
        (
            Call(
                "ObjectCounting", {"image": "images/trees/plot_7.jpg", "object": "tree"}, "14 trees"
            ),
        ),
        _label("14", "fourteen"),
        "There are 14 trees.",
        {"answer_type": "exact"},
    ),
    Question(
        "What percentage of the leaf is covered with lesions?",
        "Lesion Mask and Severity Analysis",
        ("images/leaf_3.jpg",),
        (Call("LesionAnalysis", {"image": "images/leaf_3.jpg"}, "lesions: 12.4 %"),),
        _label("12.4"),
        "Lesions cover 12.4 % of the leaf.",
        {"answer_type": "tolerance", "rel_tol": 0.05, "unit": "%"},
    ),
    Question(
        "How many fruits are inside the red box?",
        "Fruit and Crop Organ Counting",
        ("images/orchard.jpg",),
        (
            Call(
                "MarkedRegionExtraction",
                {"image": "images/orchard.jpg", "color": "red"},
                "images/made/region_0.jpg",
            ),
            Call("ObjectCounting", {"image": "images/made/region_0.jpg", "object": "fruit"}, "5"),
        ),
        _label("5", "five"),
        "The box holds 5 fruits.",
        {"answer_type": "exact"},
    ),
    Question(
        "Did the pond become larger between the two dates?",
        "Farm Pond Change Analysis",
        ("before/pond.jpg", "after/pond.jpg"),
        (
            Call(
                "ChangeDetection",
                {"pre_image": "before/pond.jpg", "post_image": "after/pond.jpg", "object": "pond"},
                "pond area: +12 %",
            ),
        ),
        _label("yes", wrong=("no",)),
        "Yes, it became larger.",
        {"answer_type": "exact"},
    ),
    Question(
        "Did farmland become buildings between the two dates?",
        "Farmland Change Detection",
        ("before/field.jpg", "after/field.jpg"),
        (
            Call(
                "ChangeDetection",
                {
                    "pre_image": "before/field.jpg",
                    "post_image": "after/field.jpg",
                    "object": "field",
                },
                "no change",
            ),
        ),
        _label("no"),
        "No, it did not.",
        {"answer_type": "exact"},
    ),
    Question(
        "Which two crops grow on the field?",
        "Weed-Crop Area Interpretation",
        ("images/field_2.jpg",),
        (Call("CropWeedArea", {"image": "images/field_2.jpg"}, "maize 61 %, soybean 30 %"),),
        {"whitelist": [["maize", "corn"], ["soybean", "soya"]], "blacklist": [["wheat"]]},
        "Maize and soybean grow there.",
        {"answer_type": "exact"},
    ),
    Question(
        "What is wrong with this wheat leaf, and what should I do?",
        "Crop Disease Analysis",
        ("images/leaf_4.jpg",),
        (
            Call("PestDiagnosis", {"image": "images/leaf_4.jpg"}, "brown rust, 0.88"),
            Call(
                "AgronomyKnowledge", {"query": "brown rust of wheat"}, "Burn leaves; tebuconazole."
            ),
        ),
        [_ADVICE, "Brown rust. Burn the infected leaves. Use tebuconazole before heading."],
        _ADVICE,
        {"answer_type": "open text"},
    ),
    Question(
        "Compare the apples of the two trees in a bar chart.",
        "Plotting Tasks",
        ("images/fruit_1.jpg", "images/fruit_2.jpg"),
        (
            Call("FruitSize", {"image": "images/fruit_1.jpg", "fruit": "apple"}, "80.5 mm"),
            Call("FruitSize", {"image": "images/fruit_2.jpg", "fruit": "apple"}, "72.5 mm"),
            Call(
                "PlotChart",
                {"kind": "bar", "x": ["tree 1", "tree 2"], "y": [80.5, 72.5]},
                "images/made/chart_0.png",
            ),
        ),
        None,
        "The chart is drawn.",
        {"answer_type": "plot"},
    ),
    Question(
        "Which vegetation index separates crop and soil best? Draw both.",
        "Band-Combination Selection",
        ("images/bands/tile_1.jpg",),
        (
            Call("RegionInterpretation", {"image": "images/bands/tile_1.jpg"}, "0.71 and 0.44"),
            Call("Plot", {"command": _FIGURE}, "images/made/figure_0.png"),
        ),
        None,
        "The figure is drawn.",
        {"answer_type": "plot"},
    ),
    Question(
        "What is the mean canopy height of the stand in metres?",
        "Canopy Height Mask Interpretation",
        ("images/stand.jpg",),
        (Call("CanopyHeight", {"image": "images/stand.jpg"}, "mean 17.2 m"),),
        _label("17.2"),
        "The mean height is 17.2 m.",
        {"answer_type": "tolerance", "abs_tol": 1.0, "unit": "m"},
    ),
)
"""One question for each task type of AgroTools: labels, numbers, yes and no, a set, open text, and figures."""


def entry_of(question: Question) -> Entry:
    """Return a question as an entry of ``dataset.json``."""
    dialogs: list[Entry] = [{"role": "user", "content": question.query}]
    for call in question.calls:
        function = {"name": call.tool, "arguments": call.arguments}
        thought = f"I use {call.tool}."
        dialogs.append(
            {
                "role": "assistant",
                "tool_calls": [{"type": "function", "function": function}],
                "thought": thought,
            }
        )
        kind = "image" if call.returned.startswith("images/made/") else "text"
        content = {"type": kind, "content": call.returned}
        dialogs.append({"role": "tool", "name": call.tool, "content": content})
    dialogs.append({"role": "assistant", "content": question.said})
    files = [{"type": "image", "path": path, "url": None} for path in question.files]
    return {
        "tools": [tool_meta(call.tool, call.arguments) for call in question.calls],
        "files": files,
        "dialogs": dialogs,
        "gt_answer": question.gold,
        "task_type": question.task,
        **question.more,
    }


def tool_meta(name: str, arguments: Mapping[str, Any]) -> Entry:
    """Return a tool as GTA describes its own."""
    inputs = [
        {
            "type": "image" if "image" in argument else "text",
            "name": argument,
            "description": None,
            "optional": False,
            "default": None,
        }
        for argument in arguments
    ]
    outputs = [{"type": "text", "name": None, "description": None}]
    return {"name": name, "description": f"{name}.", "inputs": inputs, "outputs": outputs}


def agrotools_entries() -> dict[str, Entry]:
    """Return the entries by key, as ``dataset.json`` holds them."""
    entries = {str(place): entry_of(question) for place, question in enumerate(QUESTIONS)}
    return copy.deepcopy(entries)


def write_agrotools(folder: Path, entries: Mapping[str, Entry] | None = None) -> Path:
    """Write the made-up questions, or other entries, and their pictures; return the folder."""
    written = agrotools_entries() if entries is None else entries
    paths = {file["path"] for entry in written.values() for file in entry["files"]}
    for number, path in enumerate(sorted(paths)):
        draw(folder / path, number)
    (folder / "dataset.json").write_text(json.dumps(written))
    return folder
