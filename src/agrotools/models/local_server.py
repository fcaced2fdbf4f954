"""llama.cpp's server, which agrotools starts on this machine, waits for, watches and ends: ``--serve llama``.

The server is the child of a guard (:mod:`agrotools.core.processes`), which ends it and everything that it started when
this process ends in whatever way.
"""

import asyncio
import hashlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, TypeVar

from agrotools.core import UsageError
from agrotools.core.errors import LocalServerError
from agrotools.core.processes import (
    KILL,
    NOT_STARTED,
    kill_descendants,
    kill_process,
    on_stop_signal,
)
from agrotools.models.local_models import fetch, local_model, model_file

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

LOCAL_URL = "http://127.0.0.1/v1"
"""Address of the server in manifests; its port is another one each time."""
LOG_FILE = "server.log"
"""Output of the server, in the run folder."""
_PROGRAM = "llama"
"""Name of the program in ``--serve``, manifests and messages."""
_EXECUTABLE = "llama-server"
_INSTALL = "pip install 'agrotools[local]', or install llama.cpp (brew, winget, or its releases)"
_GUARD = Path(__file__).parents[1] / "core" / "processes.py"
_XLLAMACPP = Path(__file__).with_name("xllamacpp_server.py")
_GRACE_S = 5.0
_POLL_S = 0.1
_REQUEST_S = 5.0
_NOTE_EVERY_S = 30.0
_VERSION_S = 60.0
_LAST_LINES, _LAST_BYTES = 12, 20_000
_SAMPLE_BYTES = 2**20
_SET_HERE = frozenset({"--port", "--host", "--model", "-m"})
_SECRETS = frozenset({"--api-key", "--hf-token", "-hft"})
_SLOTS = frozenset({"-np", "--parallel"})
_OUT_OF_MEMORY = re.compile(
    r"out of memory|cannot allocate memory|failed to allocate|unable to allocate|bad_alloc",
    re.IGNORECASE,
)
_REFUSED_ARGUMENT = re.compile(
    r"invalid argument|error: argument |unrecognized argument|error while handling argument",
    re.IGNORECASE,
)
"""What llama-server and the server of ``xllamacpp`` write of an option that they do not know or cannot read."""


@dataclass
class LocalServer:
    """Server of a model on this machine.

    Args:
        model: ``local:NAME``, a GGUF file, or ``USER/REPOSITORY[:QUANT]`` of Hugging Face.
        arguments: further arguments of the program, as in a shell.
        timeout_s: seconds from the start of the server until it answers.

    Raises:
        UsageError: the program is not installed, the model's file does not exist, or an argument is set by agrotools.
    """

    model: str
    arguments: str = ""
    timeout_s: float = 1800.0
    url: str = field(default="", init=False)
    """Address of the running server, including ``/v1``; empty unless it runs."""
    _process: "_ServerProcess | None" = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._words = _split_arguments(self.arguments)
        self._packaged = local_model(self.model)
        if self._packaged is not None:
            self._model_words = ["-m", str(model_file(self._packaged))]
        else:
            self._model_words = _words_of_model(self.model)
        self._start_words = self._find_program()

    def _find_program(self) -> list[str]:
        """Return the words that start the program: llama.cpp's own, else the one of the package xllamacpp."""
        beside = Path(sys.executable).with_name(
            _EXECUTABLE
        )  # in an environment that is not activated
        if found := shutil.which(_EXECUTABLE) or shutil.which(str(beside)):
            return [found]
        if find_spec("xllamacpp"):
            return [sys.executable, str(_XLLAMACPP)]
        wanted = f"--serve {_PROGRAM}" if self._packaged is None else self.model
        raise UsageError(f"{wanted}: there is no program {_EXECUTABLE}", hint=_INSTALL)

    @property
    def request_name(self) -> str:
        """Name of the model in requests."""
        return self.model if self._packaged is None else self._model_words[-1]

    @property
    def slots(self) -> int:
        """Requests that the server takes at a time, by its arguments.

        It is one by default: each further one gets a part of the context, and a prompt is only read from its cache by
        the slot that has seen it.
        """
        words = [part for word in self._words for part in word.split("=", 1)]
        given = [value for name, value in pairwise(words) if name in _SLOTS and value.isdecimal()]
        return max(1, int(given[-1])) if given else 1

    @property
    def identity(self) -> tuple[str, ...]:
        """Program and arguments, as far as results depend on them."""
        return (_PROGRAM, *self._words)

    @cached_property
    def version(self) -> str:
        """Version of the program; empty if it does not say one."""
        lines = _output([*self._start_words, "--version"])
        return next(
            (line for line in lines if "version" in line.lower()), lines[-1] if lines else ""
        )[:200]

    @cached_property
    def model_hash(self) -> str:
        """SHA-256 over name, size and both ends of the model's file; empty if it is not on this machine."""
        if self._packaged is not None:
            return self._packaged.sha256
        path = Path(self.model).expanduser()
        if not path.exists():
            return ""
        size = path.stat().st_size
        digest = hashlib.sha256(f"{path.name} {size}\n".encode())
        with path.open("rb") as content:
            digest.update(content.read(_SAMPLE_BYTES))
            content.seek(max(0, size - _SAMPLE_BYTES))
            digest.update(content.read(_SAMPLE_BYTES))
        return digest.hexdigest()

    def command(self, port: int) -> list[str]:
        """Return the words that start the server at a port."""
        address = ["--host", "127.0.0.1", "--port", str(port)]
        return [
            *self._start_words,
            *self._model_words,
            "-np",
            str(self.slots),
            *address,
            *self._words,
        ]

    async def run(
        self,
        folder: Path,
        work: Callable[[], Awaitable[T]],
        note: Callable[[str], None],
        stop: threading.Event | None,
    ) -> T:
        """Return the result of ``work``, during which the server runs; its log is written to ``folder``.

        Raises:
            LocalServerError: the server does not start, or ends while ``work`` runs, which is cancelled then.
            KeyboardInterrupt: a signal, or ``stop``, interrupted the start.
        """
        task = asyncio.current_task()
        assert task is not None
        interrupted = False

        def interrupt() -> None:
            nonlocal interrupted
            interrupted = True
            task.cancel()

        with ExitStack() as stack:
            stack.callback(self.end)
            try:
                with on_stop_signal(interrupt):
                    process = await self._start(folder, note, stop)
            except asyncio.CancelledError:
                if interrupted:
                    task.uncancel()
                    raise KeyboardInterrupt from None
                raise
            watching = asyncio.create_task(_cancel_at_end(process, task))
            stack.callback(watching.cancel)
            try:
                return await work()
            except (Exception, asyncio.CancelledError) as error:
                if not process.has_ended:
                    raise
                if watching.done():
                    task.uncancel()
                raise process.failure(
                    f"{_PROGRAM} ended during the run", "finished samples are kept"
                ) from error

    async def _start(
        self, folder: Path, note: Callable[[str], None], stop: threading.Event | None
    ) -> "_ServerProcess":
        """Start the server, and return it when it answers."""
        import aiohttp

        if self._packaged is not None and not model_file(self._packaged).exists():
            size = f"{self._packaged.megabytes} MB, {self._packaged.licence}"
            note(
                f"downloading {self._packaged.title} ({size}) once, to {model_file(self._packaged)}"
            )
            await asyncio.to_thread(fetch, self._packaged)
        began = noted = time.monotonic()
        log = folder / LOG_FILE
        note(f"starting {_PROGRAM} with {self.model}; its output: {log}")
        self._process = process = self._launch(log)
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_REQUEST_S)
        ) as session:
            while True:
                if stop is not None and stop.is_set():
                    raise KeyboardInterrupt
                if process.has_ended:
                    raise process.failure(f"{_PROGRAM} does not start", "")
                if await process.is_ready(session):
                    break
                now = time.monotonic()
                if now - began > self.timeout_s:
                    raise process.failure(
                        f"{_PROGRAM} does not answer after {self.timeout_s:g} s",
                        "a larger serve_timeout in the file of --config gives it time, e.g. to download the model",
                    )
                if now - noted > _NOTE_EVERY_S:
                    noted = now
                    last = process.last_lines()[-1:] or ["no output yet"]
                    note(f"waiting for {_PROGRAM}, {now - began:.0f} s: {last[0]:.150}")
                await asyncio.sleep(_POLL_S)
        self.url = process.url
        note(f"{_PROGRAM} answers after {time.monotonic() - began:.0f} s")
        return process

    def _launch(self, log: Path) -> "_ServerProcess":
        port, token = _free_port(), token_hex(16)
        program = self.command(port)
        with log.open("ab") as output:
            output.write(f"$ {shlex.join(program)}\n".encode())
            output.flush()
            log_start = log.stat().st_size
            process = subprocess.Popen(
                [sys.executable, "-I", str(_GUARD), str(_GRACE_S), token, *program],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )
        return _ServerProcess(process, port, token, log, log_start)

    def end(self) -> None:
        """End the server and all processes that it started."""
        if self._process is not None:
            self._process.end()
        self._process = None
        self.url = ""


def _split_arguments(arguments: str) -> list[str]:
    """Return the words of ``--serve-args``; UsageError if one of them is not for the user to give."""
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise UsageError(
            f"--serve-args {arguments!r}: {error}", hint="quote it as in a shell"
        ) from error
    names = [word.partition("=")[0] for word in words]
    for word, name in zip(words, names, strict=True):
        if name in _SET_HERE:
            raise UsageError(
                f"--serve-args: agrotools sets {word} itself",
                hint="omit it; --model names the model",
            )
    if secrets := _SECRETS.intersection(names):
        raise UsageError(
            f"--serve-args: what follows {min(secrets)} would be stored with the run",
            hint="omit it: only this machine reaches the server, and a token of the hub is read from HF_TOKEN",
        )
    return words


def _words_of_model(model: str) -> list[str]:
    """Return the arguments that name a model; UsageError if it is neither a GGUF file nor a repository."""
    path = Path(model).expanduser()
    looks_like_path = model.lower().endswith(".gguf") or model.startswith(("/", "./", "../", "~"))
    if looks_like_path and not path.exists():
        raise UsageError(f"there is no model file {model}", hint="check the path of --model")
    if path.is_file():
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise UsageError(
                    f"{model} is not a GGUF file",
                    hint="llama.cpp reads GGUF files; for other weights start a server yourself and give --base-url",
                )
        return ["-m", str(path.resolve())]
    if not path.exists() and model.count("/") == 1:
        return ["-hf", model]  # downloads it, with the part that sees pictures
    raise UsageError(
        f"{model} is not a GGUF file",
        hint="give FILE.gguf, or USER/REPOSITORY[:QUANT] of Hugging Face",
    )


async def _cancel_at_end(process: "_ServerProcess", task: "asyncio.Task[object]") -> None:
    """Cancel ``task`` when the server ends."""
    while not process.has_ended:  # noqa: ASYNC110 - processes set no event
        await asyncio.sleep(_POLL_S)
    task.cancel()


@dataclass
class _ServerProcess:
    process: "subprocess.Popen[bytes]"
    """Its guard, whose exit code is that of the server."""
    port: int
    token: str
    log: Path
    log_start: int
    """Bytes of the log that earlier starts wrote."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    async def is_ready(self, session: "aiohttp.ClientSession") -> bool:
        """True if it answers 200 to ``/health``."""
        import aiohttp

        with suppress(aiohttp.ClientError, TimeoutError):
            async with session.get(f"http://127.0.0.1:{self.port}/health") as response:
                return response.status == 200 and not self.has_ended
        return False

    def last_lines(self) -> list[str]:
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(self.log_start, size - _LAST_BYTES))
            text = file.read().decode(errors="replace")
        return [line for line in text.replace("\r", "\n").splitlines() if line.strip()]

    def failure(self, what: str, hint: str) -> LocalServerError:
        """Return the error for a server that failed, with the last lines of its output."""
        code = self.process.poll()
        self.end()
        lines = self.last_lines()
        text = "\n".join(lines)
        if code == NOT_STARTED:
            hint = "check that the program can be run"
        elif _OUT_OF_MEMORY.search(text) or code == 128 + KILL:
            memory = (
                "it ran out of memory"
                if _OUT_OF_MEMORY.search(text)
                else "it was killed, perhaps for its memory"
            )
            hint = f"{memory}: a smaller model, a stronger quantisation, or a shorter context with --serve-args"
        elif _REFUSED_ARGUMENT.search(text):
            hint = "the server refused one of its arguments: check --serve-args"
        elif not hint:
            hint = "check the name or path of the model; private models need a token (HF_TOKEN)"
        ended = f" (exit code {code})" if code is not None else ""
        shown = [f"  {line:.300}" for line in lines[-_LAST_LINES:]] or ["  it wrote nothing"]
        where = f"its whole output is in {self.log}"
        return LocalServerError(
            "\n".join([f"{what}{ended}:", *shown]), hint="; ".join(filter(None, [hint, where]))
        )

    def end(self) -> None:
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()  # which ends the guard
        try:
            self.process.wait(2 * _GRACE_S)
        except subprocess.TimeoutExpired:
            kill_process(self.process)
            self.process.wait()
        kill_descendants(self.token)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return held.getsockname()[1]


def _output(command: Sequence[str]) -> list[str]:
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_VERSION_S,
            errors="replace",
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
