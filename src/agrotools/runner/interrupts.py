"""Ctrl-C: the first asks a run to end well, the second ends it now."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts(on_first: Callable[[], None]) -> Generator[None]:
    """While the block runs in the current task, the first SIGINT or SIGTERM calls ``on_first``, the next cancels it.

    Raises:
        KeyboardInterrupt: the block was cancelled by a signal.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    seen = 0

    def received() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            on_first()
        else:
            task.cancel()

    # Only the main thread gets signals; elsewhere whoever runs us decides.
    with suppress(RuntimeError, ValueError):
        for number in _SIGNALS:
            loop.add_signal_handler(number, received)
    try:
        yield
    except asyncio.CancelledError:
        if seen > 1:
            raise KeyboardInterrupt from None
        raise
    finally:
        with suppress(RuntimeError, ValueError):
            for number in _SIGNALS:
                loop.remove_signal_handler(number)
