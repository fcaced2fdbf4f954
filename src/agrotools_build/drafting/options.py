"""Drafts of wrong options: names that a model offers beside the right one, each surely another thing."""

from collections import defaultdict
from collections.abc import Sequence

from agrotools.core import ExactSlot, Sample
from agrotools.formats.benchmark import Benchmark
from agrotools.knowledge.kb_names import healthy_crop, shipped_names
from agrotools.models import Message
from agrotools.text.labels import label_key
from agrotools_build.drafting.checking import Checked
from agrotools_build.drafting.known_names import says_a_choice
from agrotools_build.drafting.prompting import as_data, prompt
from agrotools_build.drafting.reasons import Dropped
from agrotools_build.drafting.replies import DraftedOptions, check_plain, read_reply
from agrotools_build.drafting.request import DraftRequest, Progressed, requests_on
from agrotools_build.drafting.wordings import check_sample
from agrotools_build.templates.slot_draft import with_known_names

WANTED = 3
"""Wrong options of a question, as AgriEval and others have: four options in all."""
_FEWEST = 2


class OptionDrafts:
    """Requests for wrong options of the questions of a folder whose answer is a name."""

    def __init__(self, benchmark: Benchmark) -> None:
        self._samples: Sequence[Sample] = list(benchmark.samples)
        self._root = benchmark.root
        self._right_of = _names_by_file(self._samples)

    def requests(self, most: int) -> list[DraftRequest]:
        """Return at most so many requests, one for each question whose answer is a name."""
        asked = [sample for sample in self._samples if _named(sample) is not None]
        return requests_on(asked[:most], "distractors", self._messages, self._check, _refused)

    def _messages(self, sample: Sample) -> list[Message]:
        slot = _named(sample)
        assert slot is not None
        text = prompt(
            "distractors",
            question=as_data(sample.query),
            answer=as_data(str(slot.value)),
            count=2 * WANTED,
        )
        return [Message.of("user", text)]

    async def _check(self, sample: Sample, reply: str, progressed: Progressed) -> Checked:
        draft = read_reply(reply, DraftedOptions)
        progressed.ran = True
        slot = _named(sample)
        assert slot is not None
        right = [name for file in sample.files for name in self._right_of[str(file.sha256)]] or [
            str(slot.value)
        ]
        wrong: list[str] = []
        refused: list[str] = []
        for option in draft.options:
            check_plain(option)
            why = why_not_wrong(option, [*right, *slot.names])
            if not why and any(why_not_wrong(option, [other]) for other in wrong):
                why = "the same as another option"
            if why:
                refused.append(f"{option} ({why})")
            elif len(wrong) < WANTED:
                wrong.append(option)
        if len(wrong) < _FEWEST:
            raise Dropped("too_few_options", f"refused: {'; '.join(refused) or 'none'}")
        choices = tuple(sorted((str(slot.value), *wrong), key=str.casefold))
        aliases = {str(slot.value): slot.aliases.get(str(slot.value), ())}
        bare = slot.model_copy(update={"choices": choices, "aliases": aliases})
        changed = with_known_names(bare, of_all=True)
        answer = tuple(changed if each.name == slot.name else each for each in sample.answer)
        made = sample.model_copy(update={"answer": answer})
        check_sample(made, self._root)
        return Checked(made, ("a model wrote the wrong options: is none of them right?",))


def why_not_wrong(option: str, right: Sequence[str]) -> str:
    """Return why a name may be right, or cannot be told from the right ones; empty if it is surely wrong.

    It is if the knowledge base has it as another entry than all right names, and no name is a part of the other.
    """
    key = label_key(option)
    entries = {entry.id for entry in shipped_names().all_of_name(option)}
    for name in right:
        other = label_key(name)
        if key == other or key in other or other in key:
            return f"may be {name}"
        if entries & {entry.id for entry in shipped_names().all_of_name(name)}:
            return f"is {name}"
        if healthy_crop(option) is not None and healthy_crop(name) is not None:
            return f"is {name}"
    is_known = bool(entries) or healthy_crop(option) is not None
    return "" if is_known else "the knowledge base does not have it"


def _refused(sample: Sample) -> Dropped | None:
    """Return why a question gets no other options: its words name those that it has."""
    slot = _named(sample)
    if slot is None or not says_a_choice(sample, slot):
        return None
    return Dropped("options_in_question", "the question or its answer form names a choice")


def _named(sample: Sample) -> ExactSlot | None:
    """Return the first slot of an answerable sample whose answer is a name."""
    slots = sample.answer if sample.answerable else ()
    return next(
        (slot for slot in slots if isinstance(slot, ExactSlot) and isinstance(slot.value, str)),
        None,
    )


def _names_by_file(samples: Sequence[Sample]) -> defaultdict[str, list[str]]:
    """Return all names that labels give to a file, by its hash."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    for sample in samples:
        slots = [slot for slot in sample.answer if isinstance(slot, ExactSlot)]
        for file in sample.files:
            names[str(file.sha256)] += [name for slot in slots for name in slot.names]
    return names
