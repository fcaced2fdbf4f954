"""Drafts of wordings: a question of a folder in other words; what it states is kept, as code checks."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from agrotools.core import ChoiceSetSlot, ExactSlot, Sample
from agrotools.formats.benchmark import Benchmark
from agrotools.loading.leaks import has_word
from agrotools.loading.validate import check_samples
from agrotools.models import Message
from agrotools.text.units import unit_at
from agrotools_build.composing import CannotCompose
from agrotools_build.drafting.checking import Checked
from agrotools_build.drafting.prompting import as_data, prompt
from agrotools_build.drafting.reasons import Dropped, dropped
from agrotools_build.drafting.replies import DraftedWording, check_plain, read_reply
from agrotools_build.drafting.request import DraftRequest, Earlier, Progressed

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*\.[A-Za-z]{2,4}\b")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?!\w)|(?<=\w)\d+(?:[.,]\d+)*(?!\w)")
_BEFORE_UNIT = re.compile(r"(?:\d|\bin)\s*(?=[^\s\d])", re.IGNORECASE)
"""Places where a unit may stand: behind a number, or behind ``in`` (in percent)."""


class WordingDrafts:
    """Requests for other words of the questions of a folder."""

    def __init__(self, benchmark: Benchmark, earlier: Earlier) -> None:
        self._samples: Sequence[Sample] = list(benchmark.samples)
        self._root, self._earlier = benchmark.root, earlier

    def requests(self, most: int) -> list[DraftRequest]:
        """Return at most so many requests, one for each question in the order of the folder."""
        return [
            DraftRequest(
                number=number,
                kind="wording",
                subject=f"{sample.id} {sample.query}",
                family=sample.family,
                messages=partial(self._messages, sample),
                check=partial(self._check, sample),
            )
            for number, sample in enumerate(self._samples[:most], start=1)
        ]

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
        made = sample.model_copy(update={"query": draft.question})
        check_sample(made, self._root)
        if self._earlier.questions.copy_of(made, words_alone=True):
            raise Dropped("near_copy", "nearly the same as an earlier wording")
        return Checked(made, ("a model rephrased the question: does it ask for the same?",))


def check_kept(sample: Sample, wording: str) -> None:
    """Raise Dropped unless a wording has the numbers, units, files and options of a question, and other words."""
    if " ".join(wording.casefold().split()) == " ".join(sample.query.casefold().split()):
        raise Dropped("no_change", "the words are the same")
    for reason, of in (
        ("changed_files", _files),
        ("changed_numbers", _numbers),
        ("changed_units", _units),
    ):
        before, now = of(sample.query), of(wording)
        if before != now:
            changed = [*(before - now), *(now - before)]
            raise Dropped(reason, f"not in both: {', '.join(map(str, changed))}")
    for option in _options(sample):
        if has_word(sample.query, option) != has_word(wording, option):
            raise Dropped("changed_options", f"not in both: {option}")


def _files(text: str) -> Counter[str]:
    return Counter(_FILE.findall(text))


def _numbers(text: str) -> Counter[str]:
    return Counter(_NUMBER.findall(_FILE.sub(" ", text)))


def _units(text: str) -> Counter[str]:
    """Return the units behind numbers and behind "in", each by its name; a unit may be written in several ways."""
    plain = _FILE.sub(" ", text)
    found: Counter[str] = Counter()
    for match in _BEFORE_UNIT.finditer(plain):
        unit = unit_at(plain, match.end())
        if unit is not None:
            found[plain[match.end() : unit[1]].casefold()] += 1
    return found


def _options(sample: Sample) -> list[str]:
    """Return the options of the answer form of a question."""
    return [
        choice
        for slot in sample.answer
        if isinstance(slot, ExactSlot | ChoiceSetSlot)
        for choice in slot.choices
    ]


def check_sample(sample: Sample, root: Path) -> None:
    """Raise Dropped if ``agrotools benchmarks check`` finds a fault in a sample."""
    for fault in check_samples([sample], root):
        why = f"{fault.code}: {fault.message}"
        raise dropped(CannotCompose("faults", why, hint=fault.hint))
