"""docs/reference-scorers.md: every corrected metric has a row; examples and tables come out as they are printed."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agrotools.cli.main import app
from agrotools.scoring.predictions import (
    FORMATS,
    Figure,
    PredictionScores,
    compare_file,
    prediction_format,
)
from agrotools_benchmarks._dialogs import corrected_scorer as corrected_dialogues
from agrotools_benchmarks._dialogs import published_scorer as published_dialogues
from agrotools_benchmarks.agent_x import published_scorer
from agrotools_benchmarks.agent_x import score as corrected_scorer
from agrotools_benchmarks.agent_x.judge import JudgeTable
from agrotools_benchmarks.gta.score import RULES as GTA
from agrotools_benchmarks.thinkgeo.score import RULES as THINKGEO
from agrotools_benchmarks.thinkgeo.score import Judgement, score_end, with_llm_score
from support.gta_files import (
    CAT,
    ERROR,
    GOLD_STEPS,
    SIX,
    answer,
    call,
    end_file,
    end_sample,
    overlap,
    step_file,
    step_sample,
)
from support.made_predictions import made_files

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference-scorers.md").read_text(encoding="utf-8")
ROWS = {
    ({"Agent-X": "agent_x", "AgriEval": "agrieval"}.get(heading, "dialogues"), name): cells
    for heading, text in re.findall(r"^### (.+?)\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE)
    for cells in (
        line.strip("|").split("|") for line in text.splitlines() if line.startswith("| `")
    )
    for name in re.findall(r"`(\w+)`", cells[0])
}
Pair = tuple[PredictionScores, PredictionScores]


def steps(*samples: Any) -> Pair:
    return published_dialogues.score_steps(samples, GTA, overlap), corrected_dialogues.score_steps(
        samples, GTA, overlap
    )


def one_step(gold: list[Any], prediction: list[Any], reference: Any = None) -> Pair:
    return steps(step_sample("0", gold, prediction, reference))


def ends(*samples: Any, rules: Any = GTA) -> Pair:
    return published_dialogues.score_end(samples, rules, overlap), corrected_dialogues.score_end(
        samples, rules, overlap
    )


def one_end(gold: list[Any], prediction: list[Any], reference: Any = None) -> Pair:
    return ends(end_sample("0", gold, prediction, reference))


def asked(alias: str) -> dict[str, Any]:
    return {"whitelist": [[alias]], "blacklist": None}


OCR = call("OCR", {"image": "a"})
BOXES = [
    call("DrawBox", {"bbox": box, "annotation": "car"}) for box in ("(1, 2, 3, 4)", "(5, 6, 7, 8)")
]


def search(**more: Any) -> list[Any]:
    return [call("GoogleSearch", {"query": "a", **more}), answer("6")]


def summed(expression: str) -> list[Any]:
    return [call("Calculator", {"expression": expression}), answer("6")]


def drawn() -> Pair:
    gold = [
        ([call("TextToBbox", {"image": "a"}), answer("There are 4 cars")], asked("4")),
        ([call("ChangeDetection", {"text": "b"}), answer("it is x")], asked("x")),
        (BOXES, None),
    ]
    samples = [
        end_sample(str(i), messages, messages, reference)
        for i, (messages, reference) in enumerate(gold)
    ]
    return ends(*samples, rules=THINKGEO)


def judged_dialogue() -> Pair:
    samples = [end_sample("0", [answer("6")], [answer("6")], SIX)]
    data = {"0": {"evaluation": [{"question": "6?"}]}}
    log = [Judgement(0, ("yes.",))]
    ours = corrected_dialogues.score_end(samples, THINKGEO, overlap)
    return score_end(samples, overlap, data=data, judgements=log), with_llm_score(ours, log, data)


def judged() -> Pair:
    columns = {name: [1, 0, 1, "n/a", 0] for name in published_scorer.COLUMNS}
    columns["goal_accuray"] = [1, 0, 0.5, "", 1]
    columns["tool_accuray"] = [1, 1, 0.5, 0, 1]
    columns["toolset_accuray"] = [0.67, 1, 0, 0.5, 1]
    rows = [{name: cells[row] for name, cells in columns.items()} for row in range(5)]
    made = (
        ("OCR", "WebSearch"),
        ("OCR", "Calculator"),
        ("OCR", "WebSearch"),
        (),
        ("OCR", "Calculator"),
    )
    kinds = ["factual", "factual", "generative", "factual", "generative"]
    data = {
        str(key): {"query_type": kind, **used("OCR", "Calculator")}
        for key, kind in enumerate(kinds)
    }
    predictions = [{str(key): used(*tools)} for key, tools in enumerate(made)]
    ours = corrected_scorer.score(JudgeTable(tuple(rows), None, raw=False), predictions, data)
    return published_scorer.aggregate(rows, {2, 4, 9}), ours


def used(*tools: str) -> dict[str, Any]:
    return {"reasoning_steps": [{"tool_used": tool} for tool in tools]}


CAT_HALF = [GOLD_STEPS[2][0], answer("a cat")]
CASES: Mapping[str, Callable[[], Pair]] = {
    "inst_acc": lambda: steps(*step_file(*GOLD_STEPS)),
    "tool_acc": lambda: one_step([OCR, OCR, answer("6")], [OCR], SIX),
    "arg_acc": lambda: one_step(search(k=10), search(), SIX),
    "arg_acc_agreement": lambda: one_step(summed("2*3"), summed("3*2"), SIX),
    "summ_acc": lambda: one_step([OCR, answer("-3")], [OCR, answer("x = -3")], asked("-3")),
    "summ_acc_objective": lambda: steps(*step_file(GOLD_STEPS[0], GOLD_STEPS[1], CAT_HALF)),
    "ans_acc": lambda: one_end([answer("2")], [answer("2.5 boxes")], asked("2")),
    "ans_acc_objective": lambda: ends(*end_file([answer("7")], [answer("")], [answer(CAT[0])])),
    "ans_acc_imggen": lambda: one_end([OCR, answer("x")], [answer("hi")]),
    "ans_i": drawn,
    "p_f1": lambda: one_end([OCR, OCR, OCR, answer("6")], [OCR, answer("6")], SIX),
    "o_f1": lambda: one_end([*BOXES, answer("6")], [BOXES[0], answer("6")], SIX),
    "l_f1": lambda: one_end(
        summed("1"), [call("Calculator", {"expression": "1"}, ERROR), answer("6")], SIX
    ),
    "c_f1": lambda: one_end([call("TextToImage", {})], [call("TextToImage", {}, ERROR)]),
    "llm_score": judged_dialogue,
}
OF_AGENT_X = (
    "goal_acc",
    "goal_acc_imggen",
    "toolset_f1",
    "ground_s",
    "tool_p",
    "clarity",
    "reward",
    "sem_acc",
)
BESIDE = {
    "arg_acc_agreement": "arg_acc",
    "summ_acc_objective": "summ_acc",
    "ans_acc_objective": "ans_acc",
    "toolset_f1": "toolset_acc",
}
"""Metrics that are ours alone, and the published one beside which their example stands."""


def shown(figure: Figure) -> str:
    return "—" if figure.value is None else f"{figure.value:.2f}"


@pytest.mark.parametrize("name", [*CASES, *OF_AGENT_X])
def test_the_example_of_a_metric_comes_out(name: str):
    theirs, ours = CASES[name]() if name in CASES else judged()
    family = next(iter(theirs.metrics)).split(".")[0]
    published = theirs.metrics[f"{family}.{BESIDE.get(name, name)}"]
    made = f"{shown(published)} → {shown(ours.metrics[f'{family}.{name}_corrected'])}"
    assert _row(family, name)[3].strip().endswith(f": {made}"), made


def chosen(right: str, *replies: str) -> list[dict[str, Any]]:
    options = dict.fromkeys("ABCD", "x")
    entry = {
        "question_type": "单选" if len(right) == 1 else "多选",
        "options": options,
        "answer": right,
    }
    return [entry | {"generated_answer": reply} for reply in replies]


def opened(reply: str, right: str) -> list[dict[str, Any]]:
    return [{"answer": right, "generated_answer": reply}]


WITHOUT_MARKS = opened("全池泼洒法对病原杀灭彻底", "全池泼洒法：对病原杀灭彻底。")
SOIL = opened("pH为6.5的酸性土", "pH为6的酸性土")
OF_AGRIEVAL = {
    "accuracy": chosen("B", "B", "不知道", "A和C都不对，选B"), "partial": chosen("AC", "A"),
    "rouge_l": WITHOUT_MARKS, "rouge_l_normalised": WITHOUT_MARKS,
    "rouge_1": opened("a b", "a c"), "rouge_2": opened("a b c", "a b d"),
    **dict.fromkeys(("hf_rouge1", "hf_rouge2", "hf_rougel", "hf_rougelsum"), SOIL),
}  # fmt: skip
DIFFERENCES = {
    metric: text for name in FORMATS for metric, text in prediction_format(name).differences.items()
}
BESIDE_OF_AGRIEVAL = {"partial": "accuracy", "rouge_l_normalised": "rouge_l"}


@pytest.mark.parametrize("name", OF_AGRIEVAL)
def test_the_example_of_a_metric_of_agrieval_comes_out(tmp_path: Path, name: str):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(OF_AGRIEVAL[name]), encoding="utf-8")
    found = compare_file("agrieval", path)
    theirs = found.published.metrics[f"agrieval.{BESIDE_OF_AGRIEVAL.get(name, name)}_published"]
    ours = found.corrected.metrics.get(f"agrieval.{name}", Figure(None, 0))
    assert _row("agrieval", name)[3].strip().endswith(f": {shown(theirs)} → {shown(ours)}")


def _row(family: str, name: str) -> list[str]:
    return ROWS[family if family in ("agent_x", "agrieval") else "dialogues", name]


def test_metrics_and_differences_of_the_page_are_those_of_the_command(tmp_path: Path):
    told = {metric: said for metric, said in DIFFERENCES.items() if metric != "agent_x.toolset_acc"}
    for metric, difference in told.items():
        assert difference in _row(*metric.split("."))[2], metric
    family_of = {
        "agent_x": ("agent_x",),
        "agrieval": ("agrieval",),
        "dialogues": ("gta", "thinkgeo"),
    }
    for section, name in ROWS:
        assert any(f"{family}.{name}" in told for family in family_of[section]), name
    found = made_files(tmp_path, 60)
    emitted: set[str] = set()
    for name, files in found.items():
        asked_ = [
            "--format",
            name.split(",")[0],
            str(files["predictions"]),
            "--data",
            str(files["data"]),
        ]
        asked_ += ["--judgements", str(files["judgements"])] if "judgements" in files else []
        done = CliRunner().invoke(app, ["score", *asked_, "--json"])
        assert done.exit_code == 0, done.output
        emitted |= set(re.findall(r'"((?:gta|thinkgeo|agent_x)\.\w+)"', done.stdout))
    known = {metric for metric in DIFFERENCES if not metric.startswith("agrieval.")}
    assert {metric.removesuffix("_corrected") for metric in emitted} == known


def test_every_option_of_the_page_is_one_of_the_command():
    told = (
        CliRunner().invoke(app, ["score", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).stdout
    )
    for option in (
        "--format",
        "--data",
        "--judgements",
        "--embedder",
        "--embedder-path",
        "--json",
    ):
        assert option in PAGE
        assert option in told
