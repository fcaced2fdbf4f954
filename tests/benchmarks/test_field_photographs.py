"""The benchmark ``field``: its pack, its photographs from mirrors of two layouts, and its loader."""

import io
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
import rasterio
from PIL import Image
from scipy.io import savemat

from agrotools.calling import get_tool
from agrotools.core import UsageError
from agrotools.core.errors import NoFileError
from agrotools.formats.benchmark import Benchmark, BenchmarkHeader, SourceNote, content_hash_of
from agrotools.loading.benchmarks import Loading, load_as, load_benchmark
from agrotools.loading.describing import describe
from agrotools.loading.downloads import Patience
from agrotools.loading.obtaining import Request, list_benchmarks, obtain
from agrotools.runner.build import benchmark_notes
from agrotools_benchmarks.field import load
from agrotools_benchmarks.field.pack import (
    JPEG_QUALITY,
    DataSetNote,
    PackedFile,
    PackHead,
    as_jpeg,
    as_tiff,
    pixel_hash,
    read_head,
    read_samples,
    sha256_of,
)
from support.file_server import serving
from support.made_runs import made_sample, picture

DATA = Path(os.environ.get("AGROTOOLS_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
HURRY = Patience(timeout_s=5, attempts=2, first_wait_s=0.01)
_PLACE = {"repo": "owner/repo", "commit": "c0ffee"}
_CLASSES = np.array([[0, 1], [2, 1]], np.uint8)
_COLOURS = np.array([[[0, 0, 0], [0, 255, 0]], [[255, 0, 0], [0, 255, 0]]], np.uint8)


def _saved(pixels, form: str, **more) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, form, **more)
    return buffer.getvalue()


def _jpeg(content: bytes) -> bytes:
    with Image.open(io.BytesIO(content)) as picture:
        return _saved(np.asarray(picture.convert("RGB")), "JPEG", quality=JPEG_QUALITY)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A pack of three photographs, one of them converted, and two masks; the content of their repository by path."""
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    web = {
        "a b/1.jpg": picture((200, 30, 30)),
        "a b/2.jpg": picture((30, 200, 30)),
        "field/3_image.png": picture((30, 30, 200), form="PNG"),
        "field/3_annotation.png": _saved(_COLOURS, "PNG"),
        "field/3_mask.png": _saved(np.where(_CLASSES > 0, 0, 255).astype(np.uint8), "PNG"),
    }
    files: list[PackedFile] = []
    for number, (source, content) in enumerate(list(web.items())[:3], start=1):
        stored = _jpeg(content) if number == 3 else content
        local = f"cwfid/images/{number}.jpg" if number == 3 else f"leaves/images/{number}.jpg"
        more = {"convert": "jpeg"} if number == 3 else {"size": len(content)}
        known = {
            "path": f"files/{number}.jpg",
            "sha256": sha256_of(stored),
            "source": source,
            "local": local,
        }
        files.append(PackedFile.model_validate(known | more | _PLACE))
    masks = []
    for kind, source, plane, how in (
        ("masks", "field/3_annotation.png", _CLASSES, "classes"),
        ("vegetation", "field/3_mask.png", (_CLASSES > 0).astype(np.uint8), "plants"),
    ):
        place = dict.fromkeys(("path", "local"), f"cwfid/{kind}/3.png")
        masks.append(
            PackedFile(**place, source=source, sha256=pixel_hash(plane), convert=how, **_PLACE)
        )
    samples = []
    for number, file in enumerate(files, start=1):
        plain = made_sample(f"made-{number}")
        shown = plain.files[0].model_copy(update={"path": file.path, "sha256": file.sha256})
        samples.append(plain.model_copy(update={"files": (shown,)}))
    header = BenchmarkHeader(name="field", version="3", licence="as stated", toolset=("calculate",))
    notes = (
        DataSetNote(
            folder="leaves", source=SourceNote(name="Leaves", licence="CC BY 4.0"), questions=2
        ),
        DataSetNote(
            folder="other",
            source=SourceNote(name="Other", licence="?"),
            questions=7,
            unused="no terms",
        ),
    )
    whole = {"header": header, "content_hash": content_hash_of(header, samples), "data_sets": notes}
    head = PackHead(**whole, files=tuple(files), head_files=tuple(masks))
    monkeypatch.setattr(load, "read_head", lambda: head)
    monkeypatch.setattr(load, "read_samples", lambda: samples)
    return head, web


def _serve(folder: Path, web: dict[str, bytes]) -> Path:
    for name, content in web.items():
        (path := folder / "owner/repo/c0ffee" / name).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


@pytest.mark.process
def test_photographs_are_fetched_converted_checked_and_asked_about(made, tmp_path):
    head, web = made
    said: list[str] = []
    with serving(_serve(tmp_path / "web", web)) as server:
        obtained = obtain(
            "field", Request(tmp_path / "cache/data", server.url, say=said.append, patience=HURRY)
        )
    assert obtained.failures == []
    # Training takes minutes: it is asked for separately, with commands that the download names.
    (models,) = obtained.notes
    assert f"agrotools tools packs train crop-weed --data {tmp_path / 'cache/data/field'}" in models
    assert "agrotools tools packs train pests" in models
    assert said == ["left out of the benchmark: Other, 7 questions: no terms"]
    benchmark = load_benchmark("field")
    assert benchmark.content_hash == head.content_hash
    notes = str(benchmark.header.metadata["notes"])
    assert models in notes
    assert np.array_equal(np.asarray(Image.open(benchmark.root / "cwfid/masks/3.png")), _CLASSES)
    assert "CC BY 4.0" in (tmp_path / "cache/data/LICENCES.md").read_text()
    assert {row.name: row.state for row in list_benchmarks()}["field"] == "complete"


def _geotiff(path: Path, bands) -> bytes:
    shape = {
        "count": len(bands),
        "height": bands.shape[1],
        "width": bands.shape[2],
        "dtype": bands.dtype,
    }
    with rasterio.open(
        path, "w", driver="GTiff", crs="EPSG:32633", compress="deflate", **shape
    ) as raster:
        raster.write(bands)
    return path.read_bytes()


def _array(values) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def _matlab(values) -> bytes:
    savemat(buffer := io.BytesIO(), {"transformed_depth": values})
    return buffer.getvalue()


def _packed(stored: bytes, **how) -> PackedFile:
    known = {"path": "files/x", "sha256": sha256_of(stored), "source": "x", "local": "x"}
    return PackedFile.model_validate(known | how | _PLACE)


@pytest.mark.filterwarnings("ignore::rasterio.errors.NotGeoreferencedWarning")
def test_original_and_copy_in_another_form_become_the_same_file(tmp_path):
    rng = np.random.default_rng(1)
    picture, heights = (
        rng.integers(0, 255, (40, 60, 3), np.uint8),
        rng.random((3, 8, 9), np.float32),
    )
    depth, mask = (
        rng.integers(300, 3000, (30, 40), np.uint16),
        rng.integers(0, 2, (12, 14), np.uint8),
    )
    tiff = _geotiff(tmp_path / "colours.tif", picture.transpose(2, 0, 1))
    marks = (("red", (4, 4, 20, 20)),)
    framed, *_, plain = as_jpeg(_saved(picture[5:35, 10:50], "PNG"), 93, None, marks)
    for original, copy, stored, how in (
        (tiff, _saved(picture[5:35, 10:50], "PNG"), plain, {"crop": (10, 5, 50, 35), "marks": marks}),
        (_matlab(depth), _saved(depth, "PNG"), as_tiff(_saved(depth, "PNG"), None)[0], {"convert": "tiff"}),
        (_array(heights[..., None]), _geotiff(tmp_path / "h.tif", heights[1:2]),
         as_tiff(_array(heights), 1)[0], {"convert": "tiff", "layer": 1}),
        (_geotiff(tmp_path / "mask.tif", 255 * mask[None]), _saved(mask, "PNG"),
         as_tiff(_saved(mask, "PNG"), None)[0], {"convert": "tiff"}),
    ):  # fmt: skip
        item = _packed(stored, **{"convert": "jpeg"} | how).item
        assert item.convert is not None
        assert item.convert(original) == item.convert(copy) == item.convert(stored) == stored
        assert item.convert(b"no picture") is None
    assert framed != plain


def test_an_index_in_a_signed_jpeg_2000_becomes_fractions():
    stored = np.array([[-3056, 0], [5000, 10076]])
    buffer = io.BytesIO()
    # Pillow adds this offset to the signed values that it reads, and writes unsigned ones as they are.
    shifted = (stored + (1 << 15)).astype(np.uint16)
    Image.fromarray(shifted).save(buffer, "JPEG2000", irreversible=False)
    plane = Image.open(io.BytesIO(as_tiff(buffer.getvalue(), None)[0]))
    assert np.asarray(plane) == pytest.approx(stored / 10_000, abs=1e-6)


def test_a_prepared_copy_gives_the_same_benchmark(made, tmp_path):
    head, web = made
    mirror, root = tmp_path / "mirror", tmp_path / "elsewhere"
    for file, content in zip((*head.files, *head.head_files), web.values(), strict=True):
        (path := mirror / file.local).parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_jpeg(content) if file.convert == "jpeg" else content)
    assert obtain("field", Request(root, str(mirror), patience=HURRY)).failures == []
    assert load_benchmark("field", root).content_hash == head.content_hash


def _incomplete(benchmark: Benchmark) -> str:
    """The one note on what is missing."""
    (note,) = [each for each in benchmark_notes(benchmark) if each.startswith("incomplete")]
    return note


@pytest.mark.process
@pytest.mark.parametrize("fault", [404, "other"])
def test_what_is_missing_is_named_and_the_rest_can_be_asked(made, tmp_path, fault):
    head, web = made
    root = tmp_path / "out"
    with serving(_serve(tmp_path / "web", web)) as server:
        for item in (head.files[0].item, head.files[2].item):
            for url in item.urls:
                server.always[unquote(urlsplit(url).path).lstrip("/")] = fault
        obtained = obtain("field", Request(root, server.url, patience=HURRY))
        assert sorted(each.path for each in obtained.failures) == ["files/1.jpg", "files/3.jpg"]
        with pytest.raises(NoFileError, match="2 of 3 files"):
            load_benchmark("field", root)
        partial = load_benchmark("field", root, options={"missing": True})
        assert [sample.id for sample in partial.samples] == ["made-2"]
        assert partial.content_hash != head.content_hash
        assert {row.name: row.state for row in list_benchmarks(root)}["field"] == "incomplete"
        assert _incomplete(partial).startswith("incomplete: 2 photographs missing, 1 question left")
        part = head.header.model_copy(update={"quick": ("made-2", "made-3")})
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(load, "read_head", lambda: head.model_copy(update={"header": part}))
            quick = load_benchmark("field", root, options={"missing": True}, quick=True)
        assert len(quick.samples) == 2
        assert _incomplete(quick).startswith("incomplete: 1 photograph missing, 1 question left")
        server.always.clear()
        assert obtain("field", Request(root, server.url, patience=HURRY)).failures == []
    assert load_benchmark("field", root).content_hash == head.content_hash
    (root / "field/files/1.jpg").write_bytes(b"altered")
    with pytest.raises(NoFileError, match="missing or altered"):
        load_benchmark("field", root)


def test_the_quick_part_needs_its_own_photographs_only(made, tmp_path, monkeypatch):
    head, web = made
    quick = head.model_copy(
        update={"header": head.header.model_copy(update={"quick": ("made-2",)})}
    )
    monkeypatch.setattr(load, "read_head", lambda: quick)
    _serve(tmp_path / "web", {"a b/2.jpg": web["a b/2.jpg"]})
    mirror = str(tmp_path / "web")
    quick_part = Request(tmp_path / "out", mirror, quick=True, patience=HURRY)
    obtained = obtain("field", quick_part)
    assert [path.name for path in obtained.files] == ["2.jpg"]
    # The heads learn from all photographs and their masks, which come with the whole.
    assert "agrotools benchmarks get field, then agrotools tools packs train" in obtained.notes[0]
    assert obtained.failures == []
    assert {row.name: row.state for row in list_benchmarks(tmp_path / "out")}[
        "field"
    ] == "quick part"
    assert len(load_benchmark("field", tmp_path / "out", quick=True).samples) == 3
    with pytest.raises(NoFileError, match="2 of 3"):
        load_benchmark("field", tmp_path / "out")
    # The rest comes later, and getting the quick part again leaves the whole as it is.
    _serve(tmp_path / "web", web)
    assert obtain("field", Request(tmp_path / "out", mirror, patience=HURRY)).failures == []
    obtain("field", quick_part)
    assert {row.name: row.state for row in list_benchmarks(tmp_path / "out")}["field"] == "complete"


def test_a_benchmark_without_a_quick_download_says_which_has_one(tmp_path):
    with pytest.raises(UsageError, match="no quick part") as error:
        obtain("gta", Request(tmp_path, quick=True))
    assert "field" in error.value.hint


def test_the_pack_holds_text_only_and_every_file_has_an_origin():
    head, samples = read_head(), read_samples()
    used = {(file.path, file.sha256) for sample in samples for file in sample.files}
    assert used == {(file.path, file.sha256) for file in head.files}
    assert all(len(file.commit) == 40 and "/" in file.repo and file.source for file in head.files)
    assert all(note.source.licence for note in head.data_sets)
    counted = [note.questions for note in head.data_sets if not note.unused]
    assert sum(counted) == len(samples)
    assert content_hash_of(head.header, samples) == head.content_hash
    benchmark = load_as("field", Loading(questions_only=True))
    assert (describe(benchmark).questions, benchmark.content_hash) == (
        len(samples),
        head.content_hash,
    )
    sides = {sample.id: sample.groups["reach of the tools"] for sample in samples}
    assert {*sides.values()} <= {
        "reached, in a collection that tools learnt from",
        "reached, in another collection",
        "beyond",
    }
    assert all(sides[sample.id] == sides[sample.twin] for sample in samples if sample.twin)
    recorded = head.header.metadata["tools"]
    assert recorded == {name: get_tool(name).version for name in recorded}, (
        "run training/record_again.py"
    )


@pytest.mark.data
def test_the_real_photographs_give_the_content_hash_of_the_pack(tmp_path, monkeypatch):
    used = [note.folder for note in read_head().data_sets if not note.unused]
    if absent := [name for name in used if not (DATA / name).is_dir()]:
        pytest.skip(f"no folders {', '.join(absent)} in AGROTOOLS_TEST_DATA")
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    with serving(DATA) as server:
        obtained = obtain("field", Request(tmp_path / "out", server.url, patience=HURRY))
    assert obtained.failures == []
    assert load_benchmark("field", tmp_path / "out").content_hash == read_head().content_hash


def test_a_laboratory_tunes_on_four_fifths_of_the_sources_and_reports_on_the_others():
    def asked(**options):
        return load_as("field", Loading(questions_only=True, options=options))

    whole, tune, held = asked(), asked(tune=7), asked(held=7)
    origins = {note.source.name: note.source.url for note in read_head().data_sets}
    sources = {name: {origins[each.source] for each in part.samples}
               for name, part in (("all", whole), ("tune", tune), ("held", held))}  # fmt: skip
    assert sources["tune"] | sources["held"] == sources["all"]
    assert not sources["tune"] & sources["held"]
    assert len(sources["held"]) == -(-len(sources["all"]) // 5)
    assert len(tune.samples) + len(held.samples) == len(whole.samples)
    assert {*tune.header.quick} <= {sample.id for sample in tune.samples}
    assert len({each.content_hash for each in (whole, tune, held)}) == 3
    assert {origins[each.source] for each in asked(held=8).samples} != sources["held"]
    with pytest.raises(UsageError, match="two parts"):
        asked(tune=1, held=1)
