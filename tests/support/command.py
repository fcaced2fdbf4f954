"""The command line, run in this process: no interpreter starts, so it costs a second less than ``python -m``."""

import contextlib
import io
import subprocess
from pathlib import Path

import pytest

from agrotools.cli import main


def run_command(
    *arguments: object, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``agrotools ARGUMENTS`` in this process and return its exit code and what it printed."""
    words = ["agrotools", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    code: int | str | None = 0
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr("sys.argv", words)
        for name, value in {"COLUMNS": "120", **environment}.items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main.main()
        except SystemExit as end:
            code = end.code
    return subprocess.CompletedProcess(
        words, code if isinstance(code, int) else 0, out.getvalue(), err.getvalue()
    )
