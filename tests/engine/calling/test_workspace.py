"""The workspace: names in, real files out, and nothing that leads elsewhere."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from PIL import Image

from agrotools.calling.workspace import (
    CallContext,
    Workspace,
    artifacts_in,
    backend_in_use,
    call_context,
    collect_files,
    file_info,
    host_file,
    read_sidecar,
    save_artifact,
    shown_name,
)
from agrotools.core import Artifact, SampleFile, ToolError


def sample_file(path: Path, name: str | None = None) -> SampleFile:
    return SampleFile(name=name or path.name, path=str(path), kind="image")


@pytest.fixture
def folder(tmp_path) -> Path:
    files = tmp_path / "files"
    files.mkdir()
    (files / "image_1.jpg").write_bytes(b"one")
    (files / "image_2.jpg").write_bytes(b"two")
    (tmp_path / "secret.txt").write_text("secret")
    return files


@pytest.fixture
def workspace(folder, tmp_path) -> Workspace:
    listed = tuple(sample_file(folder / name) for name in ("image_1.jpg", "image_2.jpg"))
    return Workspace(listed, tmp_path / "artifacts")


def kind_of(workspace: Workspace, name: str) -> str:
    with pytest.raises(ToolError) as caught:
        workspace.resolve(name)
    assert str(workspace.artifacts.parent) not in f"{caught.value} {caught.value.candidates}"
    return caught.value.kind


def test_a_listed_name_is_its_file(workspace, folder):
    assert workspace.resolve("image_1.jpg") == folder / "image_1.jpg"
    assert workspace.resolve("./image_1.jpg") == folder / "image_1.jpg"


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd", "../secret.txt", "files/../../secret.txt", "image_1.jpg/../../secret.txt", "..",
        "~/secret.txt", "..\\secret.txt", "image_1.jpg\0.png", "\0",
    ],
)  # fmt: skip
def test_what_leads_out_is_refused(workspace, name):
    assert kind_of(workspace, name) == "path_outside_workspace"


@pytest.mark.parametrize(
    "name", ["image_3.jpg", "secret.txt", "files", ".", "image_1", "https://a.b/c.jpg", "a" * 5000]
)
def test_what_is_not_listed_does_not_exist(workspace, name):
    assert kind_of(workspace, name) == "file_not_found"


def test_a_file_that_is_missing_or_gone_is_told_with_the_closest_names(workspace, folder):
    with pytest.raises(ToolError) as caught:
        workspace.resolve("imag_1.jpg")
    assert caught.value.candidates[0] == "image_1.jpg"
    with pytest.raises(ToolError, match=r"image_2\.jpg"):
        workspace.resolve("zzz")
    (folder / "image_2.jpg").unlink()
    assert kind_of(workspace, "image_2.jpg") == "file_not_found"


def test_a_link_that_leads_out_is_refused_and_one_that_stays_is_not(folder, tmp_path):
    (folder / "out.jpg").symlink_to(tmp_path / "secret.txt")
    (folder / "in.jpg").symlink_to("image_1.jpg")
    (folder / "chain.jpg").symlink_to("out.jpg")
    (folder / "loop.jpg").symlink_to("loop.jpg")
    names = ("out.jpg", "in.jpg", "chain.jpg", "loop.jpg")
    workspace = Workspace(
        tuple(sample_file(folder / name) for name in names), tmp_path / "artifacts"
    )
    assert kind_of(workspace, "out.jpg") == "path_outside_workspace"
    assert kind_of(workspace, "chain.jpg") == "path_outside_workspace"
    assert kind_of(workspace, "loop.jpg") == "file_not_found"
    assert workspace.resolve("in.jpg") == folder / "image_1.jpg"


def test_roots_and_linked_folders_widen_what_may_be_reached(folder, tmp_path):
    (folder / "link.jpg").symlink_to(tmp_path / "secret.txt")
    listed = (sample_file(folder / "link.jpg"),)
    assert (
        Workspace(listed, tmp_path / "a", root=tmp_path).resolve("link.jpg")
        == tmp_path / "secret.txt"
    )
    assert (
        kind_of(Workspace(listed, tmp_path / "a", root=folder), "link.jpg")
        == "path_outside_workspace"
    )
    (tmp_path / "dataset").symlink_to(folder)
    workspace = Workspace((sample_file(tmp_path / "dataset" / "image_1.jpg"),), tmp_path / "a")
    assert workspace.resolve("image_1.jpg") == folder / "image_1.jpg"


def test_folders_pipes_and_devices_are_no_files(folder, tmp_path):
    os.mkfifo(folder / "pipe.jpg")
    (folder / "folder.jpg").mkdir()
    (folder / "zero.jpg").symlink_to("/dev/zero")
    listed = tuple(sample_file(folder / name) for name in ("pipe.jpg", "folder.jpg"))
    workspace = Workspace(
        (*listed, sample_file(Path("/dev/zero"), "device.jpg")), tmp_path / "artifacts"
    )
    for name in ("pipe.jpg", "folder.jpg", "device.jpg"):
        assert kind_of(workspace, name) == "unreadable_file"


def artifact(name: str = "mask.png") -> Artifact:
    return Artifact(name=name, kind="mask", media_type="image/png")


class TestArtifacts:
    def test_artifacts_have_unique_names_and_equal_content_is_written_once(self, workspace):
        names = [
            workspace.keep(artifact(), content).name for content in (b"a", b"b", b"a", b"b", b"c")
        ]
        assert names == ["mask.png", "mask_2.png", "mask.png", "mask_2.png", "mask_3.png"]
        assert sorted(path.name for path in workspace.artifacts.iterdir()) == [
            "mask.png",
            "mask_2.png",
            "mask_3.png",
        ]
        assert workspace.keep(artifact("image_1.jpg"), b"x").name == "image_1_2.jpg"
        made = workspace.keep(artifact(), b"a")
        assert workspace.resolve(made.name).read_bytes() == b"a"
        assert workspace.info(made.name) is None

    def test_a_link_among_the_artifacts_is_not_followed_out(self, workspace, tmp_path):
        workspace.artifacts.mkdir()
        (workspace.artifacts / "mask.png").symlink_to(tmp_path / "secret.txt")
        assert kind_of(workspace, "mask.png") == "path_outside_workspace"
        assert workspace.keep(artifact(), b"secret").name == "mask_2.png"
        assert (tmp_path / "secret.txt").read_text() == "secret"

    def test_many_threads_do_not_overwrite_each_other(self, workspace):
        contents = [str(number).encode() for number in range(40)]
        with ThreadPoolExecutor(8) as pool:
            names = list(
                pool.map(lambda content: workspace.keep(artifact(), content).name, contents)
            )
        assert len(set(names)) == 40
        for name, content in zip(names, contents, strict=True):
            assert (workspace.artifacts / name).read_bytes() == content

    def test_plain_python_without_choice_writes_nothing(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        made = save_artifact("photo.jpg", "image", Image.new("RGBA", (4, 4), "blue"))
        with collect_files(None) as (contents, paths, _):
            save_artifact("table.csv", "table", b"a")
            assert save_artifact("table.csv", "table", b"b").name == "table_2.csv"
        assert (made.name, contents, paths) == (
            "photo.jpg",
            {"table.csv": b"a", "table_2.csv": b"b"},
            {},
        )
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize("name", ["../a.png", "a", "a.exe", ".png", "a/b.png", "a\0.png"])
    def test_strange_names_are_a_fault_of_the_tool(self, tmp_path, name):
        with artifacts_in(tmp_path), pytest.raises(ValueError, match="not a valid artifact name"):
            save_artifact(name, "plot", b"x")

    def test_an_image_needs_an_image_format(self, tmp_path):
        with artifacts_in(tmp_path), pytest.raises(ValueError, match="saved as"):
            save_artifact("a.csv", "image", Image.new("L", (1, 1)))


def test_a_tool_learns_what_the_sample_knows_of_its_file(workspace, folder, tmp_path):
    info = sample_file(folder / "image_1.jpg").model_copy(update={"gsd_m": 0.1})
    work = CallContext(keep=workspace.keep, infos={folder / "image_1.jpg": info}, backend="learned")
    with call_context(work):
        assert file_info(folder / "image_1.jpg") == info
        assert file_info(folder / "image_2.jpg") is None
        assert backend_in_use() == "learned"
        with artifacts_in(tmp_path / "out"):
            assert file_info(folder / "image_1.jpg") == info
    assert file_info(folder / "image_1.jpg") is None
    assert backend_in_use() is None


def test_host_files_are_checked_too(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"x")
    assert host_file(str(tmp_path / "a.jpg")) == tmp_path / "a.jpg"
    os.mkfifo(tmp_path / "pipe")
    for name in ("a\0", "a" * 5000, str(tmp_path / "b.jpg")):
        with pytest.raises(ToolError) as caught:
            host_file(name)
        assert caught.value.kind == "file_not_found"
    with pytest.raises(ToolError) as caught:
        host_file(str(tmp_path / "pipe"))
    assert caught.value.kind == "unreadable_file"


@pytest.mark.parametrize(("there", "suggested"), [(["nape.png"], ("nape.png",)), ([], ())])
def test_only_files_of_the_kind_that_was_named_are_suggested(tmp_path, there, suggested):
    for name in ("nbloop.py", "nope.txt", "nope.jpg.json", *there):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "nope2.jpg").mkdir()
    with pytest.raises(ToolError, match="no file") as raised:
        host_file(str(tmp_path / "nope.jpg"))
    assert raised.value.candidates == suggested
    assert raised.value.hint.startswith("did you mean") is bool(there)


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


@pytest.mark.parametrize(
    "name", ["Feld Süd (2).jpg", "_x.png", "....jpg", "-", "a" * 200 + ".jpg", "畑.jpg"]
)
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
        with call_context(
            CallContext(keep=lambda artifact, _: artifact, infos={path: known}, reads_sidecars=True)
        ):
            assert file_info(path) == known
            assert shown_name(path) == "image_1.jpg"

    def test_an_evaluation_reads_none(self, tmp_path: Path):
        path = written(tmp_path, b"{")
        with call_context(CallContext(keep=lambda artifact, _: artifact)):
            assert file_info(path) is None
            assert shown_name(path) == "field.jpg"
