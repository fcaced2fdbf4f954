"""Running a piece of untrusted code."""

from collections.abc import Mapping

from agrotools.sandbox.probe import select_runner
from agrotools.sandbox.result import DEFAULT_LIMITS, NO_INPUTS, Limits, SandboxResult


def run_code(
    code: str,
    *,
    call: str | None = "solution",
    inputs: Mapping[str, bytes] = NO_INPUTS,
    limits: Limits = DEFAULT_LIMITS,
    runner: str | None = None,
) -> SandboxResult:
    """Run Python code that nobody vouches for, in a process of its own that can reach nothing.

    Blocks; may be called from any thread (from asyncio: ``await asyncio.to_thread(run_code, ...)``).

    Args:
        code: the code, bare or in a Markdown fence.
        call: the function to call without arguments once the code has run; None: only the code is run. A figure that it
            returns, or the current one of pyplot where it returns None, becomes a PNG artifact, as do pictures that
            the code saves.
        inputs: files that the code finds in its working folder, by name.
        limits: what it may use.
        runner: one of :func:`available_runners`, or ``none`` (no isolation); default: the best there is.

    Raises:
        SandboxUnavailable: nothing here can run code safely.
        UsageError: there is no such runner, or a name of ``inputs`` is not a plain file name.
    """
    raise NotImplementedError(select_runner(runner), code, call, inputs, limits)
