"""Tiles with boxes from the pool, and changing them at random, boxes and all."""

import io
import json
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from nets.augment import Changes, recoloured
from nets.detection import Boxes


@dataclass(frozen=True, eq=False)
class Tile:
    """``picture``: uint8 (3, height, width). ``label``: the fruit that the tile may hold."""

    name: str
    label: str
    group: str
    part: str
    picture: Tensor
    boxes: Boxes
    classes: NDArray[np.int64]


def read_tiles(folder: Path, classes: tuple[str, ...]) -> list[Tile]:
    tiles: list[Tile] = []
    with zipfile.ZipFile(folder / "images.zip") as archive:
        for line in (folder / "labels.jsonl").read_text().splitlines():
            row = json.loads(line)
            with Image.open(io.BytesIO(archive.read(row["image"]))) as opened:
                picture = torch.from_numpy(
                    np.asarray(opened.convert("RGB")).transpose(2, 0, 1).copy()
                )
            fruit = [classes.index(box[4].partition("_")[0]) for box in row["boxes"]]
            boxes = np.array([box[:4] for box in row["boxes"]], np.float32).reshape(-1, 4)
            label = row["label"].partition("_")[0]
            tiles.append(
                Tile(
                    row["image"],
                    label,
                    row["group"],
                    row["split"],
                    picture,
                    boxes,
                    np.array(fruit, np.int64),
                )
            )
    return tiles


@dataclass(frozen=True)
class Window:
    """``zoom``: range of the factor by which a tile is enlarged; ``kept``: the share of a box that must stay in it."""

    zoom: tuple[float, float] = (0.75, 1.6)
    kept: float = 0.35
    least_px: float = 3.0


def cut(
    tile: Tile, side: int, window: Window, generator: torch.Generator
) -> tuple[Tensor, Boxes, NDArray[np.int64]]:
    """A square of the tile, enlarged and perhaps mirrored, as float (3, side, side) in 0..1, and its boxes."""

    def uniform(low: float, high: float) -> float:
        return float(torch.rand(1, generator=generator)) * (high - low) + low

    zoom = math.exp(uniform(math.log(window.zoom[0]), math.log(window.zoom[1])))
    height, width = tile.picture.shape[1:]
    size = side / zoom
    across, down = sorted((0.0, width - size)), sorted((0.0, height - size))
    left, top = uniform(*across), uniform(*down)
    if len(tile.boxes) and uniform(0, 1) < 0.7:
        one = tile.boxes[int(torch.randint(0, len(tile.boxes), (1,), generator=generator))]
        x, y = (one[0] + one[2]) / 2, (one[1] + one[3]) / 2
        left = float(np.clip(x - uniform(0.1, 0.9) * size, *across))
        top = float(np.clip(y - uniform(0.1, 0.9) * size, *down))
    mirror = -1.0 if uniform(0, 1) < 0.5 else 1.0
    grid = functional.affine_grid(
        torch.tensor(
            [
                [
                    [size / width * mirror, 0, (2 * left + size) / width - 1],
                    [0, size / height, (2 * top + size) / height - 1],
                ]
            ]
        ),
        [1, 3, side, side],
        align_corners=False,
    )
    image = functional.grid_sample(tile.picture[None].float() / 255, grid, align_corners=False)[0]
    boxes = (tile.boxes - np.array([left, top, left, top], np.float32)) * np.float32(zoom)
    if mirror < 0:
        boxes = np.stack([side - boxes[:, 2], boxes[:, 1], side - boxes[:, 0], boxes[:, 3]], 1)
    whole = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    boxes = np.clip(boxes, 0, side).astype(np.float32)
    sides = boxes[:, 2:] - boxes[:, :2]
    stays = (sides.prod(1) >= window.kept * whole) & (
        sides.min(1, initial=np.inf) >= window.least_px
    )
    return image, boxes[stays], tile.classes[stays]


def cut_batch(
    tiles: list[Tile], side: int, window: Window, changes: Changes, generator: torch.Generator
) -> tuple[Tensor, list[Boxes], list[NDArray[np.int64]]]:
    cuts = [cut(tile, side, window, generator) for tile in tiles]
    images = recoloured(torch.stack([image for image, _, _ in cuts]), changes, generator).clamp_(
        0, 1
    )
    return images, [boxes for _, boxes, _ in cuts], [classes for _, _, classes in cuts]
