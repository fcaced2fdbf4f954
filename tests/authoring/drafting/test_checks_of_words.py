"""Checks of drafted words without any call: what a wording keeps, which options are wrong, what nearly copies."""

import json

import pytest

from agrotools.calling import TOOLS, ImageFile, ToolResult, tool
from agrotools.core import ExactSlot, Sample, ToleranceSlot
from agrotools_build.composing import AnswerPart, TraceStep
from agrotools_build.drafting.constants import check_constants
from agrotools_build.drafting.easy import easy_drafts
from agrotools_build.drafting.known_names import check_answer_unsaid
from agrotools_build.drafting.material import Labels
from agrotools_build.drafting.near_copies import Questions
from agrotools_build.drafting.options import why_not_wrong
from agrotools_build.drafting.prompting import tool_lines
from agrotools_build.drafting.reasons import REASONS, Dropped
from agrotools_build.drafting.replies import DraftedQuestion, check_plain, part_of, read_reply
from agrotools_build.drafting.wordings import check_kept
from agrotools_build.labels import NotedLabel
from support.composed import part, picture, ran
from support.plain_sample import plain_sample

pytestmark = pytest.mark.unit


def _reason(check, *arguments) -> str:
    """The reason for which a check drops a draft; empty if it does not."""
    try:
        check(*arguments)
    except Dropped as dropped:
        return dropped.reason if dropped.reason in REASONS else f"unknown: {dropped.reason}"
    return ""


def _asked(query: str, choices: tuple[str, ...] = ()) -> Sample:
    slot = (
        ExactSlot(name="disease", label="disease", value=choices[0], choices=choices)
        if choices
        else None
    )
    return plain_sample(query=query, **({"answer": (slot,)} if slot else {}))  # fmt: skip


@pytest.mark.parametrize(
    ("wording", "reason"),
    [
        ("Of this leaf, what % shows spots?", ""),
        ("Of this leaf, what part shows spots, as a fraction of one?", "changed_units"),
        ("De cette feuille, combien pour cent?", "changed_units"),
        ("What % of this leaf, or fraction of one, shows spots?", "changed_units"),
    ],
)
def test_a_wording_keeps_the_unit_of_the_answer_wherever_it_stands(wording, reason):
    slot = ToleranceSlot(name="sick", label="sick share", value=12.0, abs_tol=2.0, unit="%")
    asked = plain_sample(
        query="What % of the leaf has spots?", answer_type="tolerance", answer=(slot,)
    )
    assert _reason(check_kept, asked, wording) == reason


_COFFEE = ("coffee leaf rust", "brown eye spot", "healthy")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("Which disease does this leaf show?", ""),
        ("Is it coffee leaf rust, brown eye spot, or is the leaf healthy?", ""),
        ("My neighbour says roya; what is it?", "answer_in_question"),
        ("It is not brown eye spot, and it is not healthy: what is it?", "answer_in_question"),
    ],
)
def test_a_question_names_neither_the_answer_alone_nor_all_others(query, reason):
    assert _reason(check_answer_unsaid, _asked(query, _COFFEE)) == reason


def test_a_spelling_that_only_the_knowledge_base_knows_is_the_answer():
    asked = _asked("A neighbour calls it cercosporiosis; what is it?", ("cercospora", "rust"))
    assert _reason(check_answer_unsaid, asked) == "answer_in_question"


_ASKED = "Is image_1.jpg above 12.5 % or rather 3 mm wider than image_2.jpg, rust or scab?"


@pytest.mark.parametrize(
    ("wording", "reason"),
    [
        ("Rust or scab: is image_1.jpg over 12.5 %, or 3 mm wider than image_2.jpg?", ""),
        ("Rust or scab? Is image_1.jpg over 12.5 percent, or 3 millimetres wider than image_2.jpg?", ""),
        (_ASKED.upper().replace("IMAGE_1.JPG", "image_1.jpg").replace("IMAGE_2.JPG", "image_2.jpg"), "no_change"),
        ("Rust or scab: is image_1.jpg over 13 %, or 3 mm wider than image_2.jpg?", "changed_numbers"),
        ("Rust or scab: is image_1.jpg over 12.5 %, or 3 cm wider than image_2.jpg?", "changed_units"),
        ("Rust or scab: is image_1.jpg over 12.5 %, or 3 mm wider than image_3.jpg?", "changed_files"),
        ("Rust, or what: is image_1.jpg over 12.5 %, or 3 mm wider than image_2.jpg?", "changed_options"),
        ("Rust or scab: is it over 12.5 %, or 3 mm wider than image_2.jpg?", "changed_files"),
        ("Rust, mosaic or scab: is image_1.jpg over 12.5 %, or 3 mm wider than image_2.jpg?", "changed_options"),
        ("Rust or scab or bean angular leaf spot: is image_1.jpg over 12.5 %, or 3 mm wider than image_2.jpg?",
         "changed_options"),
    ],
)  # fmt: skip
def test_a_wording_keeps_numbers_units_files_and_options(wording, reason):
    assert _reason(check_kept, _asked(_ASKED, ("rust", "scab")), wording) == reason


@pytest.mark.parametrize(
    ("option", "is_wrong"),
    [
        ("bean rust", True),
        ("potato late blight", True),
        ("coffee leaf rust", False),
        ("Hemileia vastatrix", False),
        ("rust", False),
        ("orange powder disease", False),
        ("healthy coffee", True),
    ],
)
def test_an_option_is_wrong_only_if_the_knowledge_base_has_it_as_another_thing(option, is_wrong):
    assert (why_not_wrong(option, ["coffee leaf rust"]) == "") == is_wrong


def test_a_healthy_leaf_has_one_name_only():
    assert why_not_wrong("healthy leaf", ["healthy"])
    assert why_not_wrong("healthy coffee", ["a healthy leaf"])


def _constants(question, expression, from_="steps[0].observation.value", **variables):
    step = TraceStep(tool="calculate", arguments={"expression": expression, "variables": variables})
    files = ()
    check_constants(question, [step], [part("number", from_)], files)


@pytest.mark.parametrize(
    ("question", "expression", "reason"),
    [
        ("We pick 35 an hour, how long does it take?", "n / 35", ""),
        ("We pick 1,500 a day, how long does it take?", "n / 1500", ""),
        ("How long does it take?", "n / 35", "unstated_number"),
        ("How many hectares is it?", "n / 10000", ""),
        ("Are there any?", "n > 0", ""),
        ("Are there many?", "n > 10", "unstated_number"),
        ("Are there more than 10?", "n > 10", ""),
        ("How many hectares is it?", "convert(n, 'm2', 'ha')", ""),
        ("What is it?", "'rust' if n > 0 else 'scab'", "written_value"),
        ("What is it?", "n > 0 or True", "written_value"),
        ("What is it?", "n (", "not_read"),
    ],
)
def test_numbers_and_texts_of_a_calculation_stand_in_the_question(question, expression, reason):
    variables = {"n": {"$ref": "steps[0].observation.count"}}
    assert _reason(lambda: _constants(question, expression, **variables)) == reason


def test_a_tool_is_given_no_number_that_nobody_stated():
    step = TraceStep(tool="analyze_lesions", arguments={"image": "a.jpg", "scale_mm_px": 0.1})
    assert _reason(check_constants, "How sick is it?", [step], [], []) == "unstated_number"
    assert _reason(check_constants, "At 0.1 mm a pixel, how sick is it?", [step], [], []) == ""


def test_variables_and_the_place_of_an_answer_hold_no_values_either():
    assert _reason(lambda: _constants("How many?", "n", n=17)) == "unstated_number"
    assert _reason(lambda: _constants("How many?", "n", n="rust")) == "written_value"
    assert _reason(lambda: _constants("How many?", "1", "17")) == "unstated_number"


def test_file_names_and_the_number_of_files_are_no_values(tmp_path):
    files = [picture(tmp_path, f"image_{number}.png", number) for number in (1, 2)]
    first, second = (f"steps[{number}].observation.count" for number in (0, 1))
    from_ = f"'image_1.png' if {first} > {second} else 'image_2.png'"
    check_constants("Which tree has more?", [], [part("file", from_)], files)
    mean = f"({first} + {second}) / 2"
    check_constants("How many on average?", [], [part("number", mean)], files)


_ODD = ("see www.example.org", "<b>how</b>", "how `many`", "a\u202eb", "x @0.count")


@pytest.mark.parametrize("text", _ODD)
def test_signs_that_nobody_asks_with_are_refused(text):
    assert _reason(check_plain, text) == "not_plain"


def test_the_first_draft_in_a_reply_is_read_whatever_stands_around_it():
    reply = 'Sure! {"a": 1}\n```json\n{"question": "How many?", "steps": [], "answer": [], "note": 3}\n```'
    assert read_reply(reply, DraftedQuestion).question == "How many?"


def test_a_part_gets_a_name_that_a_form_can_have():
    answer = {"name": "% sick!", "label": "sick", "form": "number", "from": "@0.severity_pct"}
    draft = {"question": "How many?", "steps": [], "answer": [answer]}
    (written,) = read_reply(json.dumps(draft), DraftedQuestion).answer
    made = part_of(written, 0)
    assert isinstance(made, AnswerPart)
    assert (made.name, made.from_) == ("sick", "steps[0].observation.severity_pct")


def test_a_broken_reply_is_not_told_to_lack_a_question():
    broken = '{"question": "How many?", "steps": [{"tool": "count_objects"}}]}'
    with pytest.raises(Dropped, match="no JSON object that can be read"):
        read_reply(broken, DraftedQuestion)


def test_labels_of_several_columns_stand_in_one_result(tmp_path):
    files = [picture(tmp_path)]
    call = {"tool": "measure_weed_phenotype", "arguments": {"image": "image_1.png"}}
    hashes = {"image_1.png": files[0].sha256}
    labels = Labels(
        [
            NotedLabel(**call, files=hashes, truth={"plants": [{"leaf_count_est": 5}]}),
            NotedLabel(**call, files=hashes, truth={"plants": [{"height_cm": 12.0}]}),
        ],
    )
    step = ran(call["tool"], call["arguments"], {})
    assert labels.truth_of(step, files) == {"plants": [{"leaf_count_est": 5, "height_cm": 12.0}]}


def test_nearly_the_same_words_are_a_copy_whatever_file_and_number_they_name():
    questions = Questions()
    questions.add(plain_sample("first", query="How many apples hang on the tree in image_1.jpg?"))
    copied = plain_sample("second", query="How many apples hang on the trees in image_7.jpg?")
    other = plain_sample("third", query="What is the mean width of the fruits by the fence?")
    assert questions.copy_of(copied, words_alone=True) == "first"
    assert questions.copy_of(other, words_alone=True) is None


def test_drafts_are_left_out_until_a_constant_meets_no_more_than_half_of_a_kind():
    values = [10.0] * 14 + [20.0, 30.0, 40.0, 50.0, 60.0, 70.0]
    samples = [
        plain_sample(
            f"draft-{number:04d}", answer_type="tolerance", template="draft: count", cluster=f"c{number}",
            answer=(ToleranceSlot(name="n", label="n", value=value, abs_tol=1.0),),
        )
        for number, value in enumerate(values)
    ]  # fmt: skip
    left_out = easy_drafts(samples)
    kept = [value for number, value in enumerate(values) if f"draft-{number:04d}" not in left_out]
    assert left_out
    assert kept.count(10.0) <= len(kept) / 2
    assert set(values) == set(kept), "only what the constant answers is left out"


class _Cover(ToolResult):
    cover_pct: float
    cover_interval_pct: tuple[float, float]
    stage: str


@tool(category="measurement", version="1")
def cover_of_my_own(image: ImageFile) -> _Cover:
    """Measure the cover of a canopy."""
    raise NotImplementedError


def test_the_prompt_names_the_results_of_a_tool_of_the_users_own_that_state_their_error():
    TOOLS.add("cover_of_my_own", cover_of_my_own)
    try:
        (line,) = tool_lines(["cover_of_my_own"], [])
    finally:
        TOOLS.remove("cover_of_my_own")
    assert line == (
        "cover_of_my_own(image): Measure the cover of a canopy. Results to ask for: cover_pct"
    )
