"""Execution of a piece of untrusted code."""

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from agrotools.core import InfrastructureError
from agrotools.sandbox.exchange import JobOutcome
from agrotools.sandbox.pool import Pool, Worker, new_folder, pool_of
from agrotools.sandbox.probe import select_runner
from agrotools.sandbox.result import (
    DEFAULT_LIMITS,
    BadPicture,
    Limits,
    SandboxArtifact,
    SandboxResult,
    SandboxTermination,
    check_picture,
)
from agrotools.sandbox.runners import NONE

LONGEST_CODE = 200_000
_FROM_OUTSIDE = "the worker was killed from outside"
_LONGEST_MESSAGE = 700
_LANGUAGE = re.compile(r"[ \t]*+([\w+-]*)")
_CLOSING = re.compile(r"\n[ \t]*+```")
_SIGNALS = {-6: "aborted", -7: "bus error", -11: "segmentation fault", -31: "bad system call"}
_CPU, _KILLED = -24, -9
_OUT_OF_MEMORY = (b"bad_alloc", b"Cannot allocate memory", b"MemoryError", b"Memory allocation")


def run_code(
    code: str, *, call: str | None = "solution", limits: Limits = DEFAULT_LIMITS, runner: str | None = None
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
        if result.message == _FROM_OUTSIDE:
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


def run_in(worker: Worker, code: str, call: str | None, limits: Limits) -> SandboxResult:
    """Run code in a started worker, which the caller has to end."""
    if not worker.wait_ready():
        log = worker.read_stderr()
        return _infrastructure(worker, f"the worker did not get ready: {_last_line(log) or 'no reply'}", log)
    return _result_of(worker, worker.run(code, call, limits), limits)


def _run_once(pool: Pool, code: str, call: str | None, limits: Limits) -> SandboxResult:
    with ExitStack() as stack:
        try:
            if pool.runner == NONE:  # the code may write into its working folder
                worker = pool.start(folder=stack.enter_context(new_folder()))
            else:
                stack.callback(pool.refill)
                worker = pool.take()
        except (InfrastructureError, OSError) as error:
            return SandboxResult(None, "", (), "infrastructure", _one_line(str(error)), 0.0, pool.runner)
        stack.callback(pool.discard, worker)
        return run_in(worker, code, call, limits)


def _result_of(worker: Worker, outcome: JobOutcome, limits: Limits) -> SandboxResult:
    """Convert the outcome of a job to a result. Data from the code are trusted only as the result of that code."""
    stdout, stderr = (_text(part.decode(errors="replace")) for part in (outcome.stdout, outcome.stderr))
    if outcome.cause == "not_started":
        return _infrastructure(worker, f"the worker was lost: {_last_line(stderr) or 'no reply'}", stderr)
    termination, message = _termination_of(outcome, limits)
    if termination == "infrastructure":
        return _infrastructure(worker, message, stderr)
    artifacts: list[SandboxArtifact] = []
    try:
        for name, content in (*outcome.figures, *outcome.saved):
            artifact = check_picture(name, content, limits)
            if all(artifact.content != other.content for other in artifacts):
                artifacts.append(artifact)
    except BadPicture as error:
        if termination == "ok":
            termination, message = "artifact_cap", str(error)
    value = outcome.reply.get("value") if termination == "ok" else None
    exit_note = f"exit status {outcome.status}" if outcome.cause == "ended" else ""
    log = [exit_note, str(outcome.reply.get("log") or ""), stderr]
    return SandboxResult(
        _text(value) if isinstance(value, str) else None,
        stdout,
        tuple(artifacts),
        termination,
        _one_line(message),
        outcome.seconds,
        worker.runner,
        log="" if termination == "ok" and not stderr else _text("\n".join(part for part in log if part))[-40_000:],
    )


def _termination_of(outcome: JobOutcome, limits: Limits) -> tuple[SandboxTermination, str]:
    """Return the termination of a job and its message."""
    match outcome.cause:
        case "wall_timeout":
            return "wall_timeout", f"the code ran for more than {limits.wall_s:g} s and was stopped: make it quicker"
        case "output_cap":
            return "output_cap", f"the code printed more than {limits.output_bytes:,} bytes and was stopped: print less"
        case "artifact_cap":
            limit = f"{limits.artifacts} pictures of {limits.artifact_bytes:,} bytes"
            return "artifact_cap", f"the code made more, or larger, pictures than allowed ({limit})"
        case "malformed":
            return "error", "the code wrote to a channel that is not its own"
        case "ended" | "not_started":
            return _termination_of_status(outcome, limits)
        case "done":
            return _termination_of_reply(outcome.reply, limits)


def _termination_of_reply(reply: Mapping[str, Any], limits: Limits) -> tuple[SandboxTermination, str]:
    status, message = reply.get("status"), reply.get("message")
    message = message if isinstance(message, str) else "it does not say why"
    match status:
        case "ok":
            return "ok", ""
        case "memory":
            return "memory", f"the code needs more than the {limits.memory_mb} MB of memory that it may use: {message}"
        case "denied":
            return "denied", (
                f"{message}: not allowed here; the code may not reach the network or other files, nor start processes "
                "or threads"
            )
        case "output_cap" | "artifact_cap":
            return ("output_cap" if status == "output_cap" else "artifact_cap"), message
        case _:
            return "error", message


def _termination_of_status(outcome: JobOutcome, limits: Limits) -> tuple[SandboxTermination, str]:
    status = outcome.status
    if status == _CPU or (status == _KILLED and outcome.seconds >= limits.cpu_s):
        return (
            "cpu_limit",
            f"the code used more than {limits.cpu_s} s of processor time and was stopped: make it quicker",
        )
    if any(words in outcome.stderr for words in _OUT_OF_MEMORY):
        return "memory", f"the code needs more than the {limits.memory_mb} MB of memory that it may use"
    if status == _KILLED:
        return "infrastructure", _FROM_OUTSIDE
    if status in _SIGNALS:
        return "error", f"the code crashed the interpreter ({_SIGNALS[status]})"
    return "error", f"the code ended the interpreter (exit status {'unknown' if status is None else status})"


def _infrastructure(worker: Worker, message: str, log: str) -> SandboxResult:
    return SandboxResult(None, "", (), "infrastructure", _one_line(message), 0.0, worker.runner, log=log)


def _one_line(message: str) -> str:
    return _text(" ".join(message.split()))[:_LONGEST_MESSAGE]


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _text(value: str) -> str:
    """Replace lone surrogates in a text, because files cannot contain them."""
    return value.encode("utf-8", "replace").decode()
