import copy
import io
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agrotools.core import BenchmarkError
from agrotools.loading import load_folder
from agrotools.loading.leaks import names_tool
from agrotools.loading.validate import folder_remarks, validate_folder
from support.benchmark_folders import (
    HEADER,
    chart_sample,
    number_sample,
    write_folder,
    write_picture,
)


def _codes(folder):
    return Counter(fault.code for fault in validate_folder(folder))


def _broken_samples(folder):
    """One sample for each of many faults, each with a picture of its own so that nothing repeats by chance."""
    picture = iter(range(100, 200))

    def number(sample_id, **changes):
        return number_sample(folder, sample_id, next(picture)) | changes

    def chart(sample_id):
        return chart_sample(folder, sample_id, next(picture))

    missing = number("missing")
    missing["files"][0]["path"] = "files/none.png"
    altered = number("altered")
    altered["files"][0]["sha256"] = "0" * 64
    escaping = number("escaping")
    escaping["files"][0]["path"] = "../secret.png"
    linked = number("linked")
    (folder / "files/link.png").symlink_to("/etc/hostname")
    linked["files"][0]["path"] = "files/link.png"
    folder_named = number("folder-named")
    folder_named["files"][0]["path"] = "files"
    not_an_image = number("not-an-image")
    (folder / "files/text.png").write_text("no picture")
    not_an_image["files"][0] |= {"path": "files/text.png", "sha256": None}
    cut_short = number("cut-short")
    whole = io.BytesIO()
    Image.effect_noise((64, 64), 50).save(whole, "JPEG")
    (folder / "files/cut.jpg").write_bytes(whole.getvalue()[: len(whole.getvalue()) // 2])
    cut_short["files"][0] |= {"path": "files/cut.jpg", "sha256": None}
    wrong_size = number("wrong-size")
    wrong_size["files"][0]["width_px"] = 33
    same_name = number("same-name")
    same_name["files"] *= 2
    lacking = number("lacking")
    del lacking["task_type"]
    surplus = number("surplus", colour="green")
    wrong_type = number("wrong-type", answer_type="guess")
    unknown_tool = number("unknown-tool")
    unknown_tool["reference"]["steps"][0]["tool"] = "weigh"
    not_in_toolset = number("not-in-toolset", toolset=["plot"])
    bad_arguments = number("bad-arguments")
    bad_arguments["reference"]["steps"][0]["arguments"]["expresion"] = "1"
    unresolved = chart("unresolved")
    unresolved["reference"]["steps"][1]["arguments"]["series"][0]["y"][0]["$ref"] = (
        "steps[0].observation.yield"
    )
    differs = chart("differs")
    differs["reference"]["steps"][1]["arguments"]["series"][0]["y"][0]["value"] = 5.5
    forward = chart("forward")
    forward["reference"]["steps"][1]["arguments"]["series"][0]["y"][0]["$ref"] = (
        "steps[1].observation.value"
    )
    wrong_gold = number("wrong-gold")
    wrong_gold["answer"][0]["value"] = 5.9
    bad_from = number("bad-from")
    bad_from["answer"][0]["from"] = "steps[0].observation.mean"
    no_from = number("no-from")
    del no_from["answer"][0]["from"]
    told = number("told", query="Cuts of 4.5 and 6.3 t/ha were 5.4 on average, were they not?")
    label_told = chart("label-told")
    label_told["query"] = "Show the north as the taller of two bars."
    file_told = chart("file-told")
    file_told["files"][0]["name"] = "north_field.png"
    tool_named = number(
        "tool-named", query="Please calculate the mean yield of both cuts of this year."
    )
    argument_named = chart("argument-named")
    argument_named["query"] = (
        "Bars of both mean yields, with y_label set to yield, from 4.5, 6.3 and 3.0 t/ha."
    )
    steps_named = number(
        "steps-named", query="First add both yields, then halve the sum. What comes out?"
    )
    unit = number("unit")
    unit["answer"][0]["unit"] = "t/ha\nor kg"
    task = number("task", task_type="ploting")
    family = number("family", family="CM")
    chart_eligible = chart("chart-eligible")
    chart_eligible["no_tool_eligible"] = True
    no_margin = number("no-margin")
    no_margin["answer"][0]["rel_tol"] = 0
    twice = number("twice")
    again = {**copy.deepcopy(twice), "id": "again"}
    group = number("group")
    step = group["reference"]["steps"][0] | {"group": 1}
    second = copy.deepcopy(step)
    second["arguments"]["variables"]["a"] = {"$ref": "steps[0].observation.value", "value": 5.4}
    group["reference"]["steps"] = [step, second]
    return {
        "missing_file": missing, "altered_file": altered, "path_outside": [escaping, linked],
        "not_a_file": folder_named,
        "unreadable_file": [not_an_image, cut_short], "wrong_size": wrong_size, "duplicate_file_name": same_name,
        "missing_field": lacking, "unknown_field": surplus, "schema": wrong_type, "unknown_tool": unknown_tool,
        "toolset_lacks_tool": not_in_toolset, "bad_arguments": bad_arguments, "unresolved_ref": unresolved,
        "ref_differs": differs, "ref_forward": forward, "from_differs": wrong_gold, "from_unresolved": bad_from,
        "no_from": no_from, "gold_in_query": [told, label_told], "gold_in_file_name": file_told,
        "tool_in_query": tool_named, "argument_in_query": argument_named, "steps_in_query": steps_named,
        "unreadable_unit": unit, "unknown_task_type": task, "family_mismatch": family, "not_no_tool": chart_eligible,
        "no_tolerance": no_margin, "duplicate_question": [twice, again], "group_not_independent": group,
        "broken_json": '{"id": "torn", ', "duplicate_id": [number("same-id"), number("same-id")],
    }  # fmt: skip


@pytest.mark.parametrize("unit", ["deg", "°", "brix", "°Bx", "N", "lux", "SPAD"])
def test_a_benchmark_may_ask_for_any_unit(tmp_path, unit: str):
    sample = number_sample(tmp_path)
    sample["answer"][0]["unit"] = unit
    assert validate_folder(write_folder(tmp_path, [sample])) == []


def test_all_faults_are_found_in_one_pass_each_at_its_place(tmp_path):
    broken = _broken_samples(tmp_path)
    header = HEADER.replace('"plot"]', '"plot", "harvest"]')
    samples = [
        sample
        for group in broken.values()
        for sample in (group if isinstance(group, list) else [group])
    ]
    faults = validate_folder(write_folder(tmp_path, samples, header))
    assert len(broken) > 30
    for code, group in broken.items():
        for sample in (group if isinstance(group, list) else [group])[-1:]:
            name = sample["id"] if isinstance(sample, dict) else None
            here = [
                fault for fault in faults if fault.code == code and fault.sample in (name, None)
            ]
            assert here, f"{code} not found in {name}; found {[(f.code, f.sample) for f in faults]}"
            assert all(fault.message and fault.hint and fault.where for fault in here)
    assert any(fault.code == "unknown_tool" and fault.file == "benchmark.toml" for fault in faults)
    several = ("path_outside", "gold_in_query", "unreadable_file")
    expected = {code: len(group) if code in several else 1 for code, group in broken.items()}
    expected["unknown_tool"] = 2
    surprises = Counter(fault.code for fault in faults) - Counter(expected)
    assert set(surprises) <= {"no_hash"}, surprises


@pytest.mark.parametrize(
    ("header", "code", "field"),
    [
        (HEADER + '\n[terms]\na = "b"\n', "unknown_field", "terms"),
        (
            HEADER.replace('["calculate", "plot"]', '["calculate", "plot", "plot"]'),
            "repeated_value",
            "toolset",
        ),
        (HEADER.replace('["calculate", "plot"]', '["calculate"]'), "toolset_lacks_tool", "toolset"),
    ],
)
def test_faults_of_the_header(tmp_path, header, code, field):
    faults = validate_folder(write_folder(tmp_path, [number_sample(tmp_path)], header))
    assert (code, field) in [(fault.code, fault.field) for fault in faults]


def test_missing_nested_and_irregular_header_and_samples(tmp_path):
    assert _codes(tmp_path) == {"missing_header": 1, "missing_samples": 1}
    assert _codes(write_folder(tmp_path, [" "])) == {"no_samples": 1}
    with pytest.raises(BenchmarkError, match="not a folder"):
        validate_folder(tmp_path / "nothing")
    folder = write_folder(tmp_path, [number_sample(tmp_path)], "name = " + "[" * 100_000)
    assert _codes(folder) == {"broken_toml": 1}
    with pytest.raises(BenchmarkError, match=r"benchmark\.toml"):
        load_folder(folder)
    (folder / "samples.jsonl").unlink()
    (folder / "samples.jsonl").symlink_to("/dev/zero")
    assert any(fault.file == "samples.jsonl" for fault in validate_folder(folder))


def test_values_in_notes_and_labels_are_leaks_and_listed_choices_are_none(tmp_path):
    sample = chart_sample(tmp_path)
    sample["query"] = (
        "Is the mean yield higher in the north (4.5 and 6.3 t/ha) or in the south (3.0)? Show bars."
    )
    assert validate_folder(write_folder(tmp_path, [sample])) == []
    sample = number_sample(tmp_path)
    sample["files"][0]["note"] = "Field with a mean yield of 5.4 t/ha."
    sample["answer"][0]["label"] = "mean yield (5.4)"
    assert _codes(write_folder(tmp_path, [sample])) == {"gold_in_note": 1, "gold_in_label": 1}


def test_a_tool_that_observed_an_error_is_an_honest_reference(tmp_path):
    sample = chart_sample(tmp_path)
    first, second = sample["reference"]["steps"]
    first["observation"] = {"error": {"kind": "timeout", "message": "too slow"}}
    second["arguments"]["series"][0]["y"][0]["value"] = None
    second["observation"] = {"error": {"kind": "invalid_argument", "message": "y holds null"}}
    assert validate_folder(write_folder(tmp_path, [sample])) == []


def test_raster_and_class_map_need_their_meaning(tmp_path):
    sample = number_sample(tmp_path)
    digest = write_picture(tmp_path / "files/map.png", 9)
    for name, kind in (("bands_1.tif", "raster"), ("labels_1.png", "mask")):
        sample["files"].append(
            {"name": name, "path": "files/map.png", "kind": kind, "sha256": digest}
        )
    sample["no_tool_eligible"] = False
    assert _codes(write_folder(tmp_path, [sample])) == {"missing_bands": 1, "missing_classes": 1}
    sample["no_tool_eligible"] = True
    assert _codes(write_folder(tmp_path, [sample]))["not_no_tool"] == 1


def test_when_a_query_names_a_tool():
    assert not names_tool("We calculate in hectares here.", "calculate")
    assert not names_tool("Use the weight of one apple.", "weight")
    assert not names_tool("What is the fruit weight here?", "fruit_weight")
    assert names_tool("Could you use fruit weight here?", "fruit_weight")
    assert names_tool("What does measure_crop_weed_area say here?", "measure_crop_weed_area")


def test_words_of_a_tool_in_questions_are_one_remark_and_no_fault(tmp_path):
    header = HEADER.replace('"plot"]', '"plot", "count_objects"]')
    asked = "Count objects: which mean yield in t/ha did plot {} have over both cuts?"
    samples = [
        number_sample(tmp_path, f"s{at}", at) | {"query": asked.format(at), "canary": "a GUID"}
        for at in range(3)
    ]
    folder = write_folder(tmp_path, samples, header)
    assert validate_folder(folder) == []
    (remark,) = folder_remarks(folder)
    assert "count_objects" in remark
    assert "3 questions" in remark


def test_a_canary_is_missed_where_a_sample_has_none(tmp_path):
    samples = [number_sample(tmp_path, f"s{at}", at) for at in range(3)]
    for sample in samples[:2]:
        sample["canary"] = "a GUID"
    (remark,) = folder_remarks(write_folder(tmp_path, samples))
    assert "1 sample of 3" in remark
    assert "s2" in remark
    samples[2]["canary"] = "a GUID"
    assert folder_remarks(write_folder(tmp_path, samples)) == []


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(data=st.data())
def test_whatever_a_line_holds_faults_are_returned_not_raised(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    sample = node = chart_sample(folder)
    while True:
        key = data.draw(
            st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node)))
        )
        if not isinstance(node[key], (dict, list)) or not node[key] or data.draw(st.booleans()):
            break
        node = node[key]
    node[key] = data.draw(_JSON)
    for fault in validate_folder(write_folder(folder, [json.dumps(sample)])):
        assert fault.code
        assert fault.hint


def test_an_item_without_a_label_is_one_fault_that_names_the_label(tmp_path: Path):
    (tmp_path / "benchmark.toml").write_text(
        'name = "x"\nversion = "1"\nlicence = "CC BY 4.0"\ntoolset = []\n'
    )
    sample = {
        "id": "a", "query": "How many?", "files": [], "family": "CM", "task_type": "counting",
        "answer_type": "tolerance", "template": "t", "source": "s", "toolset": [],
        "answer": [{"type": "tolerance", "name": "n", "value": 3}],
    }  # fmt: skip
    (tmp_path / "samples.jsonl").write_text(json.dumps(sample))
    (fault,) = [each for each in validate_folder(tmp_path) if each.file == "samples.jsonl"]
    assert fault.code == "missing_field"
    assert fault.field is not None
    assert fault.field.endswith("label")
