"""Job that tries to escape from a sandbox, run as untrusted code with ``CANARY`` filled in."""

import json
import os
import sys

CANARY: dict[str, object] = {}


def solution() -> str:
    """Return JSON with the result of each attempt: what it reached, or None. A safe sandbox has only None."""
    attempts = (environment, read, write, connect, fork, signal, run)
    return json.dumps({each.__name__: tried(each) for each in attempts})


def tried(attempt: object) -> str | None:
    try:
        return attempt()  # pyright: ignore[reportCallIssue]
    except BaseException:
        return None


def environment() -> str | None:
    """Return the number of variables, here or in any visible process, that are not the worker's own."""
    seen = {*os.environ}
    for process in ("1", "self", str(os.getppid()), str(CANARY["pid"])):
        try:
            with open(f"/proc/{process}/environ", "rb") as file:
                seen |= {
                    entry.split(b"=")[0].decode() for entry in file.read().split(b"\0") if entry
                }
        except OSError:
            continue
    foreign = sorted(seen - {"PWD", *CANARY["variables"]})  # pyright: ignore[reportGeneralTypeIssues]
    return f"{len(foreign)} foreign variables" if foreign else None


def read() -> str | None:
    with open(str(CANARY["file"])) as file:
        return f"a file of the host ({len(file.read())} characters)"


def write() -> str | None:
    written = []
    for folder in (
        CANARY["folder"],
        os.path.dirname(os.__file__),
        sys.prefix,
        "/",
        "/etc",
        "/usr",
        "/dev/shm",
    ):
        try:
            with open(f"{folder}/agrotools-probe", "w") as file:
                file.write("x")
        except OSError:
            continue
        os.unlink(f"{folder}/agrotools-probe")
        written.append(str(folder))
    return ", ".join(written) or None


def connect() -> str | None:
    import socket

    with socket.create_connection(("127.0.0.1", int(str(CANARY["port"]))), timeout=1):
        return "this machine"


def fork() -> str | None:
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)
    return "a process"


def signal() -> str | None:
    os.kill(int(str(CANARY["pid"])), 0)
    return "a process of the host"


def run() -> str | None:
    try:
        os.execv("/nonexistent/program", ["program"])
    except FileNotFoundError:  # the program was searched for
        return "a program"
