"""Gold that shows: answers, tools or steps in what a policy reads (query, file names, notes, slot names)."""

from collections.abc import Iterable

from agrotools.benchmarks.checks.fault import Checked
from agrotools.construct.quality.implicit import named_argument, names_tool, step_words
from agrotools.construct.quality.telling import has_word, labels_of, spaced, told
from agrotools.core import ChoiceSetSlot, ExactSlot


def check_leaks(at: Checked) -> None:
    """Codes: tool_in_query, argument_in_query, steps_in_query, gold_in_query, gold_in_note, gold_in_label,
    gold_in_file_name, tool_in_file_name.
    """
    query = at.sample.query
    known = sorted({*at.sample.toolset, *(at.header.toolset if at.header else ())})
    for name in known:
        if names_tool(query, name):
            at.fault(
                "tool_in_query", "query", f"the query names the tool {name}", "ask for the result, not for the tool"
            )
    if name := named_argument(query, _argument_names(at, known)):
        hint = "say it in the words of the person who asks"
        at.fault("argument_in_query", "query", f"the query names the argument {name}", hint)
    if words := step_words(query):
        hint = "ask for the result, not for the way to it"
        at.fault("steps_in_query", "query", f"the query names steps or tools: {words!r}", hint)
    _check_gold(at)
    for index, file in enumerate(at.sample.files):
        for name in known:
            if has_word(spaced(file.name), spaced(name)):
                hint = "use neutral names such as image_1.jpg"
                at.fault("tool_in_file_name", f"files[{index}].name", f"{file.name} names the tool {name}", hint)


def _argument_names(at: Checked, tools: Iterable[str]) -> set[str]:
    found = (at.tools.get(name) for name in tools)
    return {argument for tool in found if tool is not None for argument in tool.spec.agreement}


def _check_gold(at: Checked) -> None:
    texts = [("query", at.sample.query, "gold_in_query")]
    texts += [(f"files[{i}].note", file.note, "gold_in_note") for i, file in enumerate(at.sample.files) if file.note]
    labels = " | ".join(f"{slot.label} {spaced(slot.name)}" for slot in at.sample.answer)
    texts.append(("answer", labels, "gold_in_label"))
    for slot in at.sample.answer:
        for where, text, code in texts:
            if said := told(slot, text):
                hint = "leave it out, or name the other choices too"
                at.fault(code, where, f"{said!r} is (part of) the answer {slot.name!r}", hint)
        if isinstance(slot, (ExactSlot, ChoiceSetSlot)):
            for index, file in enumerate(at.sample.files):
                for label in labels_of(slot):
                    if has_word(spaced(file.name), spaced(label)):
                        message = f"{file.name} tells the answer {label!r}"
                        at.fault(
                            "gold_in_file_name",
                            f"files[{index}].name",
                            message,
                            "use neutral names such as image_1.jpg",
                        )
