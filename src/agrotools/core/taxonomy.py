"""Closed vocabularies (families, task types, modes, terminations), and specifications of figures and tools.

Families and task types are those of the AgroTools benchmark (arXiv 2605.22366, section 3.1).
"""

from typing import Annotated, Any, Literal, cast

from pydantic import Field, FiniteFloat, JsonValue

from agrotools.core.frozen_model import FrozenModel

Mode = Literal["no-tool", "step-by-step", "end-to-end"]
MODES: tuple[Mode, ...] = ("no-tool", "step-by-step", "end-to-end")

Protocol = str
"""Name of a protocol, which defines the format of a conversation: one of :data:`PROTOCOLS` or of a plug-in."""
PROTOCOLS: tuple[Protocol, ...] = ("react", "tool-calling")
"""Protocols of the engine."""

ToolImages = Literal["", "after results", "in results"]
"""Where a conversation shows the pictures that calls made: nowhere, in a user message after the results of a turn, or
in the results. With the protocol ``react``, results stand in a user message anyway."""

AnswerType = Literal["exact", "tolerance", "plot", "open_text", "image"]
ANSWER_TYPES: tuple[AnswerType, ...] = ("exact", "tolerance", "plot", "open_text", "image")

FileKind = Literal["image", "raster", "depth", "mask", "table", "video", "audio", "document"]
"""Kinds of files; ``document`` is any other kind."""

Termination = Literal[
    "answered",
    "no_form",
    "max_steps",
    "unparseable",
    "length",
    "context",
    "filtered",
    "timeout",
    "infrastructure",
]
"""Reasons why a sample ended. Only ``infrastructure`` makes it *invalid* (not the model's failure).

``no_form``: whoever answered was asked for the answer form (a closing message was sent, or values were to be returned),
and a value is still missing or not read. It takes the place of ``answered`` and of ``max_steps``; of a last answer at
the turn limit, the reason of the trajectory says both. An answer that came in a file, and that nobody was asked about,
is ``answered`` even without its form: nobody was asked for it, and the values that it does give are scored. How many of
those lack a form is counted from their texts (:class:`agrotools.scoring.summary.NoForm`), not from this word.
"""

FAMILIES: dict[str, str] = {
    "RR": "Recognition and Retrieval",
    "CM": "Counting and Measurement",
    "SI": "Segmentation Interpretation",
    "CD": "Change Detection",
    "VA": "Visualization and Analytics",
}

FAMILY_OF_TASK_TYPE: dict[str, str] = {
    "pest_diagnosis": "RR",
    "weed_identification": "RR",
    "crop_disease": "RR",
    "tree_counting": "CM",
    "apple_size": "CM",
    "organ_counting": "CM",
    "lesion_severity": "SI",
    "canopy_height": "SI",
    "weed_crop_area": "SI",
    "farmland_change": "CD",
    "farm_pond_change": "CD",
    "band_selection": "VA",
    "plotting": "VA",
}


PlotKind = Literal["line", "bar", "grouped_bar", "scatter", "hist", "pie", "box", "heatmap"]


class PlotSeries(FrozenModel):
    """One series of a figure: ``x`` holds categories (text) or numbers, ``y`` finite numbers; both of equal length."""

    name: str
    x: tuple[str | FiniteFloat, ...]
    y: tuple[FiniteFloat, ...]


class PlotSpec(FrozenModel):
    """Content of a figure. Units are those of the axis values (``%``, ``m^2``...); None if there is no unit."""

    kind: PlotKind
    series: Annotated[tuple[PlotSeries, ...], Field(min_length=1)]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_unit: str | None = None
    y_unit: str | None = None
    legend: bool = False
    """True if series names are visible in the figure."""


AgreementKind = Literal[
    "file",
    "choice",
    "number",
    "box",
    "text",
    "expression",
    "variables",
    "series",
    "chart",
    "presentation",
]
"""Rules for comparing two values of an argument (see :mod:`agrotools.text.agreement`).

``variables`` are compared as part of the ``expression`` argument; ``presentation`` (titles, formats, rounding) is never
compared.
"""


CONVENTIONS = {
    "image": "name of an image file",
    "mask": "name of a mask or label raster whose pixel values are class numbers",
    "depth": "name of a depth file that belongs to the image, 0 where invalid",
    "region": "box [x0, y0, x1, y1] in pixels of the original image, x to the right, y down, x1 and y1 excluded",
    "pixel size": "ground sampling distance, metres per pixel",
    "bands": "{'R': 3, 'NIR': 4}; also G, B, RE",
}
"""Descriptions of arguments that mean the same in every tool; the instructions of a prompt say them once."""


class ToolSpec(FrozenModel):
    """Name of a tool, JSON Schema of its arguments, their defaults, and the rule for comparing each argument."""

    name: str
    category: str
    version: str
    description: str
    parameters: dict[str, JsonValue]
    agreement: dict[str, AgreementKind]
    defaults: dict[str, JsonValue]
    expert: Annotated[tuple[str, ...], Field(exclude_if=lambda names: not names)] = ()
    """Arguments that calls may give and that no model is shown: settings of experts, with a default."""
    example: Annotated[dict[str, JsonValue], Field(exclude_if=lambda call: not call)] = {}
    """Arguments of a short valid call, on files with made-up names; empty without one."""

    @property
    def shown_parameters(self) -> dict[str, Any]:
        """JSON Schema of the arguments without those of experts."""
        properties = cast("dict[str, Any]", self.parameters.get("properties", {}))
        shown = {name: each for name, each in properties.items() if name not in self.expert}
        return {**self.parameters, "properties": shown}

    def offered(self, *, open_maps: bool = False, all_arguments: bool = False) -> dict[str, Any]:
        """Return name, description and parameters as models, agents and MCP clients get them.

        The schema leaves out :data:`CONVENTIONS` and what only the tool needs to check a call: a model reads the tokens
        of all tools in every request. The tool reports what the shorter schema lets through. Defaults that are numbers
        stay, because small models fill in every argument, and 0 where they know no number.

        ``open_maps`` states that objects with free keys take any: Pydantic AI otherwise declares that they take none.
        ``all_arguments`` shows the arguments of experts, too.
        """
        description = " ".join(self.description.split())
        return {
            "name": self.name,
            "description": description,
            "parameters": _offered(
                self.parameters if all_arguments else self.shown_parameters, open_maps
            ),
        }


class DeclaredTool(ToolSpec):
    """Tool without a function here: one that the files of a benchmark declare, whose calls the tool ``runs`` runs with
    ``renamed`` arguments, or one of a tool server."""

    runs: str = ""
    renamed: dict[str, str] = {}
    server: Annotated[str, Field(exclude_if=lambda server: not server)] = ""
    """Name of the tool server that runs its calls; empty if the files of a benchmark declare the tool."""


def _offered(schema: dict[str, Any], open_maps: bool) -> dict[str, Any]:
    kept = {
        key: schema[key] for key in ("type", "enum", "description", "required") if key in schema
    }
    if kept.get("description") in CONVENTIONS.values():
        del kept["description"]
    default = schema.get("default")
    if isinstance(default, int | float) and not isinstance(default, bool):
        kept["default"] = default
    if "properties" in schema:
        kept["properties"] = {
            name: _offered(each, open_maps) for name, each in schema["properties"].items()
        }
    if "anyOf" in schema:
        branches = [_offered(each, open_maps) for each in schema["anyOf"]]
        kept["anyOf"] = [each for at, each in enumerate(branches) if each not in branches[:at]]
    if "items" in schema:
        kept["items"] = _offered(schema["items"], open_maps)
    if open_maps and "additionalProperties" in schema and "properties" not in schema:
        kept["additionalProperties"] = True
    if len(kept.get("anyOf", ())) == 1:
        return kept.pop("anyOf")[0] | kept
    return kept
