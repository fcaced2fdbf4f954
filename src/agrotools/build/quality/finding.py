"""A finding of a quality check, and the file of them in a benchmark folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from agrotools.core import BenchmarkError, FrozenModel
from agrotools.core.files import write_whole
from agrotools.formats.folder import QUALITY_FILE

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(FrozenModel):
    """``id``: of the sample. ``error``: fix before use; ``warning``: a person should look; ``info``: good to know."""

    id: str
    check: str
    severity: Severity
    message: str


def write_findings(folder: Path, findings: Iterable[Finding]) -> Path:
    """Write ``quality.jsonl`` into a benchmark folder, whole or not at all; an older one is replaced.

    Raises:
        BenchmarkError: the folder cannot be written.
    """
    path = folder / QUALITY_FILE
    text = "".join(f"{finding.model_dump_json()}\n" for finding in findings)
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise BenchmarkError(
            f"{path} cannot be written: {error.strerror}", hint="copy the benchmark to a folder that can be written"
        ) from error
    return path


def read_findings(folder: Path) -> list[Finding]:
    """The findings in a benchmark folder; none where no check was run.

    Raises:
        BenchmarkError: a line is no finding.
    """
    path = folder / QUALITY_FILE
    if not path.is_file():
        return []
    found: list[Finding] = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            try:
                found.append(Finding.model_validate_json(line))
            except ValidationError as error:
                hint = "make it again: agrotools validate DIR --quality"
                raise BenchmarkError(f"{path}, line {number} is not a finding of a check", hint=hint) from error
    return found
