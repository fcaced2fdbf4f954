"""Address of a tool server, as a user writes it: what to start or to connect to, and what it may read.

``COMMAND`` is started and spoken to over standard input and output; ``{files}`` in it is the folder of the sample's
files. ``http://...`` and ``https://...`` are streamable HTTP; words behind the address, ``HEADER=VARIABLE``, name the
environment variables with the values of headers. ``python:MODULE`` or ``python:MODULE:SERVER`` is a server object of
the SDK (MCPServer) or of FastMCP, run in a process of this Python environment. ``NAME=`` in front of any of them
replaces the name that the server gives itself.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from agrotools.core import UsageError
from agrotools.sandbox.agents import interpreter_of

FILES = "{files}"
"""Placeholder for the folder of the sample's files."""
_NAMED = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,31})=(?=\S)(.*)", re.DOTALL)
_HEADER = re.compile(r"([A-Za-z0-9-]+)=([A-Za-z_][A-Za-z0-9_]*)")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = "python:"
Kind = Literal["stdio", "http"]


class ServerAddress(NamedTuple):
    """Address of a tool server, with the name that the user gives it (empty: the server names itself).

    ``text`` is what a record may hold: it has names of environment variables, and no secret.
    """

    text: str
    name: str
    kind: Kind
    words: tuple[str, ...]
    """Program and arguments, or the address alone."""
    headers: tuple[tuple[str, str], ...] = ()
    """Names of headers, each with the environment variable that holds its value."""

    @property
    def is_elsewhere(self) -> bool:
        """True for a server on another machine, where a path of ours names nothing."""
        host = urlsplit(self.words[0]).hostname or ""
        is_here = host in ("localhost", "::1") or host.startswith("127.")
        return self.kind == "http" and not is_here

    def command(self, folder: Path) -> list[str]:
        """Return the words of the command for a sample whose files are in ``folder``."""
        return [word.replace(FILES, str(folder)) for word in self.words]

    def header_values(self) -> dict[str, str]:
        """Return the headers of requests; UsageError if a variable is not set, or no header."""
        values: dict[str, str] = {}
        for header, variable in self.headers:
            if variable not in os.environ:
                raise UsageError(
                    f"the environment variable {variable} is not set",
                    hint=f"it holds the header {header} for {self.words[0]}",
                )
            value = os.environ[variable]
            # The HTTP client would show such a value in its error.
            if value != value.strip() or not (value.isascii() and value.isprintable()):
                raise UsageError(
                    f"the environment variable {variable} holds no value of a header",
                    hint="remove spaces and line breaks around it, and letters outside ASCII",
                )
            values[header] = value
        return values

    def readable(self) -> list[Path]:
        """Return what the server's process must read, besides the system: its program, its Python environment, and the
        files and folders that its command names."""
        program = next(word for word in self.words if not _is_set_up(word))
        found = Path(shutil.which(program) or program)
        _, libraries = interpreter_of(found)
        python = found.parent / "python"
        if not libraries and python.exists():  # a script of a Python environment
            _, libraries = interpreter_of(python)
        named = [path for word in self.words for path in _named_paths(word)]
        return [found, *libraries, *named]


def read_address(text: str) -> ServerAddress:
    """Return the address that a user wrote.

    Raises:
        UsageError: it is empty, names no program or module that is there, or holds a password.
    """
    named = _NAMED.fullmatch(text.strip())
    name, place = (named[1], named[2]) if named else ("", text.strip())
    if place.startswith(("http://", "https://")):
        return _http_address(place, name)
    if place.startswith(_PYTHON):
        return ServerAddress(place, name, "stdio", _python_words(place))
    return ServerAddress(place, name, "stdio", _command_words(place))


def _http_address(place: str, name: str) -> ServerAddress:
    url, *rest = place.split()
    if "@" in urlsplit(url).netloc:
        raise UsageError(
            "a tool server's address holds a password",
            hint="put it into an environment variable: 'URL Authorization=VARIABLE'",
        )
    headers: list[tuple[str, str]] = []
    for word in rest:
        header = _HEADER.fullmatch(word)
        if header is None:
            raise UsageError(
                "a word behind a tool server's address is no header",
                hint="write HEADER=VARIABLE, with the name of an environment variable",
            )
        headers.append((header[1], header[2]))
    return ServerAddress(place, name, "http", (url,), tuple(headers))


def _command_words(place: str) -> tuple[str, ...]:
    try:
        words = shlex.split(place)
    except ValueError as error:
        raise UsageError(f"tool server {place}: {error}", hint="quote it as in a shell") from error
    program = next((word for word in words if not _is_set_up(word)), "")
    if shutil.which(program) is None:
        raise UsageError(
            f"tool server {place}: there is no program {program!r}",
            hint="give COMMAND, http://..., python:MODULE or python:MODULE:SERVER",
        )
    return tuple(_absolute(word) for word in words)


def _python_words(place: str) -> tuple[str, ...]:
    module, _, server = place.removeprefix(_PYTHON).partition(":")
    package = module.partition(".")[0]
    found = PathFinder.find_spec(package, [str(Path.cwd()), *filter(None, sys.path)])
    if not package or found is None:
        raise UsageError(
            f"tool server {place}: there is no module {package!r} here or in this environment",
            hint="run from the folder that contains it",
        )
    places = found.submodule_search_locations or [found.origin]
    code = Path(next(each for each in places if each)).resolve()
    return (sys.executable, "-m", "agrotools.served.python_server", module, server, str(code))


def _is_set_up(word: str) -> bool:
    """Return True for ``env`` and the variables that it sets, which stand before a program."""
    return word == "env" or _ASSIGNMENT.match(word) is not None


def _absolute(word: str) -> str:
    """Return a word with the path of a file that it names, alone or behind ``=``, made absolute."""
    head, equals, tail = word.rpartition("=")
    is_path = os.sep in tail or Path(tail).suffix
    if tail and is_path and FILES not in tail and Path(tail).exists():
        return f"{head}{equals}{Path(tail).absolute()}"
    return word


def _named_paths(word: str) -> Sequence[Path]:
    tail = word.rpartition("=")[2]
    path = Path(tail)
    return [path.resolve()] if path.is_absolute() and path.exists() else []
