import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agrotools.core import BenchmarkError, Sample, SampleFile, UsageError
from agrotools.core.errors import NoFileError
from agrotools.formats.benchmark import BenchmarkHeader, LazySamples, SourceNote, facts_of
from agrotools.formats.writing import check_replaceable, header_toml, replace_folder
from agrotools.loading import load_benchmark, load_folder, with_clusters
from agrotools.loading.validate import validate_folder
from agrotools_build.export.folder import write_benchmark
from support.benchmark_folders import HEADER, number_sample, write_folder


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "tiny")


def test_a_folder_is_loaded_and_its_views_hold_no_gold(folder):
    benchmark = load_folder(folder)
    assert (benchmark.name, benchmark.version, benchmark.licence) == ("tiny", "1", "Apache-2.0")
    assert benchmark.synthetic
    assert benchmark.toolset == ("calculate", "plot")
    assert [sample.id for sample in benchmark.samples] == ["tiny-1", "tiny-2", "tiny-3"]
    assert len({sample.cluster for sample in benchmark.samples}) == 3
    assert benchmark.sample("tiny-2").answer_type == "plot"
    with pytest.raises(UsageError, match="no sample"):
        benchmark.sample("tiny-9")
    sample = benchmark.sample("tiny-2")
    view = benchmark.view(sample, "end-to-end")
    assert view.toolset == ("calculate", "plot")
    assert view.files[0].path == str(folder.resolve() / "files/2.png")
    assert "taller" in view.answer_form
    assert "5.4" not in view.model_dump_json()
    assert benchmark.view(sample, "no-tool").toolset == ()


def test_the_content_hash_follows_content_not_place_or_order(folder, tmp_path):
    first = load_folder(folder)
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    lines = (moved / "samples.jsonl").read_text().splitlines()
    (moved / "samples.jsonl").write_text("\n\n".join(reversed(lines)) + "\n")
    assert load_folder(moved).content_hash == first.content_hash
    sample = json.loads(lines[0]) | {"query": "Another question?"}
    (moved / "samples.jsonl").write_text("\n".join([json.dumps(sample), *lines[1:]]))
    assert load_folder(moved).content_hash != first.content_hash


_PLAIN = {
    "id": "x", "query": "q", "files": [], "family": "VA", "task_type": "plotting", "answer_type": "exact",
    "template": "t", "source": "s", "toolset": [],
    "answer": [{"type": "boolean", "name": "b", "label": "b", "value": True}],
}  # fmt: skip
EXACT = {
    "type": "exact", "name": "pest", "label": "pest", "value": "armyworm", "choices": ["armyworm", "bollworm"],
    "aliases": {"armyworm": ["FAW"]},
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"answer": [EXACT | {"weight": 2.0}]},
        {"answer": [EXACT | {"choices": ["armyworm", "bollworm", "aphid"]}]},
        {"answer": [EXACT | {"aliases": {"armyworm": ["FAW"], "bollworm": ["CBW"]}}]},
        {"answer": [EXACT | {"aliases": {"armyworm": ["fall armyworm"]}}]},
        {"difficulty": {"calls": 4.0}},
        {"canary": "another"},
    ],
)
def test_the_content_hash_covers_all_that_a_score_or_a_prompt_follows_from(tmp_path, changed):
    sample = number_sample(tmp_path) | {
        "answer": [EXACT],
        "difficulty": {"calls": 3.0},
        "canary": "one",
    }
    before = load_folder(write_folder(tmp_path, [sample])).content_hash
    assert load_folder(write_folder(tmp_path, [sample])).content_hash == before
    assert load_folder(write_folder(tmp_path, [sample | changed])).content_hash != before


def test_the_content_hash_covers_the_canary_and_files_without_a_hash(tmp_path):
    folder = write_folder(tmp_path, [number_sample(tmp_path)])
    before = load_folder(folder).content_hash
    header = (folder / "benchmark.toml").read_text()
    (folder / "benchmark.toml").write_text('canary = "one"\n' + header)
    assert load_folder(folder).content_hash != before
    sample = number_sample(tmp_path)
    recorded = sample["files"][0].pop("sha256")
    folder = write_folder(tmp_path, [sample])
    benchmark = load_folder(folder)
    assert benchmark.view(benchmark.samples[0], "end-to-end").files[0].sha256 == recorded
    before = benchmark.content_hash
    number_sample(tmp_path, picture=8)
    shutil.copy(folder / "files/8.png", folder / "files/1.png")
    assert load_folder(folder).content_hash != before


def test_samples_of_a_large_folder_are_read_on_demand_and_equal(folder, monkeypatch):
    path = folder / "samples.jsonl"
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join(["", *reversed(lines)]) + "\n"
    )  # neither in the order of ids nor without blank lines
    held = load_folder(folder)
    monkeypatch.setattr("agrotools.formats.benchmark.MOST_KEPT", 2)
    large = load_folder(folder)
    assert isinstance(large.samples, LazySamples)
    assert [*large.samples] == [*held.samples]
    assert large.content_hash == held.content_hash
    assert facts_of(large.samples) == facts_of(held.samples)
    assert large.sample("tiny-2") == held.sample("tiny-2")
    fresh = load_folder(folder).samples
    path.write_text("\n".join(lines))
    with pytest.raises(BenchmarkError, match="changed or removed"):
        fresh[0]


@pytest.mark.parametrize("most", [0, 20_000])
def test_a_byte_order_mark_is_left_out(folder, monkeypatch, most):
    monkeypatch.setattr("agrotools.formats.benchmark.MOST_KEPT", most)
    before = load_folder(folder)
    samples = list(before.samples)
    for name in ("benchmark.toml", "samples.jsonl"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    after = load_folder(folder)
    assert (after.content_hash, list(after.samples)) == (before.content_hash, samples)
    assert validate_folder(folder) == []


TWICE = f"{json.dumps(_PLAIN)}\n" * 2


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("benchmark.toml", "name = ", "benchmark.toml"),
        ("benchmark.toml", HEADER.replace("licence", "license", 1), "licence"),
        ("samples.jsonl", "{", "line 1"),
        ("samples.jsonl", "\n", "no sample"),
        ("samples.jsonl", TWICE, "twice"),
        ("files/1.png", "other", "not the one that was recorded"),
    ],
)
def test_broken_files_are_named(folder, file, content, message):
    (folder / file).write_text(content)
    with pytest.raises(BenchmarkError, match=message) as caught:
        load_folder(folder)
    assert "agrotools benchmarks check" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "path", ["../outside.png", "/etc/hostname", "link.png", "files", "files/none.png"]
)
def test_a_file_outside_or_missing_is_refused(tmp_path, path):
    folder = tmp_path / "tiny"
    sample = number_sample(folder)
    (tmp_path / "outside.png").write_bytes(b"secret")
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    sample["files"][0] |= {"path": path, "sha256": None}
    write_folder(folder, [sample])
    with pytest.raises(BenchmarkError, match=r"leads out|no file|regular file"):
        load_folder(folder)


def test_names_and_paths_are_told_apart(folder, tmp_path, monkeypatch):
    assert load_benchmark(folder).name == "tiny"
    assert load_benchmark(str(folder)).name == "tiny"
    assert load_benchmark("tiny", data_root=tmp_path).name == "tiny"
    monkeypatch.chdir(tmp_path)
    assert load_benchmark("tiny").name == "tiny"
    with pytest.raises(UsageError, match="unknown benchmark 'embeded'") as caught:
        load_benchmark("embeded")
    assert "embedded" in (caught.value.hint or "")
    with pytest.raises(NoFileError, match="there is no folder"):
        load_benchmark(tmp_path / "nothing" / "here")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BenchmarkError, match="not a benchmark folder"):
        load_benchmark(tmp_path / "empty")


def _sample(sample_id, *files):
    stored = tuple(
        SampleFile(name=f"f{i}", path=p, kind="image", sha256=h) for i, (p, h) in enumerate(files)
    )
    return Sample.model_validate(_PLAIN | {"id": sample_id}).model_copy(update={"files": stored})


def test_clusters_join_samples_anew_over_files_content_and_twins():
    samples = [
        _sample("a", ("1", "h1")), _sample("b", ("2", "h2"), ("3", "h3")), _sample("c", ("4", "h1")),
        _sample("d", ("3", "h3"), ("5", "h5")), _sample("e", ("6", "h6")), _sample("f", ("5", "h5"), ("7", "h1")),
    ]  # fmt: skip
    clusters = {sample.id: sample.cluster for sample in with_clusters(samples)}
    assert clusters == {"a": "a", "b": "a", "c": "a", "d": "a", "e": "e", "f": "a"}
    one, other, alone = (_sample(name, (name, f"h{name}")) for name in "abc")
    twins = (one.model_copy(update={"twin": "b"}), other.model_copy(update={"twin": "a"}))
    assert [sample.cluster for sample in with_clusters((*twins, alone))] == ["a", "a", "c"]
    sample = _sample("a", ("1", "h1")).model_copy(update={"cluster": "all-the-same"})
    assert with_clusters([sample])[0].cluster == "a"
    named = [
        _sample(name).model_copy(update={"cluster": farm})
        for name, farm in zip("abcd", "xyx", strict=False)
    ]
    assert [sample.cluster for sample in with_clusters([*named, _sample("d")])] == [
        "a",
        "b",
        "a",
        "d",
    ]


@given(st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=3), min_size=1, max_size=14))
def test_clusters_are_the_connected_components(file_sets):
    samples = [
        _sample(f"s{i}", *((str(f), f"h{f}") for f in files)) for i, files in enumerate(file_sets)
    ]
    found = [sample.cluster for sample in with_clusters(samples)]
    for i, first in enumerate(file_sets):
        reached, grown = set(first), True
        while grown:
            joined = reached.union(*(set(other) for other in file_sets if reached & set(other)))
            grown, reached = joined != reached, joined
        for j, second in enumerate(file_sets):
            assert (found[i] == found[j]) == bool(reached & set(second))


def test_what_is_written_is_read_back(folder, tmp_path):
    first = load_folder(folder)
    copy = tmp_path / "copy"
    with replace_folder(copy) as made:
        shutil.copytree(folder / "files", made / "files")
        write_benchmark(made, first.header, first.samples)
    second = load_folder(copy)
    assert second.content_hash == first.content_hash
    assert [*second.samples] == [*first.samples]
    assert validate_folder(copy) == []


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=20)


@given(
    licence=_TEXT,
    note=_TEXT,
    key=_TEXT,
    value=st.one_of(_TEXT, st.integers(0, 9), st.booleans(), st.lists(_TEXT)),
)
def test_a_header_survives_toml(licence, note, key, value):
    import tomllib

    header = BenchmarkHeader(
        name="a", version="1", licence=licence, toolset=("calculate",), metadata={key: value},
        sources=(SourceNote(name="s", licence=licence, note=note),),
    )  # fmt: skip
    assert (
        BenchmarkHeader.model_validate_json(json.dumps(tomllib.loads(header_toml(header))))
        == header
    )


def test_replacing_leaves_the_old_folder_when_the_new_one_fails(folder):
    before = load_folder(folder).content_hash

    def fail():
        with replace_folder(folder) as made:
            (made / "benchmark.toml").write_text("half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert load_folder(folder).content_hash == before
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_rebuild_keeps_the_review_and_notes_of_the_user(folder):
    (folder / "review.jsonl").write_text('{"decision": "reject"}\n')
    (folder / "notes.txt").write_text("row 3 is doubtful")
    (folder / "quality.jsonl").write_text("{}\n")
    with replace_folder(folder) as made:
        write_folder(made)
    assert (folder / "review.jsonl").read_text() == '{"decision": "reject"}\n'
    assert (folder / "notes.txt").read_text() == "row 3 is doubtful"
    assert not (folder / "quality.jsonl").exists()
    assert load_folder(folder).name == "tiny"


def test_a_folder_with_other_things_is_never_replaced(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for name in ("thesis", "file"):
        with pytest.raises(BenchmarkError), replace_folder(tmp_path / name):
            raise AssertionError("must not begin")
    assert (tmp_path / "thesis" / "chapter.tex").read_text() == "years of work"
    check_replaceable(tmp_path / "empty")
    check_replaceable(tmp_path / "new")


def test_samples_are_a_sequence_in_the_order_of_the_file(folder):
    samples = load_folder(folder).samples
    assert samples[0] is samples[0]
    assert samples[-1].id == "tiny-3"
    assert [sample.id for sample in samples[1:]] == ["tiny-2", "tiny-3"]
    assert [sample.id for sample in samples[1:][:1]] == ["tiny-2"]
    assert [sample.cluster for sample in samples] == [
        sample.cluster for sample in with_clusters(samples)
    ]
    with pytest.raises(IndexError):
        samples[3]


def test_a_benchmark_that_is_replaced_during_a_run_is_read_as_it_was(folder):
    benchmark = load_folder(folder)
    first = json.loads((folder / "samples.jsonl").read_text().splitlines()[0])
    (folder / "new").write_text(json.dumps(first | {"query": "Another?"}) + "\n")
    (folder / "new").replace(folder / "samples.jsonl")
    assert benchmark.samples[0].query == first["query"]
