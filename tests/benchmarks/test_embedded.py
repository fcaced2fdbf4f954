import json
import subprocess
import sys
from collections import Counter

import pytest

from agrotools.benchmarks import embedded, load_benchmark
from agrotools.benchmarks.validate import validate_folder
from agrotools.construct.sources import rows
from agrotools.core import BenchmarkError

_SMALL = (("photo", 2, 0), ("bands", 1, 1), ("map", 1, 2))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(rows, "PLAN", _SMALL)
    monkeypatch.setattr(rows, "SAMPLES", 8)
    return tmp_path / "cache" / "benchmarks"


def _folder(cache):
    (folder,) = [path for path in cache.iterdir() if path.is_dir()]
    return folder


def test_drawn_once_then_used_from_the_cache(cache):
    told = []
    first = load_benchmark("embedded", progress=lambda *how: told.append(how))
    assert ("scenes", 4, 4) in told
    told.clear()
    second = load_benchmark("embedded", progress=lambda *how: told.append(how))
    assert told == []
    assert second.content_hash == first.content_hash
    assert first.synthetic
    assert validate_folder(first.root) == []
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
def test_a_damaged_copy_is_drawn_again(cache, damage):
    before = load_benchmark("embedded").content_hash
    damage(_folder(cache))
    assert not embedded.is_intact(_folder(cache))
    assert load_benchmark("embedded").content_hash == before
    assert embedded.is_intact(_folder(cache))
    assert not [path for path in cache.iterdir() if path.is_dir() and path.name.startswith(".")]


def test_a_failed_drawing_leaves_nothing_behind(cache, monkeypatch):
    def fail(folder, progress):
        (folder / "benchmark.toml").write_text("half")
        raise RuntimeError("stopped")

    monkeypatch.setattr(rows, "write_rows_benchmark", fail)
    with pytest.raises(RuntimeError, match="stopped"):
        load_benchmark("embedded")
    assert [path.name for path in cache.iterdir() if path.is_dir()] == []


def test_a_cache_that_cannot_be_written_is_explained(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "file"))
    with pytest.raises(BenchmarkError, match="cannot be written") as caught:
        load_benchmark("embedded")
    assert "AGROTOOLS_CACHE" in caught.value.hint


_TWO_AT_ONCE = """
import json
from agrotools.benchmarks import load_benchmark
from agrotools.construct.sources import rows
rows.PLAN, rows.SAMPLES = (("photo", 1, 0), ("map", 1, 2)), 4
told = []
benchmark = load_benchmark("embedded", progress=lambda *how: told.append(how))
print(json.dumps({"hash": benchmark.content_hash, "drew": bool(told)}))
"""


@pytest.mark.slow
def test_of_two_processes_one_draws_and_both_read_the_same(cache):
    runs = [subprocess.Popen([sys.executable, "-c", _TWO_AT_ONCE], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    results = [json.loads(run.communicate(timeout=120)[0]) for run in runs]
    assert len({result["hash"] for result in results}) == 1
    assert sum(result["drew"] for result in results) == 1


@pytest.mark.slow
def test_the_whole_embedded_benchmark(tmp_path, monkeypatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path))
    benchmark = load_benchmark("embedded")
    assert validate_folder(benchmark.root) == []
    assert len(benchmark.samples) >= 60
    clusters = Counter(sample.cluster for sample in benchmark.samples)
    assert len(clusters) >= 20
    assert max(clusters.values()) <= 4
    assert {sample.task_type for sample in benchmark.samples} == {"weed_crop_area", "plotting"}
    assert {sample.metadata["difficulty"] for sample in benchmark.samples} == {0, 1, 2, 3}
    kinds = {file.kind for sample in benchmark.samples for file in sample.files}
    assert kinds == {"image", "raster", "mask"}
    slots = {slot.type for sample in benchmark.samples for slot in sample.answer}
    assert slots == {"tolerance", "exact", "boolean", "file", "plot"}
    for sample in benchmark.samples:
        looks_enough = sample.answer_type != "plot" and all(file.kind == "image" for file in sample.files)
        assert sample.no_tool_eligible is looks_enough
    mapped = [sample for sample in benchmark.samples if sample.metadata["view"] == "map"]
    for sample in mapped:  # With a class map the real tool sees exactly what is true.
        for step in sample.reference.steps:
            if step.tool == "measure_crop_weed_area":
                for name in ("crop_px", "weed_px", "weed_pct", "weed_share_of_veg_pct"):
                    assert step.observation.result[name] == step.truth[name]
