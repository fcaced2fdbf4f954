"""Execution of a piece of untrusted code, and detection of usable runners by running a job that tries to escape."""

import json
import os
import re
import socket
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

from agrotools.core import AgrotoolsError, InfrastructureError
from agrotools.sandbox import RUNNER_VARIABLE
from agrotools.sandbox.pool import FROM_OUTSIDE, Pool, one_line, pool_of, run_in
from agrotools.sandbox.result import DEFAULT_LIMITS, Limits, SandboxResult, SandboxUnavailable
from agrotools.sandbox.runners import INSIDE, NONE, RUNNERS, environment, missing

_USERNS = (
    "bwrap needs user namespaces: sysctl -w user.max_user_namespaces=10000 (on Debian also "
    "kernel.unprivileged_userns_clone=1); in a container, let it make them"
)
_APPARMOR = (
    "AppArmor keeps bwrap from making user namespaces (Ubuntu 23.10 and later): give it a profile, which "
    "`agrotools docs sandbox` has, or apt-get install apparmor-profiles and enable bwrap-userns-restrict"
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
        if result.holds or (name == NONE and missing(name) is None):
            return name
        raise SandboxUnavailable(
            f"the sandbox {name} fails on this machine: {result.message}", hint=result.hint
        )
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
        return Probe(
            runner,
            False,
            f"it cannot be tried: {error}",
            "check that the folder for temporary files works",
        )
    through = [f"{name} ({what})" for name, what in reached.items() if what]
    if through:
        hint = "run no code that a model wrote on this machine"
        return Probe(runner, False, f"it lets untrusted code {', '.join(through)}", hint)
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
        raise SandboxUnavailable(
            f"a job does not run in it: {result.message or result.termination}"
        ) from None


def _hint(runner: str) -> str:
    if runner == "landlock":
        return _LANDLOCK
    with suppress(OSError):  # the setting does not exist, or this user may not read it
        if (
            Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").read_text().strip()
            == "1"
        ):
            return _APPARMOR
    return _USERNS


LONGEST_CODE = 200_000
_LANGUAGE = re.compile(r"[ \t]*+([\w+-]*)")
_CLOSING = re.compile(r"\n[ \t]*+```")


def run_code(
    code: str,
    *,
    call: str | None = "solution",
    limits: Limits = DEFAULT_LIMITS,
    runner: str | None = None,
) -> SandboxResult:
    """Run untrusted Python code in an isolated process.

    Blocks; may be called from any thread (from asyncio: ``await asyncio.to_thread(run_code, ...)``).

    Args:
        code: the code, with or without a Markdown fence.
        call: function that is called without arguments after the code has run; None to run only the code. A returned
            figure, or pyplot's current one if the function returns None, becomes a PNG artifact, as do the figures that
            the code saves.
        limits: resource limits.
        runner: one of :data:`RUNNERS`, or ``none`` (no isolation); default: the best that works on this machine.

    Raises:
        SandboxUnavailable: no runner can run code safely on this machine.
        UsageError: the runner is unknown.
    """
    runner = select_runner(runner)
    if len(code) > LONGEST_CODE:
        message = f"the code has {len(code):,} characters, more than {LONGEST_CODE:,}"
        return SandboxResult(None, "", (), "error", message, 0.0, runner)
    code = unfenced(code)
    pool = pool_of(runner)
    result = _run_once(pool, code, call, limits)
    if result.termination == "infrastructure":
        result = _run_once(pool, code, call, limits)
        if result.message == FROM_OUTSIDE:
            # Killed twice during execution, most likely by the kernel because of memory. Treating this as an
            # infrastructure failure would let code avoid being scored.
            message = "the system killed the code twice, most likely for want of memory: use less"
            result = replace(result, termination="memory", message=message)
    return result


def unfenced(text: str) -> str:
    """Return the code in the first Markdown fence marked as Python, or in the first fence, or the text without
    fences."""
    fences: list[tuple[str, str]] = []
    start = text.find("```")
    while start >= 0 and (head_end := text.find("\n", start)) >= 0:
        language = _LANGUAGE.match(text, start + 3, head_end)
        closing = _CLOSING.search(text, head_end)
        body = text[head_end + 1 : closing.start() if closing else len(text)]
        fences.append((language[1].lower() if language else "", body))
        start = text.find("```", closing.end()) if closing else -1
    python = [body for language, body in fences if language in ("python", "py", "python3")]
    return (python or [body for _, body in fences] or [text])[0]


def _run_once(pool: Pool, code: str, call: str | None, limits: Limits) -> SandboxResult:
    with ExitStack() as stack:
        try:
            if pool.runner == NONE:  # the code may write into its working folder
                folder = tempfile.TemporaryDirectory(
                    prefix="agrotools-sandbox-", ignore_cleanup_errors=True
                )
                worker = pool.start(folder=stack.enter_context(folder))
            else:
                stack.callback(pool.refill)
                worker = pool.take()
        except (InfrastructureError, OSError) as error:
            return SandboxResult(
                None, "", (), "infrastructure", one_line(str(error)), 0.0, pool.runner
            )
        stack.callback(pool.discard, worker)
        return run_in(worker, code, call, limits)
