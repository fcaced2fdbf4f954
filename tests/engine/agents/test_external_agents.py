"""Agents with loops of their own: the same agent over every route, its limits, its faults, and what it can reach."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

import agrotools as at
from agrotools.agents.external import AgentServer
from agrotools.core import EndpointUnreachable, UsageError
from agrotools.models.base import WireSettings
from agrotools.report.html.page import build_report
from agrotools.sandbox.agents import Isolation, is_available
from support.agent_server import agent_serving
from support.benchmark_folders import number_sample, write_folder
from support.eval_process import wait_for
from support.shown import tables_text

PROGRAM = """
import asyncio, json, sys
import my_agent
import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

async def main():
    server = json.load(open(sys.argv[1]))["mcpServers"]["agrotools"]
    prompt = sys.stdin.read()
    async with httpx2.AsyncClient(headers=server["headers"], timeout=60) as http:
        async with Client(streamable_http_client(server["url"], http_client=http)) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["calculate", "plot", "final_answer"], names
            done = await client.call_tool("calculate", my_agent.first_call(prompt))
            asked = await client.call_tool("final_answer", {"text": my_agent.words(done.structured_content["value"])})
            late = await client.call_tool("calculate", {"expression": "1 + 1"})
            assert late.is_error
            form = my_agent.filled(asked.structured_content["form_request"], done.structured_content["value"])
            await client.call_tool("final_answer", {"text": form})

asyncio.run(main())
"""
pytestmark = pytest.mark.process

AGENT = """
import re

def numbers(query):
    return re.findall(r"[0-9]+[.][0-9]+", query)

def first_call(query):
    a, b = numbers(query)
    return {"expression": "(a + b) / 2", "variables": {"a": float(a), "b": float(b)}}

def words(value):
    return f"On average they yield {value} t/ha."

def filled(form, value):
    assert "mean_yield: <number>" in form
    return f"mean_yield: {value}"

def solve(task, form=None):
    if form:
        assert task.prompt.endswith(form) and task.answer in task.prompt and not task.tools
        return filled(form, numbers(task.answer)[0])
    return words(task.tools.calculate(**first_call(task.query))["value"])

async def solve_async(task, form=None):
    if form:
        return filled(form, numbers(task.answer)[0])
    return words((await task.tools["calculate"](**first_call(task.query)))["value"])

def solve_in_words(task):
    return words(task.tools.calculate(**first_call(task.query))["value"])

def solve_with_values(task):
    return {"mean_yield": task.tools.calculate(**first_call(task.query))["value"]}

def solve_with_other_values(task):
    return {"mean": task.tools.calculate(**first_call(task.query))["value"]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(
        tmp_path / "bench", [number_sample(tmp_path / "bench", f"tiny-{n}", n) for n in (1, 2, 3)]
    )


@pytest.fixture
def agent_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Write a module into a folder of its own, which becomes the current one, and return its name."""
    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.chdir(code)

    def write(text: str, name: str = "my_agent") -> str:
        (code / f"{name}.py").write_text(text)
        return name

    return write


def evaluated(folder: Path, model: Any, out: Path, **options: Any) -> at.Run:
    return at.evaluate(folder, model, mode="end-to-end", out=out, progress=io.StringIO(), **options)


def outcome(run: at.Run) -> list[Any]:
    return [
        (
            r.sample.id,
            r.trajectory
            and [(s.kind, s.call and s.call.arguments, s.text) for s in r.trajectory.steps],
        )
        for r in run.samples()
    ]


REQUESTS: list[dict[str, Any]] = []
"""Requests to the server of the test."""


def served_action(request: dict[str, Any]) -> dict[str, Any]:
    REQUESTS.append(request)
    space: dict[str, Any] = {}
    exec(AGENT, space)
    task, steps = request["task"], request["steps"]
    if not steps:
        return {"call": {"tool": "calculate", "arguments": space["first_call"](task["query"])}}
    value = steps[0]["observation"]["result"]["value"]
    form = request.get("form_request")
    return {"answer": space["filled"](form, value) if form else space["words"](value)}


@pytest.fixture
def agent_server() -> Iterator[str]:
    """Address of a server of the same agent."""
    REQUESTS.clear()
    with agent_serving(served_action) as address:
        yield address


def test_the_same_agent_over_every_route_has_the_same_scores(
    folder, tmp_path, agent_module, agent_server
):
    space: dict[str, Any] = {}
    exec(AGENT, space)
    name = agent_module(AGENT)
    routes = {
        "function": space["solve"],
        "async function": space["solve_async"],
        "process": f"python:{name}:solve",
        "server": agent_server,
        "program": f"mcp:{sys.executable} program.py {{config}}",
    }
    (tmp_path / "code" / "program.py").write_text(PROGRAM)
    paths = {"program": [str(tmp_path / "code" / "my_agent.py")]}
    runs = {
        route: evaluated(folder, model, tmp_path / route, agent_path=paths.get(route, []))
        for route, model in routes.items()
    }
    first = runs["function"]
    assert first.scores["fas"].value == 1
    assert all(record.invalid is None for record in first.samples())
    for run in runs.values():
        assert outcome(run) == outcome(first)
        assert {name: each.value for name, each in run.scores.items()} == {
            name: each.value for name, each in first.scores.items()
        }
    assert runs["function"].manifest.sealed is False
    assert runs["process"].manifest.sealed is is_available()
    assert runs["server"].manifest.sealed is None
    assert at.score(first).summary.unsealed
    assert not at.score(runs["server"]).summary.unsealed
    (step,) = [step for step in first.samples()[0].trajectory.steps if step.kind == "answer"]
    assert (step.text, len(step.form_replies)) == (
        "On average they yield 5.4 t/ha.\n\nmean_yield: 5.4",
        1,
    )
    sent = REQUESTS[0]
    assert "mean_yield" not in json.dumps(sent)
    assert "path" not in sent["task"]["files"][0]
    assert str(folder) not in json.dumps(sent)


TELLS = """
import json, os, sys

def solve(task):
    return {"mean_yield": 10 * task.epoch + task.seed}

if __name__ == "__main__":
    print("mean_yield:", 10 * int(os.environ["AGROTOOLS_EPOCH"]) + int(os.environ["AGROTOOLS_SEED"]))
"""


def test_an_agent_is_told_the_epoch_of_a_sample_and_the_seed_of_the_run(
    tmp_path: Path, folder: Path, agent_module: Callable[[str], str]
):
    def act(request: dict[str, Any]) -> dict[str, Any]:
        task = request["task"]
        return {"answer": {"mean_yield": 10 * task["epoch"] + task["seed"]}}

    name = agent_module(TELLS)
    with agent_serving(act) as server:
        routes = {
            "function": lambda task: {"mean_yield": 10 * task.epoch + task.seed},
            "process": f"python:{name}:solve",
            "server": server,
            "program": f"mcp:{sys.executable} {name}.py",
        }
        for route, model in routes.items():
            run = evaluated(folder, model, tmp_path / route, limit=1, epochs=2, seed=3)
            trajectories = [record.trajectory for record in run.samples()]
            told = [made.answer_text for made in trajectories if made is not None]
            assert told == ["mean_yield: 3", "mean_yield: 13"], route


def test_an_agent_may_return_values_and_has_no_score_but_of_its_words_if_it_submits_no_form(
    folder, tmp_path, agent_module
):
    space: dict[str, Any] = {}
    exec(AGENT, space)
    name = agent_module(AGENT)
    values = evaluated(folder, f"python:{name}:solve_with_values", tmp_path / "values")
    assert values.scores["fas"].value == 1
    other = evaluated(folder, space["solve_with_other_values"], tmp_path / "other")
    assert other.scores["fas"].value == 0
    assert {record.trajectory.termination for record in other.samples()} == {"no_form"}
    returned = "no complete form in the values that the agent returned, and it was not asked again"
    assert all(record.trajectory.reason.startswith(returned) for record in other.samples())
    words = evaluated(folder, space["solve_in_words"], tmp_path / "words")
    assert {name: each.value for name, each in words.scores.items()} == {"fas_text": 1}
    assert "the agent submits no form" in tables_text([at.score(words).summary])


FAULTY = '''
import asyncio, os, sys, time

def raises(task):
    return task.no_such_field

def raises_together(task):
    inner = ExceptionGroup("inner", [ValueError("no key"), KeyError("no scale")])
    raise ExceptionGroup("unhandled errors in a TaskGroup", [inner])

def exits(task):
    sys.exit(3)

def dies(task):
    os._exit(7)

def hangs(task):
    time.sleep(60)

def never_answers(task):
    while True:
        task.tools.calculate(expression="1 + 1")

def ignores_errors(task):
    try:
        task.tools.calculate(expression="1 +")
    except Exception as error:
        kind = f"{type(error).__name__} {error.kind} {bool(error.hint)}"
    print("printed by the agent")
    return {"mean yield": kind}

def sends_too_large_a_number(task):
    values = (10**30, 10**400, "1 + \\ud800", nested())
    replies = [task.tools.calculate.reply(expression=value).text for value in values]
    return f"mean yield: \\ud800 {['invalid_argument' in reply for reply in replies]}"

def reports_too_much(task):
    task.report_usage(input_tokens=10**30)

def nested():
    value = []
    for _ in range(100):
        value = [value]
    return value

async def calls_at_once(task):
    results = await asyncio.gather(*(task.tools.calculate(expression=f"{n} + 1") for n in range(5)))
    return str([each["value"] for each in results])

def looks_around(task):
    """Search this process and its files for the answer 5.4, in the ways that a dishonest agent would try."""
    import gc, glob, importlib.resources, pathlib, subprocess
    found = {}
    def attempt(name, act):
        try:
            seen = act()
        except Exception as error:
            seen = ""
        if seen:
            found[name] = str(seen)[:200]
    def grep(root):
        out = subprocess.run(["grep", "-rlsI", "--include=*.jsonl", "--include=*.json", "canary-of-gold", root],
                             capture_output=True, text=True, timeout=50)
        return out.stdout
    secret = os.environ.get("SECRET_FILE", "")
    where = "WHERE"
    attempt("environment", lambda: [v for v in os.environ.values() if "canary" in v])
    attempt("environment of the parent", lambda: [p for p in glob.glob("/proc/[0-9]*/environ")
                                                  if b"canary" in open(p, "rb").read()])
    attempt("processes outside", lambda: [p for p in glob.glob("/proc/[0-9]*/comm") if "pytest" in open(p).read()])
    attempt("open files", lambda: [os.readlink(p) for p in glob.glob("/proc/*/fd/*") if "records" in os.readlink(p)])
    attempt("samples", lambda: open(where + "/bench/samples.jsonl").read())
    attempt("folder of the benchmark", lambda: os.listdir(where + "/bench"))
    attempt("run folder", lambda: os.listdir(where + "/run"))
    attempt("parent of the run", lambda: set(os.listdir(where)) - {"code"})
    attempt("beside the files", lambda: [n for n in os.listdir(pathlib.Path(task.files[0].path).parent)
                                         if n not in {f.name for f in task.files}])
    attempt("other tasks", lambda: [p for p in glob.glob(str(pathlib.Path(task.files[0].path).parents[1]) + "/*")
                                    if p != str(pathlib.Path(task.files[0].path).parent)])
    data = importlib.resources.files("agrotools_benchmarks") / "data"
    attempt("packed benchmarks", lambda: [p.name for p in data.iterdir()])
    scenes = importlib.resources.files("agrotools_build") / "sources/drawn"
    attempt("what draws scenes and their truth", lambda: [p.name for p in scenes.iterdir()])
    attempt("public loader", lambda: len(__import__("agrotools").load_benchmark("embedded").samples))
    attempt("home folder", lambda: os.listdir(os.path.expanduser("~")))
    attempt("cache", lambda: os.listdir(os.path.expanduser("~/.cache/agrotools")))
    attempt("root's home", lambda: set(os.listdir("/root")) - {".pyenv"})
    attempt("objects in memory", lambda: [o for o in gc.get_objects() if type(o).__name__ in ("Sample", "Record")])
    attempt("frames", lambda: [f for f in sys._current_frames().values() if "sample" in f.f_locals])
    attempt("write into the files", lambda: open(task.files[0].path, "a").write("x"))
    attempt("grep of temporary files", lambda: grep("/tmp"))
    attempt("memory of others", lambda: open("/proc/%d/mem" % os.getppid(), "rb").read(1))
    return repr(found)
'''


def test_a_sealed_agent_finds_no_gold_in_twenty_one_ways(
    tmp_path, folder, agent_module, monkeypatch
):
    if not is_available():
        pytest.skip("needs bubblewrap")
    monkeypatch.setenv("CANARY", "canary-of-gold")
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    write_folder(folder, [{**each, "metadata": {"x": "canary-of-gold"}} for each in samples])
    name = agent_module(FAULTY.replace("WHERE", str(tmp_path)))
    run = evaluated(folder, f"python:{name}:looks_around", tmp_path / "run", limit=1)
    (record,) = run.samples()
    assert (record.invalid, record.trajectory.steps[-1].text) == (None, "{}")
    assert run.manifest.sealed is True


LEFT_BEHIND = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
    os._exit(0)
print("mean_yield: 2", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("sealed", [True, False])
def test_a_program_answers_when_it_ends_whatever_it_leaves_behind(
    tmp_path, folder, agent_module, monkeypatch, sealed
):
    agent_module(LEFT_BEHIND, "program")
    if not sealed:
        monkeypatch.setattr("agrotools.sandbox.agents.is_available", lambda: False)
    run = evaluated(
        folder, f"mcp:{sys.executable} program.py", tmp_path / "run", limit=1, timeout_s=60
    )
    assert run.samples()[0].trajectory.answer == "mean_yield: 2"
    assert str(tmp_path / "code" / "program.py") not in processes()


@pytest.mark.skipif(not is_available(), reason="needs bubblewrap")
def test_python_may_be_a_script_and_a_program_that_lacks_files_says_what_is_hidden(
    tmp_path: Path, folder: Path, agent_module: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    agent_module("print('mean_yield: 2')", "program")
    shims, hidden = tmp_path / "shims", tmp_path / "hidden"
    for place, name in ((shims, "python3"), (shims, "other"), (hidden, "real")):
        place.mkdir(exist_ok=True)
        target = sys.executable if name == "real" else hidden / "real"
        (place / name).write_text(f'#!/bin/sh\nexec {target} "$@"\n')
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")
    trajectory = (
        evaluated(folder, "mcp:python3 program.py", tmp_path / "run", limit=1)
        .samples()[0]
        .trajectory
    )
    assert trajectory.answer == "mean_yield: 2"
    with pytest.raises(
        at.InvalidRunError, match="name other files and folders that it needs with --agent-path"
    ):
        evaluated(folder, "mcp:other program.py", tmp_path / "other", limit=1)


def test_an_exception_in_a_function_of_this_session_is_named_as_its_fault(
    tmp_path: Path, folder: Path
):
    def interrupted(_task: at.Task) -> str:
        raise KeyboardInterrupt

    def cancelled(_task: at.Task) -> str:
        raise asyncio.CancelledError

    def missing(task: at.Task) -> str:
        return str(task.tools.calculate(expression="1 +"))

    for function, reason in (
        (interrupted, "KeyboardInterrupt"),
        (cancelled, "CancelledError"),
        (missing, "ToolError: "),
    ):
        with pytest.raises(at.InvalidRunError) as caught:
            evaluated(folder, function, tmp_path / function.__name__, limit=1)
        assert f"the agent failed: {reason}" in str(caught.value)
        assert "test_external_agents.py, line" in str(caught.value)


def test_faults_of_an_agent_are_told_apart(
    tmp_path: Path, folder: Path, agent_module: Callable[[str], str]
):
    name = agent_module(FAULTY)

    def record_of(function: str, **options: Any) -> Any:
        try:
            run = evaluated(
                folder, f"python:{name}:{function}", tmp_path / function, limit=1, **options
            )
        except at.InvalidRunError as error:
            run = cast("at.Run", error.run)
        (record,) = run.samples()
        return record

    raised = record_of("raises").invalid
    assert "AttributeError" in raised
    assert "my_agent.py, line" in raised
    together = record_of("raises_together").invalid
    assert "the agent failed: ValueError: no key; KeyError: 'no scale'" in together
    assert "SystemExit: 3" in record_of("exits").invalid
    assert "the agent's process ended" in record_of("dies").invalid
    assert record_of("hangs", timeout_s=1).trajectory.termination == "timeout"
    endless = record_of("never_answers", max_steps=3)
    assert (endless.trajectory.termination, len(endless.trajectory.steps)) == ("max_steps", 3)
    assert (
        record_of("ignores_errors").trajectory.steps[-1].text
        == "mean yield: ToolError invalid_argument True"
    )
    large = record_of("sends_too_large_a_number")
    assert large.trajectory.steps[-1].text == "mean yield: \ufffd [True, True, True, True]"
    assert "less than or equal to 1000000000000" in record_of("reports_too_much").invalid
    for run in ("sends_too_large_a_number", "reports_too_much"):
        build_report([tmp_path / run], tmp_path / f"{run}.html")
    assert record_of("calls_at_once").trajectory.steps[-1].text == "[1, 2, 3, 4, 5]"


PRINTING = """
import sys
import time

def solve(task, form=None):
    if form:
        print("asked for the form", file=sys.stderr)
        return "mean_yield: 1"
    field = task.query.partition("field ")[2][0]
    print(f"question on field {field}", end="")
    if field == "2":
        for number in range(3000):
            print(f"line {number}")
        raise ValueError("after many lines")
    if field == "3":
        time.sleep(60)
    print()
    return "1"
"""


@pytest.mark.parametrize("sealed", [True, False])
def test_what_an_agent_prints_is_kept_by_sample(
    tmp_path: Path,
    folder: Path,
    agent_module: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    sealed: bool,
):
    if not sealed:
        monkeypatch.setattr("agrotools.sandbox.agents.is_available", lambda: False)
    name = agent_module(PRINTING)
    progress, out = io.StringIO(), tmp_path / "run"
    at.evaluate(
        folder,
        f"python:{name}:solve",
        mode="end-to-end",
        out=out,
        progress=progress,
        timeout_s=10,  # the start of its process counts, too, and takes seconds on a busy machine
    )
    log = (out / "agent.log").read_text()
    assert f"what the agent printed, by sample: {out / 'agent.log'}" in progress.getvalue()
    entries = dict(part.split("\n", 1) for part in log.removeprefix("== ").split("\n\n== "))
    assert entries.keys() == {f"tiny-{n}, end-to-end, epoch 0" for n in (1, 2, 3)}
    answered, raised, slept = (entries[f"tiny-{n}, end-to-end, epoch 0"] for n in (1, 2, 3))
    assert answered.splitlines() == ["question on field 1", "asked for the form"]
    assert raised.startswith("[the last 20,000 bytes]\n")
    assert "line 2999\nTraceback" in raised
    assert "ValueError: after many lines" in raised
    assert len(raised) < 21_000
    assert slept.strip() == "question on field 3"


def test_what_a_program_prints_is_kept_by_sample(
    tmp_path: Path, folder: Path, agent_module: Callable[..., str]
):
    agent_module(
        "import sys; print('a remark', file=sys.stderr); print('mean_yield: 2')", "program"
    )
    out = tmp_path / "run"
    run = evaluated(folder, f"mcp:{sys.executable} program.py", out, limit=1)
    log = (out / "agent.log").read_text()
    assert (
        log == f"== {run.samples()[0].sample.id}, end-to-end, epoch 0\nmean_yield: 2\na remark\n\n"
    )


RAW = """
import itertools, json, os, threading, time

CHANNEL = 4
asked, late = itertools.count(1), threading.Event()

def write(*lines):
    os.write(CHANNEL, b"".join(json.dumps(line).encode() + b"\\n" for line in lines))

def two_answers(task):
    n = next(asked)
    if n == 2:
        write({"answer": "3"}, {"answer": "4"})
        time.sleep(0.1)
    return str(n)

def malformed_call(task):
    write({"number": 1, "call": {"tool": 5, "arguments": []}})
    return "1"

def calls_after_its_answer(task):
    n = next(asked)
    if n > 1:
        late.set()
        time.sleep(0.2)
    else:
        threading.Thread(target=lambda: late.wait() and task.tools.calculate(expression="1 + 1")).start()
    return str(n)
"""


def test_what_an_agent_writes_beside_its_answer_reaches_no_other_sample(
    tmp_path, folder, agent_module
):
    name = agent_module(RAW)

    def records_of(function: str) -> Any:
        try:
            return evaluated(
                folder, f"python:{name}:{function}", tmp_path / function, concurrency=1
            ).samples()
        except at.InvalidRunError as error:
            return cast("at.Run", error.run).samples()

    reason = "the agent wrote a line that is not of the protocol"
    first, second, third = records_of("two_answers")
    assert reason in second.invalid
    assert (first.trajectory.answer, third.trajectory.answer) == (
        "1",
        "1",
    )  # the third has a process of its own
    assert all(reason in record.invalid for record in records_of("malformed_call"))
    records = records_of("calls_after_its_answer")
    assert [record.trajectory.answer for record in records] == ["1", "2", "3"]
    assert {len(record.trajectory.steps) for record in records} == {1}


LOOKING = """
CHART = {"kind": "bar", "series": [{"name": "yield", "x": ["north"], "y": [5.4]}], "title": "Yield", "x_label": "field",
         "y_label": "yield"}

def answer(task, chart, failed):
    (shown,), (drawn,) = task.pictures, chart.pictures
    return f"{shown.data[:3].hex()} {shown.url[:22]} {drawn.data[1:4].decode()} {failed.text}"

def solve(task):
    return answer(task, task.tools.plot.reply(**CHART), task.tools.calculate.reply(expression="1 +"))
"""


def test_an_agent_sees_pictures_of_files_and_results(
    tmp_path: Path, folder: Path, agent_module: Callable[[str], str]
):
    name = agent_module(LOOKING)
    run = evaluated(folder, f"python:{name}:solve", tmp_path / "run", limit=1)
    (record,) = run.samples()
    assert record.trajectory is not None, record.invalid
    first, url, drawn, error = record.trajectory.steps[-1].text.split(" ", 3)
    assert (first, url, drawn) == ("ffd8ff", "data:image/jpeg;base64", "PNG")
    assert set(json.loads(error)["error"]) >= {"kind", "message", "hint"}
    assert "pictures" not in record.trajectory.steps[0].observation.model_dump()


def test_an_agent_that_cannot_start_is_a_usage_error(tmp_path, folder, agent_module, monkeypatch):
    name = agent_module(
        "import helper_beside\n\ndef solve(task):\n    return helper_beside.VALUE\n"
    )
    helper = tmp_path / "code" / "helper_beside.py"
    helper.write_text("VALUE = 'x'\n")
    for model, message in [
        ("python:no_such_module_at_all:solve", "no module"),
        (f"python:{name}", "names no function"),
        (f"python:{name}:other", "does not start"),
    ]:
        with pytest.raises(UsageError, match=message):
            evaluated(folder, model, tmp_path / "never", limit=1)
    if is_available():
        with pytest.raises(UsageError, match="helper_beside") as caught:
            evaluated(folder, f"python:{name}:solve", tmp_path / "never", limit=1)
        assert "--agent-path" in str(caught.value.hint)
    run = evaluated(
        folder,
        f"python:{name}:solve",
        tmp_path / "helped",
        limit=1,
        agent_path=[str(helper.parent)],
    )
    assert run.samples()[0].invalid is None
    with pytest.raises(UsageError, match="NO_SUCH_VARIABLE"):
        evaluated(
            folder, f"python:{name}:solve", tmp_path / "never", agent_env=["NO_SUCH_VARIABLE"]
        )


@pytest.mark.parametrize(
    ("reply", "status", "reason"),
    [
        ({}, 307, "HTTP 307 to http://127.0.0.1:9/other: redirects are not followed"),
        (
            {"answer": "mean_yield: 2", "usage": {"input_tokens": 10**25}},
            200,
            "report of its usage is invalid",
        ),
    ],
)
def test_a_fault_of_a_server_is_invalid_and_not_incorrect(tmp_path, folder, reply, status, reason):
    headers = {"Location": "http://127.0.0.1:9/other"} if status == 307 else {}
    with (
        agent_serving(lambda _: reply, status, headers) as server,
        pytest.raises(at.InvalidRunError) as caught,
    ):
        evaluated(folder, server, tmp_path / "run", limit=1)
    assert reason in str(caught.value)


def test_a_server_may_send_numbers_and_letters_that_no_record_holds(tmp_path: Path, folder: Path):
    def reply(request: dict[str, Any]) -> dict[str, Any]:
        call = {"tool": "calculate", "arguments": {"expression": 10**30}}
        return {"answer": "mean_yield: \ud800 2"} if request["steps"] else {"call": call}

    with agent_serving(reply) as server:
        (record,) = evaluated(folder, server, tmp_path / "run", limit=1).samples()
    assert record.trajectory.steps[0].call.arguments == {"expression": 1e30}
    assert record.trajectory.answer_text == "mean_yield: \ufffd 2\n\nmean_yield: \ufffd 2"


def test_a_server_that_does_not_answer_ends_the_run(tmp_path: Path, folder: Path):
    with pytest.raises(EndpointUnreachable, match="no agent answers"):
        evaluated(folder, "http://127.0.0.1:9/agent", tmp_path / "run")


async def test_a_server_that_stops_ends_the_run():
    with agent_serving(lambda _: {"answer": "2"}) as url:
        server = AgentServer(url, WireSettings(attempts=2))
        await server._ask("{}")
    with pytest.raises(EndpointUnreachable, match="no agent answers"):
        await server._ask("{}")
    await server.close()


def test_variables_of_an_agent_are_not_on_its_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("API_KEY", "secret-key")
    for sealed in (True, False):
        command, environment = Isolation(sealed, ["API_KEY"]).command(["agent"], tmp_path)
        assert command[-1] == "agent"
        assert "secret-key" not in " ".join(command)
        assert environment["API_KEY"] == "secret-key"


WAITING = """
import time
from pathlib import Path

def solve(task):
    while not Path(task.files[0].path).with_name("go").exists():
        time.sleep(0.02)
    return "mean_yield: 1"
"""


def processes() -> str:
    return subprocess.check_output(["ps", "axwwo", "args"], text=True)


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP", "SIGKILL"])
def test_what_a_terminal_sends_reaches_no_agent_and_none_outlives_the_run(
    folder, tmp_path, agent_module, name
):
    agent_module(WAITING)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    command = [
        sys.executable,
        "-m",
        "agrotools",
        "eval",
        str(folder),
        "-m",
        "python:my_agent:solve",
    ]
    command += ["--mode", "end-to-end", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    ) as process:
        wait_for(
            lambda: len([*temporary.glob("agrotools-agents-*/*/*")]) == 3
        )  # the files of three tasks
        os.killpg(process.pid, signal.Signals[name])
        if name != "SIGKILL":
            for place in temporary.glob("agrotools-agents-*/*/"):
                (place / "go").touch()
    wait_for(lambda: str(tmp_path) not in processes(), 10)
    if name != "SIGKILL":
        records = [
            json.loads(line)
            for line in (tmp_path / "run" / "records.jsonl").read_text().splitlines()
        ]
        assert [record["invalid"] for record in records] == [None] * 3
        assert process.returncode == 130
        assert not [*temporary.iterdir()]
