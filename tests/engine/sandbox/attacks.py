"""What hostile code tries against a sandbox, and what it must not reach.

Each attack is Python as a model might write it. It returns ``reached ...`` where it got what it wanted, and how it was
held otherwise; what it did to the host is looked at from outside as well (:class:`Host`). ``HOST`` is filled in before
it runs: addresses, paths and numbers that real code would have to guess.
"""

import os
import socket
import stat
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import uuid4

import agrotools
from agrotools.sandbox.pool import pool_of, run_in
from agrotools.sandbox.result import DEFAULT_LIMITS, Limits, SandboxResult
from agrotools.sandbox.runners import SYSTEM_CALLS, machine, number

QUICK = Limits(wall_s=20, cpu_s=1)


@dataclass(frozen=True)
class Attack:
    """One attack. ``ends``: how it may end; ``ok`` means that the code itself tells how it was held."""

    name: str
    code: str
    ends: tuple[str, ...] = ("ok",)
    limits: Limits = QUICK


HELPERS = '''
import ctypes, errno, os, sys, time
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

def call(name, *arguments):
    """A system call by number."""
    if HOST["calls"].get(name) is None:
        raise NotImplementedError
    ctypes.set_errno(0)
    converted = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    status = _libc.syscall(ctypes.c_long(HOST["calls"][name]), *converted)
    if status == -1:
        raise OSError(ctypes.get_errno(), name)
    return status

def tried(**attempts):
    """Run each: what raises was held, what returns was not."""
    held = []
    for name, attempt in attempts.items():
        try:
            found = attempt()
        except BaseException as error:
            held.append(f"{name} {errno.errorcode.get(getattr(error, 'errno', None), type(error).__name__)}")
        else:
            return f"reached {name}: {found!r}"
    return "; ".join(held)
'''


class Host:
    """Things of the host to reach for, and whether they were touched. Use as a context manager."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="agrotools-attack-")
        self.folder = Path(self._folder.name)
        self.secret = self.folder / "secret"
        self.token = f"token-{uuid4().hex}"
        self.secret.write_text(self.token)
        self.secret.chmod(0o600)
        self.writable = self.folder / "open"
        self.writable.mkdir()
        self.writable.chmod(0o777)
        self.variable = f"AGROTOOLS_TEST_KEY_{uuid4().hex[:8]}"
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.abstract = f"agrotools-{uuid4().hex}"
        self._datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._datagrams.bind(f"\0{self.abstract}")
        for each in (self._tcp, self._datagrams):
            each.settimeout(0)
        self._before = self.secret.stat()
        self._attributes = self._own_attributes()

    def __enter__(self) -> "Host":
        os.environ[self.variable] = self.token
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.environ.pop(self.variable, None)
        self._tcp.close()
        self._datagrams.close()
        self._folder.cleanup()

    @property
    def known(self) -> dict[str, Any]:
        architecture = machine()
        assert architecture is not None
        return {
            "pid": os.getpid(),
            "thread": threading.get_native_id(),
            "secret": str(self.secret),
            "writable": str(self.writable),
            "home": os.path.expanduser("~"),  # noqa: PTH111
            "own": str(Path(agrotools.__file__).parent),
            "package": os.path.dirname(os.__file__),  # noqa: PTH120
            "variable": self.variable,
            "token": "token"
            + self.token[5:6],  # its beginning: the whole would be found in the code itself
            "port": self._tcp.getsockname()[1],
            "abstract": self.abstract,
            "calls": {"newest": 467} | {name: number(name, architecture) for name in SYSTEM_CALLS},
        }

    def harm(self) -> str | None:
        """What was done to this machine, or None."""
        if self.secret.read_text() != self.token:
            return "the secret was overwritten"
        now = self.secret.stat()
        if any(
            getattr(now, name) != getattr(self._before, name)
            for name in ("st_mode", "st_uid", "st_mtime_ns", "st_nlink")
        ):
            return f"the secret was changed: {stat.filemode(now.st_mode)}, {now.st_nlink} links"
        if left := [path.name for path in self.writable.iterdir()]:
            return f"files were written: {', '.join(left[:3])}"
        for server, how in ((self._tcp, "connected to"), (self._datagrams, "sent to")):
            with suppress(OSError):
                server.accept() if server is self._tcp else server.recv(100)
                return f"a server of the host was {how}"
        if self._own_attributes() != self._attributes:
            return "attributes of the parent process were changed"
        return None

    def _own_attributes(self) -> list[Any]:
        import resource

        limits = [
            resource.getrlimit(name)
            for name in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_AS)
        ]
        return [os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0), *limits]


def run_bare(code: str, runner: str, limits: Limits = DEFAULT_LIMITS) -> SandboxResult:
    """As ``run_code``, in a worker that has imported nothing: it starts in no time."""
    pool = pool_of(runner)
    worker = pool.start(warm=())
    try:
        return run_in(worker, code, "solution", limits)
    finally:
        pool.discard(worker)


def run_attack(attack: Attack, runner: str, host: Host) -> SandboxResult:
    return run_bare(f"HOST = {host.known!r}\n{HELPERS}\n{attack.code}", runner, attack.limits)


def breach(attack: Attack, result: SandboxResult, host: Host) -> str | None:
    """What the attack got, or None where it was held."""
    if host.token in (result.value or "") + result.stdout + result.log:
        return "a secret of the host came out"
    if result.value is not None and "reached" in result.value:
        return result.value
    if result.termination not in attack.ends:
        return f"it ended as {result.termination}: {result.message}"
    return host.harm()


def held_how(result: SandboxResult) -> str:
    """In few words, for a table."""
    return (result.value or "held") if result.ok else f"{result.termination}: {result.message}"
