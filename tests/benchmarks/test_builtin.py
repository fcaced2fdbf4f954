"""Metrics of built-in plug-ins: samples without a slot type listed for a benchmark do not import its plug-in."""

from agrotools.calling import get_tool, tool_names
from agrotools.calling.worker import load
from agrotools.core import BENCHMARKS, Slot
from agrotools.core.slot import SLOT_TYPES as ENGINE_TYPES
from agrotools_benchmarks.table import TABLE


def test_slot_types_are_listed_and_tools_found_at_their_targets() -> None:
    for name, built_in in TABLE.benchmarks.items():
        plugin = BENCHMARKS.get(name)
        kinds: list[type[Slot]] = [*ENGINE_TYPES, *plugin.slots]
        slots = {
            kind.model_fields["type"].default: kind.model_construct(questions=("Is it so?",))
            for kind in kinds
        }
        predicates = [info.slots for info in plugin.metrics.values() if info.slots]
        about = {
            type_ for type_, slot in slots.items() if any(belongs(slot) for belongs in predicates)
        }
        assert about == built_in.slot_types, name
    types = [kind.model_fields["type"].default for kind in ENGINE_TYPES]
    closed, in_words = (
        ["exact", "boolean", "choice_set", "file", "tolerance"],
        ["keywords", "reference_texts"],
    )
    assert types == [*closed, "open_text", "plot", *in_words, "abstain"]
    tools = {name: get_tool(name) for name in tool_names()}
    assert [name for name, tool in tools.items() if load(tool.target) is not tool] == []
