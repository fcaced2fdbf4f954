"""The contract: what a declaration must hold, the schema it gives, what validation refuses and how it says so."""

import json
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, create_model

import agrotools_tools
from agrotools.calling import TOOLS, get_tool, tool_names, tool_specs
from agrotools.calling.arguments import plain_schema
from agrotools.calling.cache import ResultCache
from agrotools.calling.contract import (
    Agree,
    DepthFile,
    ImageFile,
    Region,
    Tool,
    ToolDeclarationError,
    ToolResult,
    tool,
)
from agrotools.calling.execution import check_backend
from agrotools.calling.result import encode_result, with_artifact_names
from agrotools.core import Artifact, PlotSeries, PlotSpec, ToolError, UsageError
from agrotools_tools.table import TARGETS


class Measured(ToolResult):
    seen: dict[str, Any]
    """the arguments as the function got them"""


class Point(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    label: str
    """what it is"""
    at: tuple[float, float] | None = None
    """where it is, pixels"""


@tool(category="measurement", version="3")
def measure(
    image: ImageFile,
    depth: DepthFile | None = None,
    region: Region | None = None,
    top_k: Annotated[int, Field(ge=1, le=10, description="how many")] = 3,
    fx_px: Annotated[float | None, Field(gt=0, description="focal length, pixels")] = None,
    mode: Annotated[Literal["leaf", "field"], Field(description="what is seen")] = "leaf",
    weights: Annotated[list[float], Field(description="weights")] = [],  # noqa: B006
    points: Annotated[list[Point], Agree("chart"), Field(max_length=3, description="points")] = [],  # noqa: B006
    values: Annotated[
        dict[str, float | list[float]], Agree("variables"), Field(description="named values")
    ] = {},  # noqa: B006
    note: Annotated[str, Agree("presentation"), Field(max_length=5, description="a note")] = "",
    deep: Annotated[bool, Field(description="look twice")] = False,
    others: Annotated[list[ImageFile], Field(description="more images")] = [],  # noqa: B006
) -> Measured:
    """Measure what is in an image.

    The second paragraph is for models too.

    Raises:
        ToolError: never.
    """
    return Measured(seen=dict(locals()))


def refusal(**arguments: Any) -> ToolError:
    with pytest.raises(ToolError) as caught:
        measure.validate(arguments)
    assert caught.value.kind == "invalid_argument"
    return caught.value


def test_the_signature_becomes_a_plain_schema():
    parameters: Any = measure.spec.parameters
    assert parameters["type"] == "object"
    assert parameters["additionalProperties"] is False
    assert parameters["required"] == ["image"]
    properties = parameters["properties"]
    assert properties["image"] == {"type": "string", "description": "name of an image file"}
    assert properties["region"]["items"] == {"type": "number"}
    assert (properties["region"]["minItems"], properties["region"]["maxItems"]) == (4, 4)
    assert properties["mode"]["enum"] == ["leaf", "field"]
    assert properties["fx_px"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "description": "focal length, pixels",
    }
    assert properties["points"]["items"]["additionalProperties"] is False
    assert properties["points"]["items"]["properties"]["label"]["description"] == "what it is"
    assert all(schema["description"] for schema in properties.values())


def keys_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | {key for item in value.values() for key in keys_of(item)}
    return {key for item in value for key in keys_of(item)} if isinstance(value, list) else set()


@pytest.mark.parametrize(
    "spec", [measure.spec, *tool_specs(["calculate", "plot"])], ids=lambda spec: spec.name
)
def test_schemas_hold_nothing_that_endpoints_trip_over(spec):
    parameters: Any = spec.parameters
    property_names = set(parameters["properties"])
    assert not (keys_of(parameters) - property_names) & {
        "title",
        "$defs",
        "$ref",
        "format",
        "prefixItems",
        "const",
    }
    assert "null" not in json.dumps(parameters)
    assert len(spec.description) <= 1024


def test_a_tagged_union_becomes_plain_branches():
    class Circle(BaseModel):
        shape: Literal["circle"]
        radius_px: float

    class Square(BaseModel):
        shape: Literal["square"]
        side_px: float

    model = create_model("m", area=(Annotated[Circle | Square, Field(discriminator="shape")], ...))
    area = plain_schema(model.model_json_schema())["properties"]["area"]
    assert [branch["properties"]["shape"]["enum"] for branch in area["anyOf"]] == [
        ["circle"],
        ["square"],
    ]
    assert not keys_of(area) & {"$ref", "oneOf", "discriminator"}


def test_a_list_without_fixed_places_stays_a_list():
    schema = {"type": "array", "prefixItems": [], "maxItems": 4}
    assert plain_schema(schema) == {"type": "array", "maxItems": 4}


def test_the_docstring_up_to_its_sections_is_the_description():
    assert (
        measure.spec.description
        == "Measure what is in an image.\n\nThe second paragraph is for models too."
    )
    assert "Raises" in measure.doc


def test_agreement_kinds_follow_the_types():
    assert measure.spec.agreement == {
        "image": "file", "depth": "file", "region": "box", "top_k": "number", "fx_px": "number", "mode": "choice",
        "weights": "series", "points": "chart", "values": "variables", "note": "presentation", "deep": "choice",
        "others": "file",
    }  # fmt: skip


def test_arguments_are_filled_in_and_converted_where_their_value_stays():
    canonical = measure.validate({"image": "a.jpg", "top_k": 4})
    assert canonical == {**measure.spec.defaults, "image": "a.jpg", "top_k": 4}
    assert measure.validate(canonical) == canonical
    assert measure.validate(
        {"image": "a.jpg", "note": None, "top_k": None, "depth": None}
    ) == measure.validate({"image": "a.jpg"})
    assert "image" in refusal(image=None).message
    assert measure.validate({"image": "a.jpg", "top_k": 4.0})["top_k"] == 4
    for wrong in ("four", True, 4.5, [4]):
        assert refusal(image="a.jpg", top_k=wrong).argument == "top_k"
    assert refusal(image="a.jpg", deep=1).argument == "deep"
    assert refusal(image="a.jpg", note=5).argument == "note"
    assert measure.validate({"image": "a.jpg", "region": [0.4, 1.6, 30, 40.0]})["region"] == [
        0,
        2,
        30,
        40,
    ]
    assert "x1 > x0" in refusal(image="a.jpg", region=[30, 2, 0, 40]).message
    assert "four numbers" in refusal(image="a.jpg", region=[0, 0, 10]).message
    assert "four numbers" in refusal(image="a.jpg", region=[0, 0, 10, float("nan")]).message
    assert "four numbers" in refusal(image="a.jpg", region="0,0,10,10").message


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("region", "[0, 0, 10, 10]", [0, 0, 10, 10]),
        ("region", ["0", "0", "10", "10"], [0, 0, 10, 10]),
        ("top_k", " 4 ", 4),
        ("fx_px", "0.02", 0.02),
        ("fx_px", "null", None),
        ("fx_px", "None", None),
        ("deep", "True", True),
        ("weights", "[1, 2.5]", [1, 2.5]),
        ("weights", [1, "2.5"], [1, 2.5]),
        ("values", '{"a": "3"}', {"a": 3}),
        ("note", "12", "12"),
        ("image", "12", "12"),
        ("mode", "null", "null"),
        ("depth", "", None),
        ("region", [], None),
        ("mode", "", None),
        ("fx_px", {}, None),
        ("weights", [], []),
        ("note", "", ""),
        ("image", "", ""),
        ("top_k", "4 leaves", "4 leaves"),
        ("image", None, None),
    ],
)
def test_text_is_read_as_json_only_where_no_text_is_taken(name: str, text: Any, value: Any) -> None:
    arguments = {"image": "a.jpg", name: text}
    read = measure.read(arguments)
    assert read[name] == value
    assert arguments == {"image": "a.jpg", name: text}
    assert measure.read(read) == read
    if read != arguments:
        assert measure.validate(arguments) == measure.validate({**arguments, name: value})


def test_a_fault_of_a_text_is_named_with_the_others_read() -> None:
    assert (
        refusal(image="a.jpg", top_k="11", fx_px="0.5").message
        == "top_k must be a whole number from 1 to 10, is 11"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"top_k": 11}, "top_k must be a whole number from 1 to 10, is 11"),
        ({"mode": "tree"}, 'mode must be one of leaf, field, is "tree"'),
        ({"fx_px": -1}, "fx_px must be a number above 0, is -1"),
        ({"fx_px": float("nan")}, "fx_px"),
        ({"image": 3}, "image must be the name of a file, is 3"),
        ({"image": " "}, "image must be the name of a file"),
        ({"others": ["b.jpg", 3]}, "others[1] must be the name of a file"),
        ({"weights": [1, "x"]}, 'weights[1] must be a number, is "x"'),
        ({"weights": "1"}, "weights must be a list of numbers"),
        ({"points": [{"at": [1, 2]}]}, "points[0].label is missing: give text"),
        ({"points": [{"label": "a", "size": 1}]}, "unknown argument points[0].size; arguments: "),
        (
            {"points": [{"label": str(index)} for index in range(4)]},
            "points must be a list of at most 3 objects",
        ),
        ({"values": {"a": "x"}}, 'values.a must be a number or a list of numbers, is "x"'),
        ({"values": {"a": [1, None]}}, "values.a[1] must be a number, is null"),
        ({"note": "longer"}, "note must be text of at most 5 characters"),
    ],
)
def test_a_refusal_names_the_argument_and_what_is_allowed(arguments, says):
    error = refusal(**{"image": "a.jpg", **arguments})
    assert says in error.message
    assert error.argument == next(iter(arguments))


def test_the_hint_says_what_may_be_left_out():
    assert refusal(image="a.jpg", region=[1], fx_px=-1).hint.endswith(
        "question needs it: region, fx_px"
    )
    assert refusal(image=3).hint is None


def test_all_faults_of_a_call_are_in_one_message_with_the_known_arguments():
    error = refusal(top_k=-1, mode="tree", fx=3, region=[1])
    for part in (
        "image is missing",
        "top_k must be",
        "mode must be",
        "unknown argument fx;",
        "region must be",
    ):
        assert part in error.message
    assert "did you mean fx_px" in error.message
    assert "image" in error.hint
    error = refusal(image="a.jpg", zzz=1)
    assert "unknown argument zzz; arguments: " in error.message
    assert "top_k" in error.message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from([*measure.spec.parameters["properties"], "zzz"]) | st.text(), json_values
    )
)
def test_any_arguments_are_taken_or_refused_with_a_typed_error(arguments):
    try:
        canonical = measure.validate(arguments)
    except ToolError as error:
        refused = error
    else:
        assert measure.validate(canonical) == canonical
        json.dumps(canonical, allow_nan=True)
        return
    assert refused.kind == "invalid_argument"
    assert refused.message


def test_arguments_too_deep_or_too_strange_are_refused():
    for depth in (100, 300, 100_000):
        deep: Any = []
        for _ in range(depth):
            deep = [deep]
        assert refusal(image="a.jpg", weights=deep)
    assert refusal(image="a.jpg", note="\ud800")
    assert refusal(image="a.jpg", weights=object())


class TestPlainPython:
    def test_paths_defaults_and_numpy_values_are_taken(self, tmp_path):
        (tmp_path / "a.jpg").write_bytes(b"x")
        seen = measure(str(tmp_path / "a.jpg"), top_k=2, points=[Point(label="p", at=(1, 2))]).seen
        assert seen["image"] == (tmp_path / "a.jpg").resolve()
        assert (seen["top_k"], seen["mode"], seen["depth"]) == (2, "leaf", None)
        assert seen["points"] == [Point(label="p", at=(1, 2))]
        (tmp_path / "a.jpg").write_bytes(b"x")
        seen = measure(tmp_path / "a.jpg", weights=np.array([1.5, 2]), top_k=np.int64(4)).seen
        assert (seen["weights"], seen["top_k"]) == ([1.5, 2.0], 4)

    def test_missing_files_and_wrong_calls_are_typed_errors(self, tmp_path):
        (tmp_path / "orchard.jpg").write_bytes(b"x")
        with pytest.raises(ToolError, match="there is no file") as caught:
            measure(tmp_path / "orchart.jpg")
        assert (caught.value.kind, caught.value.argument) == ("file_not_found", "image")
        assert caught.value.candidates == ("orchard.jpg",)
        with pytest.raises(ToolError) as caught:
            measure(tmp_path / "orchard.jpg", others=[tmp_path / "orchard.jpg", tmp_path / "none"])
        assert caught.value.argument == "others"
        (tmp_path / "a.jpg").write_bytes(b"x")
        image: Any = tmp_path / "a.jpg"
        loose: Any = measure
        for args, kwargs in [
            ((), {}),
            ((image,), {"image": image}),
            ((image, *range(20)), {}),
            ((image,), {"q": 1}),
        ]:
            with pytest.raises(ToolError) as caught:
                loose(*args, **kwargs)
            assert caught.value.kind == "invalid_argument"


class Colour(StrEnum):
    red = "red"


Text = Annotated[str, Field(description="text")]


def declare(function: Any) -> Tool:
    return tool(category="general")(function)


def test_enums_are_choices():
    def paint(colour: Annotated[Colour, Field(description="colour")] = Colour.red) -> ToolResult:
        """Paint."""
        return ToolResult()

    made = declare(paint)
    assert (made.spec.agreement, made.spec.defaults) == ({"colour": "choice"}, {"colour": "red"})
    assert made.validate({"colour": "red"}) == {"colour": "red"}


@pytest.mark.parametrize(
    ("signature", "doc", "says"),
    [
        ("(text: Text) -> ToolResult", "", "docstring"),
        ("(text: Text) -> ToolResult", "Raises:\n    ToolError: always.", "begin with"),
        ("(text: Text) -> ToolResult", "Do it. " * 200, "1024"),
        ("(text) -> ToolResult", "Do it.", "text has no type"),
        (
            "(table: Annotated[dict[str, int], Field(description='table')]) -> ToolResult",
            "Do it.",
            "Agree",
        ),
        ("(*texts: Text) -> ToolResult", "Do it.", "by name"),
        (
            "(n: Annotated[int, Field(ge=1, description='n')] = 0) -> ToolResult",
            "Do it.",
            "default of n",
        ),
        ("(text: Text)", "Do it.", "ToolResult"),
        ("(text: Text) -> None", "Do it.", "ToolResult"),
        ("(text: Text) -> dict", "Do it.", "ToolResult"),
        (
            "(tree: Annotated[Branch, Agree('choice'), Field(description='tree')]) -> ToolResult",
            "Do it.",
            "refers to itself",
        ),
    ],
)
def test_a_declaration_that_lacks_something_is_refused(signature: str, doc: str, says: str) -> None:
    names: dict[str, Any] = {**globals()}
    exec(f"def bare{signature}:\n    return ToolResult()", names)
    names["bare"].__doc__ = doc
    with pytest.raises(ToolDeclarationError, match=says):
        declare(names["bare"])


class Branch(BaseModel):
    branches: list["Branch"] = []


class TestResults:
    def test_floats_are_rounded_artifacts_named_notes_last(self):
        class Found(ToolResult):
            share_pct: float
            count: int
            missing: float | None
            huge: int
            spec: PlotSpec
            mask: Artifact
            again: tuple[Artifact, ...]
            array: Any

        mask = Artifact(name="mask.png", kind="mask", media_type="image/png", sha256="0" * 64)
        other = mask.model_copy(update={"name": "other.png"})
        spec = PlotSpec(kind="line", series=(PlotSeries(name="s", x=("a",), y=(1.23456789,)),))
        found = Found(
            notes=("n",),
            share_pct=12.3456789,
            count=10**9,
            missing=float("nan"),
            huge=10**30,
            spec=spec,
            mask=mask,
            again=(mask, other),
            array=np.array([1.0000001, 2]),
        )
        encoded, artifacts = encode_result(found)
        assert artifacts == (mask, other)
        plain: Any = with_artifact_names(encoded, ["one.png", "two.png"])
        assert (plain["share_pct"], plain["count"], plain["missing"], plain["huge"]) == (
            12.3457,
            10**9,
            None,
            1e30,
        )
        assert plain["spec"]["series"][0] == {"name": "s", "x": ["a"], "y": [1.23457]}
        assert (plain["mask"], plain["again"]) == ("one.png", ["one.png", "two.png"])
        assert plain["array"] == [1.0, 2.0]
        assert list(plain)[-2:] == ["notes", "flags"]

    def test_what_is_no_data_is_refused(self):
        with pytest.raises(TypeError, match="cannot hold"):
            encode_result(Measured(seen={"file": object()}))


class TestRegistry:
    def test_tools_are_found_by_name_or_the_closest_told(self):
        with pytest.raises(UsageError, match="did you mean Calculator or calculate"):
            get_tool("calculator")
        from agrotools_tools import calculate

        assert calculate is get_tool("calculate")
        assert set(TARGETS) <= set(tool_names())
        assert set(agrotools_tools.__all__) == {
            *("AGROTOOLS", "GENERAL_TOOLS", "measure_zones"),
            *TARGETS,
        }
        with pytest.raises(ImportError):
            from agrotools.calling import no_such_tool  # noqa: F401  # pyright: ignore
        assert "calculate" in TOOLS
        assert Path(get_tool("calculate").function.__code__.co_filename).name == "calculate.py"


_WITHOUT_LINUX = """
import os
for name in dir(os):
    if name.startswith(("sched_", "SCHED_", "memfd", "MFD_", "pidfd", "eventfd", "O_PATH", "O_TMPFILE", "getrandom")):
        delattr(os, name)
import agrotools.cli.main, agrotools.runner.evaluate, agrotools.sandbox
import agrotools.calling.execution, agrotools.calling.worker
from agrotools.calling import get_tool, tool_names
for name in tool_names():
    get_tool(name)
"""


@pytest.mark.process
def test_tools_import_without_what_only_linux_has():
    run = subprocess.run([sys.executable, "-c", _WITHOUT_LINUX], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


class Said(ToolResult):
    text: str
    """what was said"""


def made(folder: Path) -> "Tool[[], Said]":
    def files(backend: str) -> list[Path]:
        path = folder / backend.removeprefix("pack:")
        if not path.is_file():
            raise ToolError("backend_unavailable", f"there is no {path.name}", hint="train it")
        return [path]

    @tool(category="general", backends=("offline", "rules", "pack:"), backend_files=files)
    def say() -> Said:
        """Say something."""
        return Said(text="something")

    return say


def test_names_have_a_value_where_it_is_taken(tmp_path: Path) -> None:
    say = made(tmp_path)
    assert [say.has_backend(name) for name in ("offline", "rules", "pack:a", "pack:a:b")] == [
        True
    ] * 4
    assert not any(
        say.has_backend(name) for name in ("pack", "pack:", "pack: ", "rules:x", "other:x", "")
    )
    with pytest.raises(UsageError) as caught:
        check_backend(say, "pack")
    assert caught.value.hint == "it has offline, rules, pack:VALUE"
    with pytest.raises(UsageError, match=r"back-end pack:a of say: there is no a \(train it\)"):
        check_backend(say, "pack:a")
    (tmp_path / "a").write_text("1")
    check_backend(say, "pack:a")
    with pytest.raises(ToolDeclarationError, match="default back-end"):

        @tool(category="general", backends=("pack:",))
        def say() -> Said:  # pyright: ignore[reportUnusedFunction]
            """Say something."""
            return Said(text="")


def test_files_of_the_value_are_in_the_key(tmp_path: Path) -> None:
    say = made(tmp_path)
    cache = ResultCache(tmp_path / "results")
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("1")

    def key(backend: str) -> str:
        return cache.key(say, backend, {}, {}, {})

    first = key("pack:a")
    assert first == key("pack:a")
    assert len({first, key("pack:b"), key("offline"), key("rules")}) == 4
    (tmp_path / "a").write_text("22")
    assert key("pack:a") != first
    assert say.files_for(None) == say.files_for("rules") == ()
