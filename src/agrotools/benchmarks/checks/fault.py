"""Faults of a benchmark folder: the place, the fault, and the correction."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from pydantic import JsonValue, ValidationError

from agrotools.core import AgrotoolsError, FrozenModel, Sample, ToolError, ToolSpec, UsageError
from agrotools.formats.benchmark import BenchmarkHeader


class Fault(FrozenModel):
    """One fault. ``file`` is relative to the folder; ``line``, ``sample`` and ``field`` narrow it down."""

    code: str
    message: str
    hint: str
    file: str
    line: int | None = None
    sample: str | None = None
    field: str | None = None

    @property
    def where(self) -> str:
        """``samples.jsonl:12, sample weeds-03, answer[0].from``."""
        at = f"{self.file}:{self.line}" if self.line else self.file
        return ", ".join(part for part in (at, self.sample and f"sample {self.sample}", self.field) if part)


class CheckedTool(Protocol):
    """Properties of a tool that a check needs."""

    @property
    def spec(self) -> ToolSpec: ...

    def validated(self, arguments: dict[str, JsonValue]) -> dict[str, JsonValue]: ...


class Tools:
    """The tools by name; a name that is unknown or cannot be imported is None, and looked up once."""

    def __init__(self, find: Callable[[str], CheckedTool]) -> None:
        self._find = find
        self._found: dict[str, CheckedTool | None] = {}

    def get(self, name: str) -> CheckedTool | None:
        if name not in self._found:
            try:
                self._found[name] = self._find(name)
            except (UsageError, ToolError):
                self._found[name] = None
        return self._found[name]


@dataclass
class Checked:
    """A sample under check: where it stands, the benchmark around it, and a sink for its faults."""

    sample: Sample
    line: int
    root: Path
    tools: Tools
    header: BenchmarkHeader | None
    faults: list[Fault] = field(default_factory=list)

    def fault(self, code: str, where: str, message: str, hint: str) -> None:
        """Note a fault in the field ``where`` of the sample."""
        file, sample = "samples.jsonl", self.sample.id
        self.faults.append(
            Fault(code=code, message=message, hint=hint, file=file, line=self.line, sample=sample, field=where)
        )


def schema_faults(
    error: ValidationError, file: str, line: int | None = None, sample: str | None = None
) -> Iterable[Fault]:
    """One fault for each thing that pydantic found."""
    for detail in error.errors(include_url=False, include_input=False):
        code = "unknown_field" if detail["type"] == "extra_forbidden" else "schema"
        if detail["type"] == "missing":
            code = "missing_field"
        hint = {
            "unknown_field": "remove it, or see `agrotools validate --schema` for the fields there are",
            "missing_field": "add it; `agrotools validate --schema` says what it holds",
        }.get(code, "`agrotools validate --schema` says what it may hold")
        yield Fault(
            code=code, message=detail["msg"], hint=hint, file=file, line=line, sample=sample,
            field=dotted(cast("Sequence[int | str]", detail["loc"])),
        )  # fmt: skip


def dotted(parts: Sequence[int | str]) -> str:
    """``("answer", 0, "from")`` as ``answer[0].from``."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def reason(error: AgrotoolsError) -> tuple[str, str]:
    """Message and hint of an error of ours."""
    return error.message, error.hint or "change it"


def plain_results(steps: Iterable[Mapping[str, JsonValue] | None]) -> list[dict[str, JsonValue] | None]:
    """Results of steps as references read them."""
    return [dict(step) if step is not None else None for step in steps]
