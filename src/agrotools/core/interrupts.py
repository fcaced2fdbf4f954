"""Signals that end a command: Ctrl-C, SIGTERM (a job's end), and SIGHUP (the terminal is gone)."""

import asyncio
import signal
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def on_stop_signal(act: Callable[[], object]) -> Generator[None]:
    """Within the block, each signal of :data:`STOP_SIGNALS` calls ``act`` in the event loop, unless it is ignored.

    Only the main thread receives signals; in other threads, the caller handles interrupts.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        for number in STOP_SIGNALS:
            before = signal.getsignal(number)
            if before not in (signal.SIG_IGN, None):  # nohup ignores SIGHUP, and a shell Ctrl-C in its background jobs
                with suppress(RuntimeError, ValueError):
                    loop.add_signal_handler(number, act)
                    stack.callback(signal.signal, number, before)  # instead of the default action
                    stack.callback(loop.remove_signal_handler, number)
        yield
