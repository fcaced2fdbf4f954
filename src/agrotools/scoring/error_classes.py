"""The classes of errors that GTA, ThinkGeo and Agent-X tell apart, each with where it is from and how it is told here.

The papers name the classes; only Agent-X publishes how it counts them. Where it does, ``meaning`` is its rule (faults
of the rule that count the same twice are in :mod:`agrotools.scoring.reference.agent_x_errors`); elsewhere it is ours.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

GTA = "GTA (arXiv 2407.08713), Table 5"
THINKGEO = "ThinkGeo (arXiv 2505.23752), Table A2"
THINKGEO_CASES = "ThinkGeo (arXiv 2505.23752), section on failures and Figure 7"
AGENT_X = "Agent-X (arXiv 2505.24876), Table 10"
AGENT_X_CALLS = "Agent-X (arXiv 2505.24876), Figure 5"


@dataclass(frozen=True)
class ErrorClass:
    """``unit``: what is counted, steps or whole samples. ``sources``: every paper that has the class."""

    id: str
    unit: str
    sources: tuple[str, ...]
    meaning: str


CLASSES: Mapping[str, ErrorClass] = {
    each.id: each
    for each in (
        ErrorClass(
            "format_error",
            "step",
            (f"{GTA}: format error", f"{THINKGEO}: NoAction"),
            "output that is neither a call nor an answer",
        ),
        ErrorClass(
            "invalid_json",
            "step",
            (f"{GTA}: argument format error", f"{THINKGEO}: Inv. JSON"),
            "a call whose arguments are no JSON object",
        ),
        ErrorClass(
            "invalid_arguments",
            "step",
            (f"{GTA}: argument format error", f"{THINKGEO}: Arg. Values"),
            "a call whose arguments the tool does not take: unknown, missing, or of a wrong type or value",
        ),
        ErrorClass(
            "wrong_tool_name",
            "step",
            (f"{THINKGEO}: Tool Name", f"{AGENT_X_CALLS}: invalid tool usage"),
            "a call of a tool that there is not",
        ),
        ErrorClass("tool_error", "step", (f"{GTA}: N/A",), "any other error of a call, mostly inside of the tool"),
        ErrorClass(
            "call_without_output",
            "step",
            (f"{AGENT_X_CALLS}: failed calls",),
            "a step that names a tool but no output, where the model writes both",
        ),
        ErrorClass(
            "repeated_tool",
            "sample",
            (f"{AGENT_X}: multiple tool calls in a single step (which its code counts so)",),
            "the same tool in two consecutive steps",
        ),
        ErrorClass(
            "redundant_call",
            "step",
            (f"{THINKGEO_CASES}: redundant tool calls",),
            "a call with the very arguments of an earlier one that worked",
        ),
        ErrorClass(
            "several_calls",
            "step",
            (f"{AGENT_X}: multiple tool calls in a single step (as the words say)",),
            "more than one call in one message or step",
        ),
        ErrorClass(
            "single_step_answer",
            "sample",
            (f"{THINKGEO}: Final Ans. (SingleStep)",),
            "an answer without any call where the reference has calls; step by step: an answer where a call was due",
        ),
        ErrorClass(
            "no_response",
            "sample",
            (f"{AGENT_X}: no action, no response",),
            "neither steps nor an answer",
        ),
        ErrorClass(
            "only_thought",
            "sample",
            (f"{AGENT_X}: no action, the whole response is model thought",),
            "an answer without steps (Agent-X), or text alone that is neither a call nor an answer",
        ),
        ErrorClass(
            "invalid_format",
            "sample",
            (f"{AGENT_X}: invalid JSON format in argument specification",),
            "a prediction that lacks a field, or has a step that does",
        ),
        ErrorClass(
            "answer_in_invalid_format",
            "sample",
            (f"{AGENT_X}: final answer generation without adhering to the format",),
            "the same, though with an answer",
        ),
        ErrorClass(
            "no_answer_keyword",
            "sample",
            (f"{AGENT_X}: misinterpreting visual content",),
            "an answer with no keyword of the gold answer (keywords by a rule of ours, not by spaCy)",
        ),
        ErrorClass(
            "no_step_keyword",
            "sample",
            (f"{AGENT_X}: incorrect spatial reasoning",),
            "steps with no keyword of the gold steps (keywords by a rule of ours, not by spaCy)",
        ),
    )
}


@dataclass
class Errors:
    """Errors counted by class. ``samples``: ids in which each class occurred, in order; ``steps``: calls and answers
    that were looked at, ``total``: samples."""

    total: int = 0
    steps: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CLASSES, 0))
    samples: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    not_looked_for: dict[str, str] = field(default_factory=dict[str, str])
    """Classes that could not be told, and why: their count of 0 says nothing."""

    def add(self, error: str, sample: str, count: int = 1) -> None:
        if count:
            self.counts[error] += count
            listed = self.samples.setdefault(error, [])
            if not listed or listed[-1] != sample:
                listed.append(sample)

    def skip(self, errors: Iterable[str], reason: str) -> None:
        self.not_looked_for |= dict.fromkeys(errors, reason)

    def as_data(self) -> list[dict[str, object]]:
        """One row for each class: id, count, samples, unit, meaning, sources, and why it was not looked for."""
        return [
            {
                "error": each.id,
                "count": None if each.id in self.not_looked_for else self.counts[each.id],
                "samples": len(self.samples.get(each.id, [])),
                "unit": each.unit,
                "meaning": each.meaning,
                "sources": list(each.sources),
                "not_looked_for": self.not_looked_for.get(each.id),
            }
            for each in CLASSES.values()
        ]
