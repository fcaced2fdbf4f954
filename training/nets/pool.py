"""Reading the training pool: pictures straight from the zip of a task, labels from its table, splits by group."""

import io
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from nets import split
from nets.overlap import LEFT_OUT, pool_rows

Size = tuple[int, int]
"""Height and width in pixels."""


@dataclass(frozen=True)
class Row:
    """A picture of the pool. ``group``: what no split may cut apart; ``part``: the split that the pool suggests."""

    image: str
    label: str
    source: str
    group: str
    part: str
    fields: dict[str, Any]


def read_rows(folder: Path) -> list[Row]:
    """Of a task's folder, without the pictures that no recipe may read."""
    return [
        Row(r["image"], r.get("label", ""), r["source"], r["group"], r.get("split") or "", dict(r))
        for r in pool_rows(folder)
        if f"{folder.name}/{r['image']}" not in LEFT_OUT
    ]


def squeezed(picture: Image.Image, size: Size) -> np.ndarray:
    """uint8 (3, height, width). The picture is squeezed to the size, its sides not kept in proportion: nothing is cut
    off, and nothing of the input is spent on a margin."""
    small = picture.convert("RGB").resize((size[1], size[0]), Image.Resampling.BILINEAR)
    return np.asarray(small).transpose(2, 0, 1)


def read_pictures(
    folder: Path, rows: Sequence[Row], size: Size, archive: str = "images.zip"
) -> Tensor:
    """uint8 (n, 3, height, width)."""
    pictures = torch.empty((len(rows), 3, *size), dtype=torch.uint8)
    with zipfile.ZipFile(folder / archive) as file:
        for number, row in enumerate(rows):
            with Image.open(io.BytesIO(file.read(row.image))) as picture:
                pictures[number] = torch.from_numpy(squeezed(picture, size).copy())
    return pictures


def random_parts(rows: Sequence[Row], shares: dict[str, float], seed: int) -> list[str]:
    """A part for each row, drawn within each label, groups disregarded: the published protocol of DeepWeeds."""
    return split.random_parts([row.label for row in rows], shares, seed)


def groups_apart(rows: Sequence[Row], share: float, seed: int, draws: int = 4000) -> set[str]:
    """Groups to leave out so that of each label's pictures about ``share`` is left out, and never all of them.

    Tried at random ``draws`` times, each then improved by moving single groups; the least sum of squared differences
    between a label's share left out and ``share`` wins. A label that lies in one group cannot be left out in part:
    its difference is then that of all or nothing.
    """
    groups = sorted({row.group for row in rows})
    labels = sorted({row.label for row in rows})
    counts = np.zeros((len(groups), len(labels)))
    for (group, label), number in Counter((row.group, row.label) for row in rows).items():
        counts[groups.index(group), labels.index(label)] = number
    counts /= counts.sum(axis=0)

    def badness(chosen: np.ndarray) -> float:
        left_out = counts[chosen].sum(axis=0)
        return float(
            ((left_out - share) ** 2).sum() + (left_out > 0.7).sum() + (left_out < 0.02).sum()
        )

    draw = np.random.default_rng(seed)
    best, least = np.zeros(len(groups), bool), np.inf
    for _ in range(max(1, draws // (10 * len(groups)))):
        chosen = draw.random(len(groups)) < share
        now = badness(chosen)
        for place in np.concatenate([draw.permutation(len(groups)) for _ in range(10)]):
            chosen[place] ^= True
            tried = badness(chosen)
            if tried < now:
                now = tried
            else:
                chosen[place] ^= True
        if now < least:
            best, least = chosen.copy(), now
    return {group for group, out in zip(groups, best, strict=True) if out}


def halves(rows: Sequence[Row], wanted: Callable[[Row], bool], share: float, seed: int) -> set[int]:
    """Return places of about ``share`` of the wanted rows of each label, whole groups at a time."""
    return split.halves([(row.group, row.label, wanted(row)) for row in rows], share, seed)
