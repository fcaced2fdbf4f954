"""``agrotools study``: real runs against a local server, with failures, kills and budgets."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

import agrotools as at
from agrotools.analysis.study import read_study, study_of_runs, study_result
from agrotools.analysis.study_tables import inseparable_groups, seed_lines
from agrotools.core import UsageError
from agrotools.models.metered import read_spend
from agrotools.runner.config import EvalConfig
from support.benchmark_folders import number_sample, write_folder
from support.command import run_command
from support.fault_server import closed_port
from support.made_runs import call, end_to_end, made_sample, write_run
from support.openai_server import Body, Endpoint, completion, error, serving, text_of

pytestmark = pytest.mark.process

GOLDEN = Path(__file__).parents[2] / "golden" / "benchmarks"
N = 12
BUDGET_USD = 0.2
HOSTILE = "<b>x</b> & a|b_c %"


class Models:
    """Server of the models ``good``, ``bad`` and ``flaky``, which gets no reply for one sample."""

    def __init__(self) -> None:
        self.asked = Counter[str]()
        self.server = Endpoint("")

    def __call__(self, body: Body) -> web.Response:
        name, question = body["model"], text_of(body["messages"][-1])
        self.asked[name] += 1
        if name == "flaky" and "field 3." in question:
            return error(500, "lost")
        return completion(f"mean_yield: {9.9 if name == 'bad' else 5.4} t/ha")


@pytest.fixture
def models() -> Iterator[Models]:
    models = Models()
    with serving(models) as models.server:
        yield models


@pytest.fixture
def benchmark(tmp_path: Path) -> Path:
    folder = tmp_path / "yields"
    return write_folder(
        folder, [number_sample(folder, f"yield-{at:02}", at) for at in range(1, N + 1)]
    )


def write_study(
    tmp_path: Path, benchmarks: Path | list[str], base_url: str, rows: str, **keys: object
) -> Path:
    """Write a study of the mode no-tool; ``rows`` are its models."""
    names = benchmarks if isinstance(benchmarks, list) else str(benchmarks)
    lines = {"benchmark": names, "mode": "no-tool", "base_url": base_url, "attempts": 1, **keys}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
    (tmp_path / "paper.toml").write_text(f"{text}\n{rows}")
    return tmp_path / "paper.toml"


def model_rows(*names: str) -> str:
    return "".join(f'[[model]]\nname = "{name}"\n' for name in names)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("epoch = 2", "unknown key 'epoch' in ", "did you mean epochs"),
        (
            '[[model]]\nname = "m"\ntemprature = 1',
            "unknown key 'temprature' in [[model]] of ",
            "did you mean temperature",
        ),
        ('[[model]]\nname = "m"\nmode = "all"', "unknown key 'mode' in [[model]]", ""),
        ('[[model]]\nlabel = "m"', "an entry of model has no name", ""),
        ('benchmark = "embedded"', "names no model", ""),
        ('model = ["m", "m"]', "two runs are called m on embedded", "label"),
        ('model = "m"\ntools = ["all", "most"]', "model m: tools: ", ""),
        ('model = "m"\nmode = ["end-to-end", "none"]', "model m: unknown mode 'none'", "no-tool"),
        ('model = "m"\nbudget = -1', "model m: budget: ", ""),
        ('model = "m"\nepochs = "x"', "model m: epochs: ", ""),
        (
            'model = "baseline:guess"\nbudget = nan',
            "budget should be greater than 0 (got nan)",
            "budget = 5",
        ),
        ('model = "baseline:guess"\nbudget = -1', "budget should be greater than 0", ""),
        ('model = "m"\nbenchmark = []', "names no benchmark", "./my-farm"),
        ("model = [", "cannot read the study file", ""),
    ],
)
def test_a_wrong_study_file_is_refused_with_a_hint(
    tmp_path: Path, text: str, message: str, hint: str
):
    file = tmp_path / "study.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as failure:
        read_study(file)
    assert message in failure.value.message
    assert any(part in str(failure.value.hint) for part in hint.split("|"))


def test_all_combinations_are_run_and_budgets_are_for_paid_models_alone(tmp_path: Path):
    file = tmp_path / "study.toml"
    file.write_text(
        'benchmark = ["embedded", {name = "a/b", limit = 3}]\ntools = ["all", "+2"]\nbudget = 4\nlimit = 9\n'
        'model = ["baseline:guess", {name = "openai:gpt-4.1", label = "GPT", limit = 5}]'
    )
    study = read_study(file)
    assert [run.title for run in study.runs[:4]] == [
        "baseline:guess on embedded",
        "baseline:guess on embedded, tools +2",
        "baseline:guess on b",
        "baseline:guess on b, tools +2",
    ]
    assert [(run.config.benchmark.limit, run.config.run.budget) for run in study.runs[1::2]] == [
        (9, None),
        (3, None),
        (5, 4),
        (5, 4),
    ]
    assert study.runs[-1].folder == Path("runs/study/b-GPT-tools-+2")
    file.write_text(
        'protocol = ["react", "tool-calling"]\nmodel = ["baseline:guess", "openai:gpt-4.1", "python:a:f"]'
    )
    assert [(run.harness, run.folder.name) for run in read_study(file).runs] == [
        ("none", "embedded-baseline-guess-react"),
        ("react", "embedded-openai-gpt-4.1-react"),
        ("tool-calling", "embedded-openai-gpt-4.1-tool-calling"),
        ("python:a:f", "embedded-python-a-f-react"),
    ]


@pytest.mark.unit
def test_a_folder_has_the_name_of_its_benchmark_unless_two_have_the_same(tmp_path: Path):
    first, second = (write_folder(tmp_path / name, []) for name in ("bench", "other"))
    file = tmp_path / "study.toml"
    file.write_text(f'benchmark = ["{first}"]\nmodel = "baseline:guess"')
    (run,) = read_study(file).runs
    assert run.title == "baseline:guess on tiny"
    assert run.folder.name == "bench-baseline-guess", "runs of earlier studies are found again"
    file.write_text(f'benchmark = ["{first}", "{second}"]\nmodel = "baseline:guess"')
    names = [run.benchmark for run in read_study(file).runs]
    assert names == ["bench", "other"]


def test_a_fault_of_five_points_in_one_harness_is_found(tmp_path: Path):
    """Two models of 80 and 50 points; under tool-calling each loses 5 of 100 samples."""
    runs: list[Path] = []
    for model, n_right in (("good", 80), ("poor", 50)):
        for protocol, lost in (("react", 0), ("tool-calling", 5)):
            is_right = [lost <= at * 37 % 100 < n_right for at in range(100)]
            records = [
                end_to_end(
                    made_sample(f"s{at:02}"), call("2*3"), answer=f"rows: {7 if each else 9}"
                )
                for at, each in enumerate(is_right)
            ]
            runs.append(
                write_run(tmp_path / f"{model}-{protocol}", records, model=model, protocol=protocol)
            )
    result = study_result(*study_of_runs(runs))
    (effects,) = result.effects
    (fault,) = effects.differences
    assert fault.value == pytest.approx(-0.05, abs=0.01)
    assert fault.interval is not None
    assert fault.interval.upper < 0
    means = {name: each.value for name, each in effects.means.items()}
    assert means == {
        ("good", "react"): pytest.approx(0.8), ("good", "tool-calling"): pytest.approx(0.75),
        ("poor", "react"): pytest.approx(0.5), ("poor", "tool-calling"): pytest.approx(0.45),
    }  # fmt: skip
    shown = result._repr_markdown_()
    assert "| good | tool-calling | 75.0" in shown
    assert "Harness: b, end-to-end, FAS" in shown

    runs += [shutil.copytree(run, tmp_path / "again" / run.name) for run in runs[:2]]
    twice = study_result(*study_of_runs(runs))
    assert twice._repr_markdown_().count("| react ") == 3 + 1, "no run of a model hides another one"
    assert [each.models for each in twice.effects] == [["poor"]]
    with pytest.raises(UsageError, match="one run"):
        study_of_runs([runs[0], runs[0]])


def test_runs_that_were_not_compared_share_no_letter(tmp_path: Path):
    """A privileged run is compared with no other kind of run, so its letter is its own."""
    runs: list[Path] = []
    for model, n_right, privileged in (
        ("a", 80, False),
        ("b", 10, False),
        ("c", 80, True),
        ("d", 0, True),
    ):
        records = [
            end_to_end(made_sample(f"s{at:02}"), call("2*3"), answer=f"rows: {7 if at < n_right else 9}")
            for at in range(100)
        ]  # fmt: skip
        runs.append(write_run(tmp_path / model, records, model=model, privileged=privileged))
    shown = study_result(*study_of_runs(runs))._repr_markdown_()
    letters = {
        row.split("|")[1].strip()[0]: row.split("|")[2].split()[1]
        for row in shown.splitlines()
        if row.startswith(("| a", "| b", "| c", "| d"))
    }
    assert len({*letters.values()}) == 4, letters


def test_modes_that_the_published_protocol_lacks_are_run_in_ours(tmp_path, models):
    gta = f"benchmark = [{{name = 'gta', data_root = '{GOLDEN / 'gta'}', limit = 2, backends = {{'*' = 'recorded'}}}}]"
    file = write_study(
        tmp_path, [], models.server.base_url, model_rows("good"), mode=["no-tool", "end-to-end"]
    )
    file.write_text(file.read_text().replace("benchmark = []", gta))
    done = run_command("study", file, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "No tools: FAS" in done.stdout
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| good")]
    assert "—" not in row
    assert "¹ protocol react" in done.stdout
    runs = [tmp_path / "runs/paper/gta-good", tmp_path / "runs/paper/gta-good-react"]
    of_runs = run_command("study", *runs, cwd=tmp_path)
    assert of_runs.returncode == 0, of_runs.stderr
    lines = [line for line in of_runs.stdout.splitlines() if line.startswith("| good")]
    assert [line.split("|")[2].strip() for line in lines] == ["lagent", "react"]


def test_a_dead_endpoint_stops_one_model_and_the_same_command_completes_the_study(
    tmp_path, benchmark, models
):
    other = write_folder(
        tmp_path / "others",
        [number_sample(tmp_path / "others", f"other-{at}", at) for at in (1, 2)],
    )
    rows = model_rows("good", "bad") + f'[[model]]\nname = "good"\nlabel = {json.dumps(HOSTILE)}\n'
    dead = rows + f'base_url = "http://127.0.0.1:{closed_port()}/v1"\n'
    both = [str(benchmark), str(other)]
    file = write_study(tmp_path, both, models.server.base_url, dead)
    done = run_command("study", file, cwd=tmp_path)
    assert done.returncode == 1
    assert f"study: {HOSTILE} on yields: " in done.stderr
    assert f"study: {HOSTILE} on others: not run: its endpoint failed before" in done.stderr
    assert "2 runs incomplete, run the same command again" in done.stderr
    assert models.asked == {"good": 2 * (N + 2), "bad": 2 * (N + 2)}
    rows_shown = [
        line
        for line in reversed(done.stdout.splitlines())
        if line.startswith("| ") and line[2] != " "
    ]
    lines = {line.split("|")[1].split()[0].rstrip("¹"): line for line in rows_shown}
    assert "100.0 a (" in lines["good"]
    assert " b (" in lines["bad"]
    assert "¹ stopped: " in done.stdout
    run = tmp_path / "runs/paper/yields-good"
    assert run_command("score", run, "--json", cwd=tmp_path).returncode == 0

    file = write_study(tmp_path, both, models.server.base_url, rows)
    again = run_command("study", file, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert models.asked == {"good": 4 * (N + 2), "bad": 2 * (N + 2)}
    file.write_text(file.read_text().replace("attempts = 1", "attempts = 1\ntemperature = 0.5"))
    changed = run_command("study", file, cwd=tmp_path)
    assert changed.returncode == 3
    assert "study: good on yields: " in changed.stderr
    assert "holds a run with another configuration: settings, " in changed.stderr
    assert models.asked == {"good": 4 * (N + 2), "bad": 2 * (N + 2)}
    folder = tmp_path / "runs/paper"
    assert r"\<b\>x\</b\> & a\|b\_c % " in (folder / "study.md").read_text()
    assert r"\& a\textbar{}b\_c \% " in (folder / "study.tex").read_text()
    assert "<b>" not in (folder / "study.html").read_text()


def test_invalid_and_missing_records_are_never_silently_in_the_table(
    tmp_path: Path, benchmark: Path, models: Models
):
    file = write_study(tmp_path, benchmark, models.server.base_url, model_rows("good", "flaky"))
    done = run_command("study", file, cwd=tmp_path)
    assert done.returncode == 1
    assert "flaky on tiny (1 invalid)" in done.stderr
    row = next(line for line in done.stdout.splitlines() if line.startswith("| flaky"))
    assert row.split("|")[2].strip() == "—¹ (91.7..100.0)"
    assert "¹ no score: more than 1 % of its records are invalid" in done.stdout
    allowed = run_command("study", file, "--allow-invalid", cwd=tmp_path).stdout
    assert "12 (12)" in allowed
    assert "11 (11)" in allowed
    assert "¹ 1 invalid record left out" in allowed


def test_one_budget_for_all_models_and_estimates_before(
    tmp_path: Path, benchmark: Path, models: Models
):
    paid = 'price = "10/1000"\nmax_output_tokens = 20\n'
    rows = model_rows("baseline:guess") + "".join(
        model_rows(name) + paid for name in ("good", "bad")
    )
    file = write_study(
        tmp_path, benchmark, models.server.base_url, rows, budget=BUDGET_USD, concurrency=1
    )
    before = run_command("study", file, "--dry-run", cwd=tmp_path)
    assert before.returncode == 0, before.stderr
    assert "good on tiny: 12 of 12 records to run; about 24 requests" in before.stdout
    assert "3 runs, 36 records to run" in before.stdout
    assert "it may end before the study is complete" in before.stdout
    assert not models.asked
    done = run_command("study", file, cwd=tmp_path)
    assert done.returncode == 1
    folder = tmp_path / "runs/paper"
    spent = {
        name: read_spend(folder / f"yields-{name}/spend.jsonl").usd for name in ("good", "bad")
    }
    assert 0 < sum(spent.values()) <= BUDGET_USD
    assert sum(models.asked.values()) < 4 * N
    assert "incomplete: " in done.stdout
    assert "baseline:guess on tiny" not in done.stderr.splitlines()[-1]
    write_study(tmp_path, benchmark, models.server.base_url, rows, budget=600, concurrency=1)
    assert run_command("study", file, cwd=tmp_path).returncode == 0
    assert models.asked["bad"] == 2 * N
    assert models.asked["good"] - 2 * N in (
        0,
        1,
    )  # the budget may end between an answer and its form


@pytest.mark.process
def test_the_label_of_a_model_is_the_name_of_its_run_and_no_table_holds_an_address(
    tmp_path: Path,
):
    """Two agents behind addresses that end alike, one of them with a label."""
    file = tmp_path / "study.toml"
    file.write_text(
        'model = ["http://127.0.0.1:9000/agent", "http://127.0.0.1:9001/v1/agent/", '
        '{name = "http://127.0.0.1:9002", label = "Ours"}, "http://127.0.0.1:9003"]'
    )
    runs = read_study(file).runs
    assert [(run.label, run.config.run.name) for run in runs] == [
        ("agent (127.0.0.1:9000)", ""),
        ("agent (127.0.0.1:9001)", ""),
        ("Ours", "Ours"),
        ("127.0.0.1:9003", ""),
    ]
    assert len({run.folder for run in runs}) == len(runs)


def test_a_table_says_of_how_many_epochs_and_samples_its_means_are(
    tmp_path: Path, benchmark: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "study.toml"
    lines = [
        f'benchmark = "{benchmark}"',
        'mode = "end-to-end"',
        "epochs = 2",
        "limit = 3",
        'model = [{name = "baseline:planted:1", label = "Skilled"}]',
    ]
    file.write_text("\n".join(lines))
    result = at.study(file)
    shown = result._repr_markdown_()
    assert "Epochs: 2 runs of each sample, whose mean counts" in shown
    assert "FAS n 3 (3)" in shown
    assert at.read_run(result.states[0].run.folder).manifest.shown_model == "Skilled"


def test_a_table_says_the_seeds_that_models_and_agents_were_given():
    def config(model: str, seed: int | None) -> EvalConfig:
        return EvalConfig.model_validate(
            {"model": {"model": model, "seed": seed}, "run": {"epochs": 3}}
        )

    assert seed_lines([config("m", 7), config("other", 7), config("python:agent:solve", 7)]) == [
        "Seeds sent to models: 7, 8, 9.",
        "Seed given to agents: 7 with epochs 0 to 2.",
    ]
    assert seed_lines([config("m", None), config("baseline:planted:1", 7)]) == []


def test_studies_from_python(tmp_path: Path, benchmark: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    file = write_study(tmp_path, benchmark, "", model_rows("baseline:planted:1", "baseline:planted:0"),
                       mode="end-to-end", tools=["all", "needed"])  # fmt: skip
    file.write_text(file.read_text().replace('base_url = ""\n', ""))
    assert [state.planned for state in at.study(file, dry_run=True).states] == [N] * 4
    result = at.study(file)
    assert all(state.complete for state in result.states)
    values = [
        summary.modes["end-to-end"].metrics["fas"].overall.value for _, summary in result.scored
    ]
    assert values[0] == values[1] == 1
    assert values[2] < 0.5
    compared = {(each.first, each.second): each.difference for each in result.differences}
    assert set(compared) == {(0, 1), (0, 2), (1, 3), (2, 3)}
    assert compared[0, 2].differs()
    assert not compared[0, 1].differs()
    assert "Cost of the list of tools: tiny" in result._repr_markdown_()
    assert len(at.read_run(result.states[0].run.folder)) == N


@given(st.integers(1, 6), st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))))
def test_groups_hold_exactly_the_inseparable_pairs(n: int, pairs: set[tuple[int, int]]):
    separated = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    groups = inseparable_groups(list(range(n)), separated)
    assert {node for group in groups for node in group} == set(range(n))
    for pair in map(frozenset, combinations(range(n), 2)):
        assert any(pair <= set(group) for group in groups) == (pair not in separated)
    assert not any(set(one) < set(other) for one in groups for other in groups)
    assert groups == sorted(sorted(group) for group in groups)
