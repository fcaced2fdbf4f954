"""Files of a sample as a server gets them: by path or content, and none from outside."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ExifTags, Image
from PIL.JpegImagePlugin import JpegImageFile

from agrotools.calling.workspace import Workspace
from agrotools.core import SampleFile, ToolError
from agrotools.served.files import SampleFolder, check_arguments

TEXT: dict[str, Any] = {"type": "string"}


@pytest.fixture
def folder(tmp_path: Path) -> SampleFolder:
    source, served, made = (tmp_path / name for name in ("source", "served", "made-here"))
    for path in (source, served, made):
        path.mkdir()
    (source / "a3f.jpg").write_bytes(b"picture")
    (made / "crop.png").write_bytes(b"part")
    file = SampleFile(name="leaf.jpg", path=str(source / "a3f.jpg"), kind="image", gsd_m=0.01)
    laid_out = SampleFolder(Workspace((file,), made), served)
    laid_out.lay_out()
    return laid_out


def test_a_file_is_a_copy_beside_what_is_known_about_it(folder: SampleFolder):
    path = Path(folder.given("leaf.jpg", TEXT))
    assert path.parent == folder.path
    path.write_bytes(b"spoilt by the server")
    assert Path(folder.workspace.files[0].path).read_bytes() == b"picture"
    assert json.loads((folder.path / "leaf.jpg.meta.json").read_bytes())["gsd_m"] == 0.01


def test_a_file_that_an_earlier_call_made_is_there_too(folder: SampleFolder):
    assert Path(folder.given("crop.png", TEXT)).read_bytes() == b"part"


def test_files_inside_lists_and_objects_are_found(folder: SampleFolder):
    given = folder.given({"images": ["leaf.jpg"], "channel": "a"}, {})
    assert given == {"images": [str(folder.path / "leaf.jpg")], "channel": "a"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "contentEncoding": "base64"},
        {"anyOf": [{"type": "string", "format": "byte"}, {"type": "null"}]},
    ],
)
def test_the_content_goes_in_where_the_schema_asks_for_it(
    folder: SampleFolder, schema: dict[str, Any]
):
    assert base64.b64decode(folder.given("leaf.jpg", schema)) == b"picture"


@pytest.mark.parametrize("text", ["a", "otsu", "late blight", "0.5", "https://x.org/a.jpg", ""])
def test_a_text_that_names_no_file_stays(folder: SampleFolder, text: str):
    assert folder.given(text, TEXT) == text


def test_a_file_that_the_server_writes_stays_in_the_folder(folder: SampleFolder):
    path = folder.given("mask.png", TEXT)
    assert path == str(folder.path / "mask.png")
    assert folder.given(path, TEXT) == path
    assert folder.given(f"file://{path}", TEXT) == path
    assert folder.without_paths({"saved": f"wrote {path}"}) == {"saved": "wrote mask.png"}


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "../truth.json", "~/truth.json", "a/../../truth.json", "file:///etc/a"]
)
def test_a_path_out_of_the_folder_is_refused(folder: SampleFolder, text: str):
    with pytest.raises(ToolError) as refused:
        folder.given(text, TEXT)
    assert refused.value.kind == "path_outside_workspace"


def test_arguments_that_a_server_would_drop_in_silence_are_refused():
    schema = {"properties": {"image_path": TEXT}, "required": ["image_path"]}
    with pytest.raises(ToolError, match="channel is unknown; image_path is missing"):
        check_arguments("segment", {"channel": "a"}, schema)


@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
def test_a_picture_that_exif_turns_is_upright_for_servers_that_ignore_exif(
    tmp_path: Path, ending: str
):
    source, served = tmp_path / f"phone.{ending}", tmp_path / "served"
    served.mkdir()
    stored = Image.new("RGB", (64, 32), "white")
    stored.paste("red", (0, 0, 16, 16))
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6  # held upright: the top of the scene is at the right
    exif[ExifTags.Base.Model] = "Phone 7"
    stored.save(source, exif=exif)
    name = f"leaf.{ending}"
    file = SampleFile(name=name, path=str(source), kind="image")
    SampleFolder(Workspace((file,), tmp_path), served).lay_out()
    with Image.open(source) as original, Image.open(served / name) as copy:
        about = copy.getexif()
        assert (copy.size, copy.format) == ((32, 64), original.format)
        assert about.get(ExifTags.Base.Orientation, 1) == 1
        assert about[ExifTags.Base.Model] == "Phone 7"
        if isinstance(original, JpegImageFile) and isinstance(copy, JpegImageFile):
            assert copy.quantization == original.quantization
        red, green, _ = np.asarray(copy.convert("RGB"))[4, 28]
    assert red > 240
    assert green < 15


def test_other_pictures_are_copied_byte_by_byte(folder: SampleFolder, tmp_path: Path):
    source = tmp_path / "upright.jpg"
    Image.new("RGB", (64, 32), "green").save(source)
    file = SampleFile(name="upright.jpg", path=str(source), kind="image")
    SampleFolder(Workspace((file,), tmp_path), folder.path).lay_out()
    assert (folder.path / "upright.jpg").read_bytes() == source.read_bytes()
