"""The run store: nothing finished is lost, nothing is counted twice, nobody else writes."""

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from agrotools.core import Artifact, Observation, RunStoreError, Step, Trajectory
from agrotools.formats.manifest import identity_hash
from agrotools.runner import store as store_module
from agrotools.runner.records import iter_records
from agrotools.runner.store import RunStore, read_manifest
from support.made_runs import finished_keys
from support.runs import manifest, record


def test_another_configuration_is_refused_and_named(tmp_path: Path):
    first = manifest(tool_data={"measure": ""})
    with RunStore(tmp_path, first) as store:
        store.append(record("s1"))
    with pytest.raises(RunStoreError, match="model: m there, other in this command"):
        RunStore(tmp_path, manifest(model="other"))
    with pytest.raises(
        RunStoreError, match="data of tools, measure: none there, other heads in this command"
    ):
        RunStore(tmp_path, manifest(tool_data={"measure": "other heads"}))
    assert read_manifest(tmp_path) == first


def test_a_run_without_any_record_may_be_given_another_configuration(tmp_path: Path):
    RunStore(tmp_path, manifest(model="misspelt")).close()
    RunStore(tmp_path, manifest()).close()
    assert read_manifest(tmp_path) == manifest()


def test_modes_epochs_and_samples_may_grow(tmp_path: Path):
    RunStore(tmp_path, manifest(sample_ids=("s1",))).close()
    RunStore(tmp_path, manifest(modes=("end-to-end",), epochs=3, sample_ids=("s2",))).close()
    grown = read_manifest(tmp_path)
    assert (grown.modes, grown.epochs, grown.sample_ids) == (
        ("no-tool", "end-to-end"),
        3,
        ("s1", "s2"),
    )


def test_endpoints_never_share_a_default_folder_but_a_chosen_one_may_go_on_at_another(
    tmp_path: Path,
):
    here, there = (
        manifest(base_url="http://localhost:1/v1"),
        manifest(base_url="http://localhost:2/v1"),
    )
    assert identity_hash(here) != identity_hash(there)
    RunStore(tmp_path, here).close()
    RunStore(tmp_path, there).close()


def test_a_folder_that_is_no_run_is_a_typed_error(tmp_path: Path):
    with pytest.raises(RunStoreError, match="not a run folder"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(RunStoreError, match="cannot be read: Invalid JSON"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("name", ["records.jsonl", "notes.txt"])
def test_a_folder_with_something_else_is_left_as_it_is(tmp_path: Path, name: str):
    (tmp_path / name).write_text("not whole")
    with pytest.raises(RunStoreError, match="not changed"):
        RunStore(tmp_path, manifest())
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "not whole"


def test_a_manifest_of_a_later_version_or_of_a_pipe_is_a_typed_error(tmp_path: Path):
    with RunStore(tmp_path / "later", manifest()) as store:
        store.append(record("s1"))
    path = tmp_path / "later" / "manifest.json"
    path.write_text(
        path.read_text().replace('"format": 1', '"format": 99').replace('"format":1', '"format":99')
    )
    with pytest.raises(RunStoreError, match="later version"):
        read_manifest(tmp_path / "later")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "manifest.json")
    with pytest.raises(RunStoreError, match="not a regular file"):
        read_manifest(tmp_path / "pipe")


def test_a_start_that_was_killed_can_be_started_again(tmp_path: Path):
    (tmp_path / "artifacts").mkdir()
    (tmp_path / ".lock").touch()
    (tmp_path / ".manifest.json.17").touch()
    RunStore(tmp_path, manifest()).close()
    assert read_manifest(tmp_path) == manifest()


def overlay(sha256: str | None = "abc") -> Observation:
    artifact = Artifact(name="overlay.png", kind="overlay", media_type="image/png", sha256=sha256)
    return Observation(result={}, artifacts=(artifact,))


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder in which a call left its overlay."""
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "overlay.png").write_bytes(b"picture")
    return folder


async def test_artifacts_are_kept_once_by_content_however_many_calls_make_them_at_once(
    tmp_path: Path, made: Path
):
    with RunStore(tmp_path / "run", manifest()) as store:
        await asyncio.gather(*(store.keep_artifacts(overlay(), made) for _ in range(20)))
        (made / "overlay.png").unlink()
        await store.keep_artifacts(overlay(), made)
        await store.keep_artifacts(overlay(None), made)
    (kept,) = (tmp_path / "run" / "artifacts").iterdir()
    assert kept.name == "abc.png"
    assert kept.read_bytes() == b"picture"


@pytest.mark.parametrize("left", [b"", b"pict", b"\0\0\0\0\0\0\0"])
async def test_an_artifact_that_a_power_cut_left_torn_is_replaced(
    tmp_path: Path, made: Path, left: bytes
):
    with RunStore(tmp_path / "run", manifest()) as store:
        (tmp_path / "run" / "artifacts" / "abc.png").write_bytes(left)
        await store.keep_artifacts(overlay(), made)
    assert (tmp_path / "run" / "artifacts" / "abc.png").read_bytes() == b"picture"


async def test_an_artifact_is_written_by_another_thread_and_a_link_is_none(
    tmp_path: Path, made: Path, monkeypatch
):
    threads: list[int] = []
    monkeypatch.setattr(
        store_module, "copy_whole", lambda _made, _kept: threads.append(threading.get_ident())
    )
    with RunStore(tmp_path / "run", manifest()) as store:
        await store.keep_artifacts(overlay(), made)
        (made / "overlay.png").unlink()
        (made / "overlay.png").symlink_to("/etc/hostname")
        await store.keep_artifacts(overlay("def"), made)
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


def test_a_record_that_no_file_can_hold_is_kept_as_invalid(tmp_path: Path):
    broken = Trajectory(steps=(Step(turn=0, kind="answer", text="\ud800"),), termination="answered")
    with RunStore(tmp_path, manifest()) as store:
        store.append(record("s1", trajectory=broken))
        store.append(record("s2"))
        assert finished_keys(store.folder) == {("no-tool", "s2", 0)}
    first, second = list(iter_records(tmp_path))
    assert "cannot be stored" in (first.invalid or "")
    assert second == record("s2")


def test_a_signal_while_a_record_is_encoded_is_an_interrupt_and_leaves_no_record(tmp_path: Path):
    def signalled():
        yield 1
        raise KeyboardInterrupt

    broken = record("s1")
    metadata: dict[str, Any] = {"values": signalled()}
    with RunStore(tmp_path, manifest()) as store:
        with pytest.raises(KeyboardInterrupt):
            store.append(
                broken.model_copy(
                    update={"sample": broken.sample.model_copy(update={"metadata": metadata})}
                )
            )
        store.append(record("s2"))
    assert [each.sample.id for each in iter_records(tmp_path)] == ["s2"]


def test_a_sample_that_no_file_can_hold_is_a_typed_error(tmp_path: Path):
    broken = record("s1").sample.model_copy(update={"query": "\ud800"})
    with (
        RunStore(tmp_path, manifest()) as store,
        pytest.raises(RunStoreError, match="sample 's1' cannot be stored"),
    ):
        store.append(
            record("s2").model_copy(update={"sample": broken.model_copy(update={"id": "s1"})})
        )


def test_a_record_that_cannot_be_written_is_a_typed_error(tmp_path: Path, monkeypatch):
    def full(_line: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with RunStore(tmp_path / "run", manifest()) as store:
        monkeypatch.setattr(store._records, "append", full)
        with pytest.raises(RunStoreError, match="No space left"):
            store.append(record("s1"))
        assert not finished_keys(store.folder)
