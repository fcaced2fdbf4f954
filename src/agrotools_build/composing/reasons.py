"""Reasons why a question, a trace and a binding give no sample."""

from typing import Literal

from agrotools.core import BenchmarkError

Reason = Literal[
    "call_fails",
    "no_steps",
    "no_answer",
    "no_value",
    "nothing_found",
    "wrong_kind",
    "no_stated_error",
    "not_measured",
    "idle_step",
    "error_too_large",
    "within_error",
    "no_choices",
    "not_a_choice",
    "not_valid",
    "faults",
]
"""``call_fails``: a call does not run. ``no_steps``, ``no_answer``: there is none. ``no_value``: a part of the answer
names a place that no result has. ``nothing_found``: the value there is empty. ``wrong_kind``: it does not fit the form
of the answer. ``no_stated_error``: no error of the tool is known for this value. ``not_measured``: a calculated number
is the same whatever the tools measure. ``idle_step``: the answer does not use a step. ``error_too_large``: 0 would
be right, too.
``within_error``: the answer changes within the errors of the tools. ``no_choices``, ``not_a_choice``: a name without
choices, or outside of them. ``not_valid``: a text or a name has a form that a sample cannot have. ``faults``:
``agrotools benchmarks check`` finds faults."""


class CannotCompose(BenchmarkError):
    """A sample that cannot be made; the message counts steps from 1.

    ``part``: name of the part of the answer that it is about, if it is about one.
    """

    def __init__(self, reason: Reason, message: str, *, hint: str, part: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason: Reason = reason
        self.part = part
