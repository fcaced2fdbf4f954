"""Damage to a run folder: whatever a crash, a disk or a full file system did, records that are whole stay."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import RunStoreError
from agrotools.core.files import temporary_sibling
from agrotools.runner import records as recovery
from agrotools.runner.records import iter_records
from agrotools.runner.store import RunStore, read_manifest
from support.made_runs import finished_keys
from support.runs import answered, manifest, record

NAMES = ("s1", "s2", "s3", "s4")


def run_of(folder: Path, names=NAMES) -> bytes:
    with RunStore(folder, manifest()) as store:
        for name in names:
            store.append(answered(name, f"yes, {name}: ½"))
    return (folder / "records.jsonl").read_bytes()


def resume(folder: Path, names=NAMES) -> list[str]:
    """Run what is missing; the notes of the start."""
    with RunStore(folder, manifest()) as store:
        for name in names:
            if ("no-tool", name, 0) not in finished_keys(store.folder):
                store.append(answered(name, f"yes, {name}: ½"))
        return store.notes


@given(st.data())
def test_a_run_cut_anywhere_with_anything_behind_goes_on_with_every_whole_record(
    tmp_path_factory, data
):
    run = tmp_path_factory.mktemp("cut")
    whole = run_of(run)
    cut = data.draw(st.integers(0, len(whole)))
    behind = data.draw(
        st.sampled_from([b"", b"\0" * 5000, b"\0" * 40 + b"\n", b"\n", b"{}\n"])
        | st.binary(max_size=60)
    )
    (run / "records.jsonl").write_bytes(whole[:cut] + behind)
    kept = whole[:cut].count(b"\n")
    with RunStore(run, manifest()) as store:
        assert finished_keys(store.folder) >= {("no-tool", name, 0) for name in NAMES[:kept]}
        # No bytes behind can make a record that was not there, except the line break that the last one lacked.
        assert len(finished_keys(store.folder)) <= kept + 1
    resume(run)
    assert list(iter_records(run)) == [answered(name, f"yes, {name}: ½") for name in NAMES]
    assert all(
        line.startswith(b'{"sample"') for line in (run / "records.jsonl").read_bytes().splitlines()
    )


@pytest.mark.parametrize("tail", [b"\0" * 9000, b"\0" * 100 + b"\n", b"\0\0\n\0\0\n\0"])
def test_zero_bytes_of_a_power_cut_are_cut_off_and_told(tmp_path: Path, tail: bytes):
    whole = run_of(tmp_path)
    (tmp_path / "records.jsonl").write_bytes(whole + tail)
    notes = resume(tmp_path)
    assert (tmp_path / "records.jsonl").read_bytes() == whole
    assert [f"cut {len(tail)} bytes off the end" in note for note in notes] == [True]
    assert resume(tmp_path) == []
    assert not (tmp_path / "records.rejected.jsonl").exists()


def test_a_damaged_line_is_moved_aside_and_its_sample_alone_runs_again(tmp_path: Path):
    whole = run_of(tmp_path)
    lines = whole.splitlines(keepends=True)
    damaged = lines[1][:20] + b"\0" * 50 + lines[1][70:]
    (tmp_path / "records.jsonl").write_bytes(
        lines[0] + damaged + lines[2] + lines[3] + lines[3][:9]
    )
    with RunStore(tmp_path, manifest()) as store:
        assert finished_keys(store.folder) == {("no-tool", name, 0) for name in ("s1", "s3", "s4")}
        cut, moved = store.notes
    assert "cut 9 bytes" in cut
    assert (
        "moved 1 line of records.jsonl that cannot be read to records.rejected.jsonl (line 2: not JSON)"
        in moved
    )
    assert (tmp_path / "records.rejected.jsonl").read_bytes() == damaged
    assert (tmp_path / "records.jsonl").read_bytes() == lines[0] + lines[2] + lines[3]
    assert resume(tmp_path) == []
    assert list(iter_records(tmp_path)) == [answered(name, f"yes, {name}: ½") for name in NAMES]
    (tmp_path / "records.jsonl").write_bytes(b"again\n" + whole)
    resume(tmp_path)
    assert (tmp_path / "records.rejected.jsonl").read_bytes() == damaged + b"again\n"


def test_a_run_whose_repair_is_interrupted_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = run_of(tmp_path)
    (tmp_path / "records.jsonl").write_bytes(b"damage\n" + whole)

    @contextmanager
    def full(path: Path):
        with temporary_sibling(path) as temporary:
            yield temporary
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "temporary_sibling", full)
        with pytest.raises(RunStoreError, match="No space left"):
            RunStore(tmp_path, manifest())
    assert (tmp_path / "records.jsonl").read_bytes() == b"damage\n" + whole
    resume(tmp_path)
    assert (tmp_path / "records.jsonl").read_bytes() == whole
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"manifest.json", ".manifest.copy.json", "records.jsonl", "records.rejected.jsonl", "artifacts",
                     ".lock"}  # fmt: skip


@pytest.mark.parametrize("place", ["/proc/agrotools-run", "/dev/null/run", "{file}/run", "{file}"])
def test_a_place_that_cannot_hold_a_folder_is_a_typed_error_also_for_root(
    tmp_path: Path, place: str
):
    (tmp_path / "file").write_text("a file")
    folder = Path(place.format(file=tmp_path / "file"))
    with pytest.raises(RunStoreError, match=r"cannot write the run folder.*--out") as refused:
        RunStore(folder, manifest())
    assert not folder.is_dir()
    assert "space" not in str(refused.value.hint)
    assert (f"{tmp_path / 'file'} is a file" in str(refused.value)) == ("{file}" in place)
    assert (tmp_path / "file").read_text() == "a file"


def test_folders_made_on_the_way_to_one_that_cannot_be_made_go_away(tmp_path: Path):
    with pytest.raises(RunStoreError, match="cannot write"):
        RunStore(tmp_path / "a" / "b" / ("x" * 300), manifest())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("target", ["/dev/full", "/dev/null", "/dev/zero"])
def test_records_that_would_go_to_a_device_are_refused_at_the_start(tmp_path: Path, target: str):
    run_of(tmp_path)
    (tmp_path / "records.jsonl").unlink()
    (tmp_path / "records.jsonl").symlink_to(target)
    with pytest.raises(RunStoreError, match="not a regular file"):
        RunStore(tmp_path, manifest())


def test_records_that_lie_on_another_disk_by_a_link_are_mended_there(tmp_path: Path):
    whole = run_of(tmp_path / "run")
    (tmp_path / "large").write_bytes(b"damage\n" + whole + b"torn")
    (tmp_path / "run" / "records.jsonl").unlink()
    (tmp_path / "run" / "records.jsonl").symlink_to(tmp_path / "large")
    resume(tmp_path / "run")
    assert (tmp_path / "run" / "records.jsonl").is_symlink()
    assert (tmp_path / "large").read_bytes() == whole


def test_a_folder_that_is_deleted_during_the_run_is_noticed_at_the_next_record(tmp_path: Path):
    store = RunStore(tmp_path / "run", manifest())
    store.append(record("s1"))
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(RunStoreError, match="deleted while in use"):
        store.append(record("s2"))
    store.close()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("left", [None, b"", b"{", b"\0" * 400])
def test_a_damaged_manifest_is_written_anew_from_its_copy(tmp_path: Path, left: bytes | None):
    run_of(tmp_path)
    (tmp_path / "manifest.json").unlink() if left is None else (
        tmp_path / "manifest.json"
    ).write_bytes(left)
    assert read_manifest(tmp_path) == manifest()
    with pytest.raises(RunStoreError, match="another configuration"):
        RunStore(tmp_path, manifest(model="other"))
    assert resume(tmp_path) == [
        "manifest.json was damaged or missing and is written anew from its copy"
    ]
    assert resume(tmp_path) == []
    (tmp_path / ".manifest.copy.json").unlink()
    assert read_manifest(tmp_path) == manifest()


def test_without_manifest_and_copy_the_records_stay_and_the_way_on_is_said(tmp_path: Path):
    whole = run_of(tmp_path)
    for name in ("manifest.json", ".manifest.copy.json"):
        (tmp_path / name).write_text("{")
    for attempt in (read_manifest, lambda run: RunStore(run, manifest())):
        with pytest.raises(
            RunStoreError, match=r"cannot be read.*put it back from a copy.*left as it is"
        ):
            attempt(tmp_path)
    assert (tmp_path / "records.jsonl").read_bytes() == whole


def test_links_in_a_run_folder_lead_nothing_outside_to_harm(tmp_path: Path):
    run_of(tmp_path / "run")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("precious")
    (tmp_path / "run" / ".scratch").symlink_to(precious)
    with RunStore(tmp_path / "run", manifest()) as store:
        assert store.scratch.is_dir()
        assert not store.scratch.is_symlink()
        shutil.rmtree(store.scratch)
        store.scratch.symlink_to(precious)
    (tmp_path / "run" / ".scratch").unlink()
    shutil.rmtree(tmp_path / "run" / "artifacts")
    (tmp_path / "run" / "artifacts").symlink_to(precious)
    with pytest.raises(RunStoreError, match=r"artifacts is a link.*remove the link"):
        RunStore(tmp_path / "run", manifest())
    assert [path.name for path in precious.iterdir()] == ["file"]
    assert (precious / "file").read_text() == "precious"
