import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from fake_cwfid import write_prepared
from field_parts import PARTS, build_field
from field_parts.weeds import read_cwfid

from agrotools.core import BenchmarkError
from agrotools.core.files import pairs_by_hash, sha256_of_file
from agrotools.loading import load_folder
from agrotools.loading.validate import validate_folder
from agrotools_build.choosing import choose
from agrotools_build.sources.assembling import SEED
from agrotools_build.sources.part import listing_of
from support.caches import separate_cache

_DATA = (
    Path(os.environ.get("AGROTOOLS_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
    / "cwfid"
)


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        separate_cache(patch, tmp_path_factory.mktemp("cache"))
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    base = tmp_path_factory.mktemp("field")
    told = []
    header = build_field(
        write_prepared(base / "set", 4), base / "out", lambda *how: told.append(how)
    )
    return base / "out", header, told


def test_a_built_benchmark_is_sound(built):
    folder, header, told = built
    assert validate_folder(folder) == []
    benchmark = load_folder(folder)
    assert benchmark.header == header
    assert told[-1] == ("reference calls", len(benchmark.samples), len(benchmark.samples))


def test_the_header_carries_the_licence_and_says_how_crop_and_weeds_were_told_apart(built):
    folder, header, _ = built
    assert "non-commercial" in header.licence
    licence = listing_of("field.cwfid").source.licence
    assert header.sources[0].licence == licence
    assert licence in (folder / "benchmark.toml").read_text()
    assert not header.synthetic
    methods = Counter(
        step.observation.result["method"]
        for sample in load_folder(folder).samples
        for step in sample.reference.steps
        if step.tool == "measure_crop_weed_area" and step.observation.ok
    )
    assert header.metadata["separation"] == dict(methods)
    assert header.metadata["heads"] == {}
    assert ("note" in header.metadata) is ("none" in methods)


def test_clusters_are_the_pairs(built):
    folder, _, _ = built
    samples = load_folder(folder).samples
    hashes = {file.sha256 for sample in samples for file in sample.files}
    pair_of = {
        member: number for number, pair in enumerate(pairs_by_hash(hashes)) for member in pair
    }
    by_cluster = {}
    for sample in samples:
        by_cluster.setdefault(sample.cluster, set()).update(
            pair_of[file.sha256] for file in sample.files
        )
    assert len(by_cluster) == 2
    assert all(len(pairs) == 1 for pairs in by_cluster.values())


def _assert_gold_is_what_the_masks_say(source, asked):
    """Every measured truth, counted again from the source's masks by plain numpy.

    ``asked``: files and calls (or steps) of each question.
    """
    images = {sha256_of_file(image.path): image for image in read_cwfid(source)}
    for files, calls in asked:
        by_name = {file.name: images[file.sha256] for file in files}
        for call in calls:
            if call.tool != "measure_crop_weed_area":
                continue
            image = by_name[call.arguments["image"]]
            x0, y0, x1, y1 = call.arguments.get("region") or (0, 0, image.width, image.height)
            classes, plants = image.classes[y0:y1, x0:x1], image.vegetation[y0:y1, x0:x1]
            truth = call.truth
            assert truth["crop_px"] == int(np.sum(classes == 1))
            assert truth["weed_px"] == int(np.sum(classes == 2))
            assert truth["veg_px"] == int(np.sum(plants))
            assert truth["soil_px"] == classes.size - int(np.sum(plants))
            assert truth["weed_pct"] == pytest.approx(100 * np.mean(classes == 2), rel=1e-5)
            assert truth["veg_pct"] == pytest.approx(100 * np.mean(plants), rel=1e-5)


def test_gold_comes_from_the_masks_and_names_tell_nothing(built, tmp_path):
    samples = load_folder(built[0]).samples
    asked = [(sample.files, sample.reference.steps) for sample in samples if sample.answerable]
    _assert_gold_is_what_the_masks_say(write_prepared(tmp_path / "set", 4), asked)
    for sample in load_folder(built[0]).samples:
        names = [file.name for file in sample.files]
        assert (
            names == [f"image_{position}.jpg" for position in range(1, len(names) + 1)]
            or not sample.answerable
        )
        for file in sample.files:
            assert "false colour" in file.note
        assert "tool" not in sample.query.lower()
        assert not re.search(r"\bstep\b|measure_|_px|_pct", sample.query)


def test_building_again_gives_the_same_content(built, tmp_path):
    folder = built[0]
    before = load_folder(folder).content_hash
    build_field(write_prepared(tmp_path / "set", 4), folder)
    assert load_folder(folder).content_hash == before


def test_a_failed_build_leaves_nothing_and_spares_other_folders(tmp_path):
    source = write_prepared(tmp_path / "set", 4)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(BenchmarkError, match="not a benchmark"):
        build_field(source, tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"
    (source / "masks/002.png").unlink()
    with pytest.raises(BenchmarkError, match=r"masks/002\.png"):
        build_field(source, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "set"]


def test_two_images_are_too_few(tmp_path):
    with pytest.raises(BenchmarkError, match="at least four"):
        build_field(write_prepared(tmp_path / "set", 2), tmp_path / "out")


@pytest.mark.skipif(not (_DATA / "truth.json").is_file(), reason=f"no CWFID images in {_DATA}")
def test_the_real_images_give_the_field_benchmark(tmp_path):
    part = PARTS["cwfid"](_DATA, tmp_path)
    chosen = choose(part.subjects, part.questions, part.samples, SEED)
    assert any(item.subject.of == "framed_plant" for item in chosen)
    chosen = [item for item in chosen if item.subject.of == "field"]
    assert len(chosen) >= 80
    assert len({item.subject.name for item in chosen}) == 9  # one pair is left out
    assert {item.question.task_type for item in chosen} == {"weed_crop_area", "plotting"}
    assert {slot.type for item in chosen for slot in item.slots} == {
        "tolerance",
        "exact",
        "boolean",
        "file",
        "plot",
    }
    assert {len(item.instance.calls) for item in chosen} == {1, 2, 3, 4, 5}
    _assert_gold_is_what_the_masks_say(
        _DATA, [(item.instance.files, item.instance.calls) for item in chosen]
    )
