"""Workers come and go: warm ones, killed ones, those of processes that end in every way."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from agrotools.core import InfrastructureError, UsageError
from agrotools.sandbox import WORKERS_VARIABLE, runners
from agrotools.sandbox import pool as pools
from agrotools.sandbox.pool import Pool, close_pools, pool_of, pool_size
from agrotools.sandbox.result import Limits
from agrotools.sandbox.runners import Readable
from agrotools.sandbox.running import run_code

pytestmark = pytest.mark.slow

ANSWER = "def solution():\n    return 6 * 7"


@pytest.fixture
def no_pools(runner: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The pool of this runner is still to be made, of workers that import nothing; it has been probed."""
    monkeypatch.setattr(pools, "WARM", ())
    close_pools()
    yield
    close_pools()


def read(path: Path) -> str:
    """A file of /proc; empty where the process has ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def stat_of(pid: int) -> str:
    return read(Path(f"/proc/{pid}/stat"))


def descendants(pid: int) -> set[int]:
    """Processes that this one started, and theirs."""
    found: set[int] = set()
    statuses = {
        int(entry.name): stat_of(int(entry.name)).rpartition(")")[2]
        for entry in Path("/proc").glob("[0-9]*")
    }
    parents = {process: int(status.split()[1]) for process, status in statuses.items() if status}
    todo = {pid}
    while todo:
        todo = {child for child, parent in parents.items() if parent in todo} - found
        found |= todo
    return found


def alive(pids: set[int]) -> set[int]:
    return {
        pid
        for pid in pids
        if (status := stat_of(pid).rpartition(")")[2]) and status.split()[0] != "Z"
    }


def gone_within(pids: set[int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(pids)


@contextmanager
def python(code: str) -> Iterator["subprocess.Popen[str]"]:
    """A process of its own that runs code, with workers that import nothing; killed at the end."""
    environment = {**os.environ, WORKERS_VARIABLE: "3"}
    command = [
        sys.executable,
        "-c",
        "from agrotools.sandbox import pool\npool.WARM = ()\n" + textwrap.dedent(code),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_parent_that_was_killed(how: signal.Signals, runner: str) -> None:
    """While one job runs, one sleeps, and a warm worker waits."""
    with python(f"""
        import threading, time
        from agrotools.sandbox.running import run_code
        run_code("x = 1", call=None, runner={runner!r})
        for code in ("while True: pass", "import time; time.sleep(1000)"):
            threading.Thread(target=run_code, args=(code,), kwargs={{"call": None, "runner": {runner!r}}}).start()
        time.sleep(1)
        print("started", flush=True)
    """) as process:
        assert process.stdout.readline() == "started\n"
        workers = descendants(process.pid)
        assert len(alive(workers)) >= 3
        process.send_signal(how)
        process.wait(10)
        assert gone_within(workers, 30), alive(workers)


def test_nothing_is_left_of_a_parent_that_was_killed_while_workers_start(runner: str) -> None:
    with python(f"""
        from agrotools.sandbox.pool import pool_of
        pool = pool_of({runner!r})
        for _ in range(6):
            pool.refill()
        print("started", flush=True)
        pool.start().wait_ready()
    """) as process:
        assert process.stdout.readline() == "started\n"
        time.sleep(0.02)
        workers = descendants(process.pid)
        process.kill()
        process.wait(10)
        # A command line of a worker holds its configuration, which names the parent (but in bubblewrap).
        workers |= {
            pid for pid in descendants(1) if str(process.pid) in read(Path(f"/proc/{pid}/cmdline"))
        }
        assert gone_within(workers, 20), alive(workers)


@pytest.mark.parametrize(
    "ending", ["pass", "raise SystemExit(3)", "import os; os._exit(0)", "1 / 0"]
)
def test_nothing_is_left_of_a_parent_that_ends(ending: str, runner: str) -> None:
    with python(f"""
        import os, sys
        sys.stderr = open(os.devnull, "w")
        from agrotools.sandbox.running import run_code
        run_code("x = 1", call=None, runner={runner!r})
        print("run", flush=True)
        sys.stdin.readline()
        {ending}
    """) as process:
        process.stdout.readline()
        workers = descendants(process.pid)
        assert alive(workers)
        process.communicate(timeout=20)
        assert gone_within(workers, 30), alive(workers)


def test_closing_leaves_no_process_thread_or_descriptor(runner: str) -> None:
    """In a process of its own: what else this one has opened may be closed at any time."""
    with python(f"""
        import os, sys, threading, time
        from agrotools.sandbox.running import run_code
        from agrotools.sandbox.pool import close_pools
        def used():
            # A worker that was just being started when its pool closed is ended once it is there.
            end = time.monotonic() + 30
            while threading.active_count() > 1 and time.monotonic() < end:
                time.sleep(0.01)
            return sorted(os.listdir("/proc/self/fd")), threading.active_count()
        run_code("x = 1", call=None, runner={runner!r})
        close_pools()
        before = used()
        for _ in range(2):
            run_code("x = 1", call=None, runner={runner!r})
            close_pools()
        print("same" if used() == before else (before, used()), flush=True)
        sys.stdin.readline()
    """) as process:
        assert process.stdout.readline() == "same\n"
        assert gone_within(descendants(process.pid), 30)


def test_callers_that_wait_are_told_when_the_pool_closes(no_pools: None, runner: str) -> None:
    pool = Pool(runner, 1)
    taken = pool.take()
    with ThreadPoolExecutor(3) as threads:
        waiting = [threads.submit(pool.take) for _ in range(3)]
        time.sleep(0.1)
        pool.close()
        for each in waiting:
            with pytest.raises(InfrastructureError, match="closed"):
                each.result(10)
    with pytest.raises(InfrastructureError, match="closed"):
        pool.start()
    assert gone_within({taken.pid}, 30)


def test_a_runner_that_does_not_start_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "interpreter", lambda: "/nonexistent/python")
    result = run_code(ANSWER, runner="none")
    assert result.termination == "infrastructure"
    assert "/nonexistent/python" in result.message


@pytest.mark.parametrize("when", ["waiting", "starting"])
def test_a_worker_that_is_lost_is_replaced(when, no_pools, runner, monkeypatch):
    monkeypatch.setenv(WORKERS_VARIABLE, "1")
    assert run_code(ANSWER, runner=runner).value == "42"
    if when == "waiting":
        time.sleep(0.5)
    for worker in list(pool_of(runner)._alive):
        worker.kill()
    assert run_code(ANSWER, runner=runner).value == "42"


def test_workers_that_are_lost_again_and_again_are_our_fault(no_pools, runner, monkeypatch):
    take = Pool.take

    def take_and_kill(pool: Pool):
        worker = take(pool)
        assert worker.wait_ready()  # bubblewrap's inner processes know when to die by then
        whole = {worker.pid} | descendants(worker.pid)
        os.kill(worker.pid, signal.SIGKILL)
        assert gone_within(whole, 30)
        return worker

    monkeypatch.setattr(Pool, "take", take_and_kill)
    result = run_code(ANSWER, runner=runner)
    assert result.termination == "infrastructure"
    assert "was lost" in result.message


def test_a_worker_that_is_killed_at_work_twice_had_no_memory(no_pools: None, runner: str) -> None:
    def kill() -> None:
        for _ in range(2000):
            time.sleep(0.02)
            if done.is_set():
                return
            for pid in descendants(os.getpid()):
                name, _, status = stat_of(pid).rpartition(")")
                if "(python" in name and int(status.split()[11]) > BUSY:
                    os.kill(pid, signal.SIGKILL)

    BUSY = 60  # hundredths of a second of processor time: more than it takes to get ready
    done = threading.Event()
    killer = threading.Thread(target=kill)
    killer.start()
    result = run_code(
        "while True: pass", call=None, limits=Limits(cpu_s=20, wall_s=30), runner=runner
    )
    done.set()
    killer.join()
    assert (result.termination, result.ok) == ("memory", False)
    assert "killed the code twice" in result.message


def test_a_process_that_was_forked_off_has_workers_of_its_own(no_pools: None, runner: str) -> None:
    code = f"""
        import os
        from agrotools.sandbox.running import run_code
        assert run_code("x = 1", call=None, runner={runner!r}).ok
        child = os.fork()
        result = run_code("def solution():\\n    return 42", runner={runner!r})
        assert result.value == "42", result
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """
    with python(code) as process:
        assert process.wait(60) == 0


def test_how_many_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WORKERS_VARIABLE, raising=False)
    assert pool_size() == len(os.sched_getaffinity(0))
    monkeypatch.setenv(WORKERS_VARIABLE, " 3 ")
    assert pool_size() == 3
    for wrong in ("0", "-1", "many", "1e3", "2000"):
        monkeypatch.setenv(WORKERS_VARIABLE, wrong)
        with pytest.raises(UsageError, match=WORKERS_VARIABLE):
            pool_size()


def test_what_is_readable_without_what_is_hidden(tmp_path: Path) -> None:
    for name in ("a/x", "b/site/other/x", "b/site/ours/x", "b/y", "b/c/z"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (tmp_path / "b/link").symlink_to(tmp_path / "b/site/other")
    root = str(tmp_path)
    places = Readable((f"{root}/a", f"{root}/b"), (f"{root}/b/site",), (f"{root}/b/site/ours",))
    read, listed = places.expand()
    assert sorted(read) == [f"{root}/{name}" for name in ("a", "b/c", "b/site/ours", "b/y")]
    assert sorted(listed) == [f"{root}/b", f"{root}/b/site"]
