"""Every command in the documentation is known with all its options, and those that need nothing run."""

import re
import shlex
from pathlib import Path

import click
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from agrotools.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
RUN = (
    "agrotools tools list",
    "agrotools tools describe analyze_lesions",
    'agrotools tools run calculate --expression "mean([12.5, 14, 9.5]) * 3"',
    'agrotools kb search "yellow stripes on wheat leaves"',
)
"""Commands of the documentation that need neither files nor models."""


def commands() -> list[tuple[str, str]]:
    """Page and command of every line of the shell examples, without comments; ``A && B`` is two commands."""
    found: list[tuple[str, str]] = []
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.replace("\\\n", " ").splitlines():
                plain = re.split(r"\s#\s", f" {line} ")[0].strip()
                found += [(page.name, part.strip()) for part in plain.split("&&") if part.strip()]
    return found


OURS = [
    (page, line.removeprefix(".venv/bin/")) for page, line in commands() if re.match(r"(\.venv/bin/)?agrotools ", line)
]


def test_there_are_commands():
    assert len(OURS) > 60
    assert {line for _, line in OURS}.issuperset(RUN)


@pytest.mark.parametrize(("page", "line"), sorted(set(OURS)))
def test_a_command_is_known_with_its_options(page: str, line: str):
    words = [word for word in shlex.split(line)[1:] if word not in ("...", "…")]
    command: click.Command = get_command(app)
    context = click.Context(command, info_name="agrotools")
    while isinstance(command, click.Group):
        assert words, f"{page}: {line}"
        name = words.pop(0)
        child = command.get_command(context, name)
        assert child is not None, f"{page}: no command {name} in {line}"
        command, context = child, click.Context(child, parent=context, info_name=name)
    if context.info_name == "run":  # the options of a tool are those of its schema
        return
    try:
        command.make_parser(context).parse_args([word.strip("[]") for word in words])
    except click.UsageError as error:
        pytest.fail(f"{page}: {line}: {error.format_message()}")


@pytest.mark.parametrize("line", RUN)
@pytest.mark.process
def test_a_command_that_needs_nothing_runs(line: str):
    result = CliRunner().invoke(app, shlex.split(line)[1:])
    assert result.exit_code == 0, result.output
    assert result.output.strip()


@pytest.mark.parametrize(
    "path",
    sorted(
        {path for page in PAGES for path in re.findall(r"python ((?:performance|training)/\w+\.py)", page.read_text())}
    ),
)
def test_a_script_that_is_named_exists(path: str):
    assert (ROOT / path).is_file()
