"""A small residual network trained from scratch (He et al. 2016)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

MEAN = (0.45, 0.46, 0.38)
STD = (0.23, 0.22, 0.22)
"""Of RGB in 0..1; near the values of field pictures, fixed so that every net takes its input alike."""


@dataclass(frozen=True)
class Shape:
    """Widths and numbers of blocks of the four stages (at 1/4, 1/8, 1/16, 1/32 of the input's side)."""

    stem: int = 16
    widths: tuple[int, ...] = (24, 48, 96, 192)
    depths: tuple[int, ...] = (1, 1, 2, 1)
    dropout: float = 0.2


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            pool = (
                nn.AvgPool2d(2, 2, ceil_mode=True, count_include_pad=False)
                if stride == 2
                else nn.Identity()
            )
            self.shortcut = nn.Sequential(
                pool, nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
            )
        nn.init.zeros_(
            self.norm2.weight
        )  # a block begins as its shortcut, which trains more steadily

    def forward(self, features: Tensor) -> Tensor:
        inside = torch.relu(self.norm1(self.conv1(features)))
        inside = self.norm2(self.conv2(inside))
        return torch.relu(inside + self.shortcut(features))


class Trunk(nn.Module):
    """Images (n, 3, height, width), RGB in 0..1, to the features of each stage."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(STD).view(1, 3, 1, 1), persistent=False)
        self.stem = nn.Sequential(
            nn.Conv2d(3, shape.stem, 3, 2, 1, bias=False), nn.BatchNorm2d(shape.stem), nn.ReLU()
        )
        stages: list[nn.Module] = []
        inputs = shape.stem
        for width, depth in zip(shape.widths, shape.depths, strict=True):
            later = [Block(width, width, 1) for _ in range(depth - 1)]
            stages.append(nn.Sequential(Block(inputs, width, 2), *later))
            inputs = width
        self.stages = nn.ModuleList(stages)

    def forward(self, images: Tensor) -> list[Tensor]:
        features = self.stem((images - self.mean) / self.std)
        found: list[Tensor] = []
        for stage in self.stages:
            features = stage(features)
            found.append(features)
        return found


class Classifier(nn.Module):
    """Images (n, 3, height, width), RGB in 0..1, to logits (n, classes) and embeddings (n, width of the last stage)."""

    def __init__(self, classes: int, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape or Shape()
        self.trunk = Trunk(self.shape)
        self.dropout = nn.Dropout(self.shape.dropout)
        self.head = nn.Linear(self.shape.widths[-1], classes)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        embedding = self.trunk(images)[-1].mean((2, 3))
        return self.head(self.dropout(embedding)), embedding


class Averaged(nn.Module):
    """The classifier as written to a file: means over the picture, its two mirror images and the picture upside down,
    which are as likely as each other in pictures of plants taken from above or close by."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        views = torch.cat([images, images.flip(3), images.flip(2), images.flip((2, 3))])
        logits, embedding = self.classifier(views)
        return logits.view(4, -1, logits.shape[1]).mean(0), embedding.view(
            4, -1, embedding.shape[1]
        ).mean(0)


NEAREST = 10
BANK = 3000


class Likened(nn.Module):
    """The averaged classifier that also says how like a picture is to those learnt from (n,): the mean cosine of its
    embedding with those of the nearest ten (Sun et al. 2022), of at most three thousand taken evenly."""

    def __init__(self, averaged: Averaged, learnt: Tensor) -> None:
        """``learnt``: uint8 pictures (m, 3, height, width)."""
        super().__init__()
        self.averaged = averaged.eval()
        some = learnt[:: math.ceil(len(learnt) / BANK)]
        with torch.inference_mode():
            known = torch.cat([averaged(part.float().div_(255))[1] for part in some.split(64)])
        self.register_buffer("bank", nn.functional.normalize(known).T.contiguous().clone())

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits, embedding = self.averaged(images)
        cosines = nn.functional.normalize(embedding) @ self.bank
        return logits, embedding, cosines.topk(min(NEAREST, self.bank.shape[1]), 1).values.mean(1)


def parameters_of(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
