"""Plug-ins of AgriEval and of CMMLU's agronomy questions, which are asked and scored alike, and their slots."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agrotools.core import Slot
from agrotools.loading.contract import BenchmarkPlugin, PublishedFiles
from agrotools.loading.facts import Facts, loaders_of, plugin_of, read_facts

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
        return f"{', '.join(self.value)} (of {', '.join(f'{key} {text}' for key, text in self.options.items())})"

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


def _plugin(name: str, **parts: Any) -> BenchmarkPlugin:
    return plugin_of(
        SETS[name],
        {"options": lambda slot: isinstance(slot, OptionsSlot), "text": has_text},
        **loaders_of(
            name, "agrotools_benchmarks.agrieval.load", load="load_questions", find="found_files"
        ),
        **parts,
    )


AGRIEVAL = _plugin(
    "agrieval",
    slots=(OptionsSlot, ReferenceTextSlot),
    figures=PublishedFiles("agrotools_benchmarks.agrieval", "agrieval"),
)
CMMLU_AGRONOMY = _plugin("cmmlu-agronomy")
