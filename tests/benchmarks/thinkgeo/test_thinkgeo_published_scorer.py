"""Figures that ThinkGeo's published scorer gave, run with stand-ins for its embeddings and its judge."""

import pytest

from agrotools.scoring.predictions import PublishedScorerStops
from agrotools_benchmarks.thinkgeo.score import Judgement, judge_prompt, score_end
from support.gta_files import answer, call, end_sample, overlap

BOXES = [
    call("DrawBox", {"bbox": box, "annotation": "car"}) for box in ("(1, 2, 3, 4)", "(5, 6, 7, 8)")
]
GOLD = [
    ([call("TextToBbox", {"image": "a"}), answer("4")], {"whitelist": [["4"]], "blacklist": None}),
    (
        [call("ChangeDetection", {"text": "b"}), answer("x")],
        {"whitelist": [["x"]], "blacklist": None},
    ),
    (BOXES, None),
]
DATA = {
    "0": {
        "dialogs": [{"content": "q"}],
        "evaluation": [{"question": "Is it 4? "}, {"question": "Is it four??"}],
    },
    "1": {"dialogs": [{"content": "q"}], "evaluation": [{"question": "Is it x?"}]},
    "2": {"dialogs": [{"content": "q"}]},
}


def scored(predictions, judgements=()):
    samples = [
        end_sample(str(i), gold, mine, ref)
        for i, ((gold, ref), mine) in enumerate(zip(GOLD, predictions, strict=True))
    ]
    return score_end(samples, overlap, DATA, judgements)


@pytest.mark.parametrize(
    ("predictions", "replies", "expected"),
    [
        (
            [
                [GOLD[0][0][0], answer("There are 4 cars")],
                [GOLD[1][0][0], answer("it is x")],
                BOXES,
            ],
            [("yes", "yes"), ("no",)],
            [100, 75.7575758, 99.99925, 99.99925, 0, 50],
        ),
        (
            [[answer("dot 4")], [answer("dot x")], [answer("")]],
            [("yes.", "yes."), ("yes.",)],
            [100, 66.6666667, 0, 0, 0, 0],
        ),
        ([[call("OCR", {})], [answer("")], BOXES[:1]], [], [0, 9.0909091, 0, 133.332444, 0, 0]),
    ],
)
def test_end_to_end(predictions, replies, expected):
    scores = scored(predictions, [Judgement(place, said) for place, said in enumerate(replies)])
    names = ("ans_acc", "ans_i", "p_f1", "o_f1", "l_f1", "llm_score")
    values = [scores.metrics[f"thinkgeo.{name}"].value for name in names]
    assert values == pytest.approx(expected, abs=1e-6)
    assert scores.metrics["thinkgeo.llm_score"].n == 2
    assert "thinkgeo.c_f1" not in scores.metrics


def test_the_judge_is_asked_in_the_published_words_about_texts_alone():
    assert judge_prompt("There are 4 cars", "Is it 4? ") == (
        "Only respond with 'Yes' or 'No'.",
        "Response: There are 4 cars\nGiven the above response, answer the following question in Yes or No.\n"
        "Question: Is it 4?",
    )
    assert judge_prompt("a {answer}", "b {question}")[1].startswith("Response: a {answer}\n")
    with pytest.raises(PublishedScorerStops) as stop:
        score_end([end_sample("0", BOXES, BOXES, None)], overlap)
    assert stop.value.exception == "ZeroDivisionError"
