"""Merging of shards: the same run as without shards, nothing half, and refusals that name what is wrong."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

import agrotools as at
from agrotools.api import Run
from agrotools.core import RunStoreError, UsageError
from agrotools.runner import shards as merge_module
from agrotools.runner.prompts import StoredPrompts
from agrotools.runner.shards import merge_runs
from agrotools.runner.store import read_manifest
from support.command import run_command
from support.eval_process import evaluate, running
from support.text_benchmark import write_text_benchmark

pytestmark = pytest.mark.process


@pytest.fixture
def farm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_text_benchmark(tmp_path / "farm", 7)


def shards_of(folder: object, count: int, **options: Any) -> list[Run]:
    options = {"model": "baseline:random", **options}
    return [
        at.evaluate(folder, shard=(number, count), out=f"{count}-{number}", **options)  # pyright: ignore[reportArgumentType]
        for number in range(1, count + 1)
    ]


def without_times(value: Any) -> Any:
    """Data of a run folder without times and whether a result came from the cache."""
    if isinstance(value, dict):
        return {
            k: without_times(v) for k, v in value.items() if "seconds" not in k and k != "cached"
        }
    return [without_times(each) for each in value] if isinstance(value, list) else value


def contents(run: Path) -> dict[str, Any]:
    """Everything in a run folder, without times."""
    records = sorted(
        map(orjson.loads, (run / "records.jsonl").read_bytes().splitlines()), key=orjson.dumps
    )
    records.sort(key=lambda each: (each["mode"], each["sample"]["id"], each["epoch"]))
    at.score(run)
    return {
        "manifest": json.loads((run / "manifest.json").read_text()),
        "records": without_times(records),
        "scores": without_times(json.loads((run / "scores.json").read_text())),
        "artifacts": sorted(path.name for path in (run / "artifacts").iterdir()),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "counts"),
    [({"mode": "end-to-end", "epochs": 2, "limit": 8}, (4,)), ({"limit": 8}, (1, 3))],
    ids=["epochs", "modes"],
)
def test_merged_shards_equal_the_run_without_shards(
    options: dict[str, Any], counts: tuple[int, ...], tmp_path: Path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    benchmark = at.load_benchmark("embedded", quick=True)
    common = {"benchmark": benchmark, "model": "baseline:planner", "quick": True, **options}
    whole = contents(at.evaluate(**common, out="whole").path)
    assert len(whole["records"]) >= 16
    assert whole["artifacts"]
    for count in counts:
        runs = [
            at.evaluate(**common, shard=(number, count), out=f"{count}-{number}")
            for number in range(1, count + 1)
        ]
        assert min(map(len, runs)) > 0
        merged = at.merge(runs[::-1], f"merged-{count}")
        assert contents(merged.path) == whole

    last = f"merged-{counts[-1]}"
    assert not [each for each in at.compare("whole", last) if each.value]
    assert at.evaluate(**common, out=last).path == Path(last), (
        "the merged run is resumed without --shard"
    )
    sample = whole["records"][0]["sample"]["id"]
    for command in (
        f"compare {last} whole",
        f"report {last}",
        f"attribute {last}",
        f"explain {last} {sample}",
    ):
        done = run_command(*command.split())
        assert done.returncode == 0, done.stderr
    split = [json.loads(run_command("attribute", run, "--json").stdout) for run in ("whole", last)]
    assert split[0] == split[1]


@pytest.mark.process
def test_prompts_and_costs_of_all_shards_are_in_the_merged_run(farm: Path, tmp_path: Path):
    with running(0) as endpoint:
        for number in (1, 2, 3):
            run = tmp_path / f"part-{number}"
            evaluate(
                farm,
                run,
                endpoint,
                "--shard",
                f"{number}/3",
                "--price",
                "1/1",
                "--limit",
                "6",
                "--yes",
            )
        evaluate(farm, tmp_path / "whole", endpoint, "--price", "1/1", "--limit", "6", "--yes")
    parts = [tmp_path / f"part-{number}" for number in (1, 2, 3)]
    with (parts[1] / "prompts.jsonl").open("ab") as file:
        file.write(b'{"key": damaged}\n{"key":["no-tool","q')
    merged = at.merge(parts, tmp_path / "merged")
    assert merged.scores["fas"].value == 1
    assert len(merged) == 6
    prompts, expected = StoredPrompts(merged.path), StoredPrompts(tmp_path / "whole")
    for record in merged.samples():
        assert prompts.of(record.key) == expected.of(record.key) is not None
    hashes = [
        line[:41]
        for line in (merged.path / "prompts.jsonl").read_bytes().splitlines()
        if line.startswith(b'{"hash')
    ]
    assert len(hashes) == len(set(hashes)), "each content is stored once"
    (parts[2] / "prompts.jsonl").unlink()
    assert any(str(parts[2]) in note for note in merge_runs(parts, tmp_path / "again").notes)
    spent = [len((run / "spend.jsonl").read_bytes().splitlines()) for run in (merged.path, *parts)]
    assert spent[0] == sum(spent[1:]) >= 6


def test_missing_and_unfinished_shards_are_named_and_merged_only_on_request(farm: Path):
    runs = shards_of(farm, 5, mode="no-tool")
    lines = (runs[1].path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (runs[1].path / "records.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:50])
    with pytest.raises(
        UsageError, match=r"shards 4, 5 of 5 are missing; not finished: 2/5 \(\d of \d records?\)"
    ) as failed:
        at.merge(runs[:3], "merged")
    assert "--allow-missing" in str(failed.value.hint)
    assert not Path("merged").exists()
    merged = at.merge(runs[:3], "merged", allow_missing=True)
    assert len(merged) == len(runs[0]) + len(runs[2]) + len(lines) - 1
    assert merged.summary.missing == {"no-tool": 7 - len(merged)}
    done = run_command(
        "merge", *(run.path for run in runs[:3]), "--out", "again", "--allow-missing"
    )
    assert done.returncode == 1
    assert "warning: shards 4, 5 of 5 are missing" in done.stderr
    assert "with --out again, without --shard" in done.stderr
    assert len(at.evaluate(farm, "baseline:random", mode="no-tool", out="merged")) == 7, (
        "what is missing runs there"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1}, "seed: 0 in first, 1 in other"),
        ({"model": "baseline:echo"}, "model: baseline:random in first, baseline:echo in other"),
        ({"mode": "end-to-end"}, "modes: no-tool in first, end-to-end in other"),
        ({"epochs": 2}, "epochs: 1 in first, 2 in other"),
        ({"limit": 4}, "records of the whole run, no-tool: 7 in first, 4 in other"),
        ({"shard": (2, 3)}, "number of shards: 2 in first, 3 in other"),
    ],
)
def test_shards_of_different_runs_are_refused_with_the_difference(
    farm: Path, options: dict[str, Any], message: str
):
    values: dict[str, Any] = {"model": "baseline:random", "mode": "no-tool"}
    first = at.evaluate(farm, **values, shard=(1, 2), out="first")
    other = at.evaluate(farm, **{**values, "shard": (2, 2), **options}, out="other")
    with pytest.raises(UsageError, match=rf"first and other are not shards of one run: {message}"):
        at.merge([first, other], "merged")


def test_another_version_of_a_tool_is_named_and_other_machines_are_noted(
    farm: Path, capsys: pytest.CaptureFixture[str]
):
    runs = shards_of(farm, 2, mode="end-to-end")
    change(
        runs[1].path, python="3.14.0 on darwin", toolset={"calculate": "9:0"}, toolset_hash="other"
    )
    with pytest.raises(UsageError, match=r"versions of tools, calculate: 1:\w+ in 2-1, 9:0 in 2-2"):
        at.merge(runs, "merged")
    change(runs[1].path, **runs[0].manifest.model_dump(include={"toolset", "toolset_hash"}))
    done = run_command("merge", *(run.path for run in runs), "--out", "merged")
    assert done.returncode == 0
    assert "warning: shards were run on different machines: python: " in done.stderr
    assert read_manifest(Path("merged")).python == f"{runs[0].manifest.python} / 3.14.0 on darwin"


def change(run: Path, **values: Any) -> None:
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**manifest, **values}))


def test_a_split_by_another_version_is_refused(farm: Path):
    runs = shards_of(farm, 2, mode="no-tool")
    change(runs[1].path, sample_ids=[*runs[1].manifest.sample_ids, runs[0].manifest.sample_ids[0]])
    with pytest.raises(UsageError, match=r"sample q\d is in the shards 1/2 and 2/2"):
        at.merge(runs, "merged")


def test_what_is_no_shard_is_refused(farm: Path, tmp_path: Path):
    whole = at.evaluate(farm, "baseline:echo", mode="no-tool", out="whole")
    with pytest.raises(UsageError, match="whole is not a shard"):
        at.merge([whole], "merged")
    with pytest.raises(RunStoreError, match="not a run folder"):
        at.merge([tmp_path / "farm"], "merged")
    with pytest.raises(UsageError, match="no run is given"):
        at.merge([], "merged")


def test_two_folders_of_one_shard_are_refused(farm: Path):
    runs = shards_of(farm, 2, mode="no-tool")
    copy = shutil.copytree(runs[0].path, Path("1-again"))
    with pytest.raises(UsageError, match="shard 1 is in two folders, 2-1 and 1-again"):
        at.merge([runs[0].path, copy, runs[1].path], "merged")
    assert len(at.merge([runs[0], runs[1], runs[0]], "merged")) == 7


def test_a_damaged_record_is_an_error_that_names_the_line_as_in_score(farm: Path):
    runs = shards_of(farm, 2, mode="no-tool")
    records = runs[1].path / "records.jsonl"
    records.write_bytes(b'{"mode": "no-to\n' + records.read_bytes())
    with pytest.raises(RunStoreError, match=r"2-2/records\.jsonl: 1 line cannot be read"):
        at.merge(runs, "merged", allow_missing=True)
    assert leftovers() == []


def leftovers() -> Sequence[str]:
    return sorted(path.name for path in Path().iterdir() if "merg" in path.name)


def test_a_merge_that_was_stopped_while_it_was_scored_says_how_to_go_on(
    farm: Path, monkeypatch: pytest.MonkeyPatch
):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    runs = shards_of(farm, 2)
    with monkeypatch.context() as patch:
        patch.setattr("agrotools.report.evaluation.score_runs", stop)
        done = run_command("merge", *(run.path for run in runs), "--out", "my merged")
    assert done.returncode == 130
    assert "not scored; agrotools score 'my merged' scores the run" in done.stderr
    assert "no-tool" in run_command("score", "my merged").stdout


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_an_interrupted_merge_leaves_nothing(
    farm: Path, monkeypatch: pytest.MonkeyPatch, fault: BaseException
):
    runs = shards_of(farm, 2, mode="no-tool")

    def stop(*_: object) -> None:
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(merge_module, "_copy_others", stop)
        with pytest.raises((KeyboardInterrupt, RunStoreError)):
            at.merge(runs, "merged")
    assert leftovers() == []
    assert len(at.merge(runs, "merged")) == 7
    assert leftovers() == ["merged"]


def test_a_folder_with_anything_in_it_is_left_as_it_is(farm: Path):
    runs = shards_of(farm, 2, mode="no-tool")
    Path("merged").mkdir()
    at.merge(runs, "merged")
    with pytest.raises(RunStoreError, match="merged exists") as failed:
        at.merge(runs, "merged")
    assert "--out" in str(failed.value.hint)
    assert leftovers() == ["merged"]
    assert "agrotools score" in str(failed.value.hint), (
        "it may be a merge that was killed while it scored"
    )
    run_command("score", "merged")
    with pytest.raises(RunStoreError) as failed:
        at.merge(runs, "merged")
    assert "agrotools score" not in str(failed.value.hint)


def test_a_damaged_artifact_is_taken_from_another_shard(farm: Path):
    runs = shards_of(farm, 2, mode="no-tool")
    name = "b5d4045c3f466fa91fe2cc6abe79232a1a57cdf104f7a26e716e0a1e2789df78.txt"  # SHA-256 of ABC
    for run, content in zip(runs, (b"AB", b"ABC"), strict=True):
        (run.path / "artifacts" / name).write_bytes(content)
    assert (at.merge(runs, "merged").path / "artifacts" / name).read_bytes() == b"ABC"
