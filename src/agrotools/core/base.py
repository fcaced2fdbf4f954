"""Base class of all records, progress of long work as a callback, and typed errors.

Every error carries a message that says what is wrong and a hint that says what to change.
"""

from collections.abc import Callable
from functools import cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError


class FrozenModel(BaseModel):
    """Immutable record; an unknown field is an error, so a misspelt key in a file is never silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


def first_fault(error: ValidationError) -> str:
    """The first field that is wrong and what is wrong with it: ``slots.0.value: Input should be a number``."""
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc'])) or 'the whole'}: {detail['msg']}"


Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many are done, and how many there are."""


def no_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""


def count_text(count: int, noun: str, plural: str = "") -> str:
    """``1 sample``, ``2 samples``; ``plural`` where it is not the noun and an s."""
    return f"{count} {noun}" if count == 1 else f"{count} {plural or f'{noun}s'}"


@cache
def install_command(extra: str = "") -> str:
    """Command that installs an extra of this package, in the way in which the package was installed."""
    import json
    from importlib.metadata import distribution

    wanted = f"[{extra}]" if extra else ""
    source = json.loads(distribution("agrotools").read_text("direct_url.json") or "{}")
    if "dir_info" in source:
        editable = "-e " if source["dir_info"].get("editable") else ""
        return f"pip install {editable}'.{wanted}' in the source folder of agrotools"
    return f"pip install 'agrotools{wanted} @ {source['url']}'" if source else f"pip install 'agrotools{wanted}'"


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
"""``tool_failed`` is the tool's own fault (a crash, an exception nobody foresaw), never the caller's."""

EndpointProblem = Literal[
    "unreachable", "unknown_model", "key", "credit", "images", "tools", "token_limit", "request", "reply"
]
"""Failures and refusals of an endpoint. ``unreachable``: nobody answers at the address; ``unknown_model``: or no chat
completions there; ``key``, ``credit``: refused or used up; ``images``, ``tools``: the model takes none;
``token_limit``: the limit asked for does not fit beside the prompt; ``request``: any other refusal; ``reply``: no reply
that can be read."""


class ErrorInfo(FrozenModel):
    """A tool error as data: what a policy observes and a record stores."""

    kind: ToolErrorKind
    message: str
    argument: str | None = None
    hint: str | None = None
    candidates: tuple[str, ...] = ()


class AgrotoolsError(Exception):
    """Base of all errors that a user can cause and fix. The command line prints them without a stack trace."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(AgrotoolsError):
    """The command line or configuration asks for something that does not exist or does not fit together."""


class EndpointRefusal(UsageError):
    """An endpoint refuses what every request has in common: key, model, images, tools. ``problem`` says which."""

    def __init__(self, message: str, *, problem: EndpointProblem, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problem: EndpointProblem = problem


class BenchmarkError(AgrotoolsError):
    """A benchmark folder or source cannot be read as one."""


class CorpusError(AgrotoolsError):
    """A corpus of text cannot be read, or an index of one not be written or opened."""


class RunStoreError(AgrotoolsError):
    """A run folder cannot be read, or does not belong to what is asked of it."""


class NoFileError(BenchmarkError, UsageError):
    """A file or folder that was named is not there, or does not hold what it should."""


class NoRunError(RunStoreError, UsageError):
    """The named folder holds no run."""


class ScoringVersionError(AgrotoolsError):
    """Scores or records of different scoring versions would be mixed."""


class InfrastructureError(AgrotoolsError):
    """No reply could be had for reasons that are not the model's. The sample becomes invalid, not incorrect.

    ``problem`` says what stood in the way, where an endpoint did.
    """

    def __init__(self, message: str, *, hint: str | None = None, problem: EndpointProblem | None = None) -> None:
        super().__init__(message, hint=hint)
        self.problem: EndpointProblem | None = problem


class EndpointUnreachable(AgrotoolsError):
    """No server answers at an endpoint's address, so nothing can run. No sample gets a record."""


class BudgetReached(AgrotoolsError):
    """The next request might cost more than is left of the budget. Its sample gets no record and can run later."""


class ToolError(AgrotoolsError):
    """A tool could not do what was asked. ``argument`` names the argument at fault, ``hint`` what to change."""

    def __init__(
        self,
        kind: ToolErrorKind,
        message: str,
        *,
        argument: str | None = None,
        hint: str | None = None,
        candidates: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint)
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
            candidates=self.candidates,
        )
