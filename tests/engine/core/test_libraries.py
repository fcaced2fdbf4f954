"""Libraries of the extra ``tools``: what is said where they are absent, and which tools need them."""

import json
import sys
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace

import pytest

from agrotools.agents.images import Unreadable, make_picture
from agrotools.calling import get_tool
from agrotools.core import Registry, UsageError
from agrotools.core.libraries import READERS, MissingLibraryError, is_installed, require_libraries
from agrotools.core.texts import install_command
from agrotools_tools import AGROTOOLS, GENERAL_TOOLS

WITHOUT_LIBRARIES = {
    "lookup_agronomy",
    "calculate",
    "search_web",
    "solve_equations",
    "generate_image",
}


def test_all_that_is_absent_is_named_with_one_command():
    require_libraries("this test", READERS)
    with pytest.raises(MissingLibraryError) as caught:
        require_libraries("count", ["cv2", "absent_one", "absent_two"])
    assert caught.value.message == "count needs absent_one and absent_two, which are not installed"
    assert caught.value.hint == install_command("tools")


def test_a_module_without_specification_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "cv2", SimpleNamespace(__spec__=None))
    assert not is_installed("cv2")


def test_tools_on_files_need_the_libraries_and_others_do_not():
    for name in (*AGROTOOLS, *GENERAL_TOOLS):
        tool = get_tool(name)
        takes_file = "file" in tool.spec.agreement.values()
        assert bool(tool.libraries) or not takes_file, name
    assert not any(get_tool(name).libraries for name in WITHOUT_LIBRARIES)
    assert get_tool("plot").libraries == ("matplotlib",)
    assert get_tool("Plot").libraries == get_tool("plot_code").libraries


def test_a_tool_of_others_that_imports_one_is_reported_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "field_tools.py").write_text("import cv2")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "cv2", None)
    registry: Registry[object] = Registry("tool", "agrotools.none", {"hoe": "field_tools:hoe"})
    with pytest.raises(UsageError, match="'hoe' cannot be loaded") as caught:
        registry.get("hoe")
    assert caught.value.hint == install_command("tools")


def test_pages_say_which_library_a_raster_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "height.tif").write_bytes(b"II*\0" + bytes(60))
    monkeypatch.setitem(sys.modules, "rasterio", None)
    shown = make_picture(tmp_path / "height.tif", "height.tif", "raster", None)
    assert shown == Unreadable("rasterio is not installed")


@pytest.mark.parametrize("editable", [True, False])
def test_the_command_for_an_installation_from_a_folder_can_be_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, editable: bool
):
    source = {"url": tmp_path.as_uri(), "dir_info": {"editable": editable}}
    monkeypatch.setattr(type(distribution("agrotools")), "read_text", lambda *_: json.dumps(source))
    command = install_command.__wrapped__("tools")
    assert command == f"pip install {'-e ' if editable else ''}'{tmp_path}[tools]'"
    source["url"] += "/gone"
    assert install_command.__wrapped__("tools").endswith("in the source folder of agrotools")
