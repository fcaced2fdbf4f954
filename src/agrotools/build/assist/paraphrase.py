"""Other wordings of a benchmark's questions: a model proposes them, rules accept or refuse them.

The benchmark is complete before the model is called. A question without an accepted wording keeps that of its
template.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from pydantic import JsonValue

from agrotools.agents.llm import building_prompt_hash, render
from agrotools.benchmarks import load_folder
from agrotools.build.assist.anchors import fixed_parts
from agrotools.build.assist.paraphrase_check import Refusal, original_of, refusal, reworded
from agrotools.build.export import rewrite_benchmark
from agrotools.build.templates.wording import sentences
from agrotools.core import AgrotoolsError, Sample
from agrotools.core.base import Progress, no_progress
from agrotools.models import Message, Model, ModelSettings
from agrotools.models.endpoint import PricedModel
from agrotools.runner.auxiliary_model import ask_each, ready
from agrotools.text.loose_json import NotJson, dumps, loads, values_in

VARIANTS = 4
"""Wordings that one request asks for."""
ROUNDS = 2
"""Requests for one question at most: the second says what was wrong with the first wordings."""
_MOST_READ = 12
_SETTINGS = ModelSettings(temperature=None)
"""Wordings should differ, and some endpoints refuse a temperature: theirs is used."""

NO_REPLY, UNREADABLE, NONE_PASSED = "no reply", "unreadable reply", "no wording passed"


@dataclass
class Paraphrased:
    """``samples`` in their order, ``accepted`` of them reworded.

    ``refused``: wordings by reason (a key of ``REASONS`` of :mod:`.paraphrase_check`). ``kept``: questions that keep
    their wording, by reason. ``stopped``: error that left some without a reply.
    """

    samples: list[Sample]
    model: str
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    stopped: AgrotoolsError | None = None


def paraphrase_folder(folder: Path, helper: PricedModel, ledger: Path, progress: Progress = no_progress) -> Paraphrased:
    """Reword the questions of the benchmark in ``folder``, which is replaced whole once all is decided.

    Raises:
        BenchmarkError: no benchmark, or its parent folder cannot be written.
    """
    benchmark = load_folder(folder)
    with ready(helper, ledger) as model:
        outcome = asyncio.run(_and_close(list(benchmark.samples), helper.name, model, progress))
    if outcome.accepted:
        summary: dict[str, JsonValue] = {
            "model": helper.name,
            "prompt": building_prompt_hash(),
            "accepted": outcome.accepted,
            "refused": cast("dict[str, JsonValue]", dict(sorted(outcome.refused.items()))),
        }
        metadata = {**benchmark.header.metadata, "paraphrased": summary}
        rewrite_benchmark(folder, benchmark.header.model_copy(update={"metadata": metadata}), outcome.samples)
    return outcome


async def _and_close(samples: Sequence[Sample], name: str, model: Model, progress: Progress) -> Paraphrased:
    try:
        return await paraphrase(samples, name, model, progress)
    finally:
        await model.close()


async def paraphrase(
    samples: Sequence[Sample], name: str, model: Model, progress: Progress = no_progress
) -> Paraphrased:
    """Ask ``model`` for wordings of every question, and take for each the first that passes all rules.

    Replies come in any order, but are judged in that of the samples: the same replies give the same benchmark.
    ``name`` is written down as who proposed them.
    """
    outcome = Paraphrased(list(samples), name)
    talks = [_Talk(sample) for sample in samples]
    sentence_counts = Counter(sentence for talk in talks for sentence in talk.sentences)
    remaining = list(range(len(samples)))
    for round_number in range(ROUNDS):
        finished = 0
        what = "wordings" if round_number == 0 else "wordings, once more"

        async def ask(position: int, total: int = len(remaining), what: str = what) -> None:
            nonlocal finished
            await talks[position].ask(model)
            finished += 1
            progress(what, finished, total)

        state = await ask_each(remaining, ask, model)
        outcome.stopped = state.error
        for position in remaining:
            talk = talks[position]
            chosen = talk.judge(sentence_counts, outcome.refused)
            if chosen is not None:
                sentence_counts.update(set(sentences(chosen)) - talk.sentences)
                outcome.samples[position] = reworded(samples[position], chosen, name)
                outcome.accepted += 1
        remaining = [position for position in remaining if outcome.samples[position] is samples[position]]
        if state.gone or not remaining:
            break
    outcome.kept = Counter(talks[position].state for position in remaining)
    return outcome


class _Talk:
    """Prompt about one question."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.sentences = set(sentences(original_of(sample)))
        self.state = NO_REPLY
        self._fresh: list[str] | None = None
        original = original_of(sample)
        request = {"question": original, "keep": list(fixed_parts(original, sample)), "variants": VARIANTS}
        self._messages = [
            Message.of("system", render("building/paraphrase_system")),
            Message.of("user", render("building/paraphrase", request=dumps(request))),
        ]

    async def ask(self, model: Model) -> None:
        """Ask for wordings, and keep them to be judged.

        Raises:
            AgrotoolsError: as :meth:`Model.generate`.
        """
        self._fresh = None
        reply = await model.generate(self._messages, (), _SETTINGS)
        self._fresh = variants_of(reply.text)
        self._messages = [*self._messages[:2], Message.of("assistant", reply.text[:4000].strip() or "(nothing)")]

    def judge(self, taken: Counter[str], refused: Counter[str]) -> str | None:
        """First new wording that passes; faults of the others are counted and listed in the next prompt."""
        variants, self._fresh = self._fresh, None
        if variants is None:
            return None
        faults: list[dict[str, str]] = []
        for variant in variants:
            fault = self._refusal(variant, taken)
            if fault is None:
                return variant
            refused[fault.reason] += 1
            faults.append({"text": variant[:400], "reason": fault.reason, "told": fault.detail})
        self.state = NONE_PASSED if variants else UNREADABLE
        again = render("building/paraphrase_again", refused=faults, count=VARIANTS)
        self._messages.append(Message.of("user", again))
        return None

    def _refusal(self, variant: str, taken: Counter[str]) -> Refusal | None:
        others = {text for text in sentences(variant) if taken[text] > (text in self.sentences)}
        return refusal(variant, self.sample, others)


def variants_of(reply: str) -> list[str]:
    """Wordings in a model's reply, stripped of blanks; empty if it holds no such JSON."""
    for start, end in reversed(values_in(reply)):
        try:
            value = loads(reply[start:end])
        except NotJson:
            continue
        variants = value.get("variants") if isinstance(value, dict) else value
        if isinstance(variants, list):
            texts = [" ".join(text.split()) for text in variants if isinstance(text, str) and text.strip()]
            if texts:
                return list(dict.fromkeys(texts))[:_MOST_READ]
    return []
