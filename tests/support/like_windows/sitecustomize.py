"""Makes this Python lack what Python lacks on Windows: modules, signals, functions of ``os``, handlers in event loops.

Python imports it at its start where this folder is in ``PYTHONPATH``.
"""

import asyncio.unix_events
import os
import select
import signal
import sys
from types import ModuleType
from typing import cast

for module in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[module] = cast("ModuleType", None)  # importing it then fails
_LACKING = {
    os: (
        "O_CLOEXEC O_DIRECTORY O_NOFOLLOW fork forkpty getgid getpgid getuid killpg nice posix_fallocate"
        " pread pwrite sched_getaffinity sched_setaffinity sched_setscheduler setsid"
    ),
    select: "poll",
    signal: "SIGALRM SIGHUP SIGKILL SIGQUIT SIGUSR1 SIGUSR2 alarm pause pthread_sigmask setitimer sigwait",
}
for module, names in _LACKING.items():
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)


def _refuse(*_: object) -> None:
    raise NotImplementedError


for name in ("add_signal_handler", "remove_signal_handler"):
    setattr(asyncio.unix_events.SelectorEventLoop, name, _refuse)
