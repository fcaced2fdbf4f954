"""The classes of errors that GTA, ThinkGeo and Agent-X tell apart, each with where it is from and how it is told here.

The papers name the classes; only Agent-X publishes how it counts them. Where it does, ``meaning`` is its rule (faults
of the rule that count the same twice are in the plug-in of Agent-X, :mod:`agrotools.benchmarks.agent_x`); elsewhere it
is ours.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Unit = Literal["step", "sample"]


class Source(NamedTuple):
    """Place in a paper that has classes of errors. ``name``: how the paper is called here for short."""

    name: str
    arxiv: str
    place: str

    def __str__(self) -> str:
        return f"{self.name} (arXiv {self.arxiv}), {self.place}"


class Named(NamedTuple):
    """Name that a paper gives a class."""

    source: Source
    words: str

    def __str__(self) -> str:
        return f"{self.source}: {self.words}"


GTA = Source("GTA", "2407.08713", "Table 5")
THINKGEO = Source("ThinkGeo", "2505.23752", "Table A2")
THINKGEO_CASES = Source("ThinkGeo", "2505.23752", "section on failures and Figure 7")
AGENT_X = Source("Agent-X", "2505.24876", "Table 10")
AGENT_X_CALLS = Source("Agent-X", "2505.24876", "Figure 5")
IN_HEAD = "calculated_in_head"
OF_SCORES = "told of runs step by step alone, by the scores of their calls"
"""Why the class of the calculation in the head cannot be told elsewhere: no reference call stands beside the call."""
OF_KEYWORDS = ("no_answer_keyword", "no_step_keyword")
OF_SINGLE_SHOT = ("call_without_output", "invalid_format", "answer_in_invalid_format")
"""Classes of predictions that hold steps and answer at once."""


@dataclass(frozen=True)
class ErrorClass:
    """``unit``: what is counted, steps or whole samples. ``sources``: every paper that has the class, with the word
    that it has for it."""

    id: str
    unit: Unit
    sources: tuple[Named, ...]
    meaning: str


CLASSES: Mapping[str, ErrorClass] = {
    each.id: each
    for each in (
        ErrorClass(
            "format_error",
            "step",
            (Named(GTA, "format error"), Named(THINKGEO, "NoAction")),
            "output that is neither a call nor an answer",
        ),
        ErrorClass(
            "invalid_json",
            "step",
            (Named(GTA, "argument format error"), Named(THINKGEO, "Inv. JSON")),
            "a call whose arguments are no JSON object",
        ),
        ErrorClass(
            "invalid_arguments",
            "step",
            (Named(GTA, "argument format error"), Named(THINKGEO, "Arg. Values")),
            "a call whose arguments the tool does not take: unknown, missing, or of a wrong type or value",
        ),
        ErrorClass(
            IN_HEAD,
            "step",
            (),
            "a calculation of the reference's value without the observations that it comes from",
        ),
        ErrorClass(
            "wrong_tool_name",
            "step",
            (Named(GTA, "N/A"), Named(THINKGEO, "Tool Name"), Named(AGENT_X_CALLS, "invalid tool usage")),
            "a call of a tool that there is not",
        ),
        ErrorClass(
            "tool_error",
            "step",
            (Named(GTA, "N/A"),),
            "any other error of a call, mostly inside of the tool: in the right form, but not executed to its end",
        ),
        ErrorClass(
            "call_without_output",
            "step",
            (Named(AGENT_X_CALLS, "failed calls"),),
            "a step that names a tool but no output, where the model writes both",
        ),
        ErrorClass(
            "repeated_tool",
            "sample",
            (Named(AGENT_X, "multiple tool calls in a single step (which its code counts so)"),),
            "the same tool in two consecutive steps",
        ),
        ErrorClass(
            "redundant_call",
            "step",
            (Named(THINKGEO_CASES, "redundant tool calls"),),
            "a call with the very arguments of an earlier one that worked",
        ),
        ErrorClass(
            "several_calls",
            "step",
            (Named(AGENT_X, "multiple tool calls in a single step (as the words say)"),),
            "more than one call in one message or step",
        ),
        ErrorClass(
            "single_step_answer",
            "sample",
            (Named(THINKGEO, "Final Ans. (SingleStep)"),),
            "an answer without any call where the reference has calls; step by step: an answer where a call was due",
        ),
        ErrorClass(
            "no_response",
            "sample",
            (Named(AGENT_X, "no action, no response"),),
            "neither steps nor an answer",
        ),
        ErrorClass(
            "only_thought",
            "sample",
            (Named(AGENT_X, "no action, the whole response is model thought"),),
            "an answer without steps (Agent-X), or text alone that is neither a call nor an answer",
        ),
        ErrorClass(
            "invalid_format",
            "sample",
            (Named(AGENT_X, "invalid JSON format in argument specification"),),
            "a prediction that lacks a field, or has a step that does",
        ),
        ErrorClass(
            "answer_in_invalid_format",
            "sample",
            (Named(AGENT_X, "final answer generation without adhering to the format"),),
            "the same, though with an answer",
        ),
        ErrorClass(
            "no_answer_keyword",
            "sample",
            (Named(AGENT_X, "misinterpreting visual content, wrong visual interpretation"),),
            "an answer with no keyword of the gold answer (keywords by a rule of ours, not by spaCy)",
        ),
        ErrorClass(
            "no_step_keyword",
            "sample",
            (Named(AGENT_X, "incorrect spatial reasoning"),),
            "steps with no keyword of the gold steps (keywords by a rule of ours, not by spaCy)",
        ),
    )
}


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper that gives the errors of a model as percentages of each other, in its own words.

    ``rows``: by the paper's word the classes here that are counted for it.
    """

    source: Source
    rows: Mapping[str, tuple[str, ...]]


PAPER_TABLES = (
    PaperTable(
        GTA,
        {
            "format error": ("format_error",),
            "argument format error": ("invalid_json", "invalid_arguments"),
            "N/A": ("tool_error", "wrong_tool_name"),
        },
    ),
    PaperTable(
        THINKGEO,
        {
            "NoAction": ("format_error",),
            "Inv. JSON": ("invalid_json",),
            "Arg. Values": ("invalid_arguments",),
            "Tool Name": ("wrong_tool_name",),
            "others, not printed": ("tool_error",),
        },
    ),
    PaperTable(
        AGENT_X,
        {
            "no action, no response": ("no_response",),
            "no action, whole response is a thought": ("only_thought",),
            "invalid JSON arguments": ("invalid_format",),
            "multiple tool calls in a single step, as its code counts": ("repeated_tool",),
            "final answer not in required format": ("answer_in_invalid_format",),
            "wrong visual interpretation": ("no_answer_keyword",),
            "incorrect spatial reasoning": ("no_step_keyword",),
        },
    ),
)
"""ThinkGeo's last column, Final Ans. (SingleStep), is not among its rows: with the others it comes to more than 100 %,
and the paper does not say of what it is a share."""


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
        return [
            {
                "error": each.id,
                "count": None if each.id in self.not_looked_for else self.counts[each.id],
                "samples": len(self.samples.get(each.id, [])),
                "unit": each.unit,
                "meaning": each.meaning,
                "sources": list(map(str, each.sources)),
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
