"""Examination questions from the command to the scores: baselines, models on an endpoint, kills, settings."""

import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from aiohttp import web

from agrotools.core import Sample, UsageError
from agrotools.knowledge.corpus import CorpusIndex, build_index
from agrotools.loading import Benchmark, load_benchmark
from agrotools.runner.config import EvalConfig
from agrotools.runner.evaluate import evaluate
from agrotools.runner.rescore import rescore
from agrotools.scoring.summary import ModeSummary
from agrotools_benchmarks.agrieval.plugin import OptionsSlot
from support.made_agrieval import write_agrieval
from support.openai_server import Body, completion, serving, text_of

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_agrieval(tmp_path_factory.mktemp("made") / "agrieval", 300, 30)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none-needed")


def run(data: Path, out: Path, model: str = "m", **config: Any) -> ModeSummary:
    with Path(os.devnull).open("w") as nothing:
        evaluate(
            EvalConfig.of(benchmark="agrieval", data_root=data, model=model, out=out, **config),
            nothing,
        )
    return rescore(out).summary.modes["no-tool"]


def answering(
    benchmark: Benchmark, choose: Callable[[Sample], str]
) -> Callable[[Body], web.Response]:
    """An endpoint that knows the gold, and says what ``choose`` makes of it."""
    by_query = {sample.query: sample for sample in benchmark.samples}

    def reply(body: Body) -> web.Response:
        (message,) = body["messages"]
        assert message["role"] == "user", "the published prompt has no system message"
        return completion(choose(by_query[text_of(message)]))

    return reply


def test_the_ceiling_answers_with_the_gold_and_is_marked(made: Path, tmp_path: Path):
    part = run(made, tmp_path / "run", "baseline:perfect-tools")
    names = (
        "agrieval.accuracy",
        "agrieval.partial",
        "agrieval.accuracy_published",
        "agrieval.rouge_l",
    )
    assert {name: part.metrics[name].overall.value for name in names} == dict.fromkeys(names, 1.0)
    assert part.metrics["agrieval.rouge_l_published"].overall.value == pytest.approx(1)
    assert rescore(tmp_path / "run").summary.privileged
    with pytest.raises(UsageError, match="not all samples have any"):
        run(made, tmp_path / "other", "baseline:oracle")


def test_a_model_of_known_accuracy_per_group_is_recovered(made: Path, tmp_path: Path):
    benchmark = load_benchmark("agrieval", data_root=made, options={"part": "choice"})
    tasks = sorted({sample.groups["task"] for sample in benchmark.samples})
    skill = {task: (at + 1) / (len(tasks) + 1) for at, task in enumerate(tasks)}
    said = Counter[tuple[str, bool]]()

    def choose(sample: Sample) -> str:
        slot = sample.answer[0]
        assert isinstance(slot, OptionsSlot)
        rng = random.Random(sample.id)
        knows = rng.random() < skill[sample.groups["task"]]
        said[sample.groups["task"], knows] += 1
        wrong = next(
            letter for letter in slot.options if letter not in slot.value or slot.kind == "multiple"
        )
        return f"我认为答案是{'、'.join(slot.value if knows else [wrong])}。"

    with serving(answering(benchmark, choose)) as endpoint:
        part = run(made, tmp_path / "run", base_url=endpoint.base_url, options={"part": "choice"})
    by_task = part.metrics["agrieval.accuracy"].by_group["task"]
    assert set(by_task) == set(tasks)
    for task, found in by_task.items():
        right, wrong = said[task, True], said[task, False]
        assert (found.n, found.value) == (right + wrong, pytest.approx(right / (right + wrong)))
    assert set(part.metrics["agrieval.accuracy"].by_group) == {"domain", "field", "level", "task"}


def test_likelihoods_are_scored_where_the_endpoint_tells_them(made: Path, tmp_path: Path):
    benchmark = load_benchmark("agrieval", data_root=made, options={"part": "choice"})
    by_query = {sample.query: sample for sample in benchmark.samples}

    def reply(body: Body) -> web.Response:
        assert body["logprobs"] is True
        assert body["top_logprobs"] == 5
        slot = by_query[text_of(body["messages"][0])].answer[0]
        right, *others = [
            *slot.value,
            *(letter for letter in slot.options if letter not in slot.value),
        ]
        # Two spellings of the right letter together are likelier than the letter that is said.
        top = [
            (others[0], -0.9),
            (right, -1.2),
            (f" {right}", -1.3),
            ("\n", -3.0),
            ("Z", float("-inf")),
        ]
        content = [{"token": others[0], "logprob": -0.9, "top_logprobs": [
            {"token": token, "logprob": max(logprob, -9999.0)} for token, logprob in top]}]  # fmt: skip
        message = {"role": "assistant", "content": others[0]}
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "stop",
            "logprobs": {"content": content},
        }
        return web.json_response(
            {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
        )

    with serving(reply) as endpoint:
        part = run(
            made,
            tmp_path / "run",
            base_url=endpoint.base_url,
            options={"part": "choice"},
            top_logprobs=5,
        )
    assert part.metrics["agrieval.likelihood"].overall.value == 1
    assert set(part.metrics["agrieval.likelihood"].by_task_type) == {"single_choice", "true_false"}
    assert part.metrics["agrieval.accuracy"].overall.value == 0


@pytest.mark.parametrize("reply", ["", "我不知道。" * 4000, "```json\n{"])
def test_a_model_that_answers_nothing_is_wrong_and_no_fault_of_ours(
    made: Path, tmp_path: Path, reply: str
):
    with serving(lambda _: completion(reply)) as endpoint:
        part = run(made, tmp_path / "run", base_url=endpoint.base_url, limit=40)
        assert len(endpoint.requests) == 40, "nobody is asked twice"
    assert (part.invalid.n, part.counts.terminations) == (0, {"answered": 40})
    assert part.metrics["agrieval.accuracy"].overall.value == 0


def test_passages_of_a_corpus_stand_in_prompt_and_record(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    benchmark = load_benchmark("agrieval", data_root=made, options={"part": "question"})
    for sample in benchmark.samples[:5]:
        question = str(sample.metadata["question"])
        (corpus / f"{sample.id}.txt").write_text(
            f"资料{sample.id}：{question}，正如所说。", encoding="utf-8"
        )
    build_index(corpus, tmp_path / "index")
    options = {"part": "question", "retrieval": str(tmp_path / "index"), "passages": 1}
    found = load_benchmark("agrieval", data_root=made, options=options)
    for sample in found.samples[:5]:
        assert f"资料{sample.id}" in sample.query
        (passage,) = cast("list[dict[str, str]]", sample.metadata["passages"])
        assert sample.id in passage["source"]
    assert found.content_hash != benchmark.content_hash

    monkeypatch.setattr(CorpusIndex, "search", None)
    assert (
        load_benchmark("agrieval", data_root=made, options=options).content_hash
        == found.content_hash
    ), "kept"
