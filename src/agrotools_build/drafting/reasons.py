"""Reasons why a draft is dropped. Each draft has the first that a check finds."""

from collections.abc import Mapping

from agrotools.core import ToolErrorKind
from agrotools_build.composing import CannotCompose
from agrotools_build.composing.reasons import Reason

REASONS: Mapping[str, str] = {
    "not_read": "the reply holds no draft in the form that was asked for",
    "not_plain": "a text holds markup, an address or other signs that nobody asks with",
    "call_fails": "a call does not run",
    "no_steps": "it has no call",
    "no_answer": "it has no answer",
    "no_value": "a part of the answer names no value of a result",
    "nothing_found": "the tool finds or names nothing in the picture",
    "wrong_kind": "a value does not fit the form of its answer",
    "no_stated_error": "the tool states no error of the value, so that there is no tolerance",
    "error_too_large": "the value is within its error of 0",
    "within_error": "the answer changes within the errors of the tools",
    "no_choices": "a name is asked for, and nothing offers choices",
    "not_a_choice": "the name is none of the choices, or several",
    "not_valid": "a text or a name has a form that a sample cannot have",
    "faults": "agrotools benchmarks check finds a fault",
    "unstated_number": "a number in a call or the answer stands neither in the question nor in a result",
    "written_value": "a text in a calculation or an answer is the model's own",
    "answer_in_question": "the question, or the answer form, says the answer",
    "means_in_question": "the question names a tool, an argument or a step",
    "idle_step": "the answer does not use a step, or a call is made twice",
    "other_way": "another sequence of its calls gives the answer, too",
    "contradicts_label": "what people noted contradicts a result that the answer rests on",
    "text_baseline": "the words of the question alone give the answer",
    "constant_baseline": "one answer meets too many drafts of its kind",
    "near_copy": "it is nearly the same as an earlier draft or a question of the folder",
    "no_change": "the wording is that of the question",
    "changed_numbers": "a number of the question is missing or new",
    "changed_units": "a unit of the question is missing or new",
    "changed_files": "a file of the question is missing or new",
    "changed_options": "an option of the question is missing or new, or their list is written otherwise",
    "options_in_question": "the question lists its options, so that it cannot have others",
    "too_few_options": "too few wrong options are left",
}
"""What each reason means."""
OF_ERRORS: Mapping[ToolErrorKind, str] = {
    "nothing_found": "nothing_found",
    "low_confidence": "nothing_found",
}
"""Reasons by the kind of a tool's error; those of other kinds are that the call fails."""
_OF_FAULTS = {
    "gold_in_query": "answer_in_question",
    "gold_in_label": "answer_in_question",
    "gold_in_note": "answer_in_question",
    "tool_in_query": "means_in_question",
    "argument_in_query": "means_in_question",
    "steps_in_query": "means_in_question",
}
"""Reasons by the code of a fault of ``agrotools benchmarks check``."""


class Dropped(Exception):
    """A draft that a check refuses: the reason, one of :data:`REASONS`, and a sentence on this draft."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(f"{reason}: {why}")
        self.reason, self.why = reason, why


def dropped(error: CannotCompose) -> Dropped:
    """Return why a draft is dropped that cannot be composed."""
    reason: Reason = error.reason
    code = error.message.partition(":")[0]
    if reason == "not_measured":
        return Dropped("idle_step", error.message)
    return Dropped(_OF_FAULTS.get(code, reason) if reason == "faults" else reason, error.message)
