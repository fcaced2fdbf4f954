"""Commands in a process that finds no library of the extra ``tools``, as after a plain ``pip install agrotools``.

Run as a program with the commands as JSON, a list of lists of words, in its standard input: it prints a list with the
exit code, standard output and standard error of each, all run in this one process, because importing takes longest.
"""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, NamedTuple

HIDDEN = frozenset({"cv2", "rasterio", "skimage", "matplotlib", "onnxruntime"})


class Done(NamedTuple):
    """Result of a command."""

    code: int
    out: str
    error: str


def run_plain(commands: Sequence[Sequence[object]], folder: Path) -> list[Done]:
    """Run commands of agrotools one after another in ``folder``, without the libraries of the extra ``tools``."""
    words = [[str(word) for word in command] for command in commands]
    done = subprocess.run(
        [sys.executable, __file__],
        input=json.dumps(words),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Done(*each) for each in json.loads(done.stdout)]


class _WithoutLibraries(PathFinder):
    """Finder in place of that of Python, which finds everything but the hidden modules."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] in HIDDEN:
            return None
        return PathFinder.find_spec(name, path, target)


def _run(command: Sequence[str]) -> Done:
    from agrotools.cli.main import main

    sys.argv = ["agrotools", *command]
    out, error, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(error):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Done(code, out.getvalue(), error.getvalue())


if __name__ == "__main__":
    sys.meta_path[:] = [
        _WithoutLibraries if finder is PathFinder else finder for finder in sys.meta_path
    ]
    print(json.dumps([_run(each) for each in json.load(sys.stdin)]))
