"""Every help text and the messages of common mistakes, as they stand: a change of wording shows in the diff.

``python tests/check.py --update-snapshots tests/engine/cli/test_snapshots.py`` writes them anew.
"""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from PIL import Image

from agrotools.cli.main import app
from support.command import run_command
from support.sums_benchmark import write_sums

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = bool(os.environ.get("AGROTOOLS_UPDATE_SNAPSHOTS"))
TOP = typer.main.get_command(app)
LINES_OF_SCREEN = 40
"""Lines of a terminal of 100 columns in which the help of a command fits. ``eval -h all`` is longer."""

_COMMAND = "$ agrotools "
MISTAKES = [
    line.removeprefix(_COMMAND)
    for line in (SNAPSHOTS / "mistakes.txt").read_text(encoding="utf-8").splitlines()
    if line.startswith(_COMMAND)
]
"""Commands of the snapshot. A new one is a line of that file, behind which an update writes what it says."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of things that are not what they should be, and one sound benchmark."""
    folder = tmp_path_factory.mktemp("mistakes")
    write_sums(folder / "sums", 3)
    for name in ("empty", "broken", "photos"):
        (folder / name).mkdir()
    (folder / "broken" / "benchmark.toml").write_text("name = [")
    (folder / "notes.txt").write_text("Nothing but a note.\n")
    (folder / "unknown_key.toml").write_text('nonsense = "1"\n')
    (folder / "typo.toml").write_text("epoch = 3\n")
    (folder / "number.toml").write_text("model = 3\n")
    (folder / "two.toml").write_text(
        'model = ["baseline:constant", "baseline:echo"]\nout = "run"\n'
    )
    (folder / "no_toml.toml").write_text("limit 3\n")
    Image.new("RGB", (64, 48), (40, 120, 40)).save(folder / "photos" / "1.png")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
            patch.delenv(name)
        yield folder


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    if hasattr(command, "list_commands"):
        context = command.make_context(None, [], resilient_parsing=True)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


def compare(name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    assert text == old, (
        "if the new wording is right: AGROTOOLS_UPDATE_SNAPSHOTS=1 pytest tests/engine/cli/test_snapshots.py"
    )


def test_help() -> None:
    """The words alone: how they are laid out is up to typer, and changes with its versions."""
    parts: list[str] = []
    for words, command in commands(TOP):
        parts.append(f"{' '.join(('$ agrotools', *words, '-h'))}\n{command.help or ''}")
        for option in command.params:
            parts.append(
                f"{' '.join(option.opts + option.secondary_opts)}\n    {getattr(option, 'help', '') or ''}"
            )
        parts.append("")
    compare("help", "\n".join(parts))


@pytest.mark.parametrize("words", [words for words, _ in commands(TOP)], ids=" ".join)
def test_help_fits_a_screen(words: tuple[str, ...]) -> None:
    shown = run_command(*words, "-h", COLUMNS="100").stdout.rstrip().splitlines()
    assert len(shown) <= LINES_OF_SCREEN, "shorten, merge or remove options; rare ones: a file"


@pytest.mark.process
def test_mistakes(folder: Path) -> None:
    parts: list[str] = []
    for line in MISTAKES:
        done = run_command(*shlex.split(line), cwd=folder)
        text = re.sub(
            r"(?m)^.* on sums: .*\n", "", (done.stdout + done.stderr).replace(str(folder), "FOLDER")
        )
        assert done.returncode != 0, line
        assert "Traceback" not in text, line
        text = re.sub(
            r"\AUsage: .*?(?=^Error: )", "", text, flags=re.DOTALL | re.MULTILINE
        )  # typer's words
        parts.append(f"{_COMMAND}{line}\n{text.rstrip()}\n[{done.returncode}]\n")
    compare("mistakes", "\n".join(parts))
