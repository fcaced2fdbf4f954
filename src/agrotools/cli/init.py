"""``agrotools init``: a new benchmark as a package of a few files, which the user changes."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from agrotools.cli.output import command_line

_TEMPLATE = "my_field"


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the benchmark, and folder to write.")],
) -> None:
    """Write a benchmark as a package for pip: one tool, three questions and a test.

    It runs as it is. Replace the tool and the questions by yours.
    """
    from agrotools.core import BENCHMARKS, UsageError

    folder = Path(name)
    if not re.fullmatch("[a-z][a-z0-9_]{0,40}", name):
        raise UsageError(f"{name!r} is no name of a Python module", hint="use a to z, 0 to 9 and _")
    if folder.exists() or name in BENCHMARKS:
        what = f"{folder} exists" if folder.exists() else f"there is a benchmark {name}"
        raise UsageError(f"{what} already", hint="choose another name")
    folder.mkdir()
    for file in files("agrotools.data").joinpath("template").iterdir():
        if file.is_file():
            text = file.read_text(encoding="utf-8").replace(_TEMPLATE, name)
            (folder / file.name.replace(_TEMPLATE, name)).write_text(text, encoding="utf-8")
    typer.echo(f"{folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    typer.echo(f"next: cd {folder} && pip install -e . && {command_line('eval', name)}")
