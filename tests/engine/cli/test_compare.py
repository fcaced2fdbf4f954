"""``agrotools compare`` and ``agrotools gate`` on runs that are written by hand."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agrotools.core import Observation, Record, Step
from agrotools.runner.store import RunStore
from support.benchmark_folders import number_sample, write_folder
from support.command import run_command
from support.made_runs import call, end_to_end, made_sample
from support.openai_server import completion, error, serving, text_of
from support.runs import invalid, manifest

pytestmark = pytest.mark.process


def written(folder: Path, records: Iterable[Record], **changes) -> Path:
    """A run folder with these records."""
    listed = [*records]
    fields = {
        "modes": ("end-to-end",),
        "sample_ids": tuple(each.sample.id for each in listed),
        "model": folder.name,
    }
    with RunStore(folder, manifest(**fields | changes)) as store:
        for each in listed:
            store.append(each)
    return folder


def answers(rights: Iterable[bool]) -> list[Record]:
    """A record for each sample with all calls, right or wrong."""
    return [
        end_to_end(
            made_sample(f"s{at}"),
            call("2*3"),
            call("6 + 1", 1),
            answer=f"rows: {7 if right else 9}",
        )
        for at, right in enumerate(rights)
    ]


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of 40 samples: the first has 30 right, the second 10 of these and no other."""
    first = written(tmp_path / "good", answers(at < 30 for at in range(40)))
    return first, written(tmp_path / "poor", answers(at < 10 for at in range(40)))


def test_the_headline_says_which_run_is_better_and_warnings_what_differs(runs, tmp_path):
    done = run_command("compare", *map(str, runs), "--flips", "3", COLUMNS="100")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("good is better: 50.0 points (")
    assert "good 75.0, poor 25.0; 40 samples" in done.stdout
    assert done.stdout.count("100.0     0.0") == 3
    assert len(done.stdout.splitlines()) <= 24
    assert "3 of 20 samples" in run_command("compare", *runs, "--flips", "3", "--details").stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert not (runs[0] / "scores.json").exists()
    later = answers(at < 30 for at in range(40))
    copy = written(tmp_path / "copy", [each.model_copy(update={"seconds": 9.0}) for each in later])
    for other in (runs[0], copy):
        assert run_command("compare", runs[0], other).stdout.startswith(
            "the same records: difference 0"
        )
    knowing = written(
        tmp_path / "baseline:oracle", answers(at < 30 for at in range(40)), privileged=True
    )
    assert (
        "baseline:oracle is privileged" in run_command("compare", str(knowing), str(runs[1])).stdout
    )
    quick = written(tmp_path / "quick", answers(True for _ in range(10)), quick=True)
    assert "only the quick part" in run_command("compare", str(quick), str(runs[1])).stderr
    alike = run_command("compare", *map(str, runs))
    assert "is privileged" not in alike.stdout
    assert "quick part" not in alike.stdout + alike.stderr


def test_runs_without_a_common_sample_or_benchmark_are_refused(tmp_path):
    halves = [answers([True] * 20)[:10], answers([True] * 20)[10:]]
    first, second = (
        written(tmp_path / name, half) for name, half in zip("ab", halves, strict=True)
    )
    other = written(tmp_path / "c", answers([True]), benchmark_version="2")
    for run, said in (
        (second, "no scored sample in common"),
        (other, "different benchmark versions: 1 / 2"),
    ):
        done = run_command("compare", str(first), str(run))
        assert (done.returncode, said in done.stderr) == (2, True)
    first = written(tmp_path / "d", answers([True] * 20))
    second = written(tmp_path / "e", answers([True] * 20))
    records = second / "records.jsonl"
    changed, *others = records.read_text().splitlines(keepends=True)
    record = json.loads(changed)
    record["sample"]["answer"][0]["value"] += 1
    of_older_version = {name: value for name, value in record.items() if name != "checksum"}
    for edited, said in (
        (record, "1 sample has another question or right answer in the records"),
        (of_older_version, "1 sample of both with another question or right answer"),
    ):
        records.write_text("".join([json.dumps(edited) + "\n", *others]))
        for command in (("compare", first, second), ("gate", first, "--against", second)):
            done = run_command(*command)
            assert (done.returncode, said in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["gate", "score"])
def test_a_run_is_not_gated_against_itself(runs, command):
    second = "" if command == "score" else f"{runs[0].parent}/./{runs[0].name}"
    done = run_command(
        command, runs[0], *(["--against", second] if command == "gate" else [second])
    )
    expected = "argument is empty" if command == "score" else "are one run"
    assert (done.returncode, expected in done.stderr) == (2, True), done.stderr


def test_a_gate_without_a_standard_output_keeps_its_exit_code_and_never_writes_over_records(
    tmp_path,
):
    run, other = (written(tmp_path / name, answers([True] * 20)) for name in "ab")
    command = [sys.executable, "-m", "agrotools", "gate", str(run), "--against", str(other)]
    assert subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], check=False).returncode == 0
    assert "no sample changed, so" in run_command(*command[3:]).stdout
    content = (run / "records.jsonl").read_bytes()
    for option in ("--junit", "--markdown"):
        done = run_command("gate", run, "--against", other, option, run / "records.jsonl")
        assert (done.returncode, "has to end in" in done.stderr) == (2, True)
    assert run_command("report", run, "--out", run / "records.jsonl").returncode == 2
    assert (run / "records.jsonl").read_bytes() == content


def test_a_run_with_faults_in_its_tool_calls_is_named_everywhere_and_not_gated(tmp_path):
    first = written(tmp_path / "a", answers([True] * 20), faults="noise=0.3")
    second = written(tmp_path / "b", answers([True] * 20))
    done = run_command("gate", first, "--against", second)
    assert done.returncode == 2
    assert "different faults in tool calls: noise=0.3 / none" in done.stderr
    for command in (("compare", first, second), ("score", first), ("view", "--list", tmp_path)):
        assert "(faults noise=0.3)" in " ".join(run_command(*command).stdout.split()), command
    assert "no result" not in run_command("report", second, "--format", "md").stdout
    assert "(faults noise=0.3)" in run_command("report", first, "--format", "md").stdout


def test_invalid_and_missing_samples_are_counted(tmp_path):
    first = written(tmp_path / "a", answers([True] * 20))
    lost = [
        invalid(f"s{at}", sample=made_sample(f"s{at}"), mode="end-to-end") for at in range(12, 15)
    ]
    second = written(tmp_path / "b", [*answers([True] * 12), *lost])
    printed = run_command("compare", str(first), str(second)).stdout
    assert "not compared: 8 samples with a valid record only in the first run" in printed
    assert printed.count("is withheld, because more than 1 % of its records are invalid") == 1
    old = written(tmp_path / "old", answers([True] * 20))
    lost = [
        invalid(f"s{at}", sample=made_sample(f"s{at}"), mode="end-to-end") for at in range(14, 20)
    ]
    new = written(tmp_path / "new", [*answers([True] * 14), *lost])
    done = run_command("gate", str(new), "--against", str(old))
    assert done.returncode == 1
    assert (
        "FAIL: no verdict, because 6 samples of the new version have no valid record" in done.stdout
    )
    done = run_command("gate", str(new), "--against", str(old), "--allow-invalid")
    assert done.returncode == 0
    assert "not compared: 6 samples with a valid record only in the old version" in done.stdout


def test_a_gate_fails_on_a_drop_and_passes_on_a_gain(runs, tmp_path):
    good, poor = map(str, runs)
    junit, summary = tmp_path / "gate.xml", tmp_path / "summary.md"
    done = run_command("gate", poor, "--against", good, "--junit", junit, "--markdown", summary)
    assert done.returncode == 1
    assert "FAIL: the score dropped by more than 0 points" in done.stdout
    assert "end-to-end, FAS: 25.0 (new, poor), 75.0 (old, good)" in done.stdout
    assert "probability of failing at a true drop of 5 points: " in done.stdout
    suite = ElementTree.parse(junit).getroot()
    assert suite.attrib["failures"] == "1"
    assert suite.find("testcase/failure") is not None
    assert "### agrotools gate: FAIL" in summary.read_text()
    done = run_command("gate", good, "--against", poor, "--junit", junit)
    assert done.returncode == 0
    assert ElementTree.parse(junit).getroot().find("testcase/failure") is None
    done = run_command(
        "gate", str(runs[1]), "--against", str(runs[0]), "--max-drop", "45", "--json"
    )
    found = json.loads(done.stdout)
    assert (done.returncode, found["passed"], found["bound"]["drop"]) == (0, True, 0.5)
    assert 0.3 < found["bound"]["lower"] < 0.45


def test_a_saved_run_is_gated_like_its_folder_and_holds_no_pictures(runs, tmp_path):
    good, poor = runs
    (good / "artifacts").mkdir(exist_ok=True)
    (good / "artifacts" / "overlay.png").write_bytes(bytes(100_000))
    file = tmp_path / "release.zip"
    done = run_command("gate", good, "--save", file)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"agrotools gate NEW --against {file}" in done.stderr
    assert file.stat().st_size < 20_000
    for new, old in ((poor, good), (good, poor)):
        by_folder = run_command("gate", new, "--against", old, "--json")
        saved = [file if each == good else each for each in (new, old)]
        by_file = run_command("gate", saved[0], "--against", saved[1], "--json")
        assert by_file.stdout == by_folder.stdout
        assert by_file.returncode == by_folder.returncode
    before = file.read_bytes()
    assert run_command("gate", good, "--save", file).returncode == 0
    assert file.read_bytes() == before


def test_a_version_that_fails_is_not_saved_and_one_that_passes_is(runs, tmp_path):
    good, poor = runs
    file = tmp_path / "release.zip"
    assert run_command("gate", poor, "--against", good, "--save", file).returncode == 1
    assert not file.exists()
    assert run_command("gate", good, "--against", poor, "--save", file).returncode == 0
    assert file.exists()


@pytest.mark.parametrize("command", ["compare", "gate"])
def test_a_log_of_inspect_is_refused_with_the_way_to_a_run(runs, tmp_path, command):
    log = tmp_path / "2026_tree.eval"
    log.write_bytes(b"PK")
    second = ["--against", runs[0]] if command == "gate" else [runs[0]]
    done = run_command(command, log, *second)
    assert done.returncode == 2
    assert "2026_tree.eval is a log of Inspect" in done.stderr
    assert f"--predictions {log} --out RUN" in " ".join(done.stderr.split())


def test_what_cannot_be_saved_or_is_no_saved_run_is_refused(runs, tmp_path):
    good, _ = runs
    table = tmp_path / "scores.csv"
    table.write_text("model,sample,score\nm,s,1\n")
    broken, other = tmp_path / "broken.zip", tmp_path / "other.zip"
    broken.write_bytes(b"PK\3\4 cut off")
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("../manifest.json", "{}")
    damaged = tmp_path / "damaged.zip"
    assert run_command("gate", good, "--save", damaged).returncode == 0
    content = bytearray(damaged.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 50] = bytes(50)
    damaged.write_bytes(content)
    for arguments, said, code in (
        ([good], "there is no older version to test against", 2),
        ([good, "--against", damaged], "cannot be read", 3),
        ([good, "--save", tmp_path / "release.json"], "has to end in .zip", 2),
        ([table, "--save", tmp_path / "release.zip"], "is no run folder", 2),
        ([good, "--against", tmp_path / "none.zip"], "there is no file", 2),
        ([tmp_path / "none.zip", "--against", good], "there is no file", 2),
        ([good, "--against", broken], "cannot be read", 3),
        ([good, "--against", other], "holds no run", 2),
    ):
        done = run_command("gate", *arguments)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    assert not (tmp_path.parent / "manifest.json").exists()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"benchmark_hash": "i"}, "different content of the benchmark: i / h"),
        ({"modes": ("no-tool",)}, "different modes: no-tool / end-to-end"),
        ({"scoring": "3"}, "different scoring versions: 3 / "),
    ],
)
def test_runs_that_cannot_be_compared_are_refused_by_name(tmp_path, changes, named):
    old = written(tmp_path / "old", answers([True] * 20))
    new = written(tmp_path / "new", answers([True] * 20), **changes)
    done = run_command("gate", str(new), "--against", str(old))
    assert done.returncode == 2
    assert named in done.stderr


def test_a_run_on_new_scenes_is_subtracted_without_pairs(tmp_path):
    published = written(tmp_path / "published", answers([True] * 30), benchmark_version="8")
    fresh = written(
        tmp_path / "fresh",
        answers(at < 15 for at in range(30)),
        benchmark_version="8-fresh-1",
        benchmark_hash="other",
    )
    done = run_command("compare", str(published), str(fresh))
    assert done.returncode == 0, done.stderr
    assert "b, version 8-fresh-1 minus b, version 8" in done.stdout
    assert "lower on the samples of the second run: " in done.stdout
    done = run_command("gate", str(fresh), "--against", str(published))
    assert "different benchmark versions: 8-fresh-1 / 8" in done.stderr


def test_a_canary_in_a_reply_is_reported(tmp_path):
    canary = "b7c1f2a0-0000-5000-8000-000000000001"
    samples = [made_sample(f"s{at}", canary=canary) for at in range(12)]
    told = end_to_end(samples[3], call("2*3"), answer=f"rows: 7, from {canary.upper()}")
    others = [end_to_end(each, call("2*3")) for at, each in enumerate(samples) if at != 3]
    run = written(tmp_path / "run", [told, *others])
    done = run_command("score", str(run))
    assert "1 reply (first: s3) with the canary GUID of the benchmark" in " ".join(
        done.stdout.split()
    )
    (summary,) = json.loads(run_command("score", str(run), "--json").stdout)
    assert summary["modes"]["end-to-end"]["counts"]["canaries"] == ["s3"]
    run_command("report", str(run), "--out", tmp_path / "page.html")
    assert "canary GUID" in (tmp_path / "page.html").read_text(encoding="utf-8")
    clean = written(tmp_path / "clean", others)
    assert "canary GUID" not in run_command("score", str(clean)).stdout


def test_causes_are_the_split_of_the_lost_points(tmp_path: Path):
    """Half of the second run's answers follow from a wrong second call, and a quarter of them from no call at all."""

    def made(expression: str, value: float) -> Step:
        return call(expression, observation=Observation(result={"value": value}))

    first, second, wrong = made("2*3", 6.0), made("6 + 1", 7.0), made("6 + 2", 8.0)
    good = [end_to_end(made_sample(f"s{at}"), first, second) for at in range(40)]
    poor = [
        end_to_end(made_sample(f"s{at}"), first, wrong, answer="rows: 8")
        if at < 20
        else end_to_end(made_sample(f"s{at}"), answer="rows: 9")
        if at < 30
        else good[at]
        for at in range(40)
    ]
    runs = written(tmp_path / "good", good), written(tmp_path / "poor", poor)
    (found,) = json.loads(run_command("compare", *map(str, runs), "--json").stdout)
    by_cause = {name: each["value"] for name, each in found["by_cause"]["end-to-end"].items()}
    assert by_cause == {"planning": pytest.approx(-0.25), "arguments": pytest.approx(-0.5)}
    down = {each["sample"]: each["cause"] for each in found["flips"]["end-to-end"]["down"]}
    assert (down["s0"], down["s29"]) == ("arguments", "planning")
    done = run_command("compare", *map(str, runs))
    assert "wrong plan" in done.stdout
    assert "causes are not comparable" not in done.stderr
    (runs[0] / "repeated_calls.jsonl").touch()  # agrotools attribute made further calls for one run
    assert "causes are not comparable yet" in run_command("compare", *map(str, runs)).stderr


def test_two_models_are_run_in_turn_until_the_difference_is_decided(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    farm = write_folder(
        tmp_path / "farm",
        [number_sample(tmp_path / "farm", f"f-{at:02}", at) for at in range(1, 61)],
    )

    def decide(*command: str) -> dict:
        done = run_command(*command, "--until-decided", "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    found = decide("eval", str(farm), "-m", "baseline:planted:1", "-m", "baseline:planted:0")
    assert (found["decided"], found["mode"], found["look"] < found["looks"]) == (
        True,
        "end-to-end",
        True,
    )
    assert found["difference"]["value"] < found["difference"]["interval"]["upper"] < 0
    records = [(Path(run) / "records.jsonl").read_text().splitlines() for run in found["runs"]]
    assert [len(each) for each in records] == [found["difference"]["n"]] * 2
    assert found["difference"]["n"] < 60
    for command in (
        ["score", found["runs"][0]],
        ["compare", *found["runs"]],
        ["gate", *found["runs"][:1], "--against", found["runs"][1]],
    ):
        done = run_command(*command)
        assert "--until-decided stopped this run" in " ".join((done.stdout + done.stderr).split())
        assert "to resume" not in done.stdout + done.stderr

    run = Path(found["runs"][0])
    (run / "records.jsonl").write_text("\n".join(records[0][:5]) + "\n")  # an interrupted run
    assert decide("compare", *found["runs"]) == found

    for model in ("baseline:planted:1", "baseline:planted:0"):
        run_command("eval", str(farm), "-m", model)
    assert "stopped" not in run_command("compare", *found["runs"]).stderr, (
        "the other samples are run"
    )

    # Four samples, so that there are four looks: nothing is decided before the last.
    small = write_folder(
        tmp_path / "small",
        [number_sample(tmp_path / "small", f"s-{at:02}", at) for at in range(1, 5)],
    )
    equal = decide("eval", str(small), "-m", "baseline:planted:1", "-m", "baseline:planted:1:2")
    assert (equal["decided"], equal["looks"], equal["difference"]["n"]) == (False, 4, 4)

    def reply(body):
        is_lost = body["model"] == "flaky" and "field 3." in text_of(body["messages"][-1])
        return error(400, "lost") if is_lost else completion("mean_yield: 5.4 t/ha")

    with serving(reply) as endpoint:
        models = (
            "-m",
            "openai:flaky",
            "-m",
            "openai:other",
            "--base-url",
            endpoint.base_url,
            "--mode",
            "no-tool",
        )
        lost = decide("eval", str(small), *models, "--yes")
    assert (lost["invalid"], lost["difference"]["n"]) == (1, 3)
    refused = run_command("eval", str(small), "-m", "baseline:planted:1", "--until-decided")
    assert (refused.returncode, "compares two different runs" in refused.stderr) == (2, True)
