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
    finally:
        signal.signal(signal.SIGINT, _exit_at_once)


def _exit_at_once(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
