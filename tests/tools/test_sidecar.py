"""Sidecars: what a file beside a picture says of it, and how one that is wrong is refused."""

from pathlib import Path

import orjson
import pytest

from agrotools.core import SampleFile, ToolError
from agrotools.tools.workspace import CallContext, call_context, file_info, read_sidecar, shown_name

SAID = {
    "gsd_m": 0.02, "bands": ["B", "G", "R"], "crs": "EPSG:32633",
    "intrinsics": {"fx_px": 900.0, "fy_px": 901.0, "cx_px": 640.0, "cy_px": 360.0}, "depth_unit_mm": 0.1,
    "classes": {"1": "crop"}, "width_px": 1280, "height_px": 720, "kind": "raster", "note": "false colour",
}  # fmt: skip


def written(folder: Path, content: bytes | dict, name: str = "field.jpg.meta.json") -> Path:
    (folder / name).write_bytes(content if isinstance(content, bytes) else orjson.dumps(content))
    return folder / "field.jpg"


def test_everything_it_may_say(tmp_path: Path):
    found = read_sidecar(written(tmp_path, SAID))
    assert (found.name, found.path, found.kind) == ("field.jpg", "field.jpg", "raster")
    assert found.model_dump(exclude={"name", "path", "sha256"}, mode="json") == SAID


def test_none_is_none_and_an_empty_one_says_nothing(tmp_path: Path):
    assert read_sidecar(tmp_path / "field.jpg") is None
    (tmp_path / "field.jpg.meta.json").mkdir()
    assert read_sidecar(tmp_path / "field.jpg") is None
    assert read_sidecar(written(tmp_path, {}, "field.meta.json")) == SampleFile(
        name="field.jpg", path="field.jpg", kind="image"
    )


def test_the_one_with_the_whole_name_wins(tmp_path: Path):
    written(tmp_path, {"gsd_m": 2.0}, "field.meta.json")
    path = written(tmp_path, {"gsd_m": 1.0})
    assert read_sidecar(path).gsd_m == 1.0  # pyright: ignore[reportOptionalMemberAccess]
    (tmp_path / "field.jpg.meta.json").unlink()
    assert read_sidecar(path).gsd_m == 2.0  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cannot be read"), (b"{", "cannot be read"), (b"\xff\xfe\x00", "cannot be read"),
        (b"[" * 5000, "cannot be read"), (b"[1, 2]", "is not a JSON object"), (b'"text"', "is not a JSON object"),
        (b"null", "is not a JSON object"), (b'{"gsd": 0.02}', "unknown keys: gsd"),
        (b'{"name": "other.jpg"}', "unknown keys: name"), (b'{"path": "/etc/passwd"}', "unknown keys: path"),
        (b'{"gsd_m": -0.02}', "gsd_m"), (b'{"gsd_m": 0}', "gsd_m"), (b'{"gsd_m": NaN}', "cannot be read"),
        (b'{"gsd_m": 1e999}', "."), (b'{"gsd_m": "two"}', "gsd_m"), (b'{"bands": "RGB"}', "bands"),
        (b'{"intrinsics": {"fx_px": 900}}', "intrinsics.fy_px"),
        (b'{"intrinsics": {"fx_px": 0, "fy_px": 1, "cx_px": 1, "cy_px": 1}}', "intrinsics.fx_px"),
        (b'{"classes": ["crop"]}', "classes"), (b'{"depth_unit_mm": 0}', "depth_unit_mm"),
        (b'{"kind": "movie"}', "kind"), (b'{"note": "' + b"x" * 2**16 + b'"}', "too large"),
    ],
)  # fmt: skip
def test_a_wrong_one_is_refused_with_what_it_may_hold(tmp_path: Path, content: bytes, said: str):
    with pytest.raises(ToolError) as error:
        read_sidecar(written(tmp_path, content))
    assert error.value.kind == "unreadable_file"
    assert said in error.value.message
    assert error.value.message.startswith("field.jpg.meta.json")
    assert str(tmp_path) not in str(error.value)
    assert "gsd_m" in (error.value.hint or "")


@pytest.mark.parametrize("name", ["Feld Süd (2).jpg", "_x.png", "....jpg", "-", "a" * 200 + ".jpg", "畑.jpg"])
def test_files_of_any_name_have_a_name_to_show(tmp_path: Path, name: str):
    (tmp_path / (name[:150] + ".meta.json")).write_bytes(b'{"gsd_m": 1}')
    found = read_sidecar(tmp_path / name[:150])
    assert found.name.isascii()
    assert found.name


class TestWhoIsBelieved:
    def test_samples_go_before_sidecars_which_plain_python_reads(self, tmp_path: Path):
        path = written(tmp_path, SAID)
        assert file_info(path).gsd_m == 0.02
        assert shown_name(path) == "field.jpg"
        known = SampleFile(name="image_1.jpg", path="x", kind="image", gsd_m=0.5)
        with call_context(CallContext(keep=lambda artifact, _: artifact, infos={path: known}, reads_sidecars=True)):
            assert file_info(path) == known
            assert shown_name(path) == "image_1.jpg"

    def test_an_evaluation_reads_none(self, tmp_path: Path):
        path = written(tmp_path, b"{")
        with call_context(CallContext(keep=lambda artifact, _: artifact)):
            assert file_info(path) is None
            assert shown_name(path) == "field.jpg"
