"""The run store: nothing finished is lost, nothing is counted twice, nobody else writes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agrotools.core import Artifact, Observation, Record, RunStoreError, Step, Trajectory
from agrotools.runner.manifest import Manifest, identity_hash
from agrotools.runner.records import read_records
from agrotools.runner.rescore import rescore
from agrotools.runner.store import RunStore, read_manifest
from support.plain_sample import plain_sample

TEST_FOLDERS = f"{Path(__file__).parent}:{Path(__file__).parents[1]}"


def manifest(**changes) -> Manifest:
    values = {
        "agrotools": "0.1.0",
        "benchmark": "b",
        "benchmark_path": "b",
        "benchmark_version": "1",
        "benchmark_hash": "h",
        "model": "m",
        "protocol": "react",
        "max_steps": 20,
        "seed": 0,
        "toolset_hash": "t",
        "prompt_hash": "p",
        "modes": ("no-tool",),
        "epochs": 1,
        "sample_ids": ("s1",),
    }
    return Manifest.model_validate(values | changes)


def record(name: str, **changes) -> Record:
    return Record.model_validate(
        {"sample": plain_sample(name), "mode": "no-tool", "trajectory": Trajectory(termination="answered")} | changes
    )


def test_records_come_back_equal(tmp_path: Path):
    with RunStore(tmp_path / "run", manifest()) as store:
        store.append(record("s1"))
        store.append(record("s2"))
    assert read_records(tmp_path / "run") == [record("s1"), record("s2")]
    assert read_manifest(tmp_path / "run") == manifest()


def test_records_come_back_in_an_order_that_does_not_depend_on_which_ended_first(tmp_path: Path):
    made = [record(name, epoch=epoch) for name in ("s1", "s2") for epoch in (0, 1)]
    for folder, written in (("a", made), ("b", made[::-1])):
        with RunStore(tmp_path / folder, manifest()) as store:
            for each in written:
                store.append(each)
    assert read_records(tmp_path / "a") == read_records(tmp_path / "b") == made


def test_a_torn_last_line_is_cut_off_and_the_rest_stays(tmp_path: Path):
    run = tmp_path / "run"
    with RunStore(run, manifest()) as store:
        store.append(record("s1"))
        store.append(record("s2"))
    whole = (run / "records.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for cut in (first + 1, len(whole) // 2 + 10, len(whole) - 1):
        (run / "records.jsonl").write_bytes(whole[:cut])
        assert read_records(run) == [record("s1")]
        with RunStore(run, manifest()) as store:
            assert store.finished == {("no-tool", "s1", 0)}
            store.append(record("s2"))
        assert (run / "records.jsonl").read_bytes() == whole


def test_an_invalid_sample_is_run_again_and_its_later_record_counts(tmp_path: Path):
    with RunStore(tmp_path, manifest()) as store:
        store.append(record("s1", trajectory=None, invalid="connection refused"))
        assert store.finished == set()
    with RunStore(tmp_path, manifest()) as store:
        assert store.finished == set()
        store.append(record("s1"))
    assert read_records(tmp_path) == [record("s1")]


def test_a_second_process_is_refused_with_the_holders_pid(tmp_path: Path):
    with RunStore(tmp_path, manifest()), pytest.raises(RunStoreError, match=str(os.getpid())):
        RunStore(tmp_path, manifest())
    RunStore(tmp_path, manifest()).close()


def test_another_configuration_is_refused_and_named(tmp_path: Path):
    with RunStore(tmp_path, manifest()) as store:
        store.append(record("s1"))
    with pytest.raises(RunStoreError, match="model: 'm' -> 'other'"):
        RunStore(tmp_path, manifest(model="other"))
    with pytest.raises(RunStoreError, match="tool_data"):
        RunStore(tmp_path, manifest(tool_data={"measure": "other heads"}))
    assert read_manifest(tmp_path) == manifest()


def test_a_run_without_any_record_may_be_given_another_configuration(tmp_path: Path):
    RunStore(tmp_path, manifest(model="misspelt")).close()
    RunStore(tmp_path, manifest()).close()
    assert read_manifest(tmp_path) == manifest()


def test_modes_epochs_and_samples_may_grow(tmp_path: Path):
    RunStore(tmp_path, manifest()).close()
    RunStore(tmp_path, manifest(modes=("end-to-end",), epochs=3, sample_ids=("s2",))).close()
    grown = read_manifest(tmp_path)
    assert (grown.modes, grown.epochs, grown.sample_ids) == (("no-tool", "end-to-end"), 3, ("s1", "s2"))


def test_endpoints_never_share_a_default_folder_but_a_chosen_one_may_go_on_at_another(tmp_path: Path):
    here, there = manifest(base_url="http://localhost:1/v1"), manifest(base_url="http://localhost:2/v1")
    assert identity_hash(here) != identity_hash(there)
    RunStore(tmp_path, here).close()
    RunStore(tmp_path, there).close()


def test_a_folder_that_is_no_run_is_a_typed_error(tmp_path: Path):
    with pytest.raises(RunStoreError, match="not a run folder"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(RunStoreError, match="cannot be read"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", ["records.jsonl", "notes.txt"])
def test_a_folder_with_something_else_is_left_as_it_is(tmp_path: Path, name: str):
    (tmp_path / name).write_text("not whole")
    with pytest.raises(RunStoreError, match="left as it is"):
        RunStore(tmp_path, manifest())
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "not whole"


def test_a_start_that_was_killed_can_be_started_again(tmp_path: Path):
    (tmp_path / "artifacts").mkdir()
    (tmp_path / ".lock").touch()
    (tmp_path / ".manifest.json.17").touch()
    RunStore(tmp_path, manifest()).close()
    assert read_manifest(tmp_path) == manifest()


def test_records_and_scores_that_cannot_be_opened_are_typed_errors(tmp_path: Path):
    with RunStore(tmp_path, manifest()) as store:
        store.append(record("s1"))
    (tmp_path / "scores.json").mkdir()
    with pytest.raises(RunStoreError, match="cannot write the scores"):
        rescore(tmp_path)
    (tmp_path / "records.jsonl").rename(tmp_path / "aside")
    (tmp_path / "records.jsonl").mkdir()
    with pytest.raises(RunStoreError, match="cannot be read"):
        read_records(tmp_path)


def test_a_broken_line_in_the_middle_is_named_by_its_number(tmp_path: Path):
    with RunStore(tmp_path, manifest()) as store:
        store.append(record("s1"))
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"half": \n' + path.read_bytes())
    with pytest.raises(RunStoreError, match="line 1"):
        read_records(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_typed_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunStoreError, match="cannot write"):
        RunStore(tmp_path / "file" / "run", manifest())


async def test_artifacts_are_kept_once_by_content(tmp_path: Path):
    made = tmp_path / "made"
    made.mkdir()
    (made / "overlay.png").write_bytes(b"picture")
    observation = Observation(
        result={}, artifacts=(Artifact(name="overlay.png", kind="overlay", media_type="image/png", sha256="abc"),)
    )
    with RunStore(tmp_path / "run", manifest()) as store:
        await store.keep_artifacts(observation, made)
        await store.keep_artifacts(observation, made)
    kept = list((tmp_path / "run" / "artifacts").iterdir())
    assert [path.name for path in kept] == ["abc.png"]
    assert kept[0].read_bytes() == b"picture"


def test_a_record_that_no_file_can_hold_is_kept_as_invalid(tmp_path: Path):
    broken = Trajectory(steps=(Step(turn=0, kind="answer", text="\ud800"),), termination="answered")
    with RunStore(tmp_path, manifest()) as store:
        store.append(record("s1", trajectory=broken))
        store.append(record("s2"))
        assert store.finished == {("no-tool", "s2", 0)}
    first, second = read_records(tmp_path)
    assert "cannot be stored" in (first.invalid or "")
    assert second == record("s2")


KILLED = """
import sys, os, signal
sys.path[:0] = sys.argv[2].split(":")
from pathlib import Path
from test_store import manifest, record
from agrotools.runner.store import RunStore
store = RunStore(Path(sys.argv[1]), manifest())
for number in range(5):
    store.append(record(f"s{number}"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_kill_9_loses_no_appended_record_and_frees_the_run(tmp_path: Path):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), TEST_FOLDERS], check=False)
    with RunStore(tmp_path, manifest()) as store:
        assert {name for _, name, _ in store.finished} == {f"s{number}" for number in range(5)}


FULL_DISK = """
import resource, signal, sys
sys.path[:0] = sys.argv[2].split(":")
from pathlib import Path
from test_store import manifest, record
from agrotools.core import RunStoreError
from agrotools.runner.store import RunStore
store = RunStore(Path(sys.argv[1]), manifest())
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
try:
    for number in range(100):
        store.append(record(f"s{number}"))
except RunStoreError as error:
    print(number, error)
"""


def test_a_full_disk_is_a_typed_error_and_what_was_written_stays(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path), TEST_FOLDERS],
        check=True,
        capture_output=True,
        text=True,
    )
    written, message = done.stdout.split(maxsplit=1)
    assert "cannot write to the run folder" in message
    assert int(written) >= 2
    with RunStore(tmp_path, manifest()) as store:
        assert len(store.finished) == int(written)
        store.append(record("later"))
    assert len(read_records(tmp_path)) == int(written) + 1
