"""Reference chains filled in by a model: executed, compared with the template's, kept whatever happens."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from aiohttp import web

from agrotools.benchmarks import load_folder
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.assist.traces import TRACES_FILE, input_hash, kept_traces, read_traces
from agrotools.build.assist.tracing import TraceResult, trace_folder
from agrotools.core import RunStoreError
from agrotools.models import WireSettings
from agrotools.models.endpoint import Endpoint, priced_model
from support.caches import separate_cache
from support.fault_server import closed_port
from support.openai_server import Body, ReferenceFollower, completion, error, serving, text_of
from support.sums_benchmark import write_sums

QUICK = WireSettings(attempts=2, first_wait_s=0.01, longest_wait_s=0.02, retry_wall_s=2)
NORTH_AND_SOUTH = '{"expression": "a + b", "variables": {"a": 3.0, "b": 4.5}}'


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """Six questions of two sums each; no files, so that only workers and the endpoint take time."""
    return write_sums(tmp_path / "sums", 6)


@pytest.fixture(autouse=True)
def _own_replies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    separate_cache(monkeypatch, tmp_path / "cache")


def trace(
    folder: Path, base_url: str, model: str = "m", *, budget_usd: float | None = None, price: str | None = None
) -> TraceResult:
    helper = priced_model(Endpoint(model, base_url, wire=QUICK, price=price, budget_usd=budget_usd))
    return trace_folder(folder, helper, folder.parent / "spend.jsonl", workers=1)


def edited(folder: Path, **fields) -> None:
    """Set ``fields`` of the first sample."""
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    lines[0].update(fields)
    (folder / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def step_of(body: Body) -> int:
    """The number of the step that is asked for, from 1; one more than there are for the answer."""
    said = "\n".join(text_of(message) for message in body["messages"])
    return said.count("\nStep ") + said.count("All calls are made")


def test_a_model_that_follows_the_chain_confirms_it_unless_a_tool_fails(small_benchmark: Path, tmp_path: Path):
    folder = Path(shutil.copytree(small_benchmark, tmp_path / "benchmark"))
    before = (folder / "samples.jsonl").read_bytes()
    with serving(ReferenceFollower.of_folder(folder, "good")) as endpoint:
        done = trace(folder, endpoint.base_url)
        assert any("image_url" in json.dumps(body) for body in endpoint.requests), "it sees the pictures"
    assert (folder / "samples.jsonl").read_bytes() == before, "the template's chain stays the gold"
    whole, samples = done.summary[-1], load_folder(folder).samples
    steps = {sample.id: sample.reference.steps for sample in samples if sample.reference}
    broken = [
        name for name, of_sample in steps.items() if any(s.observation and s.observation.error for s in of_sample)
    ]
    unbroken = 8 - len(broken)
    assert (whole.chains, whole.complete, whole.confirmed) == (8, unbroken, unbroken)
    assert unbroken >= 4
    assert whole.steps == sum(map(len, steps.values()))
    assert whole.steps_agreed == whole.steps - len(broken)
    assert (done.differing, done.missing, done.stopped) == (broken, 0, None)
    for sample in samples:
        record = read_traces(folder)[sample.id, "m"]
        assert record.confirms == (sample.id not in broken)
        assert sample.reference is not None
        for step in record.steps:
            gold = sample.reference.steps[step.reference_step]
            assert step.observation is not None
            assert gold.observation is not None
            assert step.observation.result == gold.observation.result, "the calls were really made"


def test_every_step_is_told_its_tool_and_nothing_of_the_gold(sums: Path):
    lines = [json.loads(line) for line in (sums / "samples.jsonl").read_text().splitlines()]
    for line in lines:
        line["template"], line["metadata"] = "GOLDMARK", {"m": "GOLDMARK"}
        line["answer"][0]["value"] = 987654.25
        for step in line["reference"]["steps"]:
            step["truth"], step["thought"] = {"value": "GOLDMARK"}, "GOLDMARK"
            step["observation"] = {"result": {"value": "GOLDMARK"}}
    lines[0]["reference"]["steps"][1]["arguments"]["expression"] = "s / 2 + 55555 - 55555"
    follower = ReferenceFollower.of_folder(sums, "good")
    (sums / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with serving(follower) as endpoint:
        trace(sums, endpoint.base_url)
        sent = json.dumps(endpoint.requests)
        first = [body for body in endpoint.requests if len(body["messages"]) == 2]
    assert len(first) == 6
    assert "GOLDMARK" not in sent
    assert "987654" not in sent
    assert "55555" not in json.dumps(first)
    for body in first:
        told = text_of(body["messages"][1])
        assert "1. calculate, 2. calculate" in told
        assert "Step 1 of 2: calculate" in told
        assert '"expression"' in told


def test_what_differs_is_told_and_left_to_people(sums: Path):
    def careless(body: Body) -> web.Response:
        if step_of(body) == 1:
            wrong = '{"expression": "a - b", "variables": {"a": 3.0, "b": 4.5}}'
            return completion(f"Thought: They differ.\nAction: calculate\nAction Input: {wrong}")
        if step_of(body) == 2:
            return completion('Thought: Halve.\nAction: calculate\nAction Input: {"expression": "-1.5 / 2"}')
        return completion("Thought: So.\nFinal Answer: mean: -0.75 t/ha")

    edited(sums, id="sum-x")
    with serving(careless) as endpoint:
        done = trace(sums, endpoint.base_url)
    record = read_traces(sums)["sum-x", "m"]
    first, second = record.steps
    assert (first.agrees, first.agreed) == ({"expression": False, "variables": True}, False)
    assert "expression" in first.reason
    assert second.agreed, "it took over what its own call returned"
    assert record.answer_agrees, "and read its own calls rightly"
    assert record.complete
    assert not record.confirms
    assert "sum-x" in done.differing
    assert done.thoughts == 0


def test_what_the_tools_leave_open_is_not_laid_to_the_model(sums: Path):
    lines = [json.loads(line) for line in (sums / "samples.jsonl").read_text().splitlines()]
    lines[0]["reference"]["steps"][0]["arguments"] = {"expression": "1 / 0"}
    (sums / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    follower = ReferenceFollower.of_folder(sums, "good")
    calls = ['{"expression": "1 / 0"}', '{"expression": "s / 2", "variables": {"s": null}}']

    def faithful(body: Body) -> web.Response:
        if "Field 0 gave" not in text_of(body["messages"][1]):
            return follower(body)
        if step_of(body) > 2:
            return completion("Final Answer: There is no mean.")
        return completion(f"Thought: So it goes.\nAction: calculate\nAction Input: {calls[step_of(body) - 1]}")

    with serving(faithful) as endpoint:
        done = trace(sums, endpoint.base_url)
    record = read_traces(sums)["sum-0000", "m"]
    assert record.steps[0].agreed
    assert len(record.steps) == 2
    assert "the call failed" in record.steps[0].reason
    assert record.left_open == ("steps[0].observation.value",)
    assert not record.complete
    assert (done.summary[-1].left_open, done.differing) == (1, ["sum-0000"])


@pytest.mark.parametrize("behaviour", ["sloppy", "broken"])
def test_whatever_a_model_does_every_chain_is_told(sums: Path, behaviour):
    with serving(ReferenceFollower.of_folder(sums, behaviour)) as endpoint:
        done = trace(sums, endpoint.base_url)
    records = read_traces(sums)
    assert len(records) + done.missing == 6
    assert len(records) == done.summary[-1].chains
    for record in records.values():
        assert record.confirms or record.reason or record.answer_agrees is False or any(s.reason for s in record.steps)
    assert done.summary[-1].confirmed < 6


USELESS = (
    ("", "empty"),
    ("hm", "neither an Action nor a Final Answer"),
    ("Final Answer: 4", "it answers before calculate was called"),
    ('Action: plot\nAction Input: {"kind": "bar"}', "it calls plot, and calculate is next"),
    ("Action: calculate\nAction Input: {", "cut off"),
    ('Action: calculate\nAction Input: {"expression": "1 +", "hue": 3}', "not valid"),
    ('Action: calculate\nAction Input: {"expression": "a + b", "variables": {"a": "x"}}', ""),
)


def test_output_that_cannot_be_used_gets_one_more_try(tmp_path: Path):
    folder = write_sums(tmp_path / "useless", len(USELESS))

    def useless(body: Body) -> web.Response:
        field = text_of(body["messages"][1]).partition("Field ")[2].split()[0]
        return completion(USELESS[int(field)][0])

    with serving(useless) as endpoint:
        done = trace(folder, endpoint.base_url)
        assert any(len(body["messages"]) == 4 for body in endpoint.requests)
    assert done.summary[-1].complete == 0
    assert len(done.differing) == len(USELESS)
    for number, (_, reason) in enumerate(USELESS):
        step = read_traces(folder)[f"sum-{number:04d}", "m"].steps[0]
        assert step.tries == 2
        assert reason in step.reason


def test_a_step_that_is_mended_counts(sums: Path):
    follower = ReferenceFollower.of_folder(sums, "good")
    with serving(lambda body: follower(body) if len(body["messages"]) > 2 else completion("Well...")) as endpoint:
        done = trace(sums, endpoint.base_url)
    assert done.summary[-1].confirmed == 6
    assert read_traces(sums)["sum-0000", "m"].steps[0].tries == 2


def test_members_of_a_group_may_come_in_any_order(sums: Path):
    lines = [json.loads(line) for line in (sums / "samples.jsonl").read_text().splitlines()]

    def step(value: float, **arguments: object) -> dict[str, object]:
        return {"tool": "calculate", "arguments": arguments, "observation": {"result": {"value": value}}}

    use = {name: {"$ref": f"steps[{n}].observation.value", "value": 7.0 * (n + 2)} for n, name in enumerate("ab")}
    steps = [{**step(7.0 * n, expression=f"{n} * 7"), "group": 0} for n in (2, 3)]
    steps.append(step(1.5, expression="b / a", variables=use))
    slot = {"type": "tolerance", "name": "times", "label": "times", "value": 1.5, "from": "steps[2].observation.value"}
    lines[0] |= {"reference": {"steps": steps}, "answer": [slot]}
    (sums / "samples.jsonl").write_text(f"{json.dumps(lines[0])}\n")
    calls = ['{"expression": "3 * 7"}', '{"expression": "7 * 2"}', '{"expression": "21 / 14"}']

    def other_way_round(body: Body) -> web.Response:
        number = step_of(body)
        if number > 3:
            return completion("Final Answer: times: 1.5")
        return completion(f"Thought: t{number}.\nAction: calculate\nAction Input: {calls[number - 1]}")

    with serving(other_way_round) as endpoint:
        done = trace(sums, endpoint.base_url)
    record = read_traces(sums)["sum-0000", "m"]
    assert [step.reference_step for step in record.steps] == [1, 0, 2]
    assert record.confirms, record
    assert done.thoughts == 1
    sample = load_folder(sums).samples[0]
    assert sample.reference is not None
    assert [step.thought for step in sample.reference.steps] == ["t2.", "t1.", "t3."]


def test_thoughts_fill_only_what_is_missing_and_confirmed(sums: Path):
    lines = [json.loads(line) for line in (sums / "samples.jsonl").read_text().splitlines()]
    lines[0]["reference"]["steps"][0]["thought"] = "Mine."
    (sums / "samples.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    follower = ReferenceFollower.of_folder(sums, "good")

    def wrong_for_one(body: Body) -> web.Response:
        if "Field 1 gave" in text_of(body["messages"][1]) and step_of(body) == 3:
            return completion("Final Answer: mean: 99 t/ha")
        return follower(body)

    with serving(wrong_for_one) as endpoint:
        done = trace(sums, endpoint.base_url)
    assert done.thoughts == 5
    samples = {sample.id: sample for sample in load_folder(sums).samples}
    thoughts = {name: [step.thought for step in s.reference.steps] for name, s in samples.items() if s.reference}
    assert thoughts["sum-0000"] == ["Mine.", "I need a measurement."]
    assert thoughts["sum-0001"] == ["", ""]
    assert thoughts["sum-0002"] == ["I need a measurement."] * 2
    assert samples["sum-0002"].metadata["thoughts_by"] == "m"
    assert "thoughts_by" not in samples["sum-0001"].metadata
    assert len(read_traces(sums)) == 6, "the traces stay in the folder that was written anew"
    assert validate_folder(sums) == []
    with serving(follower) as endpoint:
        assert trace(sums, endpoint.base_url).summary[-1].chains == 6
        assert endpoint.requests == [], "a thought that was filled in makes no trace out of date"


def test_only_what_is_missing_is_asked_for(sums: Path):
    with serving(ReferenceFollower.of_folder(sums, "good")) as endpoint:
        trace(sums, endpoint.base_url)
        assert len(endpoint.requests) == 18
    lines = (sums / TRACES_FILE).read_bytes().splitlines(keepends=True)
    (sums / TRACES_FILE).write_bytes(b"".join(lines[:4]) + lines[4][:70])
    shutil.rmtree(Path(os.environ["AGROTOOLS_CACHE"]) / "responses")
    with serving(ReferenceFollower.of_folder(sums, "good")) as endpoint:
        done = trace(sums, endpoint.base_url)
        assert len(endpoint.requests) == 6
    assert done.summary[-1].confirmed == 6
    assert sorted((sums / TRACES_FILE).read_bytes().splitlines(keepends=True)) == sorted(lines)
    edited(sums, query="Field 0 gave 3.0 and 4.5 t/ha. Their mean, please?")
    with serving(ReferenceFollower.of_folder(sums, "good")) as endpoint:
        trace(sums, endpoint.base_url)
        assert len(endpoint.requests) == 3, "a question that changed is asked again"
        sample = load_folder(sums).samples[0]
        assert read_traces(sums)[sample.id, "m"].asked == input_hash(sample)
        trace(sums, endpoint.base_url, "other")
    assert {model for _, model in read_traces(sums)} == {"m", "other"}
    assert len(read_traces(sums)) == 12


def test_an_endpoint_that_dies_leaves_what_was_done(sums: Path):
    follower, asked = ReferenceFollower.of_folder(sums, "good"), 0

    def dying(body: Body) -> web.Response:
        nonlocal asked
        asked += 1
        return follower(body) if asked <= 13 else error(503, "gone")

    with serving(dying) as endpoint:
        done = trace(sums, endpoint.base_url)
    assert done.stopped is not None
    assert done.missing == 6 - done.summary[-1].chains > 0
    with serving(follower) as endpoint:
        assert trace(sums, endpoint.base_url).summary[-1].confirmed == 6


def test_no_endpoint_at_all_is_no_stack_trace(sums: Path):
    done = trace(sums, f"http://127.0.0.1:{closed_port()}/v1")
    assert done.stopped is not None
    assert done.missing == 6


def test_a_line_that_is_no_trace_is_named(sums: Path):
    (sums / TRACES_FILE).write_text('{"id": 1}\n')
    with pytest.raises(RunStoreError, match="line 1 is not a trace"):
        read_traces(sums)


def test_traces_outlive_a_benchmark_that_is_built_anew(sums: Path):
    def built_anew() -> None:
        shutil.rmtree(sums)
        write_sums(sums, 6)

    (sums / TRACES_FILE).write_bytes(b"one\n")
    with kept_traces(sums):
        built_anew()
    assert (sums / TRACES_FILE).read_bytes() == b"one\n"
    kept = kept_traces(sums)
    kept.__enter__()  # and then the process is killed, with the benchmark built and nothing after it
    built_anew()
    with kept_traces(sums):
        built_anew()
    assert (sums / TRACES_FILE).read_bytes() == b"one\n", "also when the build before it was stopped"
    assert not [path for path in sums.parent.iterdir() if TRACES_FILE in path.name]


@pytest.mark.slow
def test_a_trace_that_was_stopped_goes_on(tmp_path: Path):
    folder = write_sums(tmp_path / "many", 120)
    code = (
        "import sys; from pathlib import Path; from agrotools.models.endpoint import Endpoint, priced_model\n"
        "from agrotools.build.assist.tracing import trace_folder\n"
        "folder = Path(sys.argv[1])\n"
        "trace_folder(folder, priced_model(Endpoint('m', sys.argv[2])), folder.parent / 'spend.jsonl')\n"
    )
    with serving(ReferenceFollower.of_folder(folder, "good"), latency_s=0.1) as endpoint:
        command = [sys.executable, "-c", code, str(folder), endpoint.base_url]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not (folder / TRACES_FILE).exists() or len((folder / TRACES_FILE).read_bytes().splitlines()) < 5:
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        before = read_traces(folder)
        assert 5 <= len(before) < 120
        asked = len(endpoint.requests)
        assert trace(folder, endpoint.base_url).summary[-1].confirmed == 120
        assert len(endpoint.requests) - asked <= 3 * (120 - len(before)), "what was done was not asked for again"
    after = read_traces(folder)
    assert {key: after[key] for key in before} == before
