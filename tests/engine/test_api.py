"""The public API: its names, signatures and errors."""

import asyncio
import inspect
import io
import subprocess
import sys
import threading
from dataclasses import fields
from doctest import DocTestParser
from pathlib import Path
from typing import Any

import pytest

import agrotools as at
from agrotools import calling, plugin
from agrotools.core import AgrotoolsError, UsageError
from agrotools.models.endpoint import ScriptedModel
from agrotools.runner.config import EvalConfig
from support.text_benchmark import write_text_benchmark


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_text_benchmark(tmp_path / "my-farm", 6)


def test_public_names_of_package_tools_and_plugins():
    assert sorted(at.__all__) == [
        "Action", "AgrotoolsError", "Answer", "Benchmark", "CallTools", "Comparison", "InvalidRunError",
        "MetricDifference", "MetricScore", "Model", "Policy", "Record", "Run", "RunSample", "SampleView", "Step",
        "Task", "ToolCall", "ToolError", "compare", "evaluate", "gate",
        "load_benchmark", "merge", "read_run", "score", "study", "tool",
    ]  # fmt: skip
    assert {
        name: [*inspect.signature(getattr(at, name)).parameters]
        for name in at.__all__
        if name.islower()
    } == {
        "compare": ["runs"],
        "evaluate": [
            *(
                "benchmark",
                "model",
                "mode",
                "quick",
                "task_types",
                "limit",
                "shard",
                "epochs",
                "protocol",
                "base_url",
            ),
            *("out", "progress", "options"),
        ],
        "gate": ["new", "against", "max_drop", "mode", "allow_invalid"],
        "load_benchmark": ["name_or_path", "data_root", "progress", "options", "quick"],
        "merge": ["runs", "out", "allow_missing"],
        "read_run": ["path"],
        "score": ["run", "allow_invalid"],
        "study": ["file", "dry_run", "allow_invalid", "progress"],
        "tool": [
            *(
                "category",
                "version",
                "significant_digits",
                "backends",
                "data_files",
                "backend_files",
                "cacheable",
            ),
            *("files_by_last_part", "resolves", "expert", "example"),
            *("unusable", "nameable", "libraries"),
        ],
    }
    assert all(inspect.getdoc(getattr(at, name)) for name in at.__all__)
    assert sorted(set(calling.__all__)) == [
        *(
            "Agree",
            "CorpusIndex",
            "DepthFile",
            "ImageFile",
            "Limits",
            "MaskFile",
        ),
        *(
            "RasterFile",
            "ReferenceCall",
            "Region",
            "SandboxResult",
            "TOOLS",
            "Tool",
            "ToolResult",
            "build_index",
        ),
        *("get_tool", "run_code", "save_artifact", "tool", "tool_names", "tool_specs"),
    ]
    functions = ("build_index", "get_tool", "run_code", "save_artifact", "tool_names", "tool_specs")
    assert {
        name: [*inspect.signature(getattr(calling, name)).parameters] for name in functions
    } == {
        "build_index": [*("corpus", "out", "replace", "progress")],
        "get_tool": ["name", "declared"],
        "run_code": ["code", "call", "limits", "runner"],
        "save_artifact": ["name", "kind", "content"],
        "tool_names": [],
        "tool_specs": ["names", "may_be_absent", "declared", "backends"],
    }
    assert calling.tool is at.tool
    assert all(getattr(calling, name) is not None for name in calling.__all__)
    assert all(getattr(plugin, name) is not None for name in plugin.__all__)
    assert len(fields(plugin.BenchmarkPlugin)) <= 13


@pytest.fixture
def examples_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the examples of docstrings name: a benchmark, two runs, two shards and a study."""
    monkeypatch.chdir(tmp_path)
    write_text_benchmark(tmp_path / "my-farm", 12)
    for name in ("old", "new"):
        at.evaluate("my-farm", "baseline:echo", mode="no-tool", out=f"runs/{name}")
    for part in (1, 2):
        out = f"runs/part-{part}"
        at.evaluate("my-farm", "baseline:echo", mode="no-tool", shard=(part, 2), out=out)
    (tmp_path / "study.toml").write_text(
        'benchmark = ["my-farm"]\nmode = ["no-tool"]\n[[model]]\nname = "baseline:echo"\n'
    )
    return tmp_path


@pytest.mark.process
def test_examples_of_public_names_run(examples_folder: Path):
    """Those of stored records are one expression in the words of their docstring, and are not run."""
    stored = {"Action", "Answer", "CallTools", "Record", "Step", "ToolCall"}
    for name in [name for name in at.__all__ if name not in stored]:
        examples = DocTestParser().get_examples(inspect.getdoc(getattr(at, name)) or "")
        assert examples, name
        names = {"at": at, "__name__": name}
        for example in examples:
            exec(compile(example.source, name, "exec"), names)


@pytest.mark.process
def test_importing_the_package_imports_nothing_else():
    code = "import sys, agrotools; sys.exit(any(name.startswith('agrotools.') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


HEAVY = "PIL aiohttp asyncio cv2 jinja2 matplotlib numpy onnxruntime orjson pydantic rasterio rich scipy skimage sympy"


@pytest.mark.process
@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_import_no_heavy_package(option: str):
    code = (
        "import sys; from contextlib import suppress; from agrotools.__main__ import main\n"
        f"with suppress(SystemExit): main()\nprint(*(set({HEAVY!r}.split()) & sys.modules.keys()), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, option], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout
    assert done.stderr.split() == []


async def test_it_works_where_an_event_loop_runs(farm: Path):
    model = ScriptedModel(lambda _messages, _tools, _settings: "Final Answer: yes", name="mine")
    run = at.evaluate(farm, model=model, mode="no-tool", limit=2)
    again = at.evaluate(farm, model=model, mode="no-tool", limit=2)
    assert (len(run), run.manifest.model, run.stopped) == (2, "mine", None)
    assert run.path != again.path, "another object may go by the same name"
    assert "fas" in run._repr_html_()


def test_the_worst_samples_come_first(farm: Path):
    run, same = (
        at.evaluate(farm, model="baseline:random", mode="no-tool", out=name) for name in ("a", "b")
    )
    worst = run.worst(3, "css")
    every = {row["sample"]: row["css"] for row in run.rows()}
    assert [every[sample.id] for sample in worst] == sorted(every.values())[:3]
    assert len(repr(worst)) < 300
    assert len(repr(run.samples()[:3])) < 300
    assert [each.value for each in run.compare(same)] == [
        each.value for each in at.compare(run, same)
    ]
    with pytest.raises(KeyError, match="did you mean"):
        run.worst(metric="cs")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_run_is_a_data_frame_of_one_row_per_record(farm: Path, library: str):
    pytest.importorskip(library)
    run = at.evaluate("my-farm", model="baseline:random", mode="no-tool")
    frame = getattr(run, f"to_{library}")()
    assert list(frame["sample"]) == [record.sample.id for record in run.samples()]
    assert frame["css"].mean() == run.scores["css"].value


def test_a_data_frame_without_its_library_says_what_to_install(
    farm: Path, monkeypatch: pytest.MonkeyPatch
):
    run = at.evaluate("my-farm", model="baseline:random", mode="no-tool")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(UsageError, match="polars is not installed"):
        run.to_polars()


def test_a_named_model_resumes_its_run(farm: Path):
    first = at.evaluate(farm, model="baseline:echo", mode="no-tool", limit=2)
    assert at.evaluate(farm, model="baseline:echo", mode="no-tool", limit=4).path == first.path
    assert len(at.read_run(first.path)) == 4


def test_a_quick_part_is_a_run_of_its_own(farm: Path):
    header = farm / "benchmark.toml"
    before = at.load_benchmark(farm).content_hash
    with pytest.raises(UsageError, match="no quick part"):
        at.evaluate(farm, "baseline:echo", quick=True)
    header.write_text(f'quick = ["q1", "q4"]\n{header.read_text()}')
    assert at.load_benchmark(farm).content_hash != before
    quick = at.evaluate(farm, "baseline:echo", quick=True)
    assert (
        {record.sample.id for record in quick.samples()}
        == {"q1", "q4"}
        == {*quick.manifest.sample_ids}
    )
    assert quick.manifest.quick
    assert quick.summary.quick
    whole = at.evaluate(farm, "baseline:echo")
    assert (whole.path != quick.path, len(whole), whole.summary.quick) == (
        True,
        6 * len(quick) // 2,
        False,
    )
    assert at.evaluate(farm, "baseline:echo", quick=True).path == quick.path
    assert {each.n for each in at.compare(quick, whole)} == {
        2
    }  # on common samples, as agrotools compare
    with pytest.raises(AgrotoolsError, match="quick"):
        at.evaluate(farm, "baseline:echo", out=quick.path)
    header.write_text(header.read_text().replace("q4", "q9"))
    with pytest.raises(AgrotoolsError, match="'q9', which is not a sample"):
        at.load_benchmark(farm)


def test_an_interrupt_lets_what_is_in_flight_finish(farm: Path):
    from agrotools.runner.evaluate import evaluate

    stop = threading.Event()
    stop.set()

    class Slow:
        async def act(self, view: Any, history: Any) -> Any:
            import asyncio

            from agrotools.core import Answer

            await asyncio.sleep(0.7)
            return Answer(text="yes")

    config = EvalConfig.of(
        benchmark=str(farm), model="slow", mode="no-tool", concurrency=1, out=farm / "run"
    )
    with pytest.raises(KeyboardInterrupt):
        evaluate(config, sys.stderr, model=Slow(), stop=stop)
    assert 1 <= len(at.read_run(farm / "run")) < 6


def test_mistakes_name_what_to_change(farm: Path):
    with pytest.raises(UsageError, match="did you mean temperature"):
        at.evaluate(farm, model="baseline:echo", temprature=1)
    run = at.evaluate(farm, model="baseline:echo", mode="no-tool", limit=1)
    with pytest.raises(KeyError, match=rf"it has .*{run.samples()[0].sample.id}"):
        run["nowhere"]
    with pytest.raises(UsageError, match="unknown mode 'no_tool'"):
        run.mode_scores("no_tool")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="needs two runs"):
        at.compare(run)
    with pytest.raises(KeyError, match="did you mean fas"):
        run.scores["fass"]


@pytest.mark.parametrize("path", [None, "a\ud800", "a\0b", "nowhere"])
def test_what_cannot_be_opened_is_a_typed_error(path: Any):
    for opened in (at.read_run, at.load_benchmark):
        with pytest.raises(UsageError):
            opened(path)


def test_an_object_that_cannot_act_is_refused_and_its_faults_are_reported(farm: Path):
    class Plain:
        def act(self, view: Any, history: Any) -> Any: ...

    for model, message in (
        (3, "a function, a Model or a Policy, not int"),
        (Plain, "not the class Plain"),
    ):
        with pytest.raises(UsageError, match=message):
            at.evaluate(farm, model=model)  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match=r"Plain\.act must be async"):
        at.evaluate(farm, model=Plain())
    assert not Path("runs").exists()

    class Broken:
        async def act(self, view: Any, history: Any) -> Any:
            raise AttributeError("no such thing")

    notes = io.StringIO()
    with pytest.raises(
        at.InvalidRunError, match=r"all 6 .*AttributeError: no such thing"
    ) as invalid:
        at.evaluate(farm, model=Broken(), mode="no-tool", progress=notes)
    assert isinstance(invalid.value.run, at.Run)
    assert (
        1
        <= notes.getvalue().count("is invalid: error of the policy, AttributeError: no such thing")
        <= 3
    )


@pytest.mark.process
def test_a_start_that_fails_leaves_no_run_folder(farm: Path):
    with pytest.raises(UsageError, match="unknown tool 'foo'"):
        at.evaluate(farm, model="baseline:echo", backends={"foo": "bar"})
    with pytest.raises(AgrotoolsError, match=r"http://127\.0\.0\.1:9/v1"):
        at.evaluate(farm, model="some-model", mode="no-tool", base_url="http://127.0.0.1:9/v1")
    assert not Path("runs").exists()


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit])
def test_an_exit_or_cancellation_that_escapes_from_a_policy_is_its_fault(
    farm: Path, error: type[BaseException]
):
    class Leaking:
        async def act(self, view: Any, history: Any) -> Any:
            raise error

    with pytest.raises(at.InvalidRunError) as invalid:
        at.evaluate(farm, model=Leaking(), mode="no-tool", limit=2)
    run = invalid.value.run
    assert all(
        (record.invalid or "").startswith(f"error of the policy, {error.__name__}")
        for record in run.samples()
    )
    assert len(run.samples()) == 2


@pytest.mark.parametrize("mode", ["no-tool", "end-to-end"])
def test_a_policy_that_returns_no_action_is_not_scored(farm: Path, mode: str):
    class Talking:
        async def act(self, view: Any, history: Any) -> Any:
            return "yes"

    with pytest.raises(at.InvalidRunError) as invalid:
        at.evaluate(farm, model=Talking(), mode=mode, limit=2)
    run = invalid.value.run
    assert [
        "act returned 'yes', not an Answer" in (record.invalid or "") for record in run.samples()
    ] == [True, True]
