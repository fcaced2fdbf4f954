"""Plug-ins of AgriEval and of CMMLU's agronomy questions, which are asked and scored alike, and their slots."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agrotools.core import Slot
from agrotools.core.registry import deferred
from agrotools.loading.contract import PublishedFiles
from agrotools.loading.facts import Facts, plugin_of, read_facts

OptionKind = Literal["single", "multiple", "true_false"]
KINDS: Mapping[str, OptionKind] = {"单选": "single", "多选": "multiple", "判断": "true_false"}
"""Kinds of questions by their names in the files."""


class OptionsSlot(Slot):
    """Correct options of an examination question, by their letters. ``options``: text of each option as shown, by
    letter."""

    scored_apart: ClassVar[bool] = True
    type: Literal["options"] = "options"
    kind: OptionKind
    value: Annotated[tuple[str, ...], Field(min_length=1)]
    options: dict[str, str]

    @property
    def expected_text(self) -> str:
        options = ", ".join(f"{letter} {text}" for letter, text in self.options.items())
        return f"{', '.join(self.value)} (of {options})"

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(self.options)

    @property
    def takes_several(self) -> bool:
        return self.kind == "multiple"

    @property
    def right_text(self) -> str:
        return "".join(self.value)

    @property
    def comparable_value(self) -> str:
        return self.right_text


class ReferenceTextSlot(Slot):
    """Free text, scored by its overlap with the text ``value``."""

    scored_apart: ClassVar[bool] = True
    free_text: ClassVar[bool] = True
    type: Literal["reference_text"] = "reference_text"
    value: Annotated[str, Field(min_length=1)]

    @property
    def right_text(self) -> str:
        return self.value


ROUGES = ("rouge_1", "rouge_2", "rouge_l", "hf_rouge1", "hf_rouge2", "hf_rougel", "hf_rougelsum")
"""Overlap metrics computed by AgriEval's own code; metric ids are ``agrieval.NAME_published``."""
SETS: Mapping[str, Facts] = {
    facts["name"]: facts for facts in (read_facts(__file__), read_facts(__file__, "cmmlu.toml"))
}
"""Facts of the sets of questions, by name."""
FACTS = SETS["agrieval"]


def has_text(slot: Slot) -> bool:
    return isinstance(slot, ReferenceTextSlot)


def has_options(slot: Slot) -> bool:
    return isinstance(slot, OptionsSlot)


COUNTED = {"options": has_options, "text": has_text}
"""Slots that a metric counts, by their names in the facts."""
AGRIEVAL = plugin_of(
    FACTS,
    COUNTED,
    load=deferred("agrotools_benchmarks.agrieval.load:load_questions", "agrieval"),
    find=deferred("agrotools_benchmarks.agrieval.load:found_files", "agrieval"),
    slots=(OptionsSlot, ReferenceTextSlot),
    figures=PublishedFiles("agrotools_benchmarks.agrieval", "agrieval"),
)
CMMLU_AGRONOMY = plugin_of(
    SETS["cmmlu-agronomy"],
    COUNTED,
    load=deferred("agrotools_benchmarks.agrieval.load:load_questions", "cmmlu-agronomy"),
    find=deferred("agrotools_benchmarks.agrieval.load:found_files", "cmmlu-agronomy"),
)
