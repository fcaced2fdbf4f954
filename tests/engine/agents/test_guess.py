"""The floor ``guess``: an answer from the prompt alone, whatever the gold is."""

import pytest

from agrotools.agents.baselines.guess import (
    Guesser,
    GuessModel,
    GuessPolicy,
    guessed_chart,
    guessed_text,
    guessed_values,
    is_unanswerable,
    prompt_features,
    slot_key,
)
from agrotools.calling import get_tool
from agrotools.core import Answer, Observation, PlotSlot, Sample, Step, ToolCall
from agrotools.loading.pack import read_pack
from agrotools.models import Endpoint
from agrotools.runner.policies import policy_source
from agrotools.text.answer_form import UNKNOWN, answer_form
from support.small_sample import view_of

SLOTS = [
    {
        "name": "stage",
        "label": "stage",
        "type": "exact",
        "value": "severe",
        "choices": ["light", "moderate", "severe"],
    },
    {"name": "changed", "label": "it has changed", "type": "boolean", "value": True},
    {
        "name": "leaf",
        "label": "leaf",
        "type": "file",
        "value": "b.jpg",
        "choices": ["a.jpg", "b.jpg"],
    },
    {
        "name": "seen",
        "label": "seen",
        "type": "choice_set",
        "value": ["rust"],
        "choices": ["rust", "smut"],
    },
    {
        "name": "share",
        "label": "share",
        "type": "tolerance",
        "value": 31.0,
        "unit": "%",
        "abs_tol": 1.0,
    },
]
OTHER_GOLD = [
    {"value": "light"}, {"value": False}, {"value": "a.jpg"}, {"value": ["smut"]}, {"value": 77.0, "abs_tol": 9.0},
]  # fmt: skip


def sample_of(slots: list[dict[str, object]]) -> Sample:
    return Sample.model_validate({
        "id": "leaf-1", "query": "How sick is it, over 12 % or not?", "family": "SI", "task_type": "lesion_severity",
        "answer_type": "exact", "template": "t", "source": "s", "toolset": [], "answer": slots,
        "files": [{"name": "a.jpg", "path": "a.jpg", "kind": "image", "width_px": 800, "height_px": 600},
                  {"name": "b.jpg", "path": "b.jpg", "kind": "image"}],
    })  # fmt: skip


async def test_guesses_come_at_once_and_no_gold_changes_them(tmp_path):
    first = sample_of(SLOTS)
    second = sample_of([{**slot, **gold} for slot, gold in zip(SLOTS, OTHER_GOLD, strict=True)])
    guesses = guessed_values(first, first.answer)
    assert guesses == guessed_values(second, second.answer)
    assert set(guesses) == {"stage", "changed", "leaf", "seen", "share"}
    assert answer_form(first.answer) == answer_form(second.answer)
    sample = sample_of(SLOTS)
    assert policy_source(Endpoint("baseline:guess"), [sample]).privileged is False
    assert (
        policy_source(Endpoint("baseline:constant"), [sample]).privileged is True
    )  # It learns from the gold of other samples.
    action = await GuessPolicy(sample).act(view_of(sample, tmp_path), [])
    assert [line.partition(":")[0] for line in action.text.splitlines()] == [
        slot["name"] for slot in SLOTS
    ]


def test_a_linear_model_reads_words_and_numbers_of_the_question():
    import numpy as np

    sample = sample_of(SLOTS)
    size = len(prompt_features(sample.query, sample.files))
    number = size - 16  # The first number of the question, behind the hashed words.
    weights = np.zeros((size + 1, 1), np.float32)
    weights[number] = 1.0
    guesser = Guesser(5.0, weights=weights, logarithm=True, low=0.0, high=10.0)
    model = GuessModel({slot_key(sample.answer[4]): guesser})
    assert (
        round(model.values(sample.query, sample.files, sample.answer[4:])["share"], 3) == 13.0
    )  # exp(log1p(12))
    classes = np.zeros((size + 1, 2), np.float32)
    classes[number, 1], classes[-1, 0] = 1.0, 2.0
    yes_above = Guesser(False, outcomes=(False, True), weights=classes)
    model = GuessModel({slot_key(sample.answer[1]): yes_above})
    assert model.values("Is it over 12 %?", (), sample.answer[1:2]) == {"changed": True}
    assert model.values("Is it over 2 %?", (), sample.answer[1:2]) == {"changed": False}


DEPTH = {"name": "depth_1.png", "path": "d.png", "kind": "depth"}
CAMERA = {"fx_px": 500.0, "fy_px": 500.0, "cx_px": 320.0, "cy_px": 240.0}


def asking(query: str, unit: str | None, *shown_files: dict[str, object]) -> Sample:
    size = {
        "name": "size",
        "label": "size",
        "type": "tolerance",
        "value": 31.0,
        "unit": unit,
        "abs_tol": 1.0,
    }
    whole = sample_of([size]).model_dump(mode="json", by_alias=True)
    listed = [{"name": f"image_{place}.jpg", "path": "i.jpg", "kind": "image", **file}
              for place, file in enumerate(shown_files, start=1)]  # fmt: skip
    return Sample.model_validate({**whole, "query": query, "files": listed, "may_abstain": True})


@pytest.mark.parametrize(
    ("answerable", "unanswerable"),
    [
        (
            asking("Is image_2.jpg greener?", "%", {}, {}),
            asking("Is image_2.jpg greener?", "%", {}),
        ),
        (
            asking("How wide is it?", "mm", {"intrinsics": CAMERA}, DEPTH),
            asking("How wide is it?", "mm", {}, DEPTH),
        ),
        (
            asking("How wide?", "cm", {"note": "The disc is 8.4 cm across."}),
            asking("How wide?", "cm", {"note": "A weed."}),
        ),
        (asking("How fast?", "cm/week", {"gsd_m": 0.01}), asking("How fast?", "cm/week", {})),
        (
            asking("How tall?", "m", {"kind": "raster"}),
            asking("How tall?", "m", {"intrinsics": CAMERA}),
        ),
        (asking("How much water?", "ha", {"gsd_m": 0.5}), asking("How much water?", "ha", {})),
        (
            asking("How much weed in 2.5 ha?", "ha", {}),
            asking("How much weed in the field?", "ha", {}),
        ),
    ],
)
def test_refuses_only_where_the_prompt_shows_that_there_is_no_answer(
    answerable: Sample, unanswerable: Sample
):
    assert not is_unanswerable(answerable.query, answerable.files, answerable.answer)
    assert guessed_text(answerable, answerable.answer) != UNKNOWN
    assert guessed_text(unanswerable, unanswerable.answer) == UNKNOWN
    no_offer = unanswerable.model_copy(update={"may_abstain": False})
    assert guessed_text(no_offer, no_offer.answer) != UNKNOWN


@pytest.mark.parametrize(("name", "most"), [("embedded", 0), ("frontier", 0), ("field", 2)])
def test_refuses_next_to_no_answerable_question_of_the_packs(name: str, most: int):
    # The smallest number of files of a form is that of drawn scenes; two windows of one raster may be compared, too.
    refused = [
        sample
        for sample in read_pack(name).samples
        if guessed_text(sample, sample.answer) == UNKNOWN
    ]
    assert len([sample.id for sample in refused if sample.answerable]) <= most
    # What lacks an answer must be looked at in drawn scenes; the texts of some photographs tell it.
    assert bool(refused) == (name == "field")


async def test_draws_the_usual_chart_of_what_the_question_names_and_then_answers(tmp_path):
    query = (
        "Draw bars of the height in image_2.jpg and image_1.jpg in cm (the disc is 8.4 cm across)."
    )
    sample = asking(query, "cm", {}, {}, {})
    slot = PlotSlot(
        name="chart",
        label="bars of the plant height in each picture",
        value={"kind": "pie", "series": [{"name": "s", "x": ["z"], "y": [1]}]},
    )
    sample = sample.model_copy(update={"answer": (slot,), "toolset": ("plot",)})
    policy, view = GuessPolicy(sample), view_of(sample, tmp_path)
    action = await policy.act(view, [])
    drawn = get_tool("plot").spec
    assert action.calls[0].tool == drawn.name
    assert set(action.calls[0].arguments) <= set(drawn.parameters["properties"])
    chart = guessed_chart(view)
    assert (chart.kind, chart.y_unit) == ("bar", "cm")
    assert [series.x for series in chart.series] == [("image_2.jpg", "image_1.jpg")]
    step = Step(turn=0, kind="call", call=ToolCall(tool="plot"), observation=Observation(result={}))
    assert isinstance(await policy.act(view, [step]), Answer)
    assert isinstance(await policy.act(view.model_copy(update={"toolset": ()}), []), Answer)
