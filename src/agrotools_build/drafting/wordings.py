"""Drafts of wordings: a question of a folder in other words; what it states is kept, as code checks."""

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agrotools.core import ChoiceSetSlot, ExactSlot, Sample
from agrotools.formats.benchmark import Benchmark
from agrotools.knowledge.kb_names import shipped_names
from agrotools.loading.leaks import has_word
from agrotools.loading.validate import check_samples
from agrotools.models import Message
from agrotools.text.normalise import WORD_END, WORD_START
from agrotools.text.units import canonical_unit, compatible, unit_at
from agrotools_build.composing import CannotCompose
from agrotools_build.drafting.checking import Checked
from agrotools_build.drafting.known_names import check_answer_unsaid, entries_said
from agrotools_build.drafting.prompting import as_data, prompt
from agrotools_build.drafting.reasons import Dropped, dropped
from agrotools_build.drafting.replies import DraftedWording, check_plain, read_reply
from agrotools_build.drafting.request import DraftRequest, Earlier, Progressed, requests_on

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.[A-Za-z]{2,4}\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)|(?<=\w)\d+(?:[.,]\d+)*(?!\w)")
_BEFORE_UNIT = re.compile(r"(?:\d|\bin)\s*(?=[^\s\d])", re.IGNORECASE)
"""Places where a unit may stand: behind a number, or behind ``in`` (in percent)."""

_WORD = re.compile(r"(?<![\w'’])(?:[^\W\d_]+|[%‰])")
_SHORTEST_WORD = 3
"""Letters of a unit that counts wherever it stands: shorter ones are words, too, as ``in``."""
_FEWEST_LISTED = 2
"""Options that make a list."""
ORIGINAL_KEY = "original_question"
"""Key of the metadata of a wording with the question that it rephrases."""
_DOUBT = (
    "a model rephrased the question: does it ask for the same, in the same language? No code checks negations, what "
    '"at most" and "above" mean, or options that the knowledge base does not have'
)


class WordingDrafts:
    """Requests for other words of the questions of a folder."""

    def __init__(self, benchmark: Benchmark, earlier: Earlier) -> None:
        self._samples: Sequence[Sample] = list(benchmark.samples)
        self._root, self._earlier = benchmark.root, earlier

    def requests(self, most: int) -> list[DraftRequest]:
        """Return at most so many requests, one for each question in the order of the folder."""
        return requests_on(self._samples[:most], "wording", self._messages, self._check)

    def _messages(self, sample: Sample) -> list[Message]:
        text = prompt(
            "wording",
            question=" ".join(sample.query.split()).replace("<", "(").replace(">", ")"),
            options=[as_data(each) for each in _options(sample)],
        )
        return [Message.of("user", text)]

    async def _check(self, sample: Sample, reply: str, progressed: Progressed) -> Checked:
        draft = read_reply(reply, DraftedWording)
        check_plain(draft.question)
        progressed.ran = True
        check_kept(sample, draft.question)
        # The page of the review shows the words that were replaced.
        metadata = {**sample.metadata, ORIGINAL_KEY: sample.query}
        made = sample.model_copy(update={"query": draft.question, "metadata": metadata})
        check_sample(made, self._root)
        if self._earlier.questions.copy_of(made, words_alone=True):
            raise Dropped("near_copy", "nearly the same as an earlier wording")
        return Checked(made, (_DOUBT,))


def check_kept(sample: Sample, wording: str) -> None:
    """Raise Dropped unless a wording has the numbers, units, files and options of a question, and other words."""
    if " ".join(wording.casefold().split()) == " ".join(sample.query.casefold().split()):
        raise Dropped("no_change", "the words are the same")
    for reason, of in (
        ("changed_files", _files),
        ("changed_numbers", _numbers),
        ("changed_units", partial(_units, asked=_asked_units(sample))),
    ):
        before, now = of(sample.query), of(wording)
        if before != now:
            raise Dropped(reason, f"not in both: {', '.join(sorted(before ^ now))}")
    for option in _options(sample):
        if has_word(sample.query, option) != has_word(wording, option):
            raise Dropped("changed_options", f"not in both: {option}")
    _check_options_kept(sample, wording)


def _check_options_kept(sample: Sample, wording: str) -> None:
    """Raise Dropped if a list of options is written otherwise, or a thing of their kind is named anew."""
    listed = _listed(sample)
    if listed not in _plain(wording):
        raise Dropped("changed_options", f"the options are not written as {listed!r}")
    known = [entry for option in _options(sample) for entry in shipped_names().all_of_name(option)]
    kinds = {entry.kind for entry in known}
    before = {entry.id for entries in entries_said(sample.query) for entry in entries}
    for entries in entries_said(wording):
        new = [entry for entry in entries if entry.kind in kinds]
        if new and not before & {entry.id for entry in entries}:
            raise Dropped("changed_options", f"the question does not name {new[0].names.en}")


def _listed(sample: Sample) -> str:
    """Return the words of a question from the first of its options to the last; empty if it does not list them."""
    text = _plain(sample.query)
    patterns = (rf"{WORD_START}{re.escape(_plain(each))}{WORD_END}" for each in _options(sample))
    # The last place of each: a question may name one of them before it lists them.
    found = [matches[-1] for each in patterns if (matches := [*re.finditer(each, text)])]
    if len(found) < _FEWEST_LISTED:
        return ""
    return text[min(match.start() for match in found) : max(match.end() for match in found)]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _asked_units(sample: Sample) -> tuple[str, ...]:
    units = (canonical_unit(getattr(slot, "unit", None)) for slot in sample.answer)
    return tuple(unit for unit in units if unit is not None)


def _files(text: str) -> set[str]:
    return {*_FILE.findall(text)}


def _numbers(text: str) -> set[str]:
    return {*_NUMBER.findall(_FILE.sub(" ", text))}


def _units(text: str, asked: Sequence[str]) -> set[str]:
    """Return the units behind numbers and behind "in", however they are written.

    Of the units that are ``asked`` for, and others of their dimension, all count, wherever they stand.
    """
    plain = _FILE.sub(" ", text)
    units: set[str] = set()
    for match in _BEFORE_UNIT.finditer(plain):
        unit = unit_at(plain, match.end())
        if unit is not None:
            units.add(unit[0].symbol)
    for word in _WORD.findall(plain.casefold()):
        unit = canonical_unit(word)
        is_long = len(word) >= _SHORTEST_WORD or not word.isalpha()
        is_asked = is_long and any(unit and compatible(unit, each) for each in asked)
        if unit and (unit in asked or is_asked):
            units.add(unit)
    return units


def _options(sample: Sample) -> list[str]:
    """Return the options of the answer form of a question."""
    return [
        choice
        for slot in sample.answer
        if isinstance(slot, ExactSlot | ChoiceSetSlot)
        for choice in slot.choices
    ]


def check_sample(sample: Sample, root: Path) -> None:
    """Raise Dropped if ``agrotools benchmarks check`` finds a fault in a sample, or its question says the answer."""
    check_answer_unsaid(sample)
    for fault in check_samples([sample], root):
        why = f"{fault.code}: {fault.message}"
        raise dropped(CannotCompose("faults", why, hint=fault.hint))
