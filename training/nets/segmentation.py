"""A net that names every pixel: coarse features from the trunk, fine ones from the picture itself (Lin et al. 2017).

Pictures (n, 3, height, width), sides multiples of 32, give logits (n, classes, height, width). As written to a file the
net also says how strange a picture is to it (Lee et al. 2018).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

from nets.augment import Changes, recoloured, turned, uniform
from nets.model import Shape, Trunk

FINE = 12


def convolved(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Segmenter(nn.Module):
    """Logits of every pixel, and the mean of the last stage (n, width)."""

    def __init__(self, classes: int, shape: Shape, width: int = 48) -> None:
        super().__init__()
        self.trunk = Trunk(shape)
        self.sides = nn.ModuleList(nn.Conv2d(channels, width, 1) for channels in shape.widths)
        self.coarse = nn.Sequential(convolved(width, width), nn.Dropout(shape.dropout), convolved(width, 2 * FINE))
        self.fine = nn.Sequential(convolved(3, FINE), convolved(FINE, FINE))
        self.last = nn.Sequential(convolved(3 * FINE, 2 * FINE), nn.Conv2d(2 * FINE, classes, 1))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        stages = self.trunk(images)
        joined = self.sides[-1](stages[-1])
        for side, stage in zip(reversed(self.sides[:-1]), reversed(stages[:-1]), strict=True):
            joined = side(stage) + functional.interpolate(joined, scale_factor=2.0, mode="nearest")
        coarse = functional.interpolate(
            self.coarse(torch.relu(joined)), scale_factor=4.0, mode="bilinear", align_corners=False
        )
        fine = self.fine((images - self.trunk.mean) / self.trunk.std)
        return self.last(torch.cat([coarse, fine], 1)), stages[-1].mean((2, 3))


class Strangeness(nn.Module):
    """The net as written to a file: probabilities of classes, and Mahalanobis distances of pictures (n,) to those
    learnt from, over the root of the number of features: about 1 for a picture like those."""

    def __init__(self, net: Segmenter, known: Tensor, shrink: float = 0.1) -> None:
        """``known``: features (m, width) of pictures that the net is to take for familiar."""
        super().__init__()
        self.net = net
        centred = known.double() - known.double().mean(0)
        spread = centred.T @ centred / len(known)
        spread = (1 - shrink) * spread + shrink * torch.diag(spread.diagonal().mean().expand(len(spread)))
        values, axes = torch.linalg.eigh(spread)
        self.register_buffer("middle", known.mean(0))
        self.register_buffer("whitening", (axes / values.sqrt()).float() / len(values) ** 0.5)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        logits, features = self.net(images)
        return logits.softmax(1), ((features - self.middle) @ self.whitening).square().sum(1).sqrt()


@dataclass(frozen=True)
class Masked:
    """Pictures (n, 3, height, width) uint8 and classes of pixels (n, height, width) uint8."""

    pictures: Tensor
    masks: Tensor


@dataclass(frozen=True)
class Windows:
    """``zoom``: range of the factor by which a picture is enlarged; ``rounds``: windows of each picture in an epoch."""

    zoom: tuple[float, float] = (0.7, 1.6)
    rounds: int = 4
    changes: Changes = field(default_factory=lambda: Changes(gain=0.12, brightness=0.3, contrast=0.3))


def cut(some: Masked, plan: Windows, side: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Square windows (n, 3, side, side) in 0..1 and their classes, at random places, turned, mirrored and enlarged;
    beyond a picture's border it is mirrored."""
    count, height, width = some.masks.shape
    factor = torch.exp(uniform(generator, count, *(math.log(end) for end in plan.zoom)))
    maps = turned(count, plan.changes.turn, generator)
    for axis, length in ((0, width), (1, height)):
        size = side / factor / length
        maps[:, axis, :2] *= size[:, None]
        maps[:, axis, 2] = uniform(generator, count, -1, 1) * (1 - size).clamp(min=0)
    grid = functional.affine_grid(maps, [count, 3, side, side], align_corners=False)
    images = functional.grid_sample(
        some.pictures.float().div_(255), grid, padding_mode="reflection", align_corners=False
    )
    classes = functional.grid_sample(
        some.masks[:, None].float(), grid, mode="nearest", padding_mode="reflection", align_corners=False
    )
    return images, classes[:, 0].long()


def windows_of(
    some: Masked, plan: Windows, batch: int, side: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """An epoch's batches."""
    order = torch.cat([torch.randperm(len(some.masks), generator=generator) for _ in range(plan.rounds)])
    for places in order.split(batch):
        images, classes = cut(Masked(some.pictures[places], some.masks[places]), plan, side, generator)
        yield recoloured(images, plan.changes, generator).clamp_(0, 1), classes


def segmentation_loss(output: tuple[Tensor, Tensor], classes: Tensor, weights: Sequence[float]) -> Tensor:
    """Weighted cross-entropy, and one minus the soft Dice coefficient of every class but the first (Milletari et al.
    2016)."""
    logits = output[0].float()
    entropy = functional.cross_entropy(logits, classes, weight=torch.tensor(weights))
    true = functional.one_hot(classes, logits.shape[1]).permute(0, 3, 1, 2).float()
    chance = logits.softmax(1)
    joint, sums = (chance * true).sum((0, 2, 3)), (chance + true).sum((0, 2, 3))
    return entropy + (1 - 2 * joint[1:] / sums[1:].clamp(min=1)).mean()


def padded(picture: Tensor, multiple: int = 32) -> Tensor:
    """A uint8 picture (3, height, width) as a batch of one in 0..1, mirrored at its right and lower border."""
    _, height, width = picture.shape
    return functional.pad(picture[None].float() / 255, (0, -width % multiple, 0, -height % multiple), mode="reflect")
