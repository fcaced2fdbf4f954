"""Base class of all records, numpy and scipy where they are used late, the progress callback, and typed errors.

Every error has a message with the problem and a hint on what to change.
"""

import gc
import shlex
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails


class FrozenModel(BaseModel):
    """Immutable record. Unknown fields are errors, so that a misspelt key in a file is never silently ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


Model = TypeVar("Model", bound=FrozenModel)


def from_valid(model: type[Model], fields: dict[str, Any]) -> Model:
    """Return an instance with values that are valid as they are, of every field, those with defaults too.

    It takes a fifth of the time of validation, and of pydantic's ``model_construct``.
    """
    instance = model.__new__(model)
    object.__setattr__(instance, "__dict__", fields)
    object.__setattr__(instance, "__pydantic_fields_set__", set(fields))
    object.__setattr__(instance, "__pydantic_extra__", None)
    object.__setattr__(instance, "__pydantic_private__", None)
    return instance


T = TypeVar("T")


class _Late:
    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._make(), name)
        setattr(self, name, value)
        return value


def late(make: Callable[[], T]) -> T:
    """Return what stands for an object that is made when it is first used; its attributes are those of the object.

    For what takes long to make and few commands need: large modules, regular expressions.
    """
    return cast(T, _Late(make))


special: Any = late(lambda: import_module("scipy.special"))
optimize: Any = late(lambda: import_module("scipy.optimize"))

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    SingleArray = NDArray[np.float32]
    IntArray = NDArray[np.int64]
    BoolArray = NDArray[np.bool_]
else:
    np = late(lambda: import_module("numpy"))
    FloatArray = SingleArray = IntArray = BoolArray = Any


def without_surrogates(value: Any) -> Any:
    """Return JSON data with each lone surrogate (not encodable as UTF-8) replaced by U+FFFD."""
    if isinstance(value, str):
        return (
            value
            if value.isascii()
            else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, list):
        return [without_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {without_surrogates(key): without_surrogates(item) for key, item in items}
    return value


@contextmanager
def without_collecting() -> Generator[None]:
    """Switch off garbage collection, because visiting the many objects of a large file takes long."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def plain_message(detail: ErrorDetails) -> str:
    """Return the message of an error of pydantic without its prefix for errors that our validators raise."""
    return detail["msg"].removeprefix("Value error, ")


def first_error(error: ValidationError) -> str:
    """Return the first invalid field and its error: ``slots.0.value: Input should be a number``."""
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc'])) or 'the whole'}: {plain_message(detail)}"


def spell_location(location: Iterable[str | int]) -> str:
    """Return the path to a value: ``("answer", 0, "from")`` becomes ``answer[0].from``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint for a name that is not in ``known``: the closest names, or all of them if none is close."""
    known = list(known)
    close = get_close_matches(name, known, n=2)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"


Progress = Callable[[str, int, int], None]
"""Called with the name of the work, the number of items done, and the total number of items."""


def no_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress."""


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 sample``, ``1,002 samples``; ``plural`` is an irregular plural."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {plural or f'{noun}s'}"


def prompt_tokens_text(tokens: float, cached: float | None) -> str:
    """Return prompt tokens with the share of them that the server read from its prompt cache, if it says so."""
    if not tokens:
        return "0 tokens in"
    share = "not reported" if cached is None else f"{100 * cached / tokens:.0f} %"
    return f"{amount_text(tokens)} tokens in (from a prompt cache: {share})"


def amount_text(n: float) -> str:
    """Return a count with at most five digits: ``12,345``, ``1.235 M``."""
    return f"{n:,.0f}" if n < 99_999.5 else f"{n / 1e6:.4g} M"


def benchmark_title(name: str, version: str) -> str:
    """Return a benchmark with its version: ``embedded, version 10``; a bare number reads as one of samples."""
    return f"{name}, version {version}" if version else name


def number_text(value: float, digits: int = 6) -> str:
    """Return a number with ``digits`` significant digits, and no exponent for a large one: ``8.93``, ``1857``."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e15 else text


def command_line(*words: object) -> str:
    """Return a command of agrotools as it is typed in a shell, also with a path that begins with a dash."""
    typed = (
        f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word)
        for word in words
    )
    return shlex.join(["agrotools", *typed])


@cache
def install_command(extra: str = "") -> str:
    """Return the command that installs an extra of this package from the source of the current installation."""
    import json
    from importlib.metadata import distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    wanted = f"[{extra}]" if extra else ""
    recorded = distribution("agrotools").read_text("direct_url.json") or "{}"
    source: dict[str, Any] = json.loads(recorded)
    if "dir_info" in source:
        editable = "-e " if source["dir_info"].get("editable") else ""
        folder = url2pathname(urlsplit(str(source["url"])).path)
        if Path(folder).is_dir():
            return f"pip install {editable}{shlex.quote(folder + wanted)}"
        return f"pip install {editable}'.{wanted}' in the source folder of agrotools"
    return (
        f"pip install 'agrotools{wanted} @ {source['url']}'"
        if source
        else f"pip install 'agrotools{wanted}'"
    )


def import_of_extra(module: str, extra: str, message: str) -> Any:
    """Import a module of an extra; UsageError with ``message`` if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(message, hint=install_command(extra)) from error


def arrow_and_parquet() -> tuple[Any, Any]:
    """Import ``pyarrow`` and ``pyarrow.parquet``; UsageError if they are not installed."""
    arrow, parquet = (
        import_of_extra(name, "build", "this needs pyarrow")
        for name in ("pyarrow", "pyarrow.parquet")
    )
    return arrow, parquet


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
    """Base of all errors that a user can cause and fix. The command line prints them without a stack trace."""

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


class UsageError(AgrotoolsError):
    """The command line or configuration refers to something that does not exist, or its options do not fit together."""


class UndecidedError(AgrotoolsError):
    """Data may mean two things, and nothing settles which: the hint, or one of the ``answers``, would.

    ``answers``: words of a command line, one for each question, with the proposed values.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, answers: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.answers: tuple[str, ...] = answers


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
    """No sample of a run got a reply. ``run`` is the :class:`agrotools.Run`, with the reason in each record."""

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
