"""Loading of the released questions: the dialog form, field maps for other layouts, and what is asked or refused."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import BenchmarkError, UndecidedError, UsageError
from agrotools.core.progress import no_progress
from agrotools.core.readings import Readings
from agrotools.exit_codes import BAD_USAGE, NOT_DONE, code_of
from agrotools.loading.benchmarks import Loading, load_benchmark
from agrotools.loading.checking import check_benchmark, propose_map_of
from agrotools_benchmarks.released.load import check_released, load_released
from support.made_agrotools import Entry, agrotools_entries, write_agrotools
from support.made_gta import draw


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def _entry(place: int = 3, **fields: Any) -> Entry:
    """Return the question on 14 trees, or another, with other fields."""
    return {**agrotools_entries()[str(place)], **fields}


def _load(root: Path, *entries: Entry, **options: str) -> Any:
    write_agrotools(root / "agrotools", {str(at): entry for at, entry in enumerate(entries)})
    return load_benchmark("agrotools", root, options=options)


def test_unknown_fields_are_said_and_the_hash_stays(root: Path) -> None:
    entry = _entry(season="spring")
    entry["files"][0]["sensor"] = "RGB"
    benchmark = _load(root, entry, _entry(0))
    notes = str(benchmark.header.metadata["notes"])
    assert "season (1)" in notes
    assert "files: sensor (1)" in notes
    assert _load(root, entry, _entry(0)).content_hash == benchmark.content_hash


def test_entries_that_cannot_be_read_are_counted_with_the_reason(root: Path) -> None:
    broken = _entry(4)
    broken["files"] = [{"type": "image", "path": "images/gone.jpg"}]
    write_agrotools(root / "agrotools", {"0": _entry(), "1": broken})
    (root / "agrotools/images/gone.jpg").unlink()
    check = check_released(root, no_progress)
    assert [(fault.entry, "gone.jpg" in fault.message) for fault in check.faults] == [("1", True)]
    assert len(check.samples) == 1


def test_an_entry_that_cannot_be_read_is_named_by_position_and_id(root: Path) -> None:
    write_agrotools(
        root / "agrotools", {"0": _entry(), "mis_file": _entry(gt_answer={"whitelist": []})}
    )
    (fault,) = check_released(root, no_progress).faults
    assert fault.entry == "1 (mis_file)"


def test_several_files_are_read_and_their_ids_stay_apart(root: Path) -> None:
    for name in ("counting", "pests"):
        write_agrotools(root / "agrotools", {"0": _entry(), "1": _entry(0)})
        (root / "agrotools/dataset.json").rename(root / f"agrotools/{name}.json")
    benchmark = load_benchmark("agrotools", root)
    assert [sample.id for sample in benchmark.samples] == [
        *("counting-0", "counting-1", "pests-0", "pests-1"),
    ]


@pytest.mark.parametrize(
    ("size", "chosen", "margin"),
    [(0.05, "rel", 0.62), (0.05, "abs", 0.05), (2, "abs", 2.0), (5, "percent", 0.62)],
)
def test_a_tolerance_without_a_kind_is_asked_about(
    root: Path, size: float, chosen: str, margin: float
) -> None:
    entry = _entry(4, tolerance=size, unit="mm")
    del entry["rel_tol"]
    with pytest.raises(UndecidedError) as caught:
        _load(root, entry)
    assert caught.value.answers[0].startswith("--option=tolerance=")
    assert "--propose-map" in str(caught.value.hint)
    (sample,) = _load(root, entry, tolerance=chosen).samples
    assert sample.answer[0].margin == pytest.approx(margin)


def test_a_large_tolerance_is_no_share_of_the_answer(root: Path) -> None:
    with pytest.raises(UsageError, match="there is no rel"):
        _load(root, _entry(4, tolerance=5), tolerance="rel")


def test_a_list_of_exact_answers_is_asked_about(root: Path) -> None:
    entry = _entry(0, gt_answer=["rice leaf roller", "leaf folder"])
    with pytest.raises(UndecidedError, match="exact answers in a list"):
        _load(root, entry)
    (any_of,) = _load(root, entry, lists="any").samples[0].answer
    assert any_of.names == ("rice leaf roller", "leaf folder")
    assert len(_load(root, entry, lists="all").samples[0].answer) == 2


def test_a_question_is_answered_by_the_caller_and_what_was_read_is_said(root: Path) -> None:
    write_agrotools(root / "agrotools", {"0": _entry(4, tolerance=5)})
    readings = Readings(accept=True)
    load_released(Loading(root, {}, no_progress, readings=readings))
    assert readings.answers == ["--option=tolerance=abs"]
    assert readings.taken[0] == "1 rows from dataset.json in the dialog form"


@pytest.mark.parametrize(
    ("spellings", "item"),
    [
        (
            ["14", "fourteen"],
            "<number>",
        ),  # 14 trees and 14.0 are other names than 14, but no other numbers
        (["-3"], "<number>"),
        (["1919.96", "1920"], "<name>"),  # two numbers that are both right
        (["fourteen", "14"], "<name>"),
        (["1,5"], "<name>"),  # either number
    ],
)
def test_a_number_is_asked_for_as_a_number(root: Path, spellings: list[str], item: str) -> None:
    gold = {"whitelist": [spellings], "blacklist": None}
    benchmark = _load(root, _entry(gt_answer=gold))
    (sample,) = benchmark.samples
    assert f"answer: {item}\n" in benchmark.view(sample, "end-to-end").answer_form


def test_the_form_says_what_an_answer_without_a_name_is(root: Path) -> None:
    benchmark = _load(root, _entry(), _entry(gt_answer="red", answer_type="exact"))
    for sample in benchmark.samples:
        form = benchmark.view(sample, "end-to-end").answer_form
        assert form.endswith("\nwhere\n- answer is the answer to the question")


def test_a_number_without_a_tolerance_has_the_unit_of_its_entry(root: Path) -> None:
    benchmark = _load(root, _entry(unit="cm"))
    (sample,) = benchmark.samples
    assert "answer: <number> cm\n" in benchmark.view(sample, "end-to-end").answer_form


@pytest.mark.parametrize(
    ("spellings", "unit", "value", "unit_of_answer"),
    [
        (["6.3 m", "6.3m"], "m", 6.3, "m"),
        (["630 cm", "6.3 m"], "m", 6.3, "m"),
        (["about 6.3"], "m", 6.3, "m"),
        (["31.7%"], "%", 31.7, "%"),
        (["31.7 %"], None, 31.7, "%"),
        (["five metres", "5 m"], "m", 5, "m"),
    ],
)
def test_a_number_with_a_tolerance_is_read_with_its_unit(
    root: Path, spellings: list[str], unit: str | None, value: float, unit_of_answer: str
) -> None:
    gold = {"whitelist": [spellings], "blacklist": None}
    entry = _entry(gt_answer=gold, answer_type="tolerance", abs_tol=0.2, unit=unit)
    (slot,) = _load(root, entry).samples[0].answer
    assert (slot.type, slot.unit, slot.abs_tol) == ("tolerance", unit_of_answer, 0.2)
    assert slot.value == pytest.approx(value)


def test_a_margin_in_the_text_has_the_unit_of_the_answer(root: Path) -> None:
    gold = {"whitelist": [["75 ± 3 mm"]], "blacklist": None}
    entry = _entry(gt_answer=gold, answer_type="tolerance", unit="cm")
    (slot,) = _load(root, entry).samples[0].answer
    assert (slot.value, slot.abs_tol) == (pytest.approx(7.5), pytest.approx(0.3))


@pytest.mark.parametrize(
    ("whitelist", "reason"),
    [
        ([["tall"]], "is of type tolerance and no number"),
        ([["tall"], ["broad"]], "is of type tolerance and no number"),
        ([["6.3 kg"]], "its answer is in kg, and its unit is 'm'"),
        ([["6.3 m", "7 m"]], "'6.3 m' and '7 m' differ by more than its tolerance"),
    ],
)
def test_an_answer_with_a_tolerance_that_is_no_number_of_its_unit_is_refused(
    root: Path, whitelist: list[list[str]], reason: str
) -> None:
    gold = {"whitelist": whitelist, "blacklist": None}
    entry = _entry(gt_answer=gold, answer_type="tolerance", abs_tol=0.2, unit="m")
    benchmark = _load(root, _entry(), entry)
    ((message, entries),) = benchmark.header.metadata["unread"].items()
    assert reason in message
    assert entries == ["1"]


_WEEDS = ["Lantana", "parthenium", "siam weed", "snake weed"]
_LETTERED = "\nA. Lantana\nB. parthenium\nC. siam weed\nD. snake weed"


@pytest.mark.parametrize(
    ("fields", "question"),
    [
        ({"options": _WEEDS}, ""),
        ({"options": dict(zip("ABCD", _WEEDS, strict=True))}, ""),
        ({}, _LETTERED),
        ({"gt_answer": {"whitelist": [["B"]], "blacklist": None}}, _LETTERED),
    ],
)
def test_options_of_the_files_are_those_of_the_form(
    root: Path, fields: Entry, question: str
) -> None:
    entry = _entry(1, **fields)
    entry["dialogs"][0]["content"] += question
    benchmark = _load(root, entry)
    (sample,) = benchmark.samples
    view = benchmark.view(sample, "end-to-end")
    assert "answer: <one of: A, B, C, D>\n" in view.answer_form
    assert _LETTERED in view.query
    assert sample.answer[0].value == "B"


def test_a_tool_for_figures_by_code_plays_back_its_result(root: Path) -> None:
    benchmark = load_benchmark("agrotools", write_agrotools(root / "agrotools").parent)
    runs = {tool.name: tool.runs for tool in benchmark.header.declared}
    assert (runs["Plot"], runs["PlotChart"], runs["Calculator"]) == ("", "plot", "calculate")


# --- other layouts ----------------------------------------------------------------------------------------------------


def _plain_row(**fields: Any) -> Entry:
    """Return a question in a layout of its own, with the pictures of a change in two fields."""
    arguments = {"pre_image": "before/pond.jpg", "post_image": "after/pond.jpg", "object": "pond"}
    step = {"tool": "ChangeDetection", "arguments": arguments, "result": {"grew": "yes"}}
    return {
        "qid": "p1",
        "question": "Did the pond become larger?",
        "pre_image": "before/pond.jpg",
        "post_image": "after/pond.jpg",
        "task": "Farm Pond Change Analysis",
        "steps": [step],
        "gold": "yes",
        **fields,
    }


def _write_plain(root: Path, *rows: Entry) -> Path:
    folder = root / "agrotools"
    for number, name in enumerate(("before/pond.jpg", "after/pond.jpg")):
        draw(folder / name, number)
    (folder / "rows.json").write_text(json.dumps(rows))
    return folder


def test_another_layout_is_refused_with_its_fields(root: Path) -> None:
    _write_plain(root, _plain_row())
    with pytest.raises(BenchmarkError, match="no file in the dialog form of GTA") as caught:
        load_benchmark("agrotools", root)
    hint = str(caught.value.hint)
    assert "--propose-map" in hint
    assert "rows.json: fields: qid, question, pre_image" in hint


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (_plain_row(), BAD_USAGE),  # another layout
        (_entry(files=[{"path": "gone.jpg"}]), NOT_DONE),  # no entry can be read
    ],
)
def test_check_and_load_refuse_a_folder_with_one_exit_code(
    root: Path, row: Entry, code: int
) -> None:
    _write_plain(root, row)
    with pytest.raises(BenchmarkError) as caught:
        load_benchmark("agrotools", root)
    assert code_of(caught.value) == code
    assert check_benchmark("agrotools", root).exit_code == code


def test_a_map_is_proposed_from_the_names_of_fields_and_reads_the_file(root: Path) -> None:
    mark = {"image": "after/pond.jpg", "color": "red"}
    second = {"tool": "MarkedRegion", "arguments": mark, "result": "region.png"}
    folder = _write_plain(root, _plain_row(), _plain_row(qid="p2", steps=[second]))
    lines = "\n".join(propose_map_of("agrotools", root).lines)
    assert "files.at: pre_image + post_image" in lines
    assert "tool ChangeDetection(pre_image, post_image, object): detect_change" in lines
    assert "answer boolean: 2" in lines
    proposed = tomllib.loads((folder / "agrotools-map.toml").read_text())
    assert proposed["file"] == "rows.json"
    assert proposed["arguments"] == {
        "detect_change": {"pre_image": "before", "post_image": "after", "object": "target"},
        "extract_marked_region": {"color": "mark_color"},
    }
    benchmark = load_benchmark("agrotools", root)
    first, _ = benchmark.samples
    assert (first.id, first.task_type, first.answer[0].value) == ("p1", "farm_pond_change", True)
    assert first.reference.steps[0].observation.result == {"grew": "yes"}
    names = [file.name for file in first.files]
    assert [*first.reference.steps[0].arguments.values()] == [*names, "pond"]
    with pytest.raises(UsageError, match="exists already"):
        propose_map_of("agrotools", root)


def test_two_fields_that_may_be_the_answer_are_named_in_the_map(root: Path) -> None:
    folder = _write_plain(root, _plain_row(answer="no"))
    propose_map_of("agrotools", root)
    assert "# answer.at: gold (also there: answer)" in (folder / "agrotools-map.toml").read_text()


def _other_row(place: int, **fields: Any) -> Entry:
    """Return a question in a layout with pictures as a list of names, in a field that no list has."""
    photo = f"images/leaf_{place}.jpg"
    step = {"step": 1, "tool": "measure", "args": {"img": photo}, "output": '{"pct": 31.7}'}
    answer = {"text": "31.7 %", "value": 31.7, "unit": "%", "abs_tol": 5, "kind": "numeric"}
    return {
        "qid": f"AT-{place}",
        "question": "What share of the leaf is diseased?",
        "task_category": "Lesion Severity",
        "input_images": [photo],
        "trajectory": [step],
        "final_answer": {**answer, **fields},
    }


def _write_other(root: Path) -> Path:
    folder = root / "agrotools"
    for place in range(3):
        draw(folder / f"images/leaf_{place}.jpg", place)
    scab = {"value": "apple scab", "unit": None, "abs_tol": None, "kind": "category"}
    rows = [_other_row(0), _other_row(1), _other_row(2, **scab)]
    (folder / "questions.json").write_text(json.dumps({"version": "1.0", "questions": rows}))
    return folder


def test_a_proposed_map_reads_lists_of_file_names_and_own_words_for_types(root: Path) -> None:
    folder = _write_other(root)
    assert propose_map_of("agrotools", root).reads_all
    proposed = tomllib.loads((folder / "agrotools-map.toml").read_text())
    assert proposed["entries"] == "questions"
    assert proposed["files"] == {"at": "input_images"}
    assert proposed["answer_types"] == {"numeric": "tolerance", "category": "exact"}
    share, _, disease = load_benchmark("agrotools", root).samples
    (number,), (label,) = share.answer, disease.answer
    assert (number.type, number.value, number.unit, number.abs_tol) == ("tolerance", 31.7, "%", 5)
    assert (label.type, label.value) == ("exact", "apple scab")
    assert [file.name for file in share.files] == ["leaf_0.jpg"]


def test_fields_that_a_proposed_map_passes_over_are_named_with_a_value(root: Path) -> None:
    folder = _write_other(root)
    propose_map_of("agrotools", root)
    comments = (folder / "agrotools-map.toml").read_text()
    assert '# not read: task_category, such as "Lesion Severity"\n' in comments
    assert "# not read: calls: step, such as 1\n" in comments
    assert '# not read: answer: text, such as "31.7 %"\n' in comments


def _row_of_scans(**fields: Any) -> Entry:
    """Return a question whose pictures are in a field with a name unlike any listed one."""
    row = _other_row(0)
    del row["input_images"]
    return {**row, "scans": ["/data/images/leaf_0.jpg"], **fields}


def test_a_field_that_names_files_of_the_folder_is_proposed(root: Path) -> None:
    folder = _write_other(root)
    (folder / "questions.json").write_text(json.dumps([_row_of_scans()]))
    propose_map_of("agrotools", root)
    (sample,) = load_benchmark("agrotools", root).samples
    assert [file.name for file in sample.files] == ["leaf_0.jpg"]


def test_two_fields_that_name_files_are_left_to_the_user(root: Path) -> None:
    row = _row_of_scans(gold_masks=["images/mask.jpg"])  # which must not be shown to a model
    folder = _write_other(root)
    draw(folder / "images/mask.jpg", 4)
    (folder / "questions.json").write_text(json.dumps([row]))
    proposal = propose_map_of("agrotools", root)
    assert not proposal.reads_all
    assert "files.at: scans or gold_masks" in proposal.lines
    assert "files" not in tomllib.loads((folder / "agrotools-map.toml").read_text())


def test_a_type_of_answers_that_may_be_open_text_is_left_to_the_user(root: Path) -> None:
    folder = _write_other(root)
    long = "Remove the infected leaves and spray captan at green tip."
    row = _other_row(0, value=long, unit=None, abs_tol=None, kind="advice")
    (folder / "questions.json").write_text(json.dumps([row]))
    proposal = propose_map_of("agrotools", root)
    assert not proposal.reads_all
    assert any(line.startswith("answer_types.advice: not found") for line in proposal.lines)


def test_a_map_that_is_not_complete_is_refused_with_its_places_and_the_fields(root: Path) -> None:
    folder = _write_other(root)
    propose_map_of("agrotools", root)
    file = folder / "agrotools-map.toml"
    file.write_text(file.read_text().replace('at = "input_images"', ""))
    with pytest.raises(BenchmarkError, match=r"\[files\] at files") as caught:
        load_benchmark("agrotools", root)
    assert str(file) in str(caught.value.hint)
    assert "input_images" in str(caught.value.hint)
    assert "--propose-map" not in str(caught.value.hint)


def test_a_proposed_map_of_the_dialog_form_reads_the_same(root: Path) -> None:
    write_agrotools(root / "agrotools")
    before = load_benchmark("agrotools", root)
    propose_map_of("agrotools", root)
    after = load_benchmark("agrotools", root)
    assert [sample.answer for sample in after.samples] == [
        sample.answer for sample in before.samples
    ]


def test_the_map_is_beside_the_files_or_given(root: Path) -> None:
    entry = _entry(ask="How many palms?")
    entry["dialogs"][0]["content"] = ""
    write_agrotools(root / "agrotools", {"0": entry})
    with pytest.raises(BenchmarkError, match="there is no question at"):
        load_benchmark("agrotools", root)
    text = '[sample]\nquery = "ask"\n'
    beside, elsewhere = root / "agrotools/agrotools-map.toml", root / "map.toml"
    beside.write_text(text)
    assert load_benchmark("agrotools", root).samples[0].query == "How many palms?"
    beside.unlink()
    elsewhere.write_text(text)
    assert load_benchmark("agrotools", root, options={"map": str(elsewhere)}).samples


def test_lines_of_the_map_without_effect_are_noted(root: Path) -> None:
    write_agrotools(root / "agrotools", {"0": _entry()})
    (root / "agrotools/agrotools-map.toml").write_text('[tools]\nPlott = "plot"\n')
    assert "lines without effect under [tools]: Plott" in check_released(root, no_progress).notes


# --- pictures ---------------------------------------------------------------------------------------------------------


def _pictures(root: Path, there: list[str], named: list[str]) -> tuple[list[str], Any]:
    """Return the pictures of questions, by the paths in the entries, and the metadata of the benchmark."""
    entries = [_entry(files=[{"type": "image", "path": path}]) for path in named]
    for entry, path in zip(entries, named, strict=True):
        entry["dialogs"][1]["tool_calls"][0]["function"]["arguments"]["image"] = path
    folder = root / "agrotools"
    for number, name in enumerate(there):
        draw(folder / name, number)
    (folder / "dataset.json").write_text(json.dumps(entries))
    benchmark = load_benchmark("agrotools", root)
    of_content = {(folder / name).read_bytes(): name for name in there}
    pictures = [
        of_content[benchmark.file_path(sample.files[0]).read_bytes()]
        for sample in benchmark.samples
    ]
    return pictures, benchmark.header.metadata


@pytest.mark.parametrize(
    ("there", "named"),
    [
        # the folder of the authors' machine in front of it
        (["pics/A/1.png", "pics/B/1.png"], ["/home/a/pics/A/1.png", "C:\\x\\pics\\B\\1.png"]),
        # folders in between have other names
        (["pics/A/1.png", "pics/B/1.png"], ["/d/img/A/1.png", "/d/img/B/1.png"]),
        (["1.png", "old/1.png"], ["1.png", "old/1.png"]),
        (["x/y/1.png", "1.png"], ["y/1.png", "1.png"]),
    ],
)
def test_pictures_are_found_by_the_longest_end_of_their_path(
    root: Path, there: list[str], named: list[str]
) -> None:
    pictures, metadata = _pictures(root, there, named)
    assert metadata["unread"] == {}
    assert pictures == there


@pytest.mark.parametrize(
    ("there", "named"),
    [
        (["pics/A/1.png"], ["/d/A/1.png", "/d/B/1.png"]),  # B/1.png is not there
        (["a/1.png", "b/1.png"], ["a/1.png", "/d/c/1.png"]),  # either may be meant
        (["pics/A/1.png"], ["pics/A/1.png", "/d/A/1.png"]),
    ],
)
def test_a_picture_that_may_be_another_is_refused(
    root: Path, there: list[str], named: list[str]
) -> None:
    pictures, metadata = _pictures(root, there, named)
    assert pictures == there[:1]
    assert [*metadata["unread"].values()] == [["1"]]
