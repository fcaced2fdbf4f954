"""Paraphrases of a benchmark's questions: a model proposes wordings, rules accept or reject them.

The benchmark is complete before the model is called. A question without an accepted wording keeps the wording of its
template.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

from pydantic import JsonValue

from agrotools.agents.llm import building_prompt_hash, render
from agrotools.benchmarks import load_folder
from agrotools.benchmarks.leaks import has_word, named_means, revealed_answer
from agrotools.build.assist.anchors import (
    argument_words,
    file_names,
    fixed_parts,
    has_label_word,
    label_words,
    meaning_of,
    negated_word,
    numbers_in,
    options_in,
    quotations,
    units_in,
    word_tables,
)
from agrotools.build.export import rewrite_benchmark
from agrotools.build.templates.wording import sentences
from agrotools.core import AgrotoolsError, BooleanSlot, Sample
from agrotools.core.base import Progress, no_progress
from agrotools.models import Message, Model, ModelSettings
from agrotools.models.endpoint import PricedModel
from agrotools.runner.auxiliary_model import ask_each, open_model
from agrotools.text.loose_json import dumps, parsed_values
from agrotools.text.normalise import CJK, normalise

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_OTHER_EAST_ASIAN = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_LATIN_WORD = re.compile(r"[a-z]{2,}")
_ENGLISH = frozenset(word_tables()["words"]["english"].split())
_NOT_ENGLISH = frozenset(word_tables()["words"]["not_english"].split())


def _language(variant: str, original: str, _sample: Sample) -> str | None:
    """Return evidence that ``variant`` is in another language than ``original``, or None."""
    if _OTHER_EAST_ASIAN.search(variant) and not _OTHER_EAST_ASIAN.search(original):
        return "Japanese or Korean letters"
    mine, theirs = len(_HAN.findall(variant)), len(_HAN.findall(original))
    if theirs:
        if mine < theirs / 2:
            return "less Chinese"
        strange = _words(variant) - _words(original)
        return f"the words {', '.join(sorted(strange))}" if strange else None
    if mine:
        return "Chinese characters"
    new = {letter for letter in variant if letter.isalpha() and not letter.isascii()} - set(original)
    if new:
        return f"the letters {''.join(sorted(new))}"
    words, known = re.findall(r"[a-z]+", normalise(variant)), re.findall(r"[a-z]+", normalise(original))
    if sum(word in _ENGLISH for word in known) < 2:
        return None  # The original is too short to determine its language.
    english, strange_words = (sum(word in those for word in words) for those in (_ENGLISH, _NOT_ENGLISH))
    return "few English words" if english < 2 or strange_words >= english else None


def _words(text: str) -> set[str]:
    return set(_LATIN_WORD.findall(re.sub(f"[{CJK}]", " ", normalise(text))))


T = TypeVar("T")

SHORTEST, LONGEST = 0.5, 2.0
"""Allowed length of a paraphrase, as a share of the original's characters."""

REASONS: dict[str, str] = word_tables()["reasons"]
"""Reasons for rejecting a wording, in the order in which they are checked."""


class Refusal(NamedTuple):
    """Fault of a wording. ``reason`` is a key of :data:`REASONS`; ``detail`` names the text at fault."""

    reason: str
    detail: str


def original_of(sample: Sample) -> str:
    """Return the question in its template's wording, even if it has been reworded."""
    original = sample.metadata.get("template_wording")
    return original if isinstance(original, str) else sample.query


def reworded(sample: Sample, query: str, model: str) -> Sample:
    """Return ``sample`` with the question ``query``; its metadata record the template's wording and ``model``."""
    metadata = {**sample.metadata, "template_wording": original_of(sample), "paraphrased_by": model}
    return sample.model_copy(update={"query": query, "metadata": metadata})


def refusal(variant: str, sample: Sample, others: Collection[str] = ()) -> Refusal | None:
    """Return the reason why ``variant`` cannot replace the question of ``sample``, or None if it can.

    Numbers, their units and order, file names, quotations and options must be unchanged; words that decide the meaning
    must be of the same kinds; no tool, argument, step or answer may be named. An accepted wording may still be poor
    English: a person decides that in review.

    ``others``: sentences of the other questions of the benchmark, as returned by :func:`wording.sentences`.
    """
    original = original_of(sample)
    for reason, rule in _RULES.items():
        if fault := rule(variant, original, sample):
            return Refusal(reason, fault)
    known = set(others)
    shared = next((sentence for sentence in sentences(variant) if sentence in known), None)
    if shared is not None:
        return Refusal("sentence", repr(shared))
    for slot in sample.answer:
        if answer := revealed_answer(slot, variant):
            return Refusal("leak", repr(answer))
    return None


_MARKUP = re.compile(r"[\x00-\x1f\x7f\ufffd\u2028\u2029\u202a-\u202e\u2066-\u2069{}<>\\|*~#]|https?://|\[|\]")


def _form(variant: str, original: str, _sample: Sample) -> str | None:
    if not variant.strip() or variant != variant.strip():
        return "empty, or blanks at its ends"
    marks = set(_MARKUP.findall(variant)) - set(_MARKUP.findall(original))
    return f"it holds {min(marks)!r}" if marks else None


def _unchanged(variant: str, original: str, _sample: Sample) -> str | None:
    def plain(text: str) -> str:
        return re.sub(r"\W+", "", text).casefold()

    return "only signs or capitals differ" if plain(variant) == plain(original) else None


def _length(variant: str, original: str, _sample: Sample) -> str | None:
    share = len(variant) / len(original)
    return None if SHORTEST <= share <= LONGEST else f"{share:.1f} times as long"


def _number(variant: str, original: str, _sample: Sample) -> str | None:
    mine, theirs = numbers_in(variant), numbers_in(original)
    if mine.values != theirs.values:
        return _difference(mine.values.elements(), theirs.values.elements(), " ".join)
    if mine.words != theirs.words:
        return _difference(mine.words.elements(), theirs.words.elements())
    if mine.by_unit != theirs.by_unit:
        return "numbers of one unit are in another order"
    if mine.lists != theirs.lists:
        return "numbers that stand together (a box) are torn apart"
    return _difference(units_in(variant), units_in(original)) or None


def _rearranged(what: str, mine: Sequence[str], theirs: Sequence[str]) -> str | None:
    return _difference(mine, theirs) or (f"{what} are in another order" if mine != theirs else None)


def _word(variant: str, original: str, sample: Sample) -> str | None:
    missing = [word for word in argument_words(original, sample) if not has_word(variant, word)]
    missing += [word for word in sorted(label_words(original, sample)) if not has_label_word(variant, word)]
    return f"without {', '.join(map(repr, missing))}" if missing else None


def _meaning(variant: str, original: str, _sample: Sample) -> str | None:
    mine, theirs = meaning_of(variant), meaning_of(original)
    if mine.kinds != theirs.kinds:
        return _difference(sorted(mine.kinds), sorted(theirs.kinds), "a word for {}".format)
    if mine.order != theirs.order:
        return "before and after, or first and second, are in another order"
    negated = negated_word(variant, original)
    return f"{negated!r} turns the meaning round" if negated else None


_OPEN, _YES_NO = (re.compile("|".join(word_tables()["questions"][kind]), re.IGNORECASE) for kind in ("open", "yes_no"))


def _question(variant: str, original: str, sample: Sample) -> str | None:
    def is_open(text: str) -> bool:
        return _OPEN.search(text) is not None

    def asks_yes_or_no(text: str) -> bool:
        return not is_open(text) and _YES_NO.search(text) is not None

    if all(isinstance(slot, BooleanSlot) for slot in sample.answer):
        return "it asks for more than yes or no" if is_open(variant) and not is_open(original) else None
    return "it asks for yes or no" if asks_yes_or_no(variant) and not asks_yes_or_no(original) else None


def _tool(variant: str, _original: str, sample: Sample) -> str | None:
    for kind, named in named_means(variant, sample.toolset):
        return repr(named) if kind == "steps" else f"the {kind} {named}"
    return None


_RULES: dict[str, Callable[[str, str, Sample], str | None]] = {
    "length": _length,  # first: the other rules may be slow on long texts
    "form": _form,
    "unchanged": _unchanged,
    "language": _language,
    "number": _number,
    "file": lambda new, old, sample: _rearranged("files", file_names(new, sample), file_names(old, sample)),
    "quotation": lambda new, old, _: _difference(quotations(new).elements(), quotations(old).elements()) or None,
    "option": lambda new, old, sample: _rearranged("options", options_in(new, sample), options_in(old, sample)),
    "word": _word,
    "meaning": _meaning,
    "question": _question,
    "tool": _tool,
}


def _difference(mine: Iterable[T], theirs: Iterable[T], shown: Callable[[T], str] = str) -> str:
    """Describe the difference of two collections; empty if they are equal."""
    added, missing = Counter(mine), Counter(theirs)
    parts = [
        f"{what} {', '.join(shown(item).strip() for item in items.elements())}"
        for what, items in (("adds", added - missing), ("leaves out", missing - added))
        if items
    ]
    return "; ".join(parts)


VARIANTS = 4
"""Number of wordings per request."""
ROUNDS = 2
"""Maximum number of requests per question; the second lists the faults of the first wordings."""
_MOST_READ = 12
_SETTINGS = ModelSettings(temperature=None)
"""Wordings should vary, and some endpoints reject a temperature: the endpoint's default is used."""

NO_REPLY, UNREADABLE, NONE_PASSED = "no reply", "unreadable reply", "no wording passed"


@dataclass
class ParaphraseResult:
    """Result of paraphrasing. ``samples``: all samples in order, ``accepted`` of them reworded.

    ``refused``: number of rejected wordings by reason (a key of :data:`REASONS`). ``kept``: number of unchanged
    questions by reason. ``stopped``: error that left some questions without a reply.
    """

    samples: list[Sample]
    model: str
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    stopped: AgrotoolsError | None = None


def paraphrase_folder(
    folder: Path, helper: PricedModel, ledger: Path, progress: Progress = no_progress
) -> ParaphraseResult:
    """Paraphrase the questions of the benchmark in ``folder``, and replace it; BenchmarkError if it is none."""
    benchmark = load_folder(folder)
    with open_model(helper, ledger) as model:
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


async def _and_close(samples: Sequence[Sample], name: str, model: Model, progress: Progress) -> ParaphraseResult:
    try:
        return await paraphrase(samples, name, model, progress)
    finally:
        await model.close()


async def paraphrase(
    samples: Sequence[Sample], name: str, model: Model, progress: Progress = no_progress
) -> ParaphraseResult:
    """Ask ``model`` for wordings of every question, and choose for each the first one that passes all rules.

    Replies may arrive in any order but are judged in the order of the samples, so the same replies give the same
    benchmark. ``name`` is recorded as the author of the wordings.
    """
    outcome = ParaphraseResult(list(samples), name)
    talks = [_Conversation(sample) for sample in samples]
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


class _Conversation:
    """Conversation about one question."""

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
        """Request wordings and store them for :meth:`judge`; errors are those of :meth:`Model.generate`."""
        self._fresh = None
        reply = await model.generate(self._messages, (), _SETTINGS)
        self._fresh = variants_of(reply.text)
        self._messages = [*self._messages[:2], Message.of("assistant", reply.text[:4000].strip() or "(nothing)")]

    def judge(self, taken: Counter[str], refused: Counter[str]) -> str | None:
        """Return the first new wording that passes; count the faults of the others and list them in the next prompt."""
        variants, self._fresh = self._fresh, None
        if variants is None:
            return None
        faults: list[dict[str, str]] = []
        for variant in variants:
            others = {text for text in sentences(variant) if taken[text] > (text in self.sentences)}
            fault = refusal(variant, self.sample, others)
            if fault is None:
                return variant
            refused[fault.reason] += 1
            faults.append({"text": variant[:400], "reason": fault.reason, "told": fault.detail})
        self.state = NONE_PASSED if variants else UNREADABLE
        again = render("building/paraphrase_again", refused=faults, count=VARIANTS)
        self._messages.append(Message.of("user", again))
        return None


def variants_of(reply: str) -> list[str]:
    """Return the wordings in a model's reply, with blanks stripped; empty if it contains no such JSON."""
    for value in parsed_values(reply):
        variants = value.get("variants") if isinstance(value, dict) else value
        if isinstance(variants, list):
            texts = [" ".join(text.split()) for text in variants if isinstance(text, str) and text.strip()]
            if texts:
                return list(dict.fromkeys(texts))[:_MOST_READ]
    return []
