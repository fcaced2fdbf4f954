"""Changing training pictures at random, a whole batch of tensors at a time."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Changes:
    """Ranges of the random changes. ``scale``: side of the window cut out, as a share of the picture's; ``aspect``:
    largest ratio by which a side is stretched; ``turn``: largest rotation, degrees, beside quarter turns; ``gain``:
    largest factor on a colour channel (colour balance differs by camera and day, and must not name the class)."""

    scale: tuple[float, float] = (0.65, 1.05)
    aspect: float = 1.2
    turn: float = 15.0
    brightness: float = 0.2
    contrast: float = 0.2
    saturation: float = 0.3
    gain: float = 0.08
    noise: float = 0.01
    blur: float = 0.15
    erase: float = 0.1


def uniform(generator: torch.Generator, count: int, low: float, high: float) -> Tensor:
    return torch.rand(count, generator=generator) * (high - low) + low


def turned(count: int, degrees: float, generator: torch.Generator) -> Tensor:
    """Affine maps (count, 2, 3) that turn by quarters and by at most ``degrees`` more, and mirror every other."""
    quarter = torch.randint(0, 4, (count,), generator=generator) * (math.pi / 2)
    angle = quarter + uniform(generator, count, -1, 1) * math.radians(degrees)
    mirror = torch.where(torch.rand(count, generator=generator) < 0.5, -1.0, 1.0)
    cos, sin = torch.cos(angle), torch.sin(angle)
    maps = torch.zeros(count, 2, 3)
    maps[:, 0, 0], maps[:, 0, 1] = cos * mirror, -sin
    maps[:, 1, 0], maps[:, 1, 1] = sin * mirror, cos
    return maps


def windows(count: int, changes: Changes, generator: torch.Generator) -> Tensor:
    """Affine maps (count, 2, 3) from the output's square to the input's, both -1..1."""
    scale = uniform(generator, count, *changes.scale)
    stretch = torch.exp(uniform(generator, count, -1, 1) * math.log(changes.aspect) / 2)
    maps = turned(count, changes.turn, generator)
    width, height = (scale * stretch).clamp(max=1.15), (scale / stretch).clamp(max=1.15)
    maps[:, :, 0] *= width[:, None]
    maps[:, :, 1] *= height[:, None]
    for axis, size in ((0, width), (1, height)):
        maps[:, axis, 2] = uniform(generator, count, -1, 1) * (1 - size).clamp(min=0)
    return maps


def recoloured(images: Tensor, changes: Changes, generator: torch.Generator) -> Tensor:
    count = len(images)

    def factor(span: float, *shape: int) -> Tensor:
        return 1 + (torch.rand(count, *shape, generator=generator) * 2 - 1) * span

    images = images * factor(changes.gain, 3, 1, 1) * factor(changes.brightness, 1, 1, 1)
    grey = (images * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)
    images = grey + (images - grey) * factor(changes.saturation, 1, 1, 1)
    mean = grey.mean((2, 3), keepdim=True)
    return mean + (images - mean) * factor(changes.contrast, 1, 1, 1)


def augmented(pictures: Tensor, side: int, changes: Changes, generator: torch.Generator) -> Tensor:
    """uint8 (n, 3, height, width) to float (n, 3, side, side) in 0..1."""
    count = len(pictures)
    grid = functional.affine_grid(
        windows(count, changes, generator), [count, 3, side, side], align_corners=False
    )
    images = pictures.float().div_(255)
    images = functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
    images = recoloured(images, changes, generator)
    soft = torch.rand(count, generator=generator) < changes.blur
    if soft.any():
        images[soft] = functional.avg_pool2d(
            functional.pad(images[soft], (1, 1, 1, 1), "replicate"), 3, 1
        )
    images = images + torch.randn(images.shape, generator=generator) * (
        changes.noise * torch.rand(count, 1, 1, 1, generator=generator)
    )
    for number in (
        (torch.rand(count, generator=generator) < changes.erase).nonzero().flatten().tolist()
    ):
        size = int(side * float(uniform(generator, 1, 0.15, 0.35)))
        top, left = (
            int(place) for place in torch.randint(0, side - size, (2,), generator=generator)
        )
        images[number, :, top : top + size, left : left + size] = torch.rand(
            3, 1, 1, generator=generator
        )
    return images.clamp_(0, 1)


def mixed(
    images: Tensor, targets: Tensor, most: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Mixup (Zhang et al. 2018) or CutMix (Yun et al. 2019), even odds; ``targets`` are shares of classes (n, k),
    ``most``: the largest share that the other picture gets in mixup."""
    order = torch.randperm(len(images), generator=generator)
    if float(torch.rand(1, generator=generator)) < 0.5:
        share = float(torch.rand(1, generator=generator)) * most
        images = images * (1 - share) + images[order] * share
    else:
        height, width = images.shape[2:]
        side = math.sqrt(float(torch.rand(1, generator=generator)) * 0.5)
        rows, columns = int(height * side), int(width * side)
        top = int(torch.randint(0, height - rows + 1, (1,), generator=generator))
        left = int(torch.randint(0, width - columns + 1, (1,), generator=generator))
        images = images.clone()
        box = (slice(None), slice(None), slice(top, top + rows), slice(left, left + columns))
        images[box] = images[order][box]
        share = rows * columns / (height * width)
    return images, targets * (1 - share) + targets[order] * share
