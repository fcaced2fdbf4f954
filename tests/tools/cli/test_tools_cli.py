"""``agrotools tools``: what it prints and how it exits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from PIL import Image
from pydantic import Field
from typer.testing import CliRunner

from agrotools.calling import TOOLS, get_tool
from agrotools.calling.contract import ImageFile, Region, ToolResult, tool
from agrotools.calling.workspace import save_artifact
from agrotools.core import Artifact, ToolError
from agrotools_tools import AGROTOOLS
from agrotools_tools.cli.tools import app


class Row(ToolResult):
    angle_deg: float | None
    spacing_px: float


class Shares(ToolResult):
    weed_pct: float
    """share of weeds"""
    area_m2: dict[str, float] | None
    row: Row | None
    plants: tuple[dict[str, float], ...]
    ids: tuple[int, ...]
    healthy: bool
    mask: Artifact | None


@tool(category="segmentation", version="4")
def cli_example(
    image: ImageFile,
    region: Region | None = None,
    gsd_m: Annotated[float | None, Field(gt=0, description="ground sampling distance, m")] = None,
    with_mask: Annotated[bool, Field(description="whether to keep a mask")] = True,
    fault: Annotated[str, Field(description="what to fail with")] = "",
) -> Shares:
    """Measure shares. And more.

    Raises:
        ToolError: ``nothing_found`` on demand.

    Source:
        Nobody 1999.
    """
    if fault == "tool":
        raise ToolError(
            "missing_metadata", "the ground sampling distance is not known", hint="give gsd_m"
        )
    if fault == "bug":
        raise ValueError("two\nlines")
    if fault == "memory":
        raise MemoryError
    if fault == "exit":
        sys.exit(0)
    if fault == "number":
        return 42  # pyright: ignore[reportReturnType]
    return Shares(
        weed_pct=8.912345678,
        area_m2={"crop": 12.5, "weed": 1.5} if gsd_m else None,
        row=Row(angle_deg=None, spacing_px=region[2] if region else 40.25),
        plants=tuple({"height_cm": float(n)} for n in range(15)),
        ids=(1, 2, 3),
        healthy=with_mask,
        mask=save_artifact("mask.png", "mask", Image.open(image)) if with_mask else None,
        notes=("measured by eye",),
        flags=("no_scale",),
    )


@pytest.fixture(autouse=True)
def _example(monkeypatch):
    monkeypatch.setitem(TOOLS._targets, "cli_example", "test_tools_cli:cli_example")
    monkeypatch.setitem(TOOLS._targets, "broken_example", "no_such_module_anywhere:tool")
    yield
    TOOLS._loaded.pop("cli_example", None)


@pytest.fixture
def image(tmp_path) -> Path:
    path = tmp_path / "my field (1).png"
    Image.new("L", (4, 4), 7).save(path)
    return path


def invoke(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, (result.output, result.exception)
    assert "Traceback" not in result.output
    return result


def run(*arguments: str, code: int = 0) -> Any:
    return invoke("run", *arguments, code=code)


class TestList:
    def test_tools_are_listed_also_as_json_and_broken_ones_say_why(self):
        lines = invoke("list").stdout.splitlines()
        for name in AGROTOOLS:
            assert any(line.startswith(name) for line in lines)
        assert any(
            line.split()[:2] == ["cli_example", "segmentation"] and "Measure shares." in line
            for line in lines
        )
        assert all("And more" not in line for line in lines)
        output = invoke("list").stdout
        assert "cannot be loaded" in output
        assert "no_such_module_anywhere" in output
        rows = {row["name"]: row for row in json.loads(invoke("list", "--json").stdout)}
        assert rows["cli_example"] == {
            "name": "cli_example",
            "category": "segmentation",
            "version": "4",
            "summary": "Measure shares.",
        }
        assert "error" in rows["broken_example"]


class TestDescribe:
    @pytest.mark.parametrize("name", AGROTOOLS)
    def test_every_tool_describes_itself(self, name):
        text = invoke("describe", name).stdout
        assert max(map(len, text.splitlines())) <= 125
        for argument in get_tool(name).spec.parameters["properties"]:
            assert f"--{argument.replace('_', '-')}" in text
        assert "Raises:" in text
        found = json.loads(invoke("describe", name, "--json").stdout)
        assert (
            found["parameters"] == json.loads(get_tool(name).spec.model_dump_json())["parameters"]
        )
        assert {"notes", "flags"} <= set(found["result"]["properties"])
        shown = " ".join(text.split())
        assert shown.index("Arguments") < shown.index(found["certificate"]["text"])

    def test_unknown(self):
        assert (
            "did you mean describe_region" in invoke("describe", "describe_regions", code=2).stderr
        )


class TestRun:
    def test_values_units_notes_flags_and_files(self, image, tmp_path):
        out = tmp_path / "out"
        text = run(
            "cli_example", "--image", str(image), "--gsd-m", "0.02", "--out", str(out)
        ).stdout
        lines = text.splitlines()
        cells = {
            line.split("  ")[0].strip(): line.rstrip().split("  ")[-1].strip() for line in lines
        }
        assert (cells["weed_pct"], cells["area_m2.crop"]) == ("8.912 %", "12.5 m²")
        assert (cells["row.angle_deg"], cells["row.spacing_px"]) == ("none", "40.25 px")
        assert cells["plants[0]"] == "height_cm 0 cm"
        assert "... and 10 more; --json prints all" in text
        assert (cells["ids"], cells["healthy"]) == ("[1, 2, 3]", "yes")
        assert "note: measured by eye" in lines
        assert "flag: no_scale" in lines
        assert lines[-1] == f"wrote {out / 'mask.png'}"
        with Image.open(out / "mask.png") as mask:
            assert mask.getpixel((0, 0)) == 7

    def test_json(self, image, tmp_path):
        found = json.loads(
            run("cli_example", "--image", str(image), "--out", str(tmp_path), "--json").stdout
        )
        assert found["result"]["weed_pct"] == 8.91235
        assert found["result"]["mask"] == str(tmp_path / "mask.png")
        assert found["artifacts"][0]["path"] == str(tmp_path / "mask.png")

    @pytest.mark.parametrize(
        "options",
        [
            ["--region", "1,2,30,40", "--no-with-mask"],
            ["--region=[1, 2, 30, 40]", "--with-mask=false"],
            ["--region", "1, 2, 30, 40", "--with_mask", "no"],
            ["--arguments", '{"region": [1, 2, 30, 40], "with_mask": false}'],
            [
                "--arguments",
                '{"region": [9, 9, 99, 99]}',
                "--region",
                "1,2,30,40",
                "--no-with-mask",
            ],
        ],
    )
    def test_spellings_of_one_call(self, image, options):
        found = json.loads(run("cli_example", "--image", str(image), *options, "--json").stdout)[
            "result"
        ]
        assert (found["row"]["spacing_px"], found["healthy"], found["mask"]) == (30, False, None)

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (["--imag", "x"], "did you mean image"), (["--image"], "--image has no value"),
            (["--image", "--gsd-m", "1"], "--image has no value"), (["stray"], "'stray' is not an option"),
            (["--image", "a", "--image", "b"], "given twice"),
            (["--gsd-m", "wide"], '--gsd-m must be a number above 0, is "wide"'),
            (["--gsd-m", "-1"], "--gsd-m must be a number above 0, is -1"), (["--region", "1,2,3"], "four numbers"),
            (["--with-mask", "--with-mask"], "given twice"), (["--with-mask=perhaps"], "true or false"),
            (["--arguments", "{"], "not JSON"), (["--arguments", "[1]"], "a JSON object"),
            ([], "image is missing"),
        ],
    )  # fmt: skip
    def test_bad_usage_is_an_error_with_a_hint_and_exit_code_2(self, options, says):
        result = run("cli_example", *options, code=2)
        assert result.stdout == ""
        assert [line.split(": ")[0] for line in result.stderr.splitlines()] in (
            ["error"],
            ["error", "hint"],
        )
        assert says in result.stderr

    def test_missing_files_and_metadata_are_bad_usage(self, image):
        result = run("cli_example", "--image", str(image).replace("field", "feild"), code=2)
        assert "did you mean my field (1).png" in result.stderr
        assert (
            "hint: give --gsd-m"
            in run("cli_example", "--image", str(image), "--fault", "tool", code=2).stderr
        )
        found = json.loads(
            run("cli_example", "--image", str(image), "--fault", "tool", "--json", code=2).stdout
        )
        assert (found["error"]["kind"], found["error"]["hint"]) == (
            "missing_metadata",
            "give --gsd-m",
        )

    @pytest.mark.parametrize(
        ("fault", "says"),
        [
            ("bug", "failed on this input (ValueError: two lines)"),
            ("memory", "memory"),
            ("exit", "failed on this input (SystemExit: 0)"),
            ("number", "returned an object of type int, not a ToolResult"),
        ],
    )
    def test_a_tool_that_could_not_run_is_an_error_with_a_hint_and_exit_code_3(
        self, image, fault, says
    ):
        result = run("cli_example", "--image", str(image), "--fault", fault, code=3)
        assert [line.split(": ")[0] for line in result.stderr.splitlines()] == ["error", "hint"]
        assert says in result.stderr

    def test_places_without_files_and_broken_tools_are_named(self, image, tmp_path):
        result = run(
            "plot",
            "--kind",
            "bar",
            "--series",
            '[{"name":"a","x":["u"],"y":[1]}]',
            "--out",
            str(image),
            code=3,
        )
        assert f"{image}: " in result.stderr
        assert "--out" in result.stderr
        assert "did you mean describe_region" in run("describe_regions", code=2).stderr
        assert "cannot be loaded" in run("broken_example", code=3).stderr
        assert (
            "66.666667"
            in run(
                "calculate", "--expression", "(a-b)/a*100", "--variables", '{"a":3,"b":1}'
            ).stdout
        )
        drawn = '[{"name":"w","x":["a","b"],"y":[1,2]}]'
        text = run(
            "plot", "--kind", "bar", "--series", drawn, "--annotate", "--out", str(tmp_path)
        ).stdout
        assert f"wrote {tmp_path / 'plot.png'}" in text


@pytest.mark.process
def test_the_module_imports_nothing_heavy():
    script = "import agrotools_tools.cli.tools, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "pydantic", "matplotlib", "PIL", "asyncio"} & set(loaded)
