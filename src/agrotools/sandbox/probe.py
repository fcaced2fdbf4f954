"""Detection of usable runners by running a job that tries to escape."""

import json
import os
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from agrotools.core import AgrotoolsError
from agrotools.sandbox import RUNNER_VARIABLE
from agrotools.sandbox.pool import pool_of, run_in
from agrotools.sandbox.result import DEFAULT_LIMITS, SandboxUnavailable
from agrotools.sandbox.runners import INSIDE, NONE, RUNNERS, environment, missing

_USERNS = (
    "bwrap needs user namespaces: sysctl -w user.max_user_namespaces=10000 (on Debian also "
    "kernel.unprivileged_userns_clone=1); in a container, let it make them"
)
_APPARMOR = (
    "AppArmor keeps bwrap from making user namespaces (Ubuntu 23.10 and later): give it a profile, which "
    "docs/sandbox.md has, or apt-get install apparmor-profiles and enable bwrap-userns-restrict"
)
_LANDLOCK = "it needs Linux 5.13 or later with Landlock enabled (lsm=...,landlock) and not filtered by a container"


@dataclass(frozen=True)
class Probe:
    """Result of probing one runner."""

    runner: str
    holds: bool
    message: str
    """Breaches or missing requirements; if the runner holds, the attempts that were made."""
    hint: str | None = None
    seconds: float = 0.0


_probes: dict[str, Probe] = {}
_lock = threading.Lock()


def select_runner(name: str | None = None) -> str:
    """Return the runner ``name`` (default: ``AGROTOOLS_SANDBOX``), or else the best one that works on this machine.

    Raises:
        SandboxUnavailable: the named runner, or every runner, fails its probe.
        UsageError: there is no runner of that name.
    """
    name = name or os.environ.get(RUNNER_VARIABLE, "").strip() or None
    if name is not None:
        result = probe(name)
        if result.holds or name == NONE:
            return name
        raise SandboxUnavailable(f"the sandbox {name} fails on this machine: {result.message}", hint=result.hint)
    for runner in RUNNERS:
        if probe(runner).holds:
            return runner
    reasons = "; ".join(f"{runner}: {probe(runner).message}" for runner in RUNNERS)
    hint = probe(RUNNERS[0]).hint
    raise SandboxUnavailable(
        f"this machine cannot run untrusted code safely ({reasons})",
        hint=f"{hint}. To run it without any isolation: {RUNNER_VARIABLE}={NONE}" if hint else None,
    )


def probe(runner: str) -> Probe:
    """Probe ``runner``, which takes about 0.1 s. The result is cached in this process.

    Raises:
        UsageError: the runner is unknown.
    """
    with _lock:
        if runner not in _probes:
            started = time.perf_counter()
            result = _run_probe(runner)
            _probes[runner] = replace(result, seconds=time.perf_counter() - started)
        return _probes[runner]


def _run_probe(runner: str) -> Probe:
    lacking = missing(runner)
    if lacking is not None:
        return Probe(runner, False, *lacking)
    if runner == NONE:
        return Probe(runner, False, "it isolates nothing: it only limits memory, time and output")
    canary = f"AGROTOOLS_CANARY_{uuid4().hex}"
    try:
        with (
            tempfile.TemporaryDirectory(prefix="agrotools-probe-") as folder,
            socket.create_server(("127.0.0.1", 0)) as server,
        ):
            server.settimeout(0)
            secret = Path(folder, "canary")
            secret.write_text(canary)
            os.environ[canary] = canary
            try:
                reached = _breaches(runner, secret, server.getsockname()[1])
            finally:
                del os.environ[canary]
            try:
                server.accept()[0].close()
                reached["connect"] = "this machine"
            except OSError:
                pass
    except AgrotoolsError as error:
        return Probe(runner, False, error.message, error.hint or _hint(runner))
    except OSError as error:
        return Probe(runner, False, f"it cannot be tried: {error}", "check that the folder for temporary files works")
    through = [f"{name} ({what})" for name, what in reached.items() if what]
    if through:
        return Probe(runner, False, f"it lets untrusted code {', '.join(through)}", "please report this")
    return Probe(runner, True, f"blocked when tried: {', '.join(reached)}")


def _breaches(runner: str, secret: Path, port: int) -> dict[str, str | None]:
    """Run a job that tries to escape, and return for each attempt what it reached, or None.

    Raises:
        SandboxUnavailable: the job did not run.
    """
    canary = {
        "variables": [*environment(), "MATPLOTLIBRC"],
        "file": str(secret),
        "folder": str(secret.parent),
        "port": port,
        "pid": os.getpid(),
    }
    code = f"{(INSIDE / 'probe.py').read_text(encoding='utf-8')}\nCANARY.update({canary!r})\n"
    pool = pool_of(runner)
    worker = pool.start(warm=())
    try:
        result = run_in(worker, code, "solution", DEFAULT_LIMITS)
    finally:
        pool.discard(worker)
    try:
        return dict(json.loads(result.value or ""))
    except ValueError:
        raise SandboxUnavailable(f"a job does not run in it: {result.message or result.termination}") from None


def _hint(runner: str) -> str:
    if runner == "landlock":
        return _LANDLOCK
    setting = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
    return _APPARMOR if setting.is_file() and setting.read_text().strip() == "1" else _USERNS
