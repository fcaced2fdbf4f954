import json
import shutil

import pytest
from every_slot import write_every_slot

from agrotools.core import Sample
from agrotools.loading import load_folder
from agrotools_build.export import huggingface
from agrotools_build.export.huggingface import export_huggingface

parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra build)")


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    return load_folder(write_every_slot(tmp_path_factory.mktemp("hf") / "benchmark"))


@pytest.fixture(scope="module")
def exported_once(benchmark, tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "hf"
    export_huggingface(benchmark.root, benchmark.header, benchmark.samples, folder)
    return folder


@pytest.fixture
def exported(exported_once, tmp_path):
    return shutil.copytree(exported_once, tmp_path / "hf")


def test_every_field_of_a_sample_has_a_column(exported):
    (shard,) = (exported / "data").iterdir()
    assert set(Sample.model_fields) <= set(parquet.read_schema(shard).names)


def test_the_library_of_hugging_face_reads_it_and_shows_the_pictures(
    benchmark, exported, tmp_path, monkeypatch
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    datasets.disable_progress_bars()
    read = datasets.load_dataset(str(exported), split="test", cache_dir=str(tmp_path / "cache"))
    assert read.features["images"].feature == datasets.Image()
    assert len(read) == 7
    assert [image.size for image in read[0]["images"]] == [(32, 24), (32, 24)]
    assert (read[0]["images"][0].format, read[6]["images"]) == ("PNG", [])
    assert [file["path"] for file in read[6]["data"]] == [
        "files/bands.tif",
        "files/labels.png",
        "files/table.csv",
    ]
    assert read[6]["data"][2]["bytes"] == b"n,yield\n0,4.1\n50,5.2\n"
    assert json.loads(read[0]["answer"])[0]["value"] == 3.0
    assert read["query"][:] == [sample.query for sample in benchmark.samples]
    assert "more: <number>" in read[0]["answer_form"]


def test_the_card_begins_with_what_the_hub_reads(exported):
    text = (exported / "README.md").read_text()
    front = text.split("---\n")[1]
    assert "license: cc-by-4.0" in front
    assert 'language: ["en","zh"]' in front
    assert "path: data/test-*.parquet" in front
    assert 'load_dataset("DIR", split="test")' in text


def test_a_long_benchmark_has_several_groups_of_rows(benchmark, tmp_path, monkeypatch):
    monkeypatch.setattr(huggingface, "GROUP_BYTES", 6_000)
    export_huggingface(benchmark.root, benchmark.header, benchmark.samples, tmp_path / "hf")
    file = parquet.ParquetFile(tmp_path / "hf/data/test-00000-of-00001.parquet")
    assert file.num_row_groups > 1
    assert file.read()["id"].to_pylist() == [sample.id for sample in benchmark.samples]


def test_files_that_samples_share_are_stored_once(benchmark, tmp_path):
    import numpy as np
    from PIL import Image

    sample = benchmark.samples[3]
    path = tmp_path / "noise.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (512, 512, 3), dtype=np.uint8)).save(
        path
    )
    file = sample.files[0].model_copy(update={"path": "noise.png", "sha256": None})
    many = [
        sample.model_copy(update={"id": f"s{number}", "files": (file,)}) for number in range(20)
    ]
    export_huggingface(tmp_path, benchmark.header, many, tmp_path / "hf")
    (shard,) = (tmp_path / "hf" / "data").iterdir()
    assert shard.stat().st_size < 1.5 * path.stat().st_size
