"""Command line: ``agrotools``, or ``python -m agrotools`` to choose the Python that runs it."""

import atexit
import os
import signal
import sys
from types import FrameType

_INTERRUPTED = 130
"""Exit code of a command that SIGINT has ended (``STOPPED`` in :mod:`agrotools.cli.output`, imported too late)."""


def main() -> None:
    """Entry point. Ctrl-C ends it with exit code 130 during the imports and while threads are waited for, too."""
    # Runs as the last of its kind: afterwards Python would give SIGINT its default action, which is not exit code 130.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    try:
        from agrotools.cli.main import main as run_command

        run_command()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except Exception as error:
        if _is_interrupt(error):
            sys.exit(_INTERRUPTED)
        raise
    finally:
        signal.signal(signal.SIGINT, _exit_at_once)


def _is_interrupt(error: BaseException | None) -> bool:
    """Return True if an error comes from Ctrl-C while a class was made, where Python and pydantic raise others."""
    while error is not None and "KeyboardInterrupt" not in f"{type(error).__name__}: {error}":
        error = error.__cause__ or error.__context__
    return error is not None


def _exit_at_once(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
