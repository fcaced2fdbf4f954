"""MCP server of open models with local weights: GroundingDINO, SAM 2, Florence-2 and OpenCLIP.

python server.py --files FOLDER --detector IDEA-Research/grounding-dino-tiny --segmenter facebook/sam2.1-hiera-tiny \
    --captioner florence-community/Florence-2-base --namer imageomics/bioclip

A model is named as on the hub (after ``hf download NAME``) or by the absolute path of its folder. Only the tools whose
models are named are served. Tools open only pictures in FOLDER. Nobody has measured how accurate these models are on
agricultural pictures, and each description says so.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Annotated, TypedDict

import numpy as np
from description import caption, rank_names
from detection import find_by_text, masks_in_boxes
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field
from reading import box_in, read_picture
from weights import Weights, find_weights

UNMEASURED = "Accuracy: unmeasured."
MOST_OUTLINES = 100
"""Outlines of a call, each a mask of the size of the picture."""
Image = Annotated[str, Field(description="path of the picture")]
Text = Annotated[
    str, Field(min_length=1, max_length=200, description="what to find, in a few words")
]
Region = Annotated[
    list[int] | None, Field(description="[x0, y0, x1, y1] in pixels; null: all of it")
]
Score = Annotated[float, Field(ge=0, le=1, description="leave out what is less sure than this")]
Names = Annotated[list[str], Field(min_length=2, max_length=400, description="names to rank")]


class ObjectsFound(TypedDict):
    """Boxes [x0, y0, x1, y1] in pixels, best first, and the model's own scores from 0 to 1."""

    count: int
    boxes: list[list[float]]
    scores: list[float]
    model: str


class ObjectsOutlined(TypedDict):
    """Pixels of each object, best first, and of all together, where pixels of several objects count once."""

    count: int
    pixels: list[int]
    total_px: int
    boxes: list[list[float]]
    scores: list[float]
    model: str


class Caption(TypedDict):
    """Caption of a picture."""

    description: str
    model: str


class NamesRanked(TypedDict):
    """Names, likeliest first, and their shares of likeness, which are no probabilities and sum to 1."""

    names: list[str]
    shares: list[float]
    model: str


@dataclass(frozen=True)
class ModelTools:
    """Tools on the pictures of a folder; one call at a time, because the calls of a process share its models."""

    folder: Path
    models: dict[str, Weights]
    """weights by role"""
    lock: Lock

    def find_objects(
        self, image: Image, text: Text, region: Region = None, score_min: Score = 0.3
    ) -> ObjectsFound:
        """Find what a text names in a picture: count, boxes and scores."""
        with self.lock:
            pixels = read_picture(self.folder, image)
            weights = self.models["detector"]
            box = box_in(pixels, region)
            found = find_by_text(pixels, box, text, weights, score_min=score_min)
        return ObjectsFound(
            count=len(found.boxes),
            boxes=found.boxes.tolist(),
            scores=found.scores.tolist(),
            model=weights.name,
        )

    def outline_objects(self, image: Image, text: Text, score_min: Score = 0.4) -> ObjectsOutlined:
        """Outline what a text names in a picture, and count the pixels of each and of all together."""
        with self.lock:
            pixels = read_picture(self.folder, image)
            detector, segmenter = self.models["detector"], self.models["segmenter"]
            whole = box_in(pixels, None)
            found = find_by_text(pixels, whole, text, detector, score_min=score_min)
            if len(found.boxes) > MOST_OUTLINES:
                raise ToolError(
                    f"{len(found.boxes)} things were found, {MOST_OUTLINES} at most: raise score_min"
                )
            masks = masks_in_boxes(pixels, found.boxes, segmenter)
        return ObjectsOutlined(
            count=len(masks),
            pixels=[int(np.count_nonzero(mask)) for mask in masks],
            total_px=int(np.count_nonzero(masks.any(axis=0))),
            boxes=found.boxes.tolist(),
            scores=found.scores.tolist(),
            model=f"{detector.name} and {segmenter.name}",
        )

    def describe_picture(self, image: Image, region: Region = None) -> Caption:
        """Describe a picture or a region of it in a few sentences. It answers no question."""
        with self.lock:
            pixels = read_picture(self.folder, image)
            weights = self.models["captioner"]
            text = caption(pixels, box_in(pixels, region), weights)
        return Caption(description=text, model=weights.name)

    def rank_names(self, image: Image, names: Names, region: Region = None) -> NamesRanked:
        """Rank names by their likeness to a picture. One is always the likeliest, even if none of them is right."""
        with self.lock:
            pixels = read_picture(self.folder, image)
            weights = self.models["namer"]
            ranked = rank_names(pixels, box_in(pixels, region), names, weights)
        return NamesRanked(
            names=[name for name, _ in ranked],
            shares=[share for _, share in ranked],
            model=weights.name,
        )


KINDS = {
    "detector": "grounding-dino",
    "segmenter": "sam2",
    "captioner": "florence2",
    "namer": "open_clip",
}
"""Kind of the model that each role needs."""
ROLES = {
    "find_objects": ("detector",),
    "outline_objects": ("detector", "segmenter"),
    "describe_picture": ("captioner",),
    "rank_names": ("namer",),
}
"""Roles of the models that each tool asks."""


def model_server(folder: Path, named: dict[str, str]) -> MCPServer:
    """Return the server of the tools whose models are named, by role.

    Raises:
        ToolError: a model is not on this machine, or of another kind than its role needs.
    """
    models = {role: find_weights(model, KINDS[role]) for role, model in named.items()}
    tools = ModelTools(folder.resolve(), models, Lock())
    server = MCPServer("learned-models")
    for name, roles in ROLES.items():
        if models.keys() >= set(roles):
            function = getattr(tools, name)
            server.add_tool(function, description=f"{function.__doc__} {UNMEASURED}")
    return server


def main() -> int:
    parser = argparse.ArgumentParser(description="MCP server of open models with local weights")
    parser.add_argument("--files", type=Path, required=True, help="folder of the pictures")
    for role, kind in KINDS.items():
        parser.add_argument(f"--{role}", metavar="MODEL", help=f"weights of the kind {kind}")
    options = vars(parser.parse_args())
    named = {role: options[role] for role in KINDS if options[role]}
    try:
        server = model_server(options["files"], named)
    except ToolError as error:
        print(error, file=sys.stderr)
        return 2
    server.run("stdio")
    return 0


if __name__ == "__main__":
    sys.exit(main())
