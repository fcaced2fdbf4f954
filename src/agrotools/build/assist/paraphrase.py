"""Paraphrases of a benchmark's questions: a model proposes wordings, rules accept or reject them.

The benchmark is complete before the model is called. A question without an accepted wording keeps the wording of its
template. ``meaning.toml`` lists the words that decide the meaning of a question, in English and Chinese.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from pydantic import JsonValue

from agrotools.agents.llm import building_prompt_hash, render
from agrotools.benchmarks import load_folder
from agrotools.benchmarks.leaks import has_word, named_means, revealed_answer
from agrotools.build.export.folder import rewrite_benchmark
from agrotools.build.templates.wording import sentences
from agrotools.core import AgrotoolsError, BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, Sample
from agrotools.core.base import Progress, no_progress
from agrotools.core.files import read_table
from agrotools.core.record import literal_value
from agrotools.models import Message, Model, ModelSettings
from agrotools.models.endpoint import PricedModel
from agrotools.runner.auxiliary_model import ask_each, open_model
from agrotools.text.loose_json import dumps, parsed_values
from agrotools.text.normalise import CJK, WORD_END, WORD_START, normalise
from agrotools.text.units import unit_at

T = TypeVar("T")
_TABLES: dict[str, Any] = read_table(Path(__file__).with_name("meaning.toml"))
REASONS: dict[str, str] = _TABLES["reasons"]
"""Reasons for rejecting a wording, in the order in which they are checked."""
SHORTEST, LONGEST = 0.5, 2.0
"""Allowed length of a paraphrase, as a share of the original's characters."""
_ENGLISH, _NOT_ENGLISH, _COMMON = (
    frozenset(_TABLES["words"][name].split()) for name in ("english", "not_english", "common_en")
)
_COMMON_ZH = frozenset(_TABLES["words"]["common_zh"])
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_OTHER_EAST_ASIAN = re.compile("[\u3040-\u30ff\uac00-\ud7af]")
_LATIN_WORD = re.compile(r"[a-z]{2,}")
_MARKUP = re.compile(r"[\x00-\x1f\x7f\ufffd\u2028\u2029\u202a-\u202e\u2066-\u2069{}<>\\|*~#]|https?://|\[|\]")
_GOES_ON = r"(?=\s+(?:[\d{]|an?\b|the\b|half\b|that\b|this\b))"
_NEGATING = ("un", "non", "in", "im", "dis", "ab", "ir")
_IN_NAME = "[A-Za-z0-9_-]"
_FILE = re.compile(
    rf"(?<!{_IN_NAME})(?:{_IN_NAME}+\.)+(?:jpe?g|png|tiff?|csv|npy|bmp|json|xlsx|txt)(?!{_IN_NAME})", re.IGNORECASE
)
_NUMBER = re.compile(r"[-+]?\d+(?:[.,]\d+)*")
_LIST = re.compile(r"[-+]?\d+(?:\.\d+)?(?:\s*[,，]\s*[-+]?\d+(?:\.\d+)?)+")
_NUMBER_WORDS = {word: digits for digits, words in _TABLES["numbers"].items() for word in words.split()}
_NUMBER_WORD = re.compile(
    "|".join(
        re.escape(word) if re.match(f"[{CJK}]", word) else rf"{WORD_START}{word}{WORD_END}"
        for word in sorted(_NUMBER_WORDS, key=len, reverse=True)
    )
)
_NOT_NUMBERS = re.compile(
    r"十分|千克|千米|百分|万一|三角|四周|第[一二三四五六七八九十]|[一二三四五六七八九十]分之[一二三四五六七八九十]"
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|「([^」\n]+)」|『([^』\n]+)』|《([^》\n]+)》|«([^»\n]+)»|`([^`\n]+)`")
_WORD = re.compile(r"(?<![\w/^])(?=[^\W\d_])")
_OPEN, _YES_NO = (re.compile("|".join(_TABLES["questions"][kind]), re.IGNORECASE) for kind in ("open", "yes_no"))
VARIANTS = 4
"""Number of wordings per request."""
ROUNDS = 2
"""Maximum number of requests per question; the second lists the faults of the first wordings."""
_MOST_READ = 12
_SETTINGS = ModelSettings(temperature=None)
"""Wordings should vary, and some endpoints reject a temperature: the endpoint's default is used."""
NO_REPLY, UNREADABLE, NONE_PASSED = "no reply", "unreadable reply", "no wording passed"


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
    English: a person decides that in review. ``others``: sentences of other questions, as of :func:`sentences`.
    """
    original = original_of(sample)
    for reason, rule in _RULES.items():
        if fault := rule(variant, original, sample):
            return Refusal(reason, fault)
    known = set(others)
    if shared := next((sentence for sentence in sentences(variant) if sentence in known), None):
        return Refusal("sentence", repr(shared))
    answer = next(filter(None, (revealed_answer(slot, variant) for slot in sample.answer)), None)
    return Refusal("leak", repr(answer)) if answer else None


# --- rules: each returns the fault of a wording, or None or "" -------------------------------------------------------


def _length(variant: str, original: str, _sample: Sample) -> str | None:
    share = len(variant) / len(original)
    return None if SHORTEST <= share <= LONGEST else f"{share:.1f} times as long"


def _form(variant: str, original: str, _sample: Sample) -> str | None:
    if not variant.strip() or variant != variant.strip():
        return "empty, or blanks at its ends"
    marks = set(_MARKUP.findall(variant)) - set(_MARKUP.findall(original))
    return f"it holds {min(marks)!r}" if marks else None


def _unchanged(variant: str, original: str, _sample: Sample) -> str | None:
    plain = [re.sub(r"\W+", "", text).casefold() for text in (variant, original)]
    return "only signs or capitals differ" if plain[0] == plain[1] else None


def _language(variant: str, original: str, _sample: Sample) -> str | None:
    if _OTHER_EAST_ASIAN.search(variant) and not _OTHER_EAST_ASIAN.search(original):
        return "Japanese or Korean letters"
    mine, theirs = len(_HAN.findall(variant)), len(_HAN.findall(original))
    if theirs:
        new, old = (set(_LATIN_WORD.findall(re.sub(f"[{CJK}]", " ", normalise(text)))) for text in (variant, original))
        return "less Chinese" if mine < theirs / 2 else f"the words {', '.join(sorted(new - old))}" * (not new <= old)
    if mine:
        return "Chinese characters"
    letters = {letter for letter in variant if letter.isalpha() and not letter.isascii()} - set(original)
    if letters:
        return f"the letters {''.join(sorted(letters))}"
    words, known = (re.findall(r"[a-z]+", normalise(text)) for text in (variant, original))
    if sum(word in _ENGLISH for word in known) < 2:
        return None  # The original is too short to determine its language.
    english, strange = (sum(word in those for word in words) for those in (_ENGLISH, _NOT_ENGLISH))
    return "few English words" if english < 2 or strange >= english else None


def _number(variant: str, original: str, _sample: Sample) -> str | None:
    (mine, my_words), (theirs, their_words) = numbers_in(variant), numbers_in(original)
    if sorted(mine) != sorted(theirs):
        return _difference(mine, theirs, " ".join)
    if sorted(mine, key=itemgetter(1)) != sorted(theirs, key=itemgetter(1)):
        return "numbers of one unit are in another order"
    if Counter(_lists_in(variant)) != Counter(_lists_in(original)):
        return "numbers that stand together (a box) are torn apart"
    return _difference(my_words, their_words) or _difference(units_in(variant), units_in(original))


def _word(variant: str, original: str, sample: Sample) -> str | None:
    missing = [word for word in argument_words(original, sample) if not has_word(variant, word)]
    missing += sorted(label_words(original, sample) - _stems(variant) - _pairs(variant))
    return f"without {', '.join(map(repr, missing))}" if missing else None


def _meaning(variant: str, original: str, _sample: Sample) -> str | None:
    (mine, my_order), (theirs, their_order) = meaning_of(variant), meaning_of(original)
    if mine != theirs:
        return _difference(sorted(mine), sorted(theirs), "a word for {}".format)
    if my_order != their_order:
        return "before and after, or first and second, are in another order"
    negated = _negated_word(variant, original) or _negated_word(original, variant)
    return f"{negated!r} turns the meaning round" if negated else None


def _question(variant: str, original: str, sample: Sample) -> str | None:
    is_open, was_open = (_OPEN.search(text) is not None for text in (variant, original))
    if all(isinstance(slot, BooleanSlot) for slot in sample.answer):
        return "it asks for more than yes or no" if is_open and not was_open else None
    asks, asked = (_YES_NO.search(text) is not None for text in (variant, original))
    return "it asks for yes or no" if asks and not is_open and (was_open or not asked) else None


def _tool(variant: str, _original: str, sample: Sample) -> str | None:
    kind, named = next(iter(named_means(variant, sample.toolset)), ("", ""))
    return repr(named) if kind == "steps" else f"the {kind} {named}" if kind else None


def _rearranged(what: str, mine: Sequence[str], theirs: Sequence[str]) -> str | None:
    return _difference(mine, theirs) or (f"{what} are in another order" if mine != theirs else None)


_RULES: dict[str, Callable[[str, str, Sample], str | None]] = {
    "length": _length,  # first: the other rules may be slow on long texts
    "form": _form,
    "unchanged": _unchanged,
    "language": _language,
    "number": _number,
    "file": lambda new, old, sample: _rearranged("files", file_names(new, sample), file_names(old, sample)),
    "quotation": lambda new, old, _: _difference(quotations(new), quotations(old)),
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


# --- what a text holds -----------------------------------------------------------------------------------------------


@cache
def _deciding_words() -> tuple[re.Pattern[str], dict[str, tuple[str, bool]]]:
    """Return a pattern of the words that decide the meaning, and the kind of each, with True if its order matters."""
    entries = [("", False, _TABLES["ignored"]), *((name, False, words) for name, words in _TABLES["set"].items())]
    entries += [(name, True, words) for name, words in _TABLES["order"].items()]
    kinds: dict[str, tuple[str, bool]] = {}
    patterns: dict[str, str] = {}
    for name, ordered, words in entries:
        for phrase in (*words["en"], *words["zh"]):
            plain = phrase.removeprefix("~")
            word = rf"{WORD_START}{re.escape(plain)}{WORD_END}" if phrase in words["en"] else re.escape(plain)
            patterns[plain] = word + _GOES_ON * (plain != phrase)
            kinds[plain] = name, ordered
    longest_first = sorted(patterns, key=len, reverse=True)
    return re.compile("|".join(patterns[phrase] for phrase in longest_first)), kinds


def meaning_of(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the kinds of deciding words in ``text``, and those whose order matters, in the order of the text."""
    pattern, kind_of = _deciding_words()
    # "isn't" and "can't" contain a "not" that word patterns do not match.
    plain = re.sub(r"n't\b", " not", normalise(text)).replace("\n", " ")
    plain = re.sub(r",? or not(?=\s*(?:[?.!;:]|$))", "", plain)
    found = [kind_of[match[0]] for match in pattern.finditer(plain)]
    order: list[str] = []
    for kind, ordered in found:
        if kind and ordered and order[-1:] != [kind]:
            order.append(kind)
    return frozenset(kind for kind, _ in found if kind), tuple(order)


def _negated_word(text: str, other: str) -> str | None:
    """Return a word of ``text`` that negates one of ``other`` with a prefix (``unripe``, ``ripe``), or None."""
    mine, theirs = (set(re.findall(r"[a-z]{3,}", normalise(each).replace("non-", "non"))) for each in (text, other))
    for word in sorted(mine - theirs):
        stem = next((word.removeprefix(syllable) for syllable in _NEGATING if word.startswith(syllable)), "")
        if len(stem) > 3 and stem in theirs - mine:
            return word
    return None


def numbers_in(text: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Return (digits, unit or "") of the numbers outside file names, and the digits of spelled-out numbers."""
    plain = normalise(_FILE.sub(" ; ", text))
    found = [(match[0].lstrip("+"), unit_at(plain, match.end())) for match in _NUMBER.finditer(plain)]
    words = [_NUMBER_WORDS[match[0]] for match in _NUMBER_WORD.finditer(_NOT_NUMBERS.sub(" ; ", plain))]
    return [(digits, unit[0].symbol if unit else "") for digits, unit in found], words


def _lists_in(text: str) -> list[str]:
    plain = normalise(_FILE.sub(" ; ", text))
    return [re.sub(r"\s+", "", match[0].replace("，", ",")) for match in _LIST.finditer(plain)]


def units_in(text: str) -> frozenset[str]:
    """Return the units of the unit table in ``text``; those of one letter count only after a number."""
    plain = normalise(_FILE.sub(" ; ", text))
    words = ((word.start(), unit_at(plain, word.start())) for word in _WORD.finditer(plain))
    units = {found[0].symbol for start, found in words if found and found[1] - start > 1}
    units |= {unit for _, unit in numbers_in(text)[0]} | ({"%"} if "%" in plain else set())
    return frozenset(units) - {"", "fraction", "degC", "day", "week", "mu"}


def file_names(text: str, sample: Sample) -> tuple[str, ...]:
    """Return the file names in ``text`` in order: files of the sample and anything that looks like a file name."""
    names = [re.escape(file.name) for file in sorted(sample.files, key=lambda file: -len(file.name))]
    patterns = [*(rf"(?<!{_IN_NAME}){name}(?!{_IN_NAME})" for name in names), _FILE.pattern]
    return tuple(match[0] for match in re.finditer("|".join(patterns), text, _FILE.flags))


def quotations(text: str) -> list[str]:
    """Return the texts between quotation marks."""
    return [next(filter(None, match.groups())) for match in _QUOTED.finditer(text)]


def options_in(text: str, sample: Sample) -> tuple[str, ...]:
    """Return the labels of the answer and their aliases in ``text``, in order; of two that overlap, the longer one."""
    options: list[str] = []
    for slot in sample.answer:
        if isinstance(slot, ExactSlot) and isinstance(slot.value, str):
            options += slot.names
        if isinstance(slot, FileSlot | ChoiceSetSlot) or (isinstance(slot, ExactSlot) and isinstance(slot.value, str)):
            options += slot.choices
            options += [alias for names in getattr(slot, "aliases", {}).values() for alias in names]
    names = sorted({name for name in options if has_word(text, name)}, key=len, reverse=True)
    pattern = "|".join(rf"{WORD_START}{re.escape(name.casefold())}{WORD_END}" for name in names) or "(?!)"
    return tuple(match[0] for match in re.finditer(pattern, text.casefold()))


def argument_words(text: str, sample: Sample) -> tuple[str, ...]:
    """Return the words of ``text`` that are arguments of the reference calls (``crop="rice"``)."""
    steps = sample.reference.steps if sample.reference else ()
    names = {file.name for file in sample.files}
    words = (word for step in steps for word in _texts(literal_value(dict(step.arguments))))
    return tuple(
        dict.fromkeys(word for word in words if 1 < len(word) < 40 and word not in names and has_word(text, word))
    )


def label_words(text: str, sample: Sample) -> set[str]:
    """Return the words that ``text`` shares with its answer's labels: English words in the singular, Chinese pairs."""
    labels = " ; ".join(slot.label for slot in sample.answer)
    return ((_stems(text) & _stems(labels)) - _COMMON) | (_pairs(text) & _pairs(labels))


def fixed_parts(text: str, sample: Sample) -> tuple[str, ...]:
    """Return everything that any wording of ``text`` must contain, as readable lines."""
    bare = [f"{digits} {unit}".strip() for digits, unit in numbers_in(text)[0]]
    parts = [*file_names(text, sample), *_lists_in(text), *bare, *units_in(text), *quotations(text)]
    parts += [*options_in(text, sample), *argument_words(text, sample), *sorted(label_words(text, sample))]
    return tuple(dict.fromkeys(parts))


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from _texts(item)


def _stems(text: str) -> set[str]:
    return {_stem(word) for word in re.findall(r"[a-z]{4,}", normalise(text))}


def _stem(word: str) -> str:
    if word.endswith("ies") and len(word) > 5:
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _pairs(text: str) -> set[str]:
    runs = re.findall(rf"[{CJK}]{{2,}}", text)
    pairs = {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
    return {pair for pair in pairs if not set(pair) & _COMMON_ZH}


# --- conversation with the model -------------------------------------------------------------------------------------


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

    async def ask(model: Model) -> ParaphraseResult:
        try:
            return await _paraphrase(list(benchmark.samples), helper.name, model, progress)
        finally:
            await model.close()

    with open_model(helper, ledger) as model:
        outcome = asyncio.run(ask(model))
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


async def _paraphrase(samples: Sequence[Sample], name: str, model: Model, progress: Progress) -> ParaphraseResult:
    """Ask ``model`` for wordings of every question, and choose for each the first one that passes all rules.

    Replies may arrive in any order but are judged in the order of the samples, so the same replies give the same
    benchmark. ``name`` is recorded as the author of the wordings.
    """
    outcome = ParaphraseResult(list(samples), name)
    talks = [_Conversation(sample) for sample in samples]
    taken = Counter(sentence for talk in talks for sentence in talk.sentences)
    remaining = list(range(len(samples)))
    for what in ("wordings", "wordings, once more")[:ROUNDS]:
        finished, total = 0, len(remaining)

        async def ask(position: int, total: int = total, what: str = what) -> None:
            nonlocal finished
            await talks[position].ask(model)
            finished += 1
            progress(what, finished, total)

        state = await ask_each(remaining, ask, model)
        outcome.stopped = state.error
        for position in remaining:
            chosen = talks[position].judge(taken, outcome.refused)
            if chosen is not None:
                taken.update(set(sentences(chosen)) - talks[position].sentences)
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
        self.sample, original = sample, original_of(sample)
        self.sentences = set(sentences(original))
        self.state = NO_REPLY
        self._fresh: list[str] | None = None
        request = {"question": original, "keep": list(fixed_parts(original, sample)), "variants": VARIANTS}
        self._messages = [
            Message.of("system", render("building/paraphrase_system")),
            Message.of("user", render("building/paraphrase", request=dumps(request))),
        ]

    async def ask(self, model: Model) -> None:
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
