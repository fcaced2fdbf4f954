"""Execution of a piece of untrusted code."""

import re
from contextlib import ExitStack
from dataclasses import replace
from tempfile import TemporaryDirectory

from agrotools.core import InfrastructureError
from agrotools.sandbox.pool import FROM_OUTSIDE, Pool, one_line, pool_of, run_in
from agrotools.sandbox.probe import select_runner
from agrotools.sandbox.result import DEFAULT_LIMITS, Limits, SandboxResult
from agrotools.sandbox.runners import NONE

LONGEST_CODE = 200_000
_LANGUAGE = re.compile(r"[ \t]*+([\w+-]*)")
_CLOSING = re.compile(r"\n[ \t]*+```")


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
                folder = TemporaryDirectory(prefix="agrotools-sandbox-", ignore_cleanup_errors=True)
                worker = pool.start(folder=stack.enter_context(folder))
            else:
                stack.callback(pool.refill)
                worker = pool.take()
        except (InfrastructureError, OSError) as error:
            return SandboxResult(None, "", (), "infrastructure", one_line(str(error)), 0.0, pool.runner)
        stack.callback(pool.discard, worker)
        return run_in(worker, code, call, limits)
