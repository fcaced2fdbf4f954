"""Command line: ``agrotools``, or ``python -m agrotools`` to choose the Python that runs it."""

import atexit
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130
"""Exit code after a signal (``STOPPED`` in :mod:`agrotools.exit_codes`, which is imported too late)."""
_STOP_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
"""As in :mod:`agrotools.core.processes`, which is imported too late. Windows has no SIGHUP."""


def main() -> None:
    """Entry point. Ctrl-C ends it with exit code 130 during the imports and while threads are waited for, too.

    SIGTERM and SIGHUP are treated as Ctrl-C, unless they are ignored (nohup).
    """
    code: object = 1
    stops = [number for number in _STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in stops:
        signal.signal(number, signal.default_int_handler)
    atexit.register(lambda: _leave(code))  # runs as the last of its kind
    try:
        from agrotools.cli.main import main as run_command

        run_command()
        code = 0
    except SystemExit as end:
        code = end.code or 0
        raise
    except KeyboardInterrupt:
        code = _INTERRUPTED
        _end_interrupted()
    except Exception as error:
        if _is_interrupt(error):
            code = _INTERRUPTED
            _end_interrupted()
        raise
    finally:
        for number in stops:
            signal.signal(number, _exit_at_once)


def _end_interrupted() -> NoReturn:
    if sys.stderr:  # None if the shell has closed it
        sys.stderr.write("\nstopped before it was done; run the same command again\n")
    sys.exit(_INTERRUPTED)


def _is_interrupt(error: BaseException | None) -> bool:
    """Return True if an error comes from Ctrl-C while a class was made, where Python and pydantic raise others."""
    from agrotools.core.errors import words_of

    while (
        error is not None
        and "KeyboardInterrupt" not in f"{type(error).__name__}: {words_of(error)}"
    ):
        error = error.__cause__ or error.__context__
    return error is not None


def _leave(code: object) -> None:
    """Leave Python without its last steps: visiting all objects takes long, and there Ctrl-C has its default action."""
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # Python says so
    if isinstance(code, int):
        os._exit(code & 0xFF)


def _exit_at_once(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
