import json
import shutil
import subprocess
import sys
import tomllib
from collections import Counter

import pytest

from agrotools.benchmarks import load_benchmark
from agrotools.benchmarks.embedded import load as embedded
from agrotools.benchmarks.validate import validate_folder
from agrotools.build.allocation import published
from agrotools.build.sources.drawn import benchmark as drawn
from agrotools.build.sources.drawn.drawing import draw_all
from agrotools.build.templates.wording import sentences
from agrotools.core import FAMILY_OF_TASK_TYPE, BenchmarkError
from support.caches import separate_cache


def _make_small(patch, folder, scenes):
    """Make the embedded benchmark one of eight samples in a cache of its own, with scenes that are mostly drawn."""

    def draw_missing(orders, work, *rest):
        shutil.copytree(scenes, work, dirs_exist_ok=True)
        return draw_all(orders, work, *rest)

    separate_cache(patch, folder)
    patch.setattr(drawn, "draw_all", draw_missing)
    patch.setattr(drawn, "SCENE_KINDS", {"rows": drawn.SCENE_KINDS["rows"]})
    patch.setattr(drawn, "embedded_counts", lambda: None)
    patch.setattr(embedded, "SAMPLES", 8)
    return folder / "benchmarks"


@pytest.fixture
def cache(tmp_path, monkeypatch, small_benchmark):
    return _make_small(monkeypatch, tmp_path / "cache", small_benchmark.parent / "scenes")


@pytest.fixture(scope="module")
def drawn_before(tmp_path_factory, small_benchmark):
    """The cache in which the small benchmark was drawn, the progress of drawing, and the benchmark."""
    progress = []
    with pytest.MonkeyPatch.context() as patch:
        made = _make_small(patch, tmp_path_factory.mktemp("drawn"), small_benchmark.parent / "scenes")
        benchmark = load_benchmark("embedded", progress=lambda *stage: progress.append(stage))
    return made, progress, benchmark


def _folder(cache):
    (folder,) = [path for path in cache.iterdir() if path.is_dir()]
    return folder


@pytest.mark.process
def test_drawn_once_then_used_from_the_cache(cache, drawn_before):
    folder, progress, first = drawn_before
    assert ("scenes", 5, 5) in progress
    shutil.copytree(folder, cache)
    again = []
    second = load_benchmark("embedded", progress=lambda *stage: again.append(stage))
    assert again == []
    assert second.content_hash == first.content_hash
    assert first.synthetic
    assert validate_folder(second.root) == []
    assert [path.name for path in cache.iterdir() if path.is_dir()] == [first.root.name]


def _alter(folder):
    victim = next(iter(sorted((folder / "files").iterdir())))
    victim.write_bytes(victim.read_bytes() + b"x")


def _lose(folder):
    (folder / "samples.jsonl").unlink()


def _interrupt(folder):
    (folder / "manifest.json").unlink()


def _add(folder):
    (folder / "files" / "stray.png").write_bytes(b"x")


def _spoil_manifest(folder):
    (folder / "manifest.json").write_text("{")


@pytest.mark.slow
@pytest.mark.parametrize("damage", [_alter, _lose, _interrupt, _add, _spoil_manifest])
def test_a_damaged_copy_is_noticed(cache, drawn_before, damage):
    shutil.copytree(drawn_before[0], cache)
    assert embedded.is_intact(_folder(cache))
    damage(_folder(cache))
    assert not embedded.is_intact(_folder(cache))


@pytest.mark.slow
def test_a_damaged_copy_is_drawn_again(cache, drawn_before):
    folder, _, before = drawn_before
    shutil.copytree(folder, cache)
    _alter(_folder(cache))
    assert load_benchmark("embedded").content_hash == before.content_hash
    assert embedded.is_intact(_folder(cache))
    assert not [path for path in cache.iterdir() if path.is_dir() and path.name.startswith(".")]


def test_a_failed_drawing_leaves_nothing_behind(cache, monkeypatch):
    def fail(folder, *_, **__):
        folder.mkdir(exist_ok=True)
        (folder / "benchmark.toml").write_text("half")
        raise RuntimeError("stopped")

    monkeypatch.setattr(drawn, "drawn_questions", lambda *_, **__: None)
    monkeypatch.setattr(drawn, "write_scenes", fail)
    with pytest.raises(BenchmarkError, match="RuntimeError: stopped"):
        load_benchmark("embedded")
    assert [path.name for path in cache.iterdir() if path.is_dir()] == []


def test_a_cache_that_cannot_be_written_is_explained(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "file"))
    with pytest.raises(BenchmarkError, match="cannot be written") as caught:
        load_benchmark("embedded")
    assert "AGROTOOLS_CACHE" in caught.value.hint


_TWO_AT_ONCE = """
import json, shutil, sys
from agrotools.benchmarks import load_benchmark
from agrotools.benchmarks.embedded import load as embedded
from agrotools.build.sources.drawn.drawing import draw_all
from agrotools.build.sources.drawn import benchmark as drawn
def draw_missing(orders, work, *rest):
    shutil.copytree(sys.argv[1], work, dirs_exist_ok=True)
    return draw_all(orders, work, *rest)
drawn.draw_all = draw_missing
drawn.SCENE_KINDS, drawn.embedded_counts, embedded.SAMPLES = {"rows": drawn.SCENE_KINDS["rows"]}, lambda: None, 4
told = []
benchmark = load_benchmark("embedded", progress=lambda *how: told.append(how))
print(json.dumps({"hash": benchmark.content_hash, "drew": bool(told)}))
"""


@pytest.mark.slow
def test_of_two_processes_one_draws_and_both_read_the_same(cache, small_benchmark):
    command = [sys.executable, "-c", _TWO_AT_ONCE, str(small_benchmark.parent / "scenes")]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    results = [json.loads(run.communicate(timeout=120)[0]) for run in runs]
    assert len({result["hash"] for result in results}) == 1
    assert sum(result["drew"] for result in results) == 1


@pytest.mark.slow
def test_the_whole_embedded_benchmark():
    benchmark = load_benchmark("embedded")
    assert validate_folder(benchmark.root) == []
    samples, wanted = benchmark.samples, published(78, drawn_sources())
    metadata = tomllib.loads((benchmark.root / "benchmark.toml").read_text("utf-8"))["metadata"]
    assert metadata["marginals_missed"] == {}
    assert len(samples) == 78
    calls = [[step.tool for step in sample.reference.steps] for sample in samples]
    assert Counter(len(set(tools)) for tools in calls) == {1: 8, 2: 62, 3: 6, 4: 2}
    assert Counter(sample.answer_type for sample in samples) == {
        "tolerance": 29, "plot": 24, "exact": 20, "open_text": 5
    }  # fmt: skip
    assert sum(map(len, calls)) == 207
    assert sum(len(sample.files) for sample in samples) == 174
    drawn = [sample for sample in samples if any(slot.type == "plot" for slot in sample.answer)]
    assert [sample.id for sample in drawn] == [sample.id for sample in samples if sample.answer_type == "plot"]
    stands_for = metadata["stands_for"]
    assert Counter(stands_for[sample.source.removeprefix("scenes.")] for sample in samples) == wanted.sources
    assert {sample.task_type for sample in samples} == set(FAMILY_OF_TASK_TYPE) - {"pest_diagnosis"}
    assert {sample.metadata["difficulty"] for sample in samples} == {0, 1, 2, 3}
    assert max(Counter(sample.cluster for sample in samples).values()) <= 6
    said = Counter(sentence for sample in samples for sentence in set(sentences(sample.query)))
    assert [sentence for sentence, times in said.items() if times > 1] == []
    for sample in samples:
        looks_enough = sample.answer_type != "plot" and all(file.kind == "image" for file in sample.files)
        assert sample.no_tool_eligible is looks_enough


def drawn_sources():
    return {kind.stands_for for kind in drawn.SCENE_KINDS.values()}
