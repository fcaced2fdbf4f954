"""Processes of somebody else's programs: their end, with everything that they started. Signals that end a command.

As a script, ``python processes.py SECONDS TOKEN COMMAND...`` guards a program: it runs the command in a session of its
own and ends it when standard input closes, which happens however the process at its other end dies. The script imports
the standard library alone, so that it starts quickly.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

STOP_SIGNALS = tuple(
    signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals of Ctrl-C, of a job's end, and of a terminal that is gone. Windows lacks the last."""
KILL = getattr(signal, "SIGKILL", 9)
"""Number of the signal that no process can ignore. Windows has no signal of this kind, but kills with any number."""
TOKEN = "AGROTOOLS_GUARDED"
"""Environment variable that identifies the processes of a guarded program, even if they leave its session."""
NOT_STARTED = 127
"""Exit code of the guard if the program cannot be started."""
_MOST_SWEEPS = 10
"""Maximum number of sweeps for descendants, because a process may start another just before it is killed."""
_PR_SET_PDEATHSIG = 1


def kill_descendants(token: str, session: int | None = None) -> None:
    """Kill the processes that carry ``token`` in their environment, or belong to a session, whose leader is left out.

    It does nothing on systems without ``/proc``.
    """
    for _ in range(_MOST_SWEEPS):
        found = [
            pid
            for pid in _processes()
            if pid not in (session, os.getpid()) and _belongs(pid, token, session)
        ]
        for pid in found:
            with suppress(OSError):
                os.kill(pid, KILL)
        if not found:
            return


def _processes() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - many, and often
    except OSError:
        return []


def _belongs(pid: int, token: str, session: int | None) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            state, _, _, its_session = file.read().rpartition(b")")[2].split()[:4]
        if state == b"Z":
            return False
        if int(its_session) == session:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
            return token.encode() in file.read()
    except (OSError, ValueError):
        return False


def guard(grace_s: float, token: str, command: list[str]) -> int:
    """Run a command until it ends or standard input closes, end all its processes, and return its exit code.

    Args:
        grace_s: seconds from SIGTERM to SIGKILL.
        token: value of :data:`TOKEN` in the environment of the program.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)  # standard input alone decides
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            env={**os.environ, TOKEN: token},
            start_new_session=True,
            preexec_fn=_prepare if os.name == "posix" else None,
        )
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror or error}\n")
        return NOT_STARTED

    def stop() -> None:
        while os.read(0, 1024):
            pass
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
        _signal_group(process.pid, KILL)

    threading.Thread(target=stop, daemon=True).start()
    code = process.wait()
    _signal_group(process.pid, KILL)  # also what it left behind
    kill_descendants(token, process.pid)
    return code if code >= 0 else 128 - code


def _prepare() -> None:
    """Set up the child before it becomes the program: default signals, and the guard's end is its end."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, KILL, 0, 0, 0)


def kill_process(process: "subprocess.Popen[Any]") -> None:
    """Kill a process, unless it has ended."""
    if process.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, KILL)


def kill_group(leader: int) -> None:
    """Kill a process that leads a group, and its group where there are groups."""
    _signal_group(leader, KILL)


def _signal_group(leader: int, number: int) -> None:
    # macOS forbids it for a group that has just ended, and Windows says no more than that it failed.
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(leader, number)
        else:
            os.kill(leader, number)  # on Windows, it kills with any number


@contextmanager
def on_stop_signal(act: Callable[[], object]) -> Generator[None]:
    """Within the block, each signal of :data:`STOP_SIGNALS` calls ``act`` in the event loop, unless it is ignored.

    Only the main thread receives signals; in other threads, the caller handles interrupts.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        for number in STOP_SIGNALS:
            before = signal.getsignal(number)
            if before not in (
                signal.SIG_IGN,
                None,
            ):  # nohup ignores SIGHUP, and a shell Ctrl-C in its background jobs
                with suppress(RuntimeError, ValueError):
                    is_of_loop = _handle_in_loop(loop, number, act)
                    stack.callback(signal.signal, number, before)  # instead of the default action
                    if is_of_loop:
                        stack.callback(loop.remove_signal_handler, number)
        yield


def _handle_in_loop(
    loop: "asyncio.AbstractEventLoop", number: signal.Signals, act: Callable[[], object]
) -> bool:
    """Call ``act`` in the loop at a signal; return False if the loop, one of Windows, has no handlers of signals.

    Raises:
        RuntimeError, ValueError: this thread does not get signals.
    """
    try:
        loop.add_signal_handler(number, act)
    except NotImplementedError:

        def handle(_number: int, _frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(act)

        signal.signal(number, handle)
        return False
    return True


if __name__ == "__main__":
    sys.exit(guard(float(sys.argv[1]), sys.argv[2], sys.argv[3:]))
