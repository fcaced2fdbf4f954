import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from agrotools.core import BenchmarkError
from agrotools.loading import load_folder
from agrotools.loading.validate import validate_folder
from agrotools_benchmarks._dialogs.gta_in import build_gta
from agrotools_build.export.gta_entries import DEFAULT_MAP

MAP = """
data = "published"
file = "queries.json"
entries = "data.queries"

[benchmark]
name = "elsewhere"
version = "2"
licence = "CC BY 4.0"

[sample]
id = "meta.uid"
query = "question.en"
tools = "toolbox"
task_type = "meta.task"

[defaults]
task_type = "unknown"
rel_tol = 0.1

[files]
at = "images"
path = "file_name"
folder = "pictures/"
type = "modality"
gsd_m = "resolution"
[file_types]
RGB = "image"

[calls]
at = "gold.steps"
tool = "tool"
arguments = "args"
thought = "why"
observation = "result"

[tools]
FruitCounter = "count_objects"
Calculator = "calculate"
Chart = "plot"

[arguments]
count_objects = { img = "image", what = "target" }

[answer]
at = "gold.answer"
type = "kind"
value = "value"
unit = "unit"
rel_tol = "tol"
[answer_types]
numeric = "tolerance"
closed = "exact"
free = "open_text"
figure = "plot"

[task_types]
"Organ counting" = "organ_counting"
"""
SERIES = [{"name": "a", "x": ["1", "2"], "y": [3, 4]}]


def _step(tool="FruitCounter", result=None, **args):
    return {
        "tool": tool,
        "args": args or {"img": "a.png", "what": "apple"},
        "why": "Count.",
        "result": result,
    }


def _entry(uid, answer, steps=None, **more):
    steps = steps if steps is not None else [_step(result={"count": 12})]
    return {
        "meta": {"uid": uid, "task": "Organ counting"}, "question": {"en": f"How many, {uid}?"},
        "toolbox": ["FruitCounter"],
        "images": [{"file_name": "a.png", "modality": "RGB", "resolution": 0.5}],
        "gold": {"steps": steps, "answer": answer}, **more,
    }  # fmt: skip


@pytest.fixture
def published(tmp_path):
    """A function that writes entries in somebody's own form and the map that explains it."""
    (tmp_path / "published" / "pictures").mkdir(parents=True)
    pixels = np.random.default_rng(3).integers(0, 255, (8, 9, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "published" / "pictures" / "a.png")
    (tmp_path / "map.toml").write_text(MAP)

    def write(*entries):
        (tmp_path / "published" / "queries.json").write_text(
            json.dumps({"data": {"queries": entries}})
        )
        return tmp_path / "map.toml"

    return write


def test_a_map_reads_another_form(published, tmp_path):
    place = published(
        _entry("n", {"kind": "numeric", "value": "12", "unit": "cm"}),
        _entry("e", {"kind": "closed", "value": "Lantana"}),
        _entry("t", {"kind": "free", "value": ["It is ripe.", "Ripe."]}),
        _entry("p", {"kind": "figure"}, [_step("Chart", kind="bar", series=SERIES)]),
        _entry(
            "two", [{"kind": "numeric", "value": 3, "tol": 0.2}, {"kind": "closed", "value": True}]
        ),
        _entry("bare", 12),
    )
    header = build_gta(place, tmp_path / "out")
    benchmark = load_folder(tmp_path / "out")
    assert (header.name, header.version, header.licence) == ("elsewhere", "2", "CC BY 4.0")
    assert not header.metadata["unread"]
    assert "agrotools ran nothing" in (tmp_path / "out" / "README.md").read_text()
    number, label, text, figure, two, bare = benchmark.samples
    assert [sample.id for sample in benchmark.samples] == ["n", "e", "t", "p", "two", "bare"]
    assert (number.query, number.task_type, number.family) == (
        "How many, n?",
        "organ_counting",
        "CM",
    )
    assert (number.files[0].name, number.files[0].gsd_m, number.files[0].width_px) == (
        "a.png",
        0.5,
        9,
    )
    step = number.reference.steps[0]
    assert (step.tool, step.arguments, step.thought) == (
        "count_objects", {"image": "a.png", "target": "apple"}, "Count.",
    )  # fmt: skip
    assert step.observation.result == {"count": 12}
    (slot,) = number.answer
    assert (slot.type, slot.value, slot.unit, slot.rel_tol) == ("tolerance", 12.0, "cm", 0.1)
    assert slot.from_ == "steps[0].observation.count"
    assert (label.answer[0].type, label.answer[0].value) == ("exact", "Lantana")
    assert text.answer[0].facts[0].phrases == ("It is ripe.", "Ripe.")
    assert [series["y"] for series in figure.answer[0].value["series"]] == [[3.0, 4.0]]
    assert [(slot.type, slot.value) for slot in two.answer] == [
        ("tolerance", 3.0),
        ("boolean", True),
    ]
    assert two.answer[0].rel_tol == 0.2
    assert (bare.answer[0].type, bare.answer[0].value) == ("exact", 12)
    assert {fault.code for fault in validate_folder(tmp_path / "out")} <= {"no_from"}


_UNREADABLE = {
    "no question": (_entry("x", 1, question={}), "there is no question at 'question.en'"),
    "no answer": (_entry("x", 1, gold={"steps": []}), "there is no answer at 'gold.answer'"),
    "no calls": (_entry("x", 1, gold={"answer": 1}), "there is no list of calls at 'gold.steps'"),
    "unknown tool": (_entry("x", 1, [_step("Oracle")]), "there is no tool 'Oracle'"),
    "broken arguments": (
        _entry("x", 1, [_step() | {"args": "{"}]),
        "arguments of FruitCounter are not JSON",
    ),
    "arguments of a list": (
        _entry("x", 1, [_step() | {"args": [1]}]),
        "arguments of FruitCounter are not an object",
    ),
    "lost file": (
        _entry("x", 1, images=[{"file_name": "b.png"}]),
        "there is no file 'pictures/b.png'",
    ),
    "file outside": (
        _entry("x", 1, images=[{"file_name": "../../map.toml"}]),
        "no file 'pictures/../../map.toml'",
    ),
    "nameless file": (_entry("x", 1, images=[{}]), "a file has no path at 'file_name'"),
    "unknown kind": (
        _entry("x", 1, images=[{"file_name": "a.png", "modality": "smell"}]),
        "file 'pictures/a.png': kind",
    ),
    "no number": (
        _entry("x", {"kind": "numeric", "value": "many"}),
        "'many' is of type tolerance and no number",
    ),
    "no figure": (_entry("x", {"kind": "figure"}), "the last call made no picture"),
    "unknown type": (
        _entry("x", {"kind": "riddle", "value": 1}),
        "of the type 'riddle': add it under [answer_types]",
    ),
    "twice": (_entry("good", 1), "its id 'good' is there twice"),
    "no object": ([1], "it is not an object"),
}


@pytest.mark.parametrize("name", _UNREADABLE)
def test_an_entry_that_cannot_be_read_is_named_with_the_reason(published, tmp_path, name):
    entry, reason = _UNREADABLE[name]
    header = build_gta(published(_entry("good", 1), entry), tmp_path / "out")
    ((said, keys),) = header.metadata["unread"].items()
    assert reason in said
    own = "good" if name == "twice" else "x"
    assert keys == (["1"] if name == "no object" else [f"1 ({own})"])
    assert f"1 of 2 entries could not be read. {said}: entry 1" in header.metadata["note"]
    assert [sample.id for sample in load_folder(tmp_path / "out").samples] == ["good"]


def test_a_number_needs_a_tolerance_and_unknown_tools_can_be_kept(published, tmp_path):
    place = published(_entry("x", {"kind": "numeric", "value": 3}))
    place.write_text(MAP.replace("rel_tol = 0.1\n", ""))
    with pytest.raises(BenchmarkError, match=r"set \[defaults\] rel_tol"):
        build_gta(place, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    place = published(
        _entry("x", 1, [_step("Oracle", question="?")], toolbox=["Oracle", "Calculator"])
    )
    place.write_text(MAP.replace("[benchmark]", 'unknown_tools = "keep"\n[benchmark]', 1))
    build_gta(place, tmp_path / "out")
    (sample,) = load_folder(tmp_path / "out").samples
    assert (sample.toolset, sample.reference.steps[0].tool) == (("Oracle", "calculate"), "Oracle")


def test_real_entries_are_read_or_named(tmp_path):
    data = (
        Path(os.environ.get("AGROTOOLS_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
        / "gta_entries"
    )
    place = data / "real_entries_via_TRACE.json"
    if not place.is_file():
        pytest.skip(f"no entries of GTA at {data}: set AGROTOOLS_TEST_DATA")
    entries = json.loads(place.read_text(encoding="utf-8"))
    for entry in entries.values():
        for file in entry["files"]:
            (tmp_path / "gta" / file["path"]).parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4), "red").save(tmp_path / "gta" / file["path"])
    (tmp_path / "gta" / "dataset.json").write_text(json.dumps(entries))
    build_gta(tmp_path / "gta", tmp_path / "out")
    samples = load_folder(tmp_path / "out").samples
    assert [sample.id for sample in samples] == ["0", "2"]
    assert samples[0].reference.tools[0] == "OCR", "a tool under its published name"
    assert samples[0].reference.steps[0].arguments == {"image": samples[0].files[0].name}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[sample", "cannot be read"), ("fil = 3", "fil: Extra inputs"), ("[sample]\nidd = 'id'", "sample.idd"),
        ("unknown_tools = 'perhaps'", "unknown_tools"), ("[tools]\nX = 3", "tools.X"),
    ],
)  # fmt: skip
def test_a_broken_map_is_explained(tmp_path, text, message):
    (tmp_path / "map.toml").write_text(text)
    with pytest.raises(BenchmarkError, match=message) as caught:
        build_gta(tmp_path / "map.toml", tmp_path / "out")
    assert str(DEFAULT_MAP) in caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("3", "none of the 0 entries"),
        ("[]", "none of the 0 entries"),
    ],
)
def test_a_file_without_entries_is_explained(tmp_path, content, message):
    (tmp_path / "in").mkdir()
    if content is not None:
        (tmp_path / "in" / "dataset.json").write_text(content)
    with pytest.raises(BenchmarkError, match=message):
        build_gta(tmp_path / "in", tmp_path / "out")
    with pytest.raises(BenchmarkError, match="there is no"):
        build_gta(tmp_path / "nowhere", tmp_path / "out")


def test_a_tolerance_in_percent_of_an_answer_in_percent_is_refused_until_the_map_decides(tmp_path):
    folder = tmp_path / "published"
    folder.mkdir()
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(folder / "a.png")
    call = {"tool": "FruitCounter", "args": {"img": "a.png", "what": "apple"}, "result": {}}

    def margin(of_map, **answer):
        answer = {"kind": "numeric", "value": 40, "unit": "%", **answer}
        entry = {
            "meta": {"uid": "one"},
            "question": {"en": "How much?"},
            "images": [{"file_name": "a.png", "modality": "RGB"}],
            "gold": {"steps": [call], "answer": answer},
        }
        (folder / "queries.json").write_text(json.dumps({"data": {"queries": [entry]}}))
        place = tmp_path / "map.toml"
        place.write_text(
            MAP.replace('"pictures/"', '""')
            .replace('rel_tol = "tol"', 'tol = "tol"\nabs_tol = "points"\nrel_tol = "share"')
            .replace("rel_tol = 0.1", of_map)
        )
        build_gta(place, tmp_path / "out")
        (slot,) = load_folder(tmp_path / "out").samples[0].answer
        return slot.margin

    for stated in ("5%", "±5%", {"percent": 5}):
        with pytest.raises(BenchmarkError, match=r"\[defaults\] percent: relative, points"):
            margin("", tol=stated)
        assert margin('percent = "relative"', tol=stated) == 2
        assert margin('percent = "points"', tol=stated) == 5
    assert (margin("", points="5%"), margin("", share="5%")) == (5, 2)
    assert margin("", tol="5%", unit="mm") == 2
