"""One bad place in a prediction file: the rest is scored, the place is named, and it is never right."""

import copy
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agrotools.report.predictions import as_data, compared_tables
from agrotools.scoring.embedders import Embedder
from agrotools.scoring.predictions import ScoredFile, compare_file
from agrotools_benchmarks._dialogs.corrected_scorer import score_end, score_steps
from agrotools_benchmarks._dialogs.published_scorer import Dialogue
from agrotools_benchmarks.gta.score import RULES as GTA
from agrotools_benchmarks.thinkgeo.score import RULES as THINKGEO
from support.gta_files import CAT, END_GOLD, GOLD_STEPS, SIX, answer, call, overlap, returned
from support.shown import rendered

USER = {"role": "user", "content": "?"}
WITH_RETURNS = [
    (
        [
            message
            for one in gold
            for message in ((one, returned()) if "tool_calls" in one else (one,))
        ],
        reference,
    )
    for gold, reference in END_GOLD
]
STEP_DATA = {
    str(i): {"dialogs": [USER, *gold], "gt_answer": reference}
    for i, (gold, reference) in enumerate(zip(GOLD_STEPS, (SIX, None, CAT), strict=True))
}
END_DATA = {
    str(i): {"dialogs": [USER, *gold], "gt_answer": ref}
    for i, (gold, ref) in enumerate(WITH_RETURNS)
}
STEP_FILE = {str(i): {"gold": gold, "prediction": gold} for i, gold in enumerate(GOLD_STEPS)}
END_FILE = {
    str(i): {"gold": [gold], "prediction": [gold]} for i, (gold, _) in enumerate(WITH_RETURNS)
}
STEP = {
    "step": 1,
    "task": "t",
    "tool_used": "OCR",
    "tool_output": "cup",
    "thought": "look at the cup",
}
SAMPLE = {
    "query": "q",
    "filename": "f",
    "reasoning_steps": [STEP, STEP | {"tool_used": "Solver"}],
    "final_answer": {"value": "3 cups", "justification": "counted"},
}
AGENT_X_FILE = [{str(i): SAMPLE} for i in range(3)]
AGENT_X_DATA = {str(i): [SAMPLE | {"query_type": "objective"}] for i in range(3)}
ANYTHING: tuple[Any, ...] = (None, True, 3, "²", [], [None], {"a": [{}]})
EMBEDDER = Embedder("word overlap", overlap)
FILES: dict[str, tuple[str, Any, Any]] = {
    "gta, steps": ("gta", STEP_FILE, STEP_DATA),
    "gta, ends": ("gta", END_FILE, END_DATA),
    "thinkgeo, ends": (
        "thinkgeo",
        {"0": END_FILE["0"], "1": END_FILE["2"]},
        {"0": END_DATA["0"], "1": END_DATA["2"]},
    ),
    "agentx": ("agentx", AGENT_X_FILE, AGENT_X_DATA),
}


def scored(tmp_path: Path, format_: str, predictions: Any, data: Any = None) -> ScoredFile:
    (tmp_path / "p.json").write_text(json.dumps(predictions), encoding="utf-8")
    if data is not None:
        (tmp_path / "d.json").write_text(json.dumps(data), encoding="utf-8")
    embedder = EMBEDDER if format_ != "agentx" else None
    return compare_file(
        format_, tmp_path / "p.json", data=tmp_path / "d.json" if data else None, embedder=embedder
    )


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys: Any = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in keys:
        yield (*path, key)
        yield from places(value[key], (*path, key))


GONE = object()


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    if other is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = other
    return changed


def points(found: ScoredFile) -> dict[str, float]:
    """What all samples add to each metric."""
    totals: dict[str, float] = {}
    for sample in found.corrected.samples:
        for metric, part in sample.parts.items():
            totals[metric] = totals.get(metric, 0) + part.total
    return totals


@pytest.mark.parametrize("name", FILES)
@pytest.mark.slow
def test_anything_in_any_place_is_scored_and_adds_nothing(tmp_path: Path, name: str):
    format_, predictions, data = FILES[name]
    whole = points(scored(tmp_path, format_, predictions, data))
    values = itertools.cycle((*ANYTHING, GONE))
    for path in places(predictions):
        for other in itertools.islice(values, 3):
            result = scored(tmp_path, format_, replaced(predictions, path, other), data)
            assert all(
                points(result).get(metric, 0) <= most + 1e-9 for metric, most in whole.items()
            ), (path, other)
            json.dumps(as_data(result), allow_nan=False)
            if other is None and len(path) < 2:
                rendered(compared_tables(result, "p.json"), 100)


names = st.sampled_from(
    "OCR DrawBox Plot Calculator TextToBbox TextToImage CountGivenObject".split()
)
texts = st.text("ab1,() ", max_size=9) | st.integers(0, 3)
arguments = st.dictionaries(
    st.sampled_from("image text bbox k expression".split()), texts, max_size=3
)
answers = st.sampled_from(
    [
        ("6", {"whitelist": [["6"]], "blacklist": [["no"]]}), ("a cat", ["the cat", "a cat"]), ("", None),
        ("-2.5 kg", {"whitelist": [["-2.5"]], "blacklist": None}),
    ]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(st.lists(st.builds(call, names, arguments), max_size=4), answers),
        min_size=1,
        max_size=4,
    )
)
def test_the_gold_has_all_points(made: list[Any]):
    golds = [([*calls, answer(text)], reference) for calls, (text, reference) in made]
    steps = [Dialogue(str(i), gold, gold, reference) for i, (gold, reference) in enumerate(golds)]
    ends = [
        Dialogue(str(i), [gold], [gold], reference) for i, (gold, reference) in enumerate(golds)
    ]
    for rules in (GTA, THINKGEO):
        for scores in (score_steps(steps, rules, overlap), score_end(ends, rules, overlap)):
            assert all(figure.value in (None, 100) for figure in scores.metrics.values()), (
                scores.metrics
            )


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "OCR"}}]},
        {
            "role": "assistant",
            "tool_calls": [{"type": "function", "function": {"arguments": {"image": "a"}}}],
        },
        call("OCR", 3),
        {"role": "tool"},
    ],
)
def test_a_call_without_a_name_or_arguments_is_wrong_for_its_step(tmp_path: Path, message: Any):
    prediction = [message, *GOLD_STEPS[0][1:]]
    result = scored(
        tmp_path,
        "gta",
        {"0": {"gold": GOLD_STEPS[0], "prediction": prediction}},
        {"0": STEP_DATA["0"]},
    )
    values = {name: figure.value for name, figure in result.corrected.metrics.items()}
    assert values["gta.inst_acc_corrected"] == pytest.approx(200 / 3)
    assert values["gta.tool_acc_corrected"] == values["gta.arg_acc_corrected"] == 50
    assert values["gta.summ_acc_corrected"] == 100
    assert result.malformed[0].startswith('p.json, key "0": prediction[0]')
    assert "malformed, scored as wrong: p.json" in rendered(compared_tables(result, "p.json"), 200)
