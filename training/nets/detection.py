"""A net that finds objects as points: heat maps of centres and boxes about them (Zhou et al. 2019; Liu et al. 2020).

Pictures (n, 3, height, width) give, at a quarter of their side, a heat map for each class and the distances from each
place to the four sides of the box about it. Training draws an ellipse of heat about each box's centre and weighs the
error of boxes (generalised IoU; Rezatofighi et al. 2019) by it.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from nets.model import Shape, Trunk

STRIDE = 4
SPREAD = 0.54 / 6
"""Standard deviation of a box's heat, as a share of its sides (Liu et al. 2020)."""
Boxes = NDArray[np.float32]
"""(k, 4): left, top, right, bottom in pixels."""


class Detector(nn.Module):
    """Logits of heat (n, classes, height / 4, width / 4) and boxes' distances (n, 4, height / 4, width / 4), pixels."""

    def __init__(self, classes: int, shape: Shape, width: int = 48) -> None:
        super().__init__()
        self.trunk = Trunk(shape)
        self.sides = nn.ModuleList(nn.Conv2d(channels, width, 1) for channels in shape.widths)
        self.heat = self.branch(width, classes)
        self.distances = self.branch(width, 4)
        last = self.heat[-1]
        assert isinstance(last, nn.Conv2d)
        nn.init.constant_(last.bias, -4.0)  # nearly all places are empty: begin by saying so

    @staticmethod
    def branch(width: int, outputs: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, outputs, 1),
        )

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        stages = self.trunk(images)
        joined = self.sides[-1](stages[-1])
        for side, stage in zip(reversed(self.sides[:-1]), reversed(stages[:-1]), strict=True):
            joined = side(stage) + functional.interpolate(joined, scale_factor=2.0, mode="nearest")
        joined = torch.relu(joined)
        return self.heat(joined), functional.softplus(self.distances(joined)) * (4.0 * STRIDE)


class Decodable(nn.Module):
    """The net as written to a file: heat in 0..1, zero beside a peak of its 3 x 3 places, and boxes in pixels; both are
    means over the picture and its mirror image."""

    def __init__(self, net: Detector) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits, distances = self.net(torch.cat([images, images.flip(3)]))
        (plain, mirrored), (reach, back) = torch.sigmoid(logits).chunk(2), distances.chunk(2)
        heat = (plain + mirrored.flip(3)) / 2
        right, down, left, up = (
            2,
            1,
            0,
            3,
        )  # where the sides of a mirrored box are those of the box itself
        distances = (reach + back.flip(3)[:, [right, down, left, up]]) / 2
        peak = functional.max_pool2d(heat, 3, 1, 1)
        return heat * (heat >= peak).to(heat.dtype), distances


@dataclass(frozen=True)
class Drawn:
    """Targets of a batch: ``heat`` (n, classes, h, w), ``boxes`` (n, 4, h, w) in pixels, ``weight`` (n, h, w)."""

    heat: Tensor
    boxes: Tensor
    weight: Tensor


def draw(boxes: list[Boxes], classes: list[NDArray[np.int64]], count: int, side: int) -> Drawn:
    """Heat of every box; the smaller of two boxes wins where both claim a place."""
    cells = side // STRIDE
    heat = np.zeros((len(boxes), count, cells, cells), np.float32)
    aims = np.zeros((len(boxes), 4, cells, cells), np.float32)
    weight = np.zeros((len(boxes), cells, cells), np.float32)
    middle = (np.arange(cells, dtype=np.float32) + 0.5) * STRIDE
    for number, (some, kinds) in enumerate(zip(boxes, classes, strict=True)):
        areas = (some[:, 2] - some[:, 0]) * (some[:, 3] - some[:, 1])
        for place in np.argsort(-areas):
            left, top, right, bottom = some[place]
            spread_x = max(SPREAD * (right - left), 0.4 * STRIDE)
            spread_y = max(SPREAD * (bottom - top), 0.4 * STRIDE)
            column = min(cells - 1, int((left + right) / 2 / STRIDE))
            row = min(cells - 1, int((top + bottom) / 2 / STRIDE))
            across = np.exp(-((middle - middle[column]) ** 2) / (2 * spread_x**2))
            down = np.exp(-((middle - middle[row]) ** 2) / (2 * spread_y**2))
            spot = down[:, None] * across[None, :]
            spot[spot < 0.01] = 0
            layer = heat[number, kinds[place]]
            np.maximum(layer, spot, out=layer)
            inside = spot > 0
            aims[number][:, inside] = some[place][:, None]
            # Every box weighs alike, however many places it covers, but large ones a little more.
            weight[number][inside] = (
                spot[inside] / spot.sum() * np.log2(2 + areas[place] / STRIDE**2)
            )
    return Drawn(torch.from_numpy(heat), torch.from_numpy(aims), torch.from_numpy(weight))


def generalised_iou(found: Tensor, true: Tensor) -> Tensor:
    """Of boxes (k, 4), pair by pair."""
    overlap = (
        torch.minimum(found[:, 2:], true[:, 2:]) - torch.maximum(found[:, :2], true[:, :2])
    ).clamp(min=0)
    around = torch.maximum(found[:, 2:], true[:, 2:]) - torch.minimum(found[:, :2], true[:, :2])
    joint = overlap.prod(1)
    either = (found[:, 2:] - found[:, :2]).prod(1) + (true[:, 2:] - true[:, :2]).prod(1) - joint
    hull = around.prod(1).clamp(min=1e-6)
    return joint / either.clamp(min=1e-6) - (hull - either) / hull


def places_of(cells: tuple[int, int]) -> Tensor:
    """Middle of each cell (2, h, w): x and y in pixels."""
    rows, columns = torch.meshgrid(torch.arange(cells[0]), torch.arange(cells[1]), indexing="ij")
    return (torch.stack([columns, rows]).float() + 0.5) * STRIDE


def detection_loss(output: tuple[Tensor, Tensor], drawn: Drawn) -> Tensor:
    """Focal loss of the heat with less weight near centres (Law & Deng 2018), plus that of the boxes."""
    logits, distances = output[0].float(), output[1].float()
    peak = drawn.heat >= 0.999
    log_yes, log_no = functional.logsigmoid(logits), functional.logsigmoid(-logits)
    chance = torch.sigmoid(logits)
    found = -((1 - chance) ** 2 * log_yes)[peak].sum()
    empty = -((1 - drawn.heat) ** 4 * chance**2 * log_no)[~peak].sum()
    heat_loss = (found + empty) / peak.sum().clamp(min=1)
    inside = drawn.weight > 0
    if not inside.any():
        return heat_loss
    middle = places_of((logits.shape[2], logits.shape[3]))[None].expand(len(logits), -1, -1, -1)
    boxes = torch.cat([middle - distances[:, :2], middle + distances[:, 2:]], 1)
    error = 1 - generalised_iou(
        boxes.permute(0, 2, 3, 1)[inside], drawn.boxes.permute(0, 2, 3, 1)[inside]
    )
    weight = drawn.weight[inside]
    return heat_loss + 2.0 * (error * weight).sum() / weight.sum()


@dataclass(frozen=True)
class Found:
    """Objects of a picture, best first."""

    boxes: Boxes
    scores: NDArray[np.float32]
    classes: NDArray[np.int64]


def overlaps(one: Boxes, two: Boxes) -> NDArray[np.float32]:
    """IoU of every box of ``one`` (k, 4) with every box of ``two`` (m, 4)."""
    low = np.maximum(one[:, None, :2], two[None, :, :2])
    high = np.minimum(one[:, None, 2:], two[None, :, 2:])
    joint = np.clip(high - low, 0, None).prod(-1)
    areas = [(some[:, 2:] - some[:, :2]).prod(-1) for some in (one, two)]
    return joint / np.clip(areas[0][:, None] + areas[1][None, :] - joint, 1e-6, None)


def decode(
    heat: NDArray[np.float32], distances: NDArray[np.float32], least: float, same: float = 0.5
) -> Found:
    """From a picture's maps, as ``Decodable`` gives them; of boxes that overlap more than ``same`` the best stays."""
    kinds, rows, columns = np.nonzero(heat >= least)
    scores = heat[kinds, rows, columns]
    order = np.argsort(-scores, kind="stable")[:400]
    kinds, rows, columns, scores = kinds[order], rows[order], columns[order], scores[order]
    x, y = (columns + 0.5) * STRIDE, (rows + 0.5) * STRIDE
    left, top, right, bottom = distances[:, rows, columns]
    boxes = np.stack([x - left, y - top, x + right, y + bottom], 1).astype(np.float32)
    alike = overlaps(boxes, boxes) > same
    kept = np.ones(len(boxes), bool)
    for place in range(len(boxes)):
        if kept[place]:
            kept[place + 1 :] &= ~alike[place, place + 1 :]
    return Found(boxes[kept], scores[kept], kinds[kept])


def matches(found: Found, true: Boxes, least_iou: float = 0.5) -> NDArray[np.bool_]:
    """Which of the found boxes has a true box of its own: best first, each true box once."""
    taken = np.zeros(len(true), bool)
    right = np.zeros(len(found.boxes), bool)
    if len(true):
        table = overlaps(found.boxes, true)
        for place, row in enumerate(table):
            free = np.where(taken, -1, row)
            best = int(free.argmax())
            if free[best] >= least_iou:
                taken[best] = right[place] = True
    return right
