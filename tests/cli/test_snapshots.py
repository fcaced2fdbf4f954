"""Every help text and the messages of common mistakes, as they stand: a change of wording shows in the diff.

``python tests/check.py --update-snapshots tests/cli/test_snapshots.py`` writes them anew.
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

MISTAKES = """
eval nowhere -m baseline:echo
eval empty -m baseline:echo
eval broken -m baseline:echo
eval sums -m nonsense
eval sums -m baseline:nonsense
eval sums -m openai:some-model
eval sums -m nonsense:some-model
eval sums -m some-model --base-url nonsense
eval sums -m some-model --base-url http://127.0.0.1:9/v1
eval sums -m baseline:echo --mode nonsense
eval sums -m baseline:echo --limit 0
eval sums -m baseline:echo --concurrency 0
eval sums -m baseline:echo --config nowhere.toml
eval sums -m baseline:echo --config unknown_key.toml
eval sums -m baseline:echo --config no_toml.toml
eval sums -m baseline:echo --out notes.txt
eval sums -m baseline:echo --protocol nonsense
eval sums -m baseline:echo --backend nonsense
eval sums -m baseline:echo --backend calculate=nonsense
eval sums -m baseline:echo --vlm-model some-model
eval sums -m baseline:echo --option nonsense=1
eval sums -m scripted:nowhere.json
eval sums -m scripted:notes.txt
score nowhere
score empty
score sums
compare nowhere nowhere
gate nowhere --against nowhere
gate nowhere
compare empty
report empty --format html
explain nowhere q0
explain empty q0
report nowhere
report empty
validate nowhere
validate empty
validate broken
build --images nowhere --answers nowhere.csv --out made
build --images photos --answers notes.txt --out made
build --source nonsense --out made
review nowhere
review empty
export sums --format nonsense --out made
export nowhere --format gta --out made
benchmarks check nowhere
tools describe nonsense
tools run nonsense
tools run calculate
tools run calculate --expression "1 / 0"
tools run calculate --expression "import os"
tools run count_objects --image nowhere.png
tools run count_objects --image notes.txt
kb show nonsense
kb check nowhere
eval sums -m baseline:echo --max-steps 0
eval sums -m baseline:echo --epochs 0
eval sums -m baseline:echo --repeat-until 0
eval sums -m baseline:echo --repeat-until 2 --max-epochs 20
eval sums -m baseline:echo --repeat-until 2 --epochs 12
eval sums -m baseline:echo --rpm -1
eval gta -m baseline:echo --data-root empty
eval agrieval -m baseline:echo --data-root empty
eval agent-x -m baseline:echo --data-root empty
eval sums -m replay:nowhere
eval sums -m baseline:replay:nowhere
build --source field=nowhere --out made
build --source hf=nowhere --out made
build --source nonsense=photos --out made
scenes --out notes.txt
scenes --count 0 --out made
export sums --format gta --out notes.txt
export sums --format predictions --out made
packs train crop-weed --data empty
tools bench --data nowhere
tools run plot --kind nonsense
tools run lookup_agronomy
tools run detect_change --before nowhere.png --after nowhere.png
report empty --out notes.txt
explain sums q0
eval sums -m baseline:orcale
eval sums -m baseline:oracle --mode no-tool
eval sums -m a -m b --out one
eval sums --config typo.toml
eval sums --config number.toml
eval sums --config two.toml
eval sums -m baseline:echo --out .
eval sums -m baseline:echo --judge-votes 3
eval sums -m baseline:echo --judge a --judge a
eval sums -m baseline:echo --judge m --judge-base-url nonsense
evla sums
tools lsit
score --format bfcl x.json
score --format gta x.json y.json
score --format gta x.json --embedder all-mpnet-base-v2
score x --data d.json
score --format thinkgeo x.json --judge m
score --format gta x.json --with rouge-l-lexeval
score --format gta x.json --judgements j.json
score x --embedder all-mpnet-base-v2
score --format agentx x.json --embedder all-mpnet-base-v2
score --format gta absent.json
packs train
packs train --images .
packs train --images absent --out mine
packs train --images . --out "no name"
kb search x
kb search rust --topic colour
kb search rust --top-k 9
kb search rust --index empty --crop wheat
kb search rust --index photos
kb search rust --index nowhere
kb show disease.aple_scab
kb list --kind animal
kb add nowhere.toml
kb index nowhere --out index
kb index . --out index
""".strip().splitlines()


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
    (folder / "two.toml").write_text('model = ["baseline:prior", "baseline:echo"]\nout = "run"\n')
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
    assert text == old, "if the new wording is right: AGROTOOLS_UPDATE_SNAPSHOTS=1 pytest tests/cli/test_snapshots.py"


@pytest.mark.parametrize(("words", "command"), [pytest.param(*each, id=" ".join(each[0])) for each in commands(TOP)])
def test_help(words: tuple[str, ...], command: Any) -> None:
    """The words alone: how they are laid out is up to typer, and changes with its versions."""
    parts = [command.help or ""]
    for option in command.params:
        parts.append(f"{' '.join(option.opts + option.secondary_opts)}\n    {getattr(option, 'help', '') or ''}")
    compare("-".join(("help", *words)), "\n".join(parts) + "\n")


def test_mistakes(folder: Path) -> None:
    parts: list[str] = []
    for line in MISTAKES:
        done = run_command(*shlex.split(line), cwd=folder)
        text = re.sub(r"(?m)^.* on sums: .*\n", "", (done.stdout + done.stderr).replace(str(folder), "FOLDER"))
        assert done.returncode != 0, line
        assert "Traceback" not in text, line
        text = re.sub(r"\AUsage: .*?(?=^Error: )", "", text, flags=re.DOTALL | re.MULTILINE)  # typer's words
        parts.append(f"$ agrotools {line}\n{text.rstrip()}\n[{done.returncode}]\n")
    compare("mistakes", "\n".join(parts))
