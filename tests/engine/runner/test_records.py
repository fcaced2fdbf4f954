"""Reading a run: every record once, in an order of its own, in little memory, and nothing passed over in silence."""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import RunStoreError, Step, ToolCall, Trajectory
from agrotools.runner.records import iter_records, record_index
from agrotools.runner.store import RunStore
from support.made_runs import finished_keys
from support.runs import answered, invalid, manifest, record

TESTS = str(Path(__file__).parents[2])


def written(run: Path, *records, sample_ids: tuple[str, ...] = ()) -> Path:
    with RunStore(run, manifest(sample_ids=sample_ids)) as store:
        for each in records:
            store.append(each)
    return run / "records.jsonl"


def test_records_come_back_in_an_order_that_does_not_depend_on_which_ended_first(tmp_path: Path):
    made = [record(name, epoch=epoch, mode=mode) for mode in ("end-to-end", "no-tool") for name in ("s1", "s2")
            for epoch in (0, 1)]  # fmt: skip
    written(tmp_path / "a", *made)
    written(tmp_path / "b", *made[::-1])
    assert list(iter_records(tmp_path / "a")) == list(iter_records(tmp_path / "b")) == made
    index = record_index(tmp_path / "b")
    assert list(index) == list(index) == made
    assert [*index.each_key()] == [each.key for each in made]
    assert len(index) == 8


def test_an_invalid_record_never_takes_the_place_of_a_finished_one(tmp_path: Path):
    for run, lines in (
        ("a", (invalid("s1"), answered("s1", "yes"))),
        ("b", (answered("s1", "yes"), invalid("s1"))),
    ):
        written(tmp_path / run, *lines)
        assert list(iter_records(tmp_path / run)) == [answered("s1", "yes")]
        assert finished_keys(tmp_path / run) == {("no-tool", "s1", 0)}


@pytest.mark.parametrize(("cut", "seen"), [(1, 2), (2, 1), (100, 1)])
def test_a_last_line_counts_where_nothing_but_its_line_break_is_missing(
    tmp_path: Path, cut: int, seen: int
):
    path = written(tmp_path, record("s1"), record("s2"))
    path.write_bytes(path.read_bytes()[:-cut])
    assert list(iter_records(tmp_path)) == [record("s1"), record("s2")][:seen]
    assert record_index(tmp_path).notes == []
    with RunStore(tmp_path, manifest()) as store:
        assert len(finished_keys(store.folder)) == seen
        store.append(record("s3"))
    assert [each.sample.id for each in iter_records(tmp_path)] == [*["s1", "s2"][:seen], "s3"]


@pytest.mark.parametrize(
    "damage", [b"\0" * 300, b'{"half": ', b"[]", b'{"mode": "no-tool"}', b"\xff\xfe", b"3", b""]
)
def test_a_damaged_line_hides_itself_alone_and_not_in_silence(tmp_path: Path, damage: bytes):
    path = written(tmp_path, record("s1"), record("s2"))
    first, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + damage + b"\n" + second)
    index = record_index(tmp_path)
    assert list(index) == [record("s1"), record("s2")]
    assert [line.number for line in index.bad] == [2]
    assert "1 line cannot be read (line 2" in index.notes[0]
    with pytest.raises(RunStoreError, match="line 2"):
        iter_records(tmp_path)


def test_a_record_of_another_version_is_named_by_its_line_and_never_taken_for_damage(
    tmp_path: Path,
):
    path = written(tmp_path, record("s1"), record("s2"))
    first, second = map(orjson.loads, path.read_bytes().splitlines())
    path.write_bytes(orjson.dumps(first) + b"\n" + orjson.dumps({**second, "mood": "good"}) + b"\n")
    content = path.read_bytes()
    for read in (lambda: list(iter_records(tmp_path)), lambda: RunStore(tmp_path, manifest())):
        with pytest.raises(
            RunStoreError, match=r"line 2 is not a record: mood: Extra inputs.*another version"
        ):
            read()
    assert path.read_bytes() == content


def test_a_line_with_a_key_that_is_no_record_is_an_error_to_readers_and_runs_again(tmp_path: Path):
    path = written(tmp_path, record("s1"), record("s2"))
    _, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b'{"mode":"no-tool","sample":{"id":"s1"},"epoch":0}\n' + second)
    with pytest.raises(RunStoreError, match="line 1 is not a record"):
        list(iter_records(tmp_path))
    with RunStore(tmp_path, manifest()) as store:
        assert finished_keys(store.folder) == {("no-tool", "s2", 0)}
        assert "line 1: not a record: sample.query" in store.notes[0]
    assert list(iter_records(tmp_path)) == [record("s2")]


def test_a_record_that_lacks_a_field_is_named_also_on_a_last_line_without_line_break(
    tmp_path: Path,
):
    path = written(tmp_path, record("s1"), record("s2"))
    first, second = path.read_bytes().splitlines(keepends=True)
    unnamed = orjson.dumps({**orjson.loads(second), "sample": {"query": "q"}})
    path.write_bytes(first + unnamed)
    assert (
        "records.jsonl: 1 line cannot be read (line 2: not a record: sample.id: Field required)"
        in (record_index(tmp_path).notes[0])
    )
    with RunStore(tmp_path, manifest()) as store:
        store.append(record("s2"))
    assert (tmp_path / "records.rejected.jsonl").read_bytes() == unnamed + b"\n"
    assert list(iter_records(tmp_path)) == [record("s1"), record("s2")]


def test_a_file_that_changes_under_the_reader_is_noticed(tmp_path: Path):
    path = written(tmp_path, record("s1"), record("s22"), record("s3"))
    index = record_index(tmp_path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[::-1]))
    with pytest.raises(RunStoreError, match=r"changed while it was read|not a record"):
        list(index)
    path.unlink()
    with pytest.raises(RunStoreError, match="changed while it was read"):
        list(index)


def test_records_in_a_place_that_cannot_be_read_are_a_typed_error(tmp_path: Path):
    (tmp_path / "records.jsonl").symlink_to("/dev/zero")
    with pytest.raises(RunStoreError, match="not a regular file"):
        record_index(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


def as_stored(value):
    """What no JSON can say (NaN, infinity) is null."""
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    if isinstance(value, dict):
        return {key: as_stored(item) for key, item in value.items()}
    return [as_stored(item) for item in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(), JSON, max_size=4), st.text())
def test_whatever_a_model_says_comes_back_as_it_was(tmp_path_factory, arguments, text):
    def made(given_arguments) -> Trajectory:
        call = Step(turn=0, kind="call", call=ToolCall(tool="t", arguments=given_arguments))
        return Trajectory(
            steps=(call, Step(turn=1, kind="answer", text=text)), termination="answered"
        )

    run = tmp_path_factory.mktemp("said")
    written(run, record("s1", trajectory=made(arguments)))
    assert (run / "records.jsonl").read_bytes().count(b"\n") == 1
    assert list(iter_records(run)) == [record("s1", trajectory=made(as_stored(arguments)))]


@pytest.mark.parametrize("depth", [1, 50, 180, 230])
def test_arguments_nested_as_deep_as_can_be_written_can_be_read(tmp_path: Path, depth: int):
    value: list = []
    for _ in range(depth):
        value = [value]
    call = Step(
        turn=0, kind="call", call=ToolCall.model_construct(tool="t", arguments={"a": value})
    )
    trajectory = Trajectory.model_construct(
        steps=(call,), termination="max_steps", reason="", halted_by=None
    )
    written(tmp_path, record("s1").model_copy(update={"trajectory": trajectory}))
    (back,) = list(iter_records(tmp_path))
    assert back.invalid is not None or back.trajectory.steps[0].call.arguments == {"a": value}


READ_MANY = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from agrotools.runner.records import record_index
from support.runs import record

def resident_mb(field):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024

before = resident_mb("VmRSS")
index = record_index(Path(sys.argv[1]))
count = sum(record.mode == "no-tool" for record in index)
print(count, resident_mb("VmHWM") - before)
"""


@pytest.mark.slow
def test_many_records_are_read_in_little_memory(tmp_path: Path):
    line = (
        orjson.dumps(answered("SAMPLE", "weeds " * 420).model_dump(mode="json", by_alias=True))
        + b"\n"
    )
    assert len(line) > 3000
    with (tmp_path / "records.jsonl").open("wb") as file:
        for number in range(30_000):
            file.write(line.replace(b"SAMPLE", b"sample-%06d" % number))
    done = subprocess.run(
        [sys.executable, "-c", READ_MANY, str(tmp_path), TESTS],
        check=True,
        capture_output=True,
        text=True,
    )
    count, grown_mb = done.stdout.split()
    assert int(count) == 30_000
    assert float(grown_mb) < 20  # the file has 90 MB


def test_records_of_other_samples_are_left_out_and_repeated_ones_are_named(tmp_path: Path):
    records = [
        record("s1"),
        record("other"),
        answered("s1", "again"),
        record("s2"),
        invalid("s3"),
        record("s3"),
    ]
    written(tmp_path, *records, sample_ids=("s1", "s2", "s3"))
    index = record_index(tmp_path)
    assert [each.sample.id for each in index] == ["s1", "s2", "s3"]
    first = index.get(("no-tool", "s1", 0))
    assert first
    assert first.trajectory
    assert first.trajectory.answer == "again"
    foreign, repeated = index.notes
    assert "left out 1 record of other samples or epochs (first: other, epoch 0)" in foreign
    assert "several finished records of 1 sample, of which the last counts" in repeated


@pytest.mark.parametrize("epoch", [-1, 1, 10**9])
def test_records_of_epochs_that_the_run_does_not_have_are_left_out(tmp_path: Path, epoch: int):
    written(
        tmp_path, record("s1"), record("s1").model_copy(update={"epoch": epoch}), sample_ids=("s1",)
    )
    index = record_index(tmp_path)
    assert [each.epoch for each in index] == [0]
    assert f"other samples or epochs (first: s1, epoch {epoch})" in index.notes[0]


def test_one_record_is_found_without_reading_the_others(tmp_path: Path):
    written(tmp_path, record("s1"), record("s2"), record("s2", mode="end-to-end"), invalid("s3"))
    index = record_index(tmp_path)
    assert index.get(("no-tool", "s2", 0)) == record("s2")
    assert index.get(("no-tool", "s2", 1)) is None
    assert index.of_sample("s2") == [record("s2", mode="end-to-end"), record("s2")]
    assert ("no-tool", "s3", 0) in index
    assert ("no-tool", "s3", 0) not in finished_keys(index.path.parent)
