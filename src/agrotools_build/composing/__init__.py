"""Composing of a sample from a question, files and tool calls, whoever writes them: a person on a page, or a model.

No value of an answer is ever typed: tools run on the sample's own files, and parts of the answer name places in their
results. The steps of composing, each in a module:

1. :class:`~.running.StepRunner` runs a whole trace, with the limits of ``agrotools eval``.
2. :func:`~.tolerance.tolerance_of` gives the tolerance of a bound number from the stated errors of its tools.
3. :func:`~.binding.bound_slot` makes a slot of an :class:`~.binding.AnswerPart`.
4. :func:`~.making.compose_sample` makes the sample and checks it as ``agrotools benchmarks check`` does.

What cannot be composed raises :class:`~.reasons.CannotCompose` with a typed reason, a sentence and a hint.
"""

from agrotools_build.composing.binding import AnswerForm, AnswerPart, bound_slot
from agrotools_build.composing.making import Composition, compose_sample
from agrotools_build.composing.reasons import CannotCompose, Reason
from agrotools_build.composing.running import StepRunner, TraceStep, results_of
from agrotools_build.composing.tolerance import tolerance_of

__all__ = [
    "AnswerForm",
    "AnswerPart",
    "CannotCompose",
    "Composition",
    "Reason",
    "StepRunner",
    "TraceStep",
    "bound_slot",
    "compose_sample",
    "results_of",
    "tolerance_of",
]
