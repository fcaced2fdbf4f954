"""Templates: questions that follow from the truth, and the ways in which they are put."""

import re
from dataclasses import replace
from importlib.resources import files
from string import Formatter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.calling import get_tool
from agrotools.calling.result import encode_result
from agrotools.calling.workspace import artifacts_in
from agrotools.core import FAMILY_OF_TASK_TYPE, ExactSlot, SampleFile, ToleranceSlot
from agrotools.core.record import resolved_value
from agrotools.knowledge.kb_names import shipped_names
from agrotools.scoring.slots import score_slot
from agrotools.text.answer_form import answer_form
from agrotools.text.expressions import evaluate_from
from agrotools_build.choosing import ask_subject
from agrotools_build.references import PlannedCall, ref
from agrotools_build.templates import Template, Thing, load_templates
from agrotools_build.templates.key_facts import topics_with_facts
from agrotools_build.templates.slot_draft import with_known_names
from agrotools_build.templates.thing import Subject
from agrotools_build.templates.wording import MOST_OF_ONE, expanded, sentences

FILES = sorted(
    entry.name.removesuffix(".toml")
    for entry in files("agrotools_build.templates").iterdir()
    if entry.name.endswith(".toml")
)
ALL = [template for name in FILES for template in load_templates(name)]


def _leaf(severity: float, number: int = 1) -> Thing:
    name = f"image_{number}.jpg"
    file = SampleFile(name=name, path=f"{number}.jpg", kind="image")
    truth = {"severity_pct": severity, "leaf_area_px": 1000, "lesion_area_px": 10 * severity}
    return Thing((file,), "analyze_lesions", {"image": name}, truth, name, "I need the lesions.")


SHARE = {
    "type": "tolerance",
    "name": "share",
    "label": "share",
    "from": "@0.severity_pct",
    "abs_tol": 1,
}


def _template(**more) -> Template:
    base = {
        "template": "t",
        "task_type": "lesion_severity",
        "of": "leaf",
        "answer_type": "tolerance",
    }
    return Template.model_validate({**base, "slots": [SHARE], "wordings": ["How much?"], **more})


def _asked(template: Template, *things: Thing, seed: int = 0):
    return template.instantiate(things, np.random.default_rng(seed))


def test_templates_are_complete_unlike_and_use_every_measurement():
    assert len({template.template for template in ALL}) == len(ALL)
    wordings = [wording for template in ALL for wording in template.wordings]
    assert len(set(wordings)) == len(wordings)
    for template in ALL:
        assert template.task_type in FAMILY_OF_TASK_TYPE
        assert len(template.wordings) >= 2
    for template in ALL:
        said = [slot.from_ for slot in template.slots] + [
            str(step.arguments) for step in template.steps
        ]
        used = {int(number) for text in said for number in re.findall(r"@(?:\{m)?(\d+)", text)}
        assert len(used) >= template.things + len(template.steps)


FIGURE = r"bar|column|chart|pie|line|plot|figure|graph"
FIGURE_ZH = r"图|柱|饼|折线|曲线"


def test_a_question_about_a_chart_asks_for_the_figure():
    """Else the right word without any figure would be a full answer."""
    for template in ALL:
        figures = any(slot.type == "plot" for slot in template.slots)
        charted = any(step.tool == "plot" for step in template.steps)
        assert (template.answer_type == "plot") == figures == charted, template.template
        if figures:
            assert [
                wording for wording in template.wordings if not re.search(FIGURE, wording, re.I)
            ] == []
            assert [
                wording for wording in template.wordings_zh if not re.search(FIGURE_ZH, wording)
            ] == []


MANY = ("{choices}", "{names}", "{others}", "{other_orders}", "{other_families}", "{diseases}")
"""Words that stand for several options."""


def _is_two_way(template: Template, slot) -> bool:
    few = len(slot.options) == 2 and not {*slot.options} & {*MANY}
    return (
        slot.type == "boolean"
        or (slot.type == "exact" and few)
        or (slot.type == "file" and template.things < 3)
    )


def test_no_answer_of_two_choices_stands_alone():
    """It would be right half of the time by chance."""
    assert [
        each.template for each in ALL if all(_is_two_way(each, slot) for slot in each.slots)
    ] == []


STEP_WORDS = re.compile(
    r"\b(tool|step|function|(?<!We )call)s?\b|[a-z0-9]+_(pct|px|m|mm|mask|model)\b|工具|步骤"
)


def test_wordings_name_no_step_and_say_in_chinese_what_is_asked_for():
    wordings = [
        wording for template in ALL for wording in (*template.wordings, *template.wordings_zh)
    ]
    assert [
        wording for wording in wordings if STEP_WORDS.search(re.sub(r"\{\w+\}", "", wording))
    ] == []
    for template in ALL:
        assert all(slot.label_zh for slot in template.slots) or not template.wordings_zh, (
            template.template
        )
        assert [each for each in template.wordings_zh if re.search(r"[\[\]]", each)] == []
        assert [
            each for each in template.wordings_zh if not re.search("[\u4e00-\u9fff]", each)
        ] == []


@given(
    severities=st.lists(
        st.floats(0, 60).map(lambda value: float(f"{value:.6g}")), min_size=2, max_size=2
    ),
    template=st.sampled_from(load_templates("leaf")),
    seed=st.integers(0, 10**6),
)
def test_the_answer_follows_from_the_truth_by_the_real_tools(
    severities, template, seed, tmp_path_factory
):
    things = [_leaf(value, number) for number, value in enumerate(severities, start=1)][
        : template.things
    ]
    asked = _asked(template, *things, seed=seed)
    if asked is None:
        return
    results = []
    for call in asked.calls:
        if call.truth is not None:
            results.append(dict(call.truth))
            continue
        with artifacts_in(tmp_path_factory.mktemp("made")):
            results.append(
                encode_result(get_tool(call.tool)(**resolved_value(dict(call.arguments), results)))[
                    0
                ]
            )
    for slot in asked.slots:
        value = evaluate_from(slot.from_, results)
        if isinstance(slot, ToleranceSlot):
            assert value == pytest.approx(slot.value, rel=2e-5, abs=1e-9)
        elif slot.type == "plot":
            drawn = [
                (each["name"], each["x"], pytest.approx(each["y"], rel=2e-5))
                for each in value["series"]
            ]
            assert drawn == [(each["name"], each["x"], each["y"]) for each in slot.value["series"]]
            assert (value["kind"], value["legend"]) == (slot.value["kind"], slot.value["legend"])
        else:
            assert value == slot.value
    for wording in template.wordings:
        names = {name for _, name, _, _ in Formatter().parse(wording) if name}
        assert names <= asked.words.keys()


def test_given_values_make_the_answer_clear_and_stand_in_question_label_and_answer():
    template = _template(
        answer_type="exact",
        given={"limit": [5]},
        slots=[
            {
                "type": "boolean",
                "name": "above",
                "label": "above {limit} %",
                "from": "@0.severity_pct > {limit}",
            }
        ],
        wordings=["More than {limit} %?"],
    )
    asked = _asked(template, _leaf(7))
    assert asked.slots[0].value is True
    assert asked.slots[0].label == "whether above 5 %"
    assert asked.query("More than {limit} %?") == "More than 5 %?"
    template = _template(
        given={"limit": [1, 2, 3, 50]}, clear=["abs(@0.severity_pct - {limit}) > 20"]
    )
    asked = [_asked(template, _leaf(2.5), seed=seed) for seed in range(5)]
    assert {each.words["limit"] for each in asked} == {"50"}
    assert _asked(template, _leaf(30.0)).words["limit"] in {"1", "2", "3"}
    assert _asked(_template(clear=["@0.severity_pct > 20"]), _leaf(2.5)) is None


def test_a_yes_is_as_likely_as_a_no_and_no_class_likelier_than_another():
    limits = {"limit": [2, 3, 5, 8, 12, 20, 30]}
    above = {
        "type": "boolean",
        "name": "above",
        "label": "above",
        "from": "@0.severity_pct > {limit}",
    }
    template = _template(answer_type="exact", given=limits, slots=[above])
    yes = sum(_asked(template, _leaf(25.0), seed=seed).slots[0].value for seed in range(200))
    assert 75 < yes < 125
    classes = {
        "type": "exact", "name": "class", "label": "class", "options": ["low", "middle", "high"],
        "from": "'low' if @0.severity_pct < {low} else ('middle' if @0.severity_pct < {high} else 'high')",
    }  # fmt: skip
    given = {"low": [5, 10, 15, 30], "high": [12, 16, 40, 50]}
    template = _template(
        answer_type="exact", given=given, clear=["{low} < {high}"], slots=[classes]
    )
    named = [_asked(template, _leaf(17.0), seed=seed).slots[0].value for seed in range(150)]
    assert all(35 < named.count(name) < 65 for name in ("low", "middle", "high"))


def test_rare_things_are_as_often_first_as_second_unless_their_order_is_kept():
    """Of four leaves one is bad: which of two is bad must not follow from their order."""
    worse = {
        "type": "file",
        "name": "bad",
        "label": "bad",
        "from": "'{one}' if @0.severity_pct > 50 else '{two}'",
    }
    clear = ["(@0.severity_pct > 50) != (@1.severity_pct > 50)"]
    template = _template(things=2, answer_type="exact", slots=[worse], clear=clear)
    subjects = [
        Subject(
            f"s{k}", 4, lambda index, number: _leaf(90.0 if index == 0 else 5.0, number), of="leaf"
        )
        for k in range(200)
    ]
    first = sum(
        ask_subject(subject, template, 1).slots[0].value == "image_1.jpg" for subject in subjects
    )
    assert 75 < first < 125
    worst = {
        "type": "file", "name": "worst", "label": "worst",
        "from": "label_of_max(['{one}', '{two}', '{three}'], [@0.severity_pct, @1.severity_pct, @2.severity_pct])",
    }  # fmt: skip
    subjects = [
        Subject(f"s{k}", 4, lambda index, number: _leaf(5.0 + index, number), of="leaf")
        for k in range(150)
    ]
    for shuffled, least, most in ((False, 0, 0), (True, 35, 65)):
        template = _template(things=3, answer_type="exact", slots=[worst], shuffled=shuffled)
        first = sum(
            ask_subject(subject, template, 1).slots[0].value == "image_1.jpg"
            for subject in subjects
        )
        assert least <= first <= most


def test_open_truths_and_shared_facts_are_not_asked():
    thing = _leaf(2)
    unknown = Thing(
        thing.files,
        thing.tool,
        thing.arguments,
        {"severity_pct": None},
        thing.called,
        thing.thought,
    )
    assert _asked(_template(clear=["@0.severity_pct > 1"]), unknown) is None
    shared = {
        "type": "open_text", "name": "advice", "label": "advice", "from": "'x'",
        "entry": "disease.soybean_frogeye_leaf_spot", "topic": "management",
    }  # fmt: skip
    pct = {
        "type": "tolerance",
        "name": "pct",
        "label": "share",
        "from": "@0.severity_pct",
        "unit": "%",
        "abs_tol": 1,
    }
    assert _asked(_template(answer_type="open_text", slots=[shared]), _leaf(3.0)) is None
    both = _asked(_template(answer_type="open_text", slots=[pct, shared]), _leaf(3.0))
    assert [slot.name for slot in both.slots] == ["pct", "advice"]


def test_numbers_given_are_numbers_in_arguments():
    step = {
        "tool": "calculate",
        "thought": "",
        "arguments": {
            "expression": "a / 100 * {ha}",
            "variables": {"a": "@0.severity_pct", "b": "{ha}"},
        },
    }
    asked = _asked(_template(given={"ha": [2.5]}, steps=[step]), _leaf(8))
    assert asked.calls[1].arguments == {
        "expression": "a / 100 * 2.5",
        "variables": {"a": {"$ref": "steps[0].observation.severity_pct"}, "b": 2.5},
    }


def test_calls_that_look_closer_follow_the_first_where_one_thing_is_asked_of():
    look = PlannedCall("describe_region", {"image": "image_1.jpg"}, {"shape": {"pieces": 3}})
    closer = replace(_leaf(4), closer=(look,))
    slot = {
        "type": "tolerance",
        "name": "pieces",
        "label": "pieces",
        "from": "@1.shape.pieces",
        "abs_tol": 0.4,
    }
    asked = _asked(_template(slots=[slot], clear=["@1.shape.pieces > @0.severity_pct - 2"]), closer)
    assert [call.tool for call in asked.calls] == ["analyze_lesions", "describe_region"]
    assert asked.slots[0].value == 3
    both = _asked(_template(things=2), closer, _leaf(5, 2))
    assert [call.tool for call in both.calls] == ["analyze_lesions", "analyze_lesions"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"clear": ["@0.nonsense > 1"]}, "no field 'nonsense'"),
        ({"clear": ["@3.severity_pct > 1"]}, "no step 4"),
        ({"clear": ["{nobody} > 1"]}, "{nobody} is not a word"),
        (
            {
                "slots": [
                    {
                        "type": "exact",
                        "name": "x",
                        "label": "x",
                        "from": "'high'",
                        "options": ["low", "middle"],
                    }
                ]
            },
            "none of its options",
        ),
    ],
)
def test_a_template_that_names_what_is_not_there_says_so(more, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        _asked(_template(**more), _leaf(2))


def _boxed(number: int) -> Thing:
    name = f"image_{number}.jpg"
    file = SampleFile(name=name, path=f"{number}.jpg", kind="image")
    found = PlannedCall(
        "extract_marked_region", {"image": name}, {"regions": [{"box": [1, 2, 3, 4 + number]}]}
    )
    return Thing(
        (file,), "analyze_lesions", {"image": name, "region": ref(0, "regions[0].box")},
        {"severity_pct": 4.0 * number}, name, "I need the lesions.", before=(found,),
    )  # fmt: skip


def test_what_comes_before_the_measurements_is_a_group_of_its_own():
    template = _template(things=2, slots=[{**SHARE, "from": "@3.severity_pct - @2.severity_pct"}])
    asked = _asked(template, _boxed(1), _boxed(2))
    assert [call.tool for call in asked.calls] == ["extract_marked_region"] * 2 + [
        "analyze_lesions"
    ] * 2
    assert [call.group for call in asked.calls] == [0, 0, 1, 1]
    assert [call.arguments["region"]["$ref"] for call in asked.calls[2:]] == [
        "steps[0].observation.regions[0].box",
        "steps[1].observation.regions[0].box",
    ]
    assert asked.slots[0].value == 4.0
    alone = _asked(_template(slots=[{**SHARE, "from": "@1.severity_pct"}]), _boxed(1))
    assert [call.group for call in alone.calls] == [None, None]


def test_a_mark_of_a_picture_that_shows_all_things_is_found_once():
    slot = {**SHARE, "from": "@{m1}.severity_pct - @{m0}.severity_pct"}
    first = _boxed(1)
    second = replace(first, truth={"severity_pct": 9.0})
    asked = _asked(_template(things=2, slots=[slot]), first, second)
    assert [call.tool for call in asked.calls] == [
        "extract_marked_region",
        "analyze_lesions",
        "analyze_lesions",
    ]
    assert [call.group for call in asked.calls] == [0, 1, 1]
    regions = [call.arguments["region"]["$ref"] for call in asked.calls[1:]]
    assert regions == ["steps[0].observation.regions[0].box"] * 2
    assert asked.slots[0].value == 5.0


def test_what_is_looked_up_is_known_before_anything_runs():
    look = {
        "tool": "lookup_agronomy",
        "arguments": {
            "query": "alfalfa weevil",
            "kb_id": "pest.alfalfa_weevil",
            "topic": "thresholds",
            "top_k": 1,
        },
        "thought": "I need the threshold.",
    }
    slot = {**SHARE, "from": "@1.hits[0].values[0].value"}
    asked = _asked(_template(steps=[look], slots=[slot]), _leaf(3.0))
    assert (asked.slots[0].value, asked.calls[1].truth) == (40, None)


def test_a_set_and_an_open_answer_are_scored_by_what_the_template_says():
    chosen = {
        "type": "choice_set", "name": "bands", "label": "bands", "options": ["B", "G", "R"], "aliases": {"R": ["red"]},
        "from": "['R', 'G'] if @0.severity_pct > 2 else ['B']",
    }  # fmt: skip
    said = {
        "type": "open_text", "name": "advice", "label": "advice", "facts": [["spray", "treat"], ["wait"]],
        "from": "'spray' if @0.severity_pct > 2 else 'wait'",
    }  # fmt: skip
    asked = _asked(_template(answer_type="open_text", slots=[chosen, said]), _leaf(3.0))
    assert (asked.slots[0].value, asked.slots[0].choices) == (("R", "G"), ("B", "G", "R"))
    assert asked.slots[0].aliases == {"R": ("red",)}
    assert [fact.phrases for fact in asked.slots[1].facts] == [("spray", "treat"), ("wait",)]
    unknown = {**said, "facts": [], "entry": "pest.nothing", "topic": "management"}
    assert _asked(_template(answer_type="open_text", slots=[unknown]), _leaf(3.0)) is None


def test_a_question_in_chinese_names_parts_in_chinese_and_takes_english_answers():
    half = {
        "type": "exact", "name": "half", "label": "half: {one} or {two}", "label_zh": "哪一半：{one}或{two}",
        "options": ["{one}", "{two}"], "from": "'{one}' if @0.severity_pct > @1.severity_pct else '{two}'",
    }  # fmt: skip
    template = _template(
        things=2,
        answer_type="exact",
        slots=[half],
        wordings_zh=["{one}和{two}，[哪边|哪一半]更严重？"],
    )
    template = template.model_copy(update={"language": "zh", "wordings": template.wordings_zh})
    asked = _asked(
        template,
        replace(_leaf(3.0), called="left half"),
        replace(_leaf(9.0, 2), called="right half"),
    )
    slot = asked.slots[0]
    assert (slot.value, slot.choices) == ("右半", ("左半", "右半"))
    assert (slot.aliases, slot.label) == (
        {"左半": ("left half",), "右半": ("right half",)},
        "哪一半：左半或右半",
    )
    assert asked.query(template.wordings[0]) == "左半和右半，哪边更严重？"


def test_choices_take_the_names_of_the_knowledge_base_that_none_of_the_others_has():
    weeds = ("lantana", "rubber vine", "siam weed", "another plant")
    by_gold = [
        with_known_names(
            ExactSlot(
                name="weed", label="weed", value=each, choices=weeds, aliases={each: ("vine",)}
            )
        )
        for each in weeds
    ]
    for slot, gold in zip(by_gold, weeds, strict=True):
        assert answer_form([slot]) == answer_form(
            [ExactSlot(name="weed", label="weed", value=gold, choices=weeds)]
        )
    for text in (
        "马缨丹",
        "Lantana camara",
        "飞机草",
        "Cryptostegia grandiflora",
        "lantana",
        "another plant",
        "vine",
    ):
        right = sum(score_slot(slot, [slot], f"weed: {text}").value for slot in by_gold)
        assert right == (text != "vine")  # an alias of the right choice alone
    shared = with_known_names(
        ExactSlot(name="weed", label="weed", value="马缨丹", choices=("lantana", "马缨丹"))
    )
    assert shared.aliases == {}


def test_alternatives_give_every_combination_once_and_brackets_without_bars_stay():
    ways = expanded(
        ["[How many|What number of] trees [stand|are] in {one}?", "Count the trees[|, please]."]
    )
    assert set(ways) == {
        "How many trees stand in {one}?", "How many trees are in {one}?", "What number of trees stand in {one}?",
        "What number of trees are in {one}?", "Count the trees.", "Count the trees, please.",
    }  # fmt: skip
    assert len(ways) == 6
    assert {ways[0].split()[0], ways[1].split()[0]} == {"How", "Count"} or ways[1].startswith(
        "Count"
    )
    assert expanded(["What is the share of [A]?"]) == ("What is the share of [A]?",)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_as_many_ways_as_combinations_up_to_a_limit(sizes):
    wording = "ask " + " ".join(
        "[" + "|".join(f"w{k}x{n}" for k in range(size)) + "|z]" for n, size in enumerate(sizes)
    )
    every = 1
    for size in sizes:
        every *= size + 1
    ways = expanded([wording])
    assert len(ways) == len(set(ways)) == min(every, MOST_OF_ONE)
    assert not any("[" in way or "|" in way for way in ways)


def test_sentences_differ_only_by_what_is_said():
    asked = set(sentences("Which is worse, image_1.jpg or image_2.jpg? Our limit is 12.5 %."))
    assert len(asked) == 2
    assert asked.intersection(sentences("Hello there. our limit is 7 %."))
    assert asked.intersection(sentences("which is worse, image_3.png or x.jpg?"))
    assert not asked.intersection(sentences("Which one is worse?"))
    assert sentences("哪一张更严重？请只说文件名。") == ("哪一张更严重", "请只说文件名")
    assert sentences("比较image_1.jpg和image_2.jpg的病情。") == ("比较#和#的病情",)


def test_whoever_reads_the_entry_can_state_every_key_fact():
    from agrotools.scoring.open_text import read_fact
    from agrotools_build.templates.key_facts import facts_about
    from agrotools_tools import lookup_agronomy

    denied: list[tuple[str, str]] = []
    for entry, topic in topics_with_facts():
        found = lookup_agronomy(
            query=entry.split(".")[1].replace("_", " "), topic=topic, kb_id=entry, top_k=1
        )
        for fact in facts_about(entry, topic):
            read = read_fact(fact, found.hits[0].text)
            assert read.said or read.denied, (entry, topic, fact)
            denied += [] if read.said else [(entry, fact.phrases[0])]
    # The plain rule takes "improve drainage and do not over-water" for a denial of both.
    assert len(denied) <= 3, denied


def test_a_choice_takes_no_names_of_another_entry_than_its_aliases_name():
    of_coffee = shipped_names().of_name("cercospora", ("disease",), "coffee")
    assert of_coffee is not None
    aliases = {"cercospora": of_coffee.names.all(), "rust": ("coffee leaf rust",)}
    slot = ExactSlot(
        name="disease",
        label="disease",
        value="cercospora",
        choices=("cercospora", "rust"),
        aliases=aliases,
    )
    known = with_known_names(slot, of_all=True)
    assert score_slot(known, [known], f"disease: {of_coffee.names.en}").value == 1
    assert score_slot(known, [known], "disease: gray leaf spot of corn").value == 0
