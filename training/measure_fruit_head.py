"""Try counts of fruit by a small head on inner maps of the encoder, with one source of orchards left out of learning.

    python training/measure_fruit_head.py --pools ../shared/train --kept DIR

Needs the group ``train-nets``. The head learns how many fruits have their centre in each part of a tile, from maps at
an eighth and a sixteenth of its side (Poisson loss). It is asked about a source that it has not learnt from, where
another source has the same fruit: apples and cherries. The net that ships, which learnt from other photographs of every
source, counts the same tiles. The 90 % interval of the head is a multiple of its count and 2, fitted on photographs of
the sources learnt that were held back; that of the net is the one it states. Maps are kept in DIR.
"""

import argparse
import io
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from calibrate_fruit_counts import SCORES, counts_by_score
from nets.inner import COARSE, FINE, encoded
from nets.overlap import pool_rows
from nets.split import halves
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from agrotools_tools.counting.measure import UNSURE, FruitNet, read_fruit_net, whole_bounds
from agrotools_tools.vision.nets import nets_folder

FRUITS = ("apple", "pear", "cherry", "tomato")
LEFT_OUT = ("AppleBBCH76", "AppleBBCH81", "CherryBBCH72", "CherryBBCH81")
"""Sources beside which another one has the same fruit."""
SIDE, CELL = 416, 8
WIDTH = 64
PART = 4
"""Cells of a side of a part of a tile, whose fruits are counted together."""
EPOCHS, BATCH, RATE, SEED = 15, 8, 2e-3, 3
LEVEL = 0.9
ADDED = 2
"""Added to a count before its interval is a multiple of it, so that a count of 0 has one."""
Floats = NDArray[np.float64]


class CountHead(nn.Module):
    """Fruits of each kind in each cell of 8 pixels, (n, 4, 52, 52), from the encoder's maps."""

    def __init__(self, fine: int, coarse: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(fine + coarse),
            nn.Conv2d(fine + coarse, WIDTH, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=WIDTH),
            nn.Conv2d(WIDTH, WIDTH, 1),
            nn.ReLU(),
            nn.Conv2d(WIDTH, len(FRUITS), 1),
        )
        last = self.layers[-1]
        assert isinstance(last, nn.Conv2d)
        nn.init.constant_(last.bias, -5.0)  # type: ignore[arg-type]  # nearly all cells are empty: begin by saying so

    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        wide = functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        return functional.softplus(self.layers(torch.cat([fine, wide], 1)))


class Tiles(NamedTuple):
    """Tiles of the pool. ``centres``: fruits by cell, (n, 4, 52, 52). ``is_held``: photographs that no net learnt."""

    rows: list[dict[str, Any]]
    fine: NDArray[np.float16]
    coarse: NDArray[np.float16]
    centres: NDArray[np.float32]
    sources: NDArray[np.str_]
    is_held: NDArray[np.bool_]


def read_tiles(folder: Path, kept: Path) -> Tiles:
    rows: list[dict[str, Any]] = [dict(row) for row in pool_rows(folder)]
    for row in rows:
        row["label"] = row["label"].partition("_")[0]
    fine, coarse = encoded(folder, [row["image"] for row in rows], [FINE, COARSE], kept, side=SIDE)
    centres = np.zeros((len(rows), len(FRUITS), SIDE // CELL, SIDE // CELL), np.float32)
    for number, row in enumerate(rows):
        # Tiles of tomatoes are not square: the encoder sees them squeezed.
        across, down = row["width"] / (SIDE // CELL), row["height"] / (SIDE // CELL)
        for left, top, right, bottom, kind in row["boxes"]:
            fruit = FRUITS.index(kind.partition("_")[0])
            last = SIDE // CELL - 1
            place = (
                min(last, int((top + bottom) / 2 / down)),
                min(last, int((left + right) / 2 / across)),
            )
            centres[(number, fruit, *place)] += 1
    split = [(row["group"], row["label"], row["split"] == "train") for row in rows]
    held = halves(split, share=0.125, seed=5)  # as train_fruit_net.py holds them back
    is_held = np.array([n in held or row["split"] != "train" for n, row in enumerate(rows)])
    sources = np.array([row["source"].partition(":")[0].rpartition("/")[2] for row in rows])
    return Tiles(rows, fine, coarse, centres, sources, is_held)


def trained(tiles: Tiles, places: NDArray[np.int64]) -> CountHead:
    torch.manual_seed(SEED)
    draw = np.random.default_rng(SEED)
    head = CountHead(tiles.fine.shape[1], tiles.coarse.shape[1])
    steps = EPOCHS * (len(places) // BATCH)
    optimiser = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=0.01)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(EPOCHS):
        order = draw.permutation(places)
        for start in range(0, len(order) - BATCH + 1, BATCH):
            some = np.sort(order[start : start + BATCH])
            maps = [tiles.fine[some], tiles.coarse[some], tiles.centres[some]]
            if draw.integers(2):
                maps = [one[..., ::-1].copy() for one in maps]
            fine, coarse, centres = (torch.from_numpy(one).float() for one in maps)
            found, true = (
                functional.avg_pool2d(one, PART, divisor_override=1)
                for one in (head(fine, coarse), centres)
            )
            loss = functional.poisson_nll_loss(found, true, log_input=False)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            falling.step()
    return head.eval()


def counted(head: CountHead, tiles: Tiles, places: NDArray[np.int64]) -> Floats:
    """Return the count of the fruit that each tile is of."""
    counts = np.zeros(len(places))
    with torch.inference_mode():
        for number, place in enumerate(places):
            maps = (torch.from_numpy(one[[place]]).float() for one in (tiles.fine, tiles.coarse))
            fruit = FRUITS.index(tiles.rows[place]["label"])
            counts[number] = float(head(*maps)[0, fruit].sum())
    return np.round(counts)


def true_counts(tiles: Tiles, places: NDArray[np.int64]) -> Floats:
    return np.array([len(tiles.rows[place]["boxes"]) for place in places], np.float64)


def counted_by_net(
    net: FruitNet, archive: zipfile.ZipFile, row: dict[str, Any]
) -> tuple[float, tuple[float, float] | None]:
    """Return the count of the net that ships, and the interval that it states."""
    with Image.open(io.BytesIO(archive.read(row["image"]))) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    by_score, _ = counts_by_score(net, pixels, FRUITS.index(row["label"]))
    scores = [*UNSURE, net.info.counts[row["label"]].threshold]
    low, high, count = (int(by_score[np.argmin(np.abs(SCORES - score))]) for score in scores)
    return count, net.count_interval(row["label"], count, low - high)


def print_figures(
    what: str, found: Floats, true: Floats, groups: list[str], inside: NDArray[np.bool_] | None
) -> None:
    errors = np.abs(found - true)
    of_group = [errors[np.array(groups) == one].sum() for one in sorted(set(groups))]
    of_true = [true[np.array(groups) == one].sum() for one in sorted(set(groups))]
    draw = np.random.default_rng(0)
    drawn = draw.integers(0, len(of_true), (2000, len(of_true)))
    low, high = np.quantile(
        np.array(of_group)[drawn].sum(axis=1) / np.array(of_true)[drawn].sum(axis=1), (0.025, 0.975)
    )
    stated = "no interval" if inside is None else f"inside its 90 % interval {inside.mean():.2f}"
    print(
        f"{what}: error {errors.sum() / true.sum():.2f} ({low:.2f} to {high:.2f}) of the fruits, bias "
        f"{found.sum() / true.sum() - 1:+.2f}, {stated}; {len(true)} tiles, {len(of_true)} photographs",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--kept", type=Path, required=True)
    options = parser.parse_args()
    folder = options.pools / "fruit_boxes"
    tiles, net = read_tiles(folder, options.kept), read_fruit_net(nets_folder() / "fruits.json")
    for source in LEFT_OUT:
        judged = np.flatnonzero((tiles.sources == source) & tiles.is_held)
        head = trained(tiles, np.flatnonzero((tiles.sources != source) & ~tiles.is_held))
        fruit = tiles.rows[judged[0]]["label"]
        same = np.array([row["label"] == fruit for row in tiles.rows])
        fitting = np.flatnonzero((tiles.sources != source) & tiles.is_held & same)
        found, true = counted(head, tiles, fitting), true_counts(tiles, fitting)
        multiple = np.quantile(np.abs(found - true) / (found + ADDED), LEVEL)
        groups = [tiles.rows[place]["group"] for place in judged]
        found, true = counted(head, tiles, judged), true_counts(tiles, judged)
        low, high = whole_bounds(found, multiple * (found + ADDED))
        print_figures(f"{source}, head", found, true, groups, (low <= true) & (true <= high))
        with zipfile.ZipFile(folder / "images.zip") as archive:
            by_net = [counted_by_net(net, archive, tiles.rows[place]) for place in judged]
        found = np.array([count for count, _ in by_net], np.float64)
        stated = [one for _, one in by_net if one]
        inside = (
            np.array(
                [low <= count <= high for (low, high), count in zip(stated, true, strict=True)]
            )
            if stated
            else None
        )
        print_figures(f"{source}, net that ships (learnt this source)", found, true, groups, inside)


if __name__ == "__main__":
    main()
