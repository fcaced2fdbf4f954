"""Classes of errors that papers on agents tell apart, each with its meaning here.

Benchmark plug-ins name the papers and their words for the classes (:class:`agrotools.plugin.ErrorSource`). Where a
paper publishes its count, ``meaning`` is its rule; elsewhere it is ours.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agrotools.plugin import ErrorSource, plugins

Unit = Literal["step", "sample"]


IN_HEAD = "calculated_in_head"
OF_SCORES = "told of runs step by step alone, by the scores of their calls"
"""Why the class of the calculation in the head cannot be told elsewhere: no reference call stands beside the call."""
OF_KEYWORDS = ("no_answer_keyword", "no_step_keyword")
OF_SINGLE_SHOT = ("call_without_output", "invalid_format", "answer_in_invalid_format")
"""Classes of predictions that hold steps and answer at once."""


@dataclass(frozen=True)
class ErrorClass:
    """``unit``: what is counted, steps or whole samples."""

    id: str
    unit: Unit
    meaning: str


CLASSES: Mapping[str, ErrorClass] = {
    each.id: each
    for each in (
        ErrorClass("format_error", "step", "output that is neither a call nor an answer"),
        ErrorClass("invalid_json", "step", "a call whose arguments are no JSON object"),
        ErrorClass(
            "invalid_arguments",
            "step",
            "a call whose arguments the tool does not take: unknown, missing, or of a wrong type or value",
        ),
        ErrorClass(
            IN_HEAD, "step", "a calculation of the reference's value without the observations that it comes from"
        ),
        ErrorClass("wrong_tool_name", "step", "a call of a tool that there is not"),
        ErrorClass(
            "tool_error",
            "step",
            "any other error of a call, mostly inside of the tool: in the right form, but not executed to its end",
        ),
        ErrorClass(
            "call_without_output", "step", "a step that names a tool but no output, where the model writes both"
        ),
        ErrorClass("repeated_tool", "sample", "the same tool in two consecutive steps"),
        ErrorClass("redundant_call", "step", "a call with the very arguments of an earlier one that worked"),
        ErrorClass("several_calls", "step", "more than one call in one message or step"),
        ErrorClass(
            "single_step_answer",
            "sample",
            "an answer without any call where the reference has calls; step by step: an answer where a call was due",
        ),
        ErrorClass("no_response", "sample", "neither steps nor an answer"),
        ErrorClass(
            "only_thought", "sample", "an answer without steps, or text alone that is neither a call nor an answer"
        ),
        ErrorClass("invalid_format", "sample", "a prediction that lacks a field, or has a step that does"),
        ErrorClass("answer_in_invalid_format", "sample", "the same, though with an answer"),
        ErrorClass(
            "no_answer_keyword",
            "sample",
            "an answer with no keyword of the gold answer (keywords by a rule of ours, not by spaCy)",
        ),
        ErrorClass(
            "no_step_keyword",
            "sample",
            "steps with no keyword of the gold steps (keywords by a rule of ours, not by spaCy)",
        ),
    )
}


def error_sources() -> list[ErrorSource]:
    """Places in papers that tell classes of errors apart, of all benchmark plug-ins."""
    return [source for plugin in plugins() for source in plugin.error_sources]


@dataclass
class Errors:
    """Errors counted by class. ``samples``: ids in which each class occurred, in order; ``steps``: calls and answers
    that were looked at, ``total``: samples.

    ``keyed``: samples in which a keyword could have been missed, for the classes that look for keywords.
    """

    total: int = 0
    steps: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    samples: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    keyed: dict[str, int] = field(default_factory=dict[str, int])
    not_looked_for: dict[str, str] = field(default_factory=dict[str, str])
    """Classes that could not be told, and why: their count of 0 says nothing."""

    def add(self, error: str, sample: str, count: int = 1) -> None:
        if count:
            self.counts[error] += count
            listed = self.samples.setdefault(error, [])
            if not listed or listed[-1] != sample:
                listed.append(sample)

    def add_keyed(self, error: str, sample: str, missed: bool) -> None:
        """A sample in which keywords were looked for."""
        self.keyed[error] = self.keyed.get(error, 0) + 1
        self.add(error, sample, int(missed))

    def skip(self, errors: Iterable[str], reason: str) -> None:
        self.not_looked_for |= dict.fromkeys(errors, reason)

    def looked_at(self, error: str, unit: Unit) -> int:
        """In how many steps or samples a class was looked for."""
        if error in OF_KEYWORDS:
            return self.keyed.get(error, 0)
        return self.steps if unit == "step" else self.total

    def as_data(self) -> list[dict[str, object]]:
        """One row for each class: id, count, samples, unit, meaning, sources, and why it was not looked for."""
        sources = error_sources()
        return [
            {
                "error": each.id,
                "count": None if each.id in self.not_looked_for else self.counts[each.id],
                "samples": len(self.samples.get(each.id, [])),
                "unit": each.unit,
                "meaning": each.meaning,
                "sources": [f"{source}: {source.words[each.id]}" for source in sources if each.id in source.words],
                "not_looked_for": self.not_looked_for.get(each.id),
            }
            for each in CLASSES.values()
        ]


def arguments_key(arguments: Any) -> str:
    """Arguments as a text that is the same for the same ones."""
    try:
        return json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return repr(arguments)[:10_000]
