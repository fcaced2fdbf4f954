"""Typed errors. Every error has a message with the problem and a hint on what to change.

The tree; what stands in another module than this one is followed by its place. ``(+ X)``: X is a base class as well.

::

    Exception
    - AgrotoolsError                whoever runs the command can mend it; printed without a stack trace
      - UsageError                  exit code 2: an argument names nothing, or arguments do not fit together
        - EndpointRefusal           the endpoint refuses what all requests share: key, model, images, tools
        - MissingLibraryError       an extra is not installed (core.libraries)
        - NoFittingCallError        a binding fits no reference call (analysis.served_check)
      - UndecidedError              exit code 4: data may mean two things; carries the options that answer
      - BenchmarkError              a benchmark folder or a source cannot be read
        - NoFileError (+ UsageError)
        - ChainBroken               a chain of calls gives no sample (of the builder)
        - CannotCompose             a question cannot be composed of its calls (of the builder)
        - PublishedScorerStops      the published scorer would stop at this file (scoring.predictions)
      - CorpusError                 a text corpus or its index
      - RunStoreError               a run folder
        - NoRunError (+ UsageError)
      - InfrastructureError         no reply, for no fault of the model: the sample is invalid, never incorrect
        - InvalidRunError           no sample of the run got a reply
      - EndpointUnreachable         nothing answers at the address: nothing runs, nothing is recorded
        - LocalServerError          a model server that agrotools started has failed
      - BudgetReached               exit code 1: the sample gets no record and can run later
      - ToolError                   a tool call failed; a policy observes it as ErrorInfo
      - SandboxUnavailable          no sandbox on this machine (sandbox.result)
      - ExpressionError             a formula cannot be read or computed (text.expression_functions)

Other error classes of the engine (``CallError``, ``MalformedReply``, ``NotJson``, ``UnresolvedRef``) are caught
where they arise: they describe what a model wrote, and end as an observation or an error class of its record.
"""

import re
from itertools import pairwise
from typing import Annotated, Literal, cast

from pydantic import Field

from agrotools.core.frozen_model import FrozenModel

ToolErrorKind = Literal[
    "invalid_argument",
    "unknown_tool",
    "missing_metadata",
    "file_not_found",
    "unreadable_file",
    "path_outside_workspace",
    "region_empty",
    "band_not_found",
    "shape_mismatch",
    "crs_mismatch",
    "nothing_found",
    "low_confidence",
    "backend_unavailable",
    "timeout",
    "limit",
    "tool_failed",
]
"""Kinds of tool errors. ``tool_failed`` is a fault of the tool itself (a crash, an unexpected exception)."""


EndpointProblem = Literal[
    "unreachable",
    "unknown_model",
    "key",
    "credit",
    "images",
    "tools",
    "token_limit",
    "request",
    "reply",
]
"""Failures and refusals of an endpoint.

``unreachable``: no server answers at the address; ``unknown_model``: the model or chat completions do not exist there;
``key``, ``credit``: the key is refused, the credit used up; ``images``, ``tools``: the model does not support them;
``token_limit``: prompt and requested token limit together are too large; ``request``: any other refusal; ``reply``: the
reply cannot be parsed.
"""


class ErrorInfo(FrozenModel):
    """A tool error as data, as observed by a policy and stored in a record."""

    kind: ToolErrorKind
    message: str
    argument: str | None = None
    hint: str | None = None
    setup: Annotated[str | None, Field(exclude_if=lambda text: text is None)] = None
    """What only the person who runs the tools can do: install, train, download. No model is shown it."""
    candidates: tuple[str, ...] = ()


class AgrotoolsError(Exception):
    """Base of all errors that a user can cause and fix. The command line prints them without a stack trace.

    Examples:
        >>> try:
        ...     at.load_benchmark("my-frm")
        ... except at.AgrotoolsError as error:
        ...     print(error.message, error.hint)
    """

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def advice(self) -> str | None:
        """What a person can do about it."""
        return self.hint

    def __str__(self) -> str:
        return f"{self.message} ({self.advice})" if self.advice else self.message


def words_of(error: BaseException) -> str:
    """Return the text of an exception of foreign code; empty if its ``__str__`` raises one itself."""
    try:
        return str(error)
    except Exception:
        return ""


def innermost(error: BaseException) -> list[BaseException]:
    """Return the exceptions in the groups of an exception, groups within groups opened; else the exception alone."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    inner: list[BaseException] = []
    group = cast("BaseExceptionGroup[BaseException]", error)
    for each in group.exceptions:
        inner += innermost(each)
    return inner


_GROUP_LINE = re.compile(r"[ |]*\+-{4,}(?: \d+ -{4,})?")
"""Line of a printed traceback that ends an exception of a group: ``+-----`` or ``+----- 2 -----``."""


def last_words(printed: str) -> str:
    """Return the last line that a program printed, empty without one.

    The traceback of an exception group ends in a line of dashes: its innermost exceptions are in place of it.
    """
    lines = printed.strip().splitlines()
    if not lines or not _GROUP_LINE.fullmatch(lines[-1]):
        return lines[-1] if lines else ""
    inner: list[str] = []
    for line, following in pairwise(lines):
        if _GROUP_LINE.fullmatch(following) and not _GROUP_LINE.fullmatch(line):
            inner.append(line.lstrip(" |"))
    return "; ".join(dict.fromkeys(inner)) or lines[-1]


class UsageError(AgrotoolsError):
    """The command line or configuration refers to something that does not exist, or its options do not fit together."""


class UndecidedError(AgrotoolsError):
    """Data may mean two things, and nothing settles which: the hint, or one of the ``answers``, would.

    ``answers``: words of a command line, one for each question, with the proposed values. ``placeholders``: those of
    their values that only the user can replace.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        answers: tuple[str, ...] = (),
        placeholders: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.answers: tuple[str, ...] = answers
        self.placeholders: tuple[str, ...] = placeholders


class EndpointRefusal(UsageError):
    """An endpoint refuses something that all requests share (key, model, images, tools), named by ``problem``."""

    def __init__(self, message: str, *, problem: EndpointProblem, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problem: EndpointProblem = problem


class BenchmarkError(AgrotoolsError):
    """A benchmark folder or source cannot be read."""


class CorpusError(AgrotoolsError):
    """A text corpus cannot be read, or its index cannot be written or opened."""


class RunStoreError(AgrotoolsError):
    """A run folder cannot be read or written, or does not match the request."""


class NoFileError(BenchmarkError, UsageError):
    """A given file or folder does not exist or does not have the expected content."""


class NoRunError(RunStoreError, UsageError):
    """The given folder contains no run."""


class InfrastructureError(AgrotoolsError):
    """There is no reply for reasons unrelated to the model. The sample becomes invalid, not incorrect.

    ``problem`` is the kind of failure if an endpoint caused it.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, problem: EndpointProblem | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.problem: EndpointProblem | None = problem


class InvalidRunError(InfrastructureError):
    """No sample of a run got a reply. ``run`` is the :class:`agrotools.Run`, with the reason in each record.

    Examples:
        >>> class Silent:
        ...     async def act(self, view, history):
        ...         raise RuntimeError("no network")
        >>> try:
        ...     at.evaluate("my-farm", model=Silent(), mode="no-tool")
        ... except at.InvalidRunError as error:
        ...     print({record.invalid for record in error.run.samples()})
    """

    def __init__(self, message: str, *, run: object, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.run = run


class EndpointUnreachable(AgrotoolsError):
    """No server answers at the address of an endpoint. Nothing can run, and no sample gets a record."""


class LocalServerError(EndpointUnreachable):
    """A model server that agrotools started has failed. The message ends with the last lines of its output."""


class BudgetReached(AgrotoolsError):
    """The next request might exceed the remaining budget. Its sample gets no record and can run later."""


class ToolError(AgrotoolsError):
    """A tool call failed. ``argument`` names the invalid argument, ``hint`` what to change in the call.

    ``setup`` says what only the person who runs the tools can do: install, train, download.

    Examples:
        >>> def check_length(length_m):
        ...     if length_m <= 0:
        ...         raise at.ToolError(
        ...             "invalid_argument", "no length", argument="length_m", hint="give metres"
        ...         )
    """

    def __init__(
        self,
        kind: ToolErrorKind,
        message: str,
        *,
        argument: str | None = None,
        hint: str | None = None,
        setup: str | None = None,
        candidates: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.setup = setup
        self.kind: ToolErrorKind = kind
        self.argument = argument
        self.candidates = candidates

    @property
    def info(self) -> ErrorInfo:
        return ErrorInfo(
            kind=self.kind,
            message=self.message,
            argument=self.argument,
            hint=self.hint,
            setup=self.setup,
            candidates=self.candidates,
        )

    @property
    def advice(self) -> str | None:
        return "; ".join(filter(None, (self.hint, self.setup))) or None
