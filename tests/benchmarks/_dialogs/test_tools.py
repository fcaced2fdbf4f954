"""The published toolsets: names, arguments, defaults and forms of output, and the files that their paths stand for."""

import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from agrotools.calling import get_tool
from agrotools.calling.execution import ToolExecutor
from agrotools.calling.workspace import Workspace, artifacts_in
from agrotools.core import BENCHMARKS, SampleFile, ToolCall, ToolError
from agrotools.runner.config import EvalConfig
from agrotools_benchmarks._dialogs.tools import (
    AddText,
    Calculator,
    DrawBox,
    box_text,
    read_box,
    scored_text,
)

GTA_TOOLS = tuple(BENCHMARKS.get("gta").tools)
NO_DEFAULT = object()
TEXT, IMAGE = "text", "image"
ADD_TEXT = {"image": NO_DEFAULT, "text": NO_DEFAULT, "position": NO_DEFAULT, "color": "red"}
BOX = {"image": NO_DEFAULT, "bbox": NO_DEFAULT, "annotation": None}
ATTRIBUTE = {"image": NO_DEFAULT, "bbox": NO_DEFAULT, "attribute": NO_DEFAULT}
FIND = {"image": NO_DEFAULT, "text": NO_DEFAULT, "top1": True}
SIGNATURES: dict[str, tuple[dict[str, Any], str]] = {
    "Calculator": ({"expression": NO_DEFAULT}, TEXT), "OCR": ({"image": NO_DEFAULT}, TEXT),
    "CountGivenObject": ({"image": NO_DEFAULT, "text": NO_DEFAULT, "bbox": None}, TEXT),
    "ImageDescription": ({"image": NO_DEFAULT}, TEXT), "GoogleSearch": ({"query": NO_DEFAULT, "k": 10}, TEXT),
    "RegionAttributeDescription": (ATTRIBUTE, TEXT), "TextToBbox": (FIND, TEXT),
    "Plot": ({"command": NO_DEFAULT}, IMAGE), "MathOCR": ({"image": NO_DEFAULT}, TEXT),
    "Solver": ({"command": NO_DEFAULT}, TEXT), "DrawBox": (BOX, IMAGE), "AddText": (ADD_TEXT, IMAGE),
    "TextToImage": ({"keywords": NO_DEFAULT}, IMAGE),
    "ImageStylization": ({"image": NO_DEFAULT, "instruction": NO_DEFAULT}, IMAGE),
    "SegmentObjectPixels": ({"image": NO_DEFAULT, "text": NO_DEFAULT, "flag": True}, TEXT),
    "ObjectDetection": ({"image": NO_DEFAULT}, TEXT),
    "ChangeDetection": ({"text": NO_DEFAULT, "pre_image": NO_DEFAULT, "post_image": NO_DEFAULT}, TEXT),
    "ObjectCounter": ({"image": NO_DEFAULT, "text": NO_DEFAULT}, TEXT),
    "SceneDescriber": ({"image": NO_DEFAULT}, TEXT), "WebSearch": ({"query": NO_DEFAULT, "k": 10}, TEXT),
    "RegionDescriber": (ATTRIBUTE, TEXT), "LocateObjectByText": (FIND, TEXT),
    "CodePlotter": ({"command": NO_DEFAULT}, IMAGE), "DrawBoundingBox": (BOX, IMAGE),
    "OverlayText": (ADD_TEXT, IMAGE), "ImageGenerator": ({"keywords": NO_DEFAULT}, IMAGE),
}  # fmt: skip


@pytest.mark.parametrize("name", SIGNATURES)
def test_arguments_and_defaults_are_the_published_ones(name: str) -> None:
    arguments, output = SIGNATURES[name]
    spec = get_tool(name).spec
    assert list(spec.parameters["properties"]) == list(arguments)
    assert spec.defaults == {
        key: value for key, value in arguments.items() if value is not NO_DEFAULT
    }
    assert output in get_tool(name).result_type.model_fields
    assert get_tool(name).category == "published"


@pytest.mark.process
def test_naming_the_tools_loads_no_heavy_library() -> None:
    script = (
        "import sys, agrotools.calling as t\n"
        "for name in t.tool_names(): t.get_tool(name)\n"
        "print(sorted({'torch', 'transformers', 'diffusers', 'rapidocr', 'matplotlib', 'aiohttp', 'cv2', 'sympy'}"
        " & set(sys.modules)))"
    )
    done = run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class TestCalculator:
    @pytest.mark.parametrize(
        ("expression", "value"),
        [("2**3", "8"), ("math.sqrt(2)", "1.4142135623730951"), ("round(3.14159, 2)", "3.14"), ("sum([1,2])", "3"),
         ("5//2", "2"), ("10%3", "1"), ("290 / 5", "58.0"), ("4/2", "2.0"), ("math.pi", "3.141592653589793"),
         ("max(1, 2) - min([4, 5])", "-2"), ("pow(2, 3)", "8.0"), ("fabs(-3)", "3.0"), ("trunc(1.7)", "1"),
         ("math.floor(3.7)", "3"), ("perm(5, 2)", "20"), ("isqrt(17)", "4"), ("tau", "6.283185307179586"),
         ("factorial(5)", "120"), ("log(100, 10)", "2.0"), ("0x10", "16"), ("3 > 2", "True"), ("sqrt(16)", "4.0"),
         ("100 * (1 + 0.05) ** 3", "115.76250000000002"), ("0.1 + 0.2", "0.30000000000000004"),
         ("fmod(7, 3)", "1.0"), ("fmod(-7, 3)", "-1.0"), ("cosh(0)", "1.0"), ("5 if 3 > 2 else 1", "5"),
         ("sinh(1e-10)", "1e-10"), ("tanh(1000)", "1.0"), ("isqrt(2**60 - 1)", "1073741823"), ("gcd(12, 18)", "6"),
         ("lcm(4, 6)", "12"), ("gamma(5)", "24.0"), ("math.dist([0, 0], [3, 4])", "5.0"), ("hypot(2, 3, 6)", "7.0"),
         ("perm(4)", "24"), ("pow(2, 3) × 2", "16.0"), ("math.log1p(0)", "0.0"), ("0b101 + 0o17", "20"),
         ("copysign(3, -1)", "-3.0"), ("remainder(5, 3)", "-1.0"), ("cosh(cosh(0))", "1.5430806348152437")],
    )  # fmt: skip
    def test_python_expressions_have_pythons_values(self, expression: str, value: str) -> None:
        assert Calculator(expression=expression).text == value

    @pytest.mark.parametrize(
        "expression", ["gamma(0)", "gcd(1.5, 2)", "lcm(10**200, 10**200 + 1)", "pow(-8, 0.5)", "fmod(1, 0)", "mathx.e",
                       "perm(1000)", "dist([1], [1, 2])", "math.", "cosh(800)", "isqrt(-1)", "gamma(10**200)",
                       "sum(x for x in [1, 2])", "__import__('os')", "math.__class__", "1/0", "2 +",
                       "9**9**9", "a", "'" * 3, "(" * 400],
    )  # fmt: skip
    def test_what_is_not_evaluated_is_a_typed_error(self, expression: str) -> None:
        with pytest.raises(ToolError) as caught:
            Calculator(expression=expression)
        assert (caught.value.kind, caught.value.argument) == ("invalid_argument", "expression")


@given(st.tuples(*[st.integers(0, 5000)] * 4))
def test_a_box_is_read_as_it_is_written(corners: tuple[int, int, int, int]) -> None:
    x0, y0, across, down = corners
    box = (x0, y0, x0 + across + 1, y0 + down + 1)
    assert read_box(box_text(box)) == box
    assert read_box(scored_text(box, 0.5).partition(", score")[0]) == box


def test_pictures_are_drawn_on(tmp_path: Path) -> None:
    Image.new("RGB", (300, 200), "white").save(tmp_path / "a.png")
    with artifacts_in(tmp_path / "out") as out:
        boxed = DrawBox(image=tmp_path / "a.png", bbox="(10, 20, 90, 80)", annotation="cow")
        written = AddText(image=tmp_path / "a.png", text="cow", position="(10, 100)")
        with pytest.raises(ToolError) as caught:
            AddText(image=tmp_path / "a.png", text="cow", position="mm", color="blurple")
    assert caught.value.argument == "color"
    for made in (boxed, written):
        with Image.open(out / made.image.name) as picture:
            assert picture.size == (300, 200)


class TestPaths:
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Workspace:
        folder = tmp_path / "image"
        folder.mkdir()
        files: list[SampleFile] = []
        for name in ("image_1.png", "image_2.png"):
            Image.new("RGB", (40, 30), "white").save(folder / name)
            files.append(SampleFile(name=name, path=str(folder / name), kind="image"))
        (tmp_path / "secret.png").write_bytes((folder / "image_1.png").read_bytes())
        return Workspace(tuple(files), tmp_path / "made")

    @pytest.mark.parametrize(
        "name",
        [
            "image_1.png",
            "image/image_1.png",
            "/data/gta_dataset/image/image_1.png",
            "./image_1.png",
        ],
    )
    def test_a_path_that_ends_in_a_listed_name_is_that_file(
        self, workspace: Workspace, name: str
    ) -> None:
        assert workspace.resolve(name, by_last_part=True) == Path(workspace.files[0].path)
        assert workspace.info(name).name == "image_1.png"
        assert all(get_tool(tool).files_by_last_part for tool in SIGNATURES)
        assert not get_tool("read_text").files_by_last_part

    @pytest.mark.parametrize(
        ("name", "kind"),
        [("/etc/passwd", "path_outside_workspace"), ("../secret.png", "path_outside_workspace"),
         ("image/../image_1.png", "path_outside_workspace"), ("~/image_1.png", "path_outside_workspace"),
         ("image\\image_1.png", "path_outside_workspace"), ("\0image_1.png", "path_outside_workspace"),
         ("image/secret.png", "file_not_found"), ("/", "path_outside_workspace"), ("image/", "file_not_found")],
    )  # fmt: skip
    def test_nothing_else_is_opened(self, workspace: Workspace, name: str, kind: str) -> None:
        with pytest.raises(ToolError) as caught:
            workspace.resolve(name, by_last_part=True)
        assert caught.value.kind == kind

    def test_a_file_that_was_renamed_is_found_by_the_end_of_its_path(self, tmp_path: Path) -> None:
        places = {
            "a.png": "before/a.png",
            "a_2.png": "after/a.png",
            "my_field.png": "after/my field.png",
        }
        for place in places.values():
            (tmp_path / place).parent.mkdir(exist_ok=True)
            (tmp_path / place).write_bytes(b"x")
        files = [
            SampleFile(name=name, path=str(tmp_path / place), kind="image")
            for name, place in places.items()
        ]
        workspace = Workspace(tuple(files), tmp_path / "made")
        called = {
            "/data/after/a.png": "after/a.png",
            "before/a.png": "before/a.png",
            "a.png": "before/a.png",
        }
        for path, place in {**called, "image/my field.png": "after/my field.png"}.items():
            assert workspace.resolve(path, by_last_part=True) == tmp_path / place
        with pytest.raises(ToolError):
            workspace.resolve("/data/elsewhere/a.png", by_last_part=True)

    @pytest.mark.process
    async def test_a_call_finds_its_file_and_the_next_one_what_it_made(
        self, workspace: Workspace
    ) -> None:
        async with ToolExecutor(workers=1) as executor:

            async def made(tool: str, **arguments: str) -> Any:
                return (
                    await executor.run(
                        ToolCall(tool=tool, arguments=arguments), workspace, GTA_TOOLS
                    )
                ).observation

            first = await made("DrawBox", image="image/image_1.png", bbox="(1, 1, 20, 20)")
            second = await made(
                "AddText", image=f"image/{first.result['image']}", text="A", position="lt"
            )
            missing = await made("DrawBox", image="/etc/hostname", bbox="(1, 1, 20, 20)")
        assert (workspace.artifacts / str(second.result["image"])).is_file()
        assert missing.error.kind == "path_outside_workspace"


@pytest.mark.parametrize(("alias", "name"), [("agent_x", "agent-x"), ("gta", "gta"), ("x", "x")])
def test_an_alias_is_stored_as_the_id_of_its_benchmark(alias: str, name: str) -> None:
    assert EvalConfig.of(benchmark=alias).benchmark.name == name
