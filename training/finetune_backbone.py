"""Try the encoder with its last blocks trained on leaves and weeds at once, judged by a collection that is left out.

    python training/finetune_backbone.py {CROP,insects} --pools ../shared/train --data DIR --kept DIR --published FILE
        [--rate RATE] [--without CROP ...] [--out FILE]

Needs the group ``train-nets`` and the extra ``train``. The last four blocks and the last convolution learn, seven
tenths of the weights, with a linear head for the leaves of all crops but CROP and one for weeds; pictures are mirrored
at random. The days of weeds that ``train_weed_net.py`` leaves out are not learnt either, and the head of weeds is asked
about them. Then heads of packs learn CROP, which the encoder has not seen, from the numbers of the published encoder,
of the trained one, and of one whose weights are the means of both. Printed for each: names right; other things and
look-alikes that pass where nine in ten of the held own pictures do. Other things and look-alikes:
``other_things.toml``. With ``insects`` the leaves of all crops are learnt, and packs are of all 17 kinds of the pool
``pests``, which has no look-alikes to test. ``--published``: the encoder that ``build_backbone.py --out DIR`` writes.
``--rate``: learning rate of the encoder. Maps below the last blocks are computed once and kept in ``--kept``. ``--out``
writes the trained encoder, in half precision, and ``--without CROP`` leaves out the leaves of further crops: encoders
with which ``measure_look_alikes.py`` measures packs.
"""

import argparse
import copy
import io
import math
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from measure_look_alikes import GIVEN, HELD, LISTED, MOST_LEARNT, other_things
from measure_packs import LEAF_CROPS, few_of_each
from nets import pool
from nets.inner import BELOW_LAST, InnerEncoder, encoded
from numpy.typing import NDArray
from onnx import numpy_helper
from PIL import Image, ImageOps
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit
from torch import Tensor, nn
from torch.nn import functional
from train_weed_net import split_rows

from agrotools_tools.recognition.net import NEGATIVE, shrunk_once
from agrotools_tools.recognition.pack_heads import (
    TrainingData,
    fit_look_alikes,
    fit_names,
    fit_strangers,
)
from agrotools_tools.recognition.strangers import Strangers

SEED = 17
BATCH = 32
MOST_OF_EPOCH = 3000
"""Pictures of each task in an epoch, drawn anew for each: about as many as there are leaves."""
HEAD_RATE = 3e-3
"""Learning rate of the task heads, which begin at nothing."""
DECAY = 0.05
AVERAGED = 0.5
"""Share of the trained weights in the averaged encoder; fixed before anything was measured."""
STRENGTH = 10.0
"""Inverse penalty strength of the heads of names, held: the middle one of those that packs try."""
DRAWS = 5
"""Draws of the pictures that a pack learns and of those held out."""
PASSING = 0.9
"""Share of the held own pictures that a limit accepts, where other things are counted."""
STRANGERS_OF_KIND = 60
INSECTS, INSECT_PACK = "insects", "beetles and crickets"
"""All insects of the pool, and the pack of insects whose other things are theirs."""
Floats = NDArray[np.float32]


class LastBlocks(nn.Module):
    """The encoder above ``BELOW_LAST``, with the weights of a file: maps (n, 192, 7, 7) as numbers (n, 1280)."""

    RESIDUAL = (12, 13, 14)
    LAST = 15
    LAYERS = ("_expand_conv", "_depthwise_conv", "_project_conv")
    HEAD = "_conv_head"

    def __init__(self, published: Path) -> None:
        super().__init__()
        weights = _weights_of(published)
        self.blocks = nn.ModuleList()
        for number in (*self.RESIDUAL, self.LAST):
            expand, depthwise, project = (
                _convolution(weights, f"_blocks.{number}.{layer}") for layer in self.LAYERS
            )
            self.blocks.append(nn.Sequential(expand, nn.ReLU6(), depthwise, nn.ReLU6(), project))
        self.head = _convolution(weights, self.HEAD)

    def forward(self, maps: Tensor) -> Tensor:
        *residual, last = self.blocks
        for block in residual:
            maps = maps + block(maps)
        return functional.relu6(self.head(last(maps))).mean(dim=(2, 3))

    def averaged(self, other: "LastBlocks") -> "LastBlocks":
        """Return new blocks with weights between these and those of ``other``, ``AVERAGED`` of the latter."""
        made, learnt = copy.deepcopy(self), other.state_dict()
        made.load_state_dict(
            {
                name: torch.lerp(own, learnt[name], AVERAGED)
                for name, own in self.state_dict().items()
            }
        )
        return made

    def weights(self) -> dict[str, Tensor]:
        """Return the weights by their names in the graph of the encoder."""
        layers: dict[str, Any] = {self.HEAD: self.head}
        for number, block in zip((*self.RESIDUAL, self.LAST), self.blocks, strict=True):
            convolutions = [layer for layer in block.modules() if isinstance(layer, nn.Conv2d)]
            for name, layer in zip(self.LAYERS, convolutions, strict=True):
                layers[f"_blocks.{number}.{name}"] = layer
        found: dict[str, Tensor] = {}
        for name, layer in layers.items():
            found[f"{name}.weight"], found[f"{name}.bias"] = layer.weight, layer.bias
        return found


def write_encoder(body: LastBlocks, published: Path, path: Path) -> None:
    """Write the published encoder with the last blocks of ``body``, rounded as that one is."""
    model = onnx.load(published)
    learnt = body.weights()
    for one in model.graph.initializer:
        weight = learnt.pop(one.name.removesuffix(".half"), None)
        if weight is not None:
            values = weight.detach().numpy().astype(numpy_helper.to_array(one).dtype)
            one.CopyFrom(numpy_helper.from_array(values, one.name))
    if learnt:
        raise SystemExit(f"the encoder has no {', '.join(learnt)}")
    path.write_bytes(model.SerializeToString(deterministic=True))


def _weights_of(published: Path) -> dict[str, Tensor]:
    model = onnx.load(published)
    return {
        one.name.removesuffix(".half"): torch.tensor(numpy_helper.to_array(one).astype(np.float32))
        for one in model.graph.initializer
    }


def _convolution(weights: dict[str, Tensor], name: str) -> nn.Conv2d:
    kernel = weights[f"{name}.weight"]
    out, inner, side, _ = kernel.shape
    groups = out if inner == 1 else 1
    made = nn.Conv2d(inner * groups, out, side, padding=side // 2, groups=groups)
    made.weight.data, made.bias.data = kernel, weights[f"{name}.bias"]  # type: ignore[union-attr]
    return made


class Task(NamedTuple):
    """A pool to learn. ``maps``: of the pictures and of their mirror images. ``places``: those that are learnt."""

    maps: Sequence[NDArray[np.float16]]
    classes: NDArray[np.int64]
    places: NDArray[np.int64]

    def batch(self, some: NDArray[np.int64], draw: np.random.Generator) -> tuple[Tensor, Tensor]:
        mirrored = draw.integers(0, 2, len(some))
        maps = np.stack(
            [self.maps[side][place] for side, place in zip(mirrored, some, strict=True)]
        )
        return torch.from_numpy(maps).float(), torch.from_numpy(self.classes[some])


def task_of(folder: Path, rows: list[pool.Row], learnt: Sequence[bool], kept: Path) -> Task:
    maps = [maps_of(folder, rows, kept, mirrored=mirrored) for mirrored in (False, True)]
    labels = np.array([row.label for row in rows])
    return Task(maps, np.unique(labels, return_inverse=True)[1], np.flatnonzero(learnt))


def maps_of(
    folder: Path, rows: list[pool.Row], kept: Path, *, mirrored: bool = False
) -> NDArray[np.float16]:
    images = [row.image for row in rows]
    return encoded(folder, images, [BELOW_LAST], kept, mirrored=mirrored)[0]


def trained(
    published: Path, leaves: Task, weeds: Task, epochs: int, rate: float
) -> tuple[LastBlocks, nn.Linear]:
    """Return the last blocks after learning both tasks at once, and the head of weeds; the rate falls by half a
    cosine."""
    torch.manual_seed(SEED)
    draw = np.random.default_rng(SEED)
    body = LastBlocks(published).to(memory_format=torch.channels_last)
    width = body.head.out_channels
    heads = [nn.Linear(width, int(task.classes.max()) + 1) for task in (leaves, weeds)]
    parts = [
        {"params": [*body.parameters()], "lr": rate},
        {"params": [one for head in heads for one in head.parameters()], "lr": HEAD_RATE},
    ]
    optimiser = torch.optim.AdamW(parts, weight_decay=DECAY)
    steps = epochs * (len(leaves.places) // BATCH)
    falling = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: 0.5 * (1 + math.cos(math.pi * min(1.0, step / steps)))
    )
    for epoch in range(epochs):
        losses = []
        for batches in zip(
            *(_batches(task, len(leaves.places), draw) for task in (leaves, weeds)), strict=False
        ):
            optimiser.zero_grad()
            loss = torch.zeros(())
            for task, head, some in zip((leaves, weeds), heads, batches, strict=True):
                maps, classes = task.batch(some, draw)
                with torch.autocast("cpu", torch.bfloat16):
                    numbers = body(maps.to(memory_format=torch.channels_last))
                loss = loss + functional.cross_entropy(head(numbers.float()), classes)
            loss.backward()
            optimiser.step()
            falling.step()
            losses.append(float(loss.detach()))
        print(f"epoch {epoch + 1} of {epochs}: loss {np.mean(losses):.3f}", flush=True)
    return body, heads[1]


def _batches(task: Task, limit: int, draw: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Yield the places of an epoch in batches, at most ``limit`` of them."""
    order = draw.permutation(task.places)[: min(limit, MOST_OF_EPOCH)]
    for start in range(0, len(order) - BATCH + 1, BATCH):
        yield order[start : start + BATCH]


def numbers_of(body: LastBlocks, maps: NDArray[np.float16]) -> Floats:
    """Return the numbers of pictures, float32 (n, 1280)."""
    found = [np.zeros((0, body.head.out_channels), np.float32)]
    with torch.inference_mode():
        for start in range(0, len(maps), BATCH):
            batch = maps[start : start + BATCH].astype(np.float32)
            found.append(body(torch.from_numpy(batch)).numpy())
    return np.concatenate(found)


class Judged(NamedTuple):
    """What packs on one encoder make of held pictures, over all draws. ``right``: (n,), by own picture."""

    right: NDArray[np.bool_]
    others: list[float]
    others_area: list[float]
    look_alikes: list[float]
    look_alikes_area: list[float]


class Subject(NamedTuple):
    """Maps of the collection that is left out, and of what its packs meet."""

    own: NDArray[np.float16]
    labels: NDArray[np.str_]
    groups: NDArray[np.str_]
    strangers: NDArray[np.float16]
    look_alikes: NDArray[np.float16]
    look_alike_groups: NDArray[np.str_]
    others: NDArray[np.float16]


def subject_of(crop: str, pools: Path, data: Path, kept: Path) -> Subject:
    listed = tomllib.loads(LISTED.read_text(encoding="utf-8"))
    entries = {one["pack"]: one for one in listed["look_alikes"]}
    rows, weeds = (pool.read_rows(pools / name) for name in ("leaf_disease", "weeds"))
    maps = maps_of(pools / "leaf_disease", rows, kept)
    of_weeds = maps_of(pools / "weeds", weeds, kept)
    labels = np.array([row.label for row in rows])
    crops = np.array([row.fields["crop"] for row in rows])
    groups = np.array([f"{row.fields['crop']} {row.group}" for row in rows])
    other_labels = [] if crop == INSECTS else entries[crop]["other"]
    hidden = {crop, *(label.partition("_")[0] for label in other_labels)}
    draw = np.random.default_rng(SEED)
    of_kinds = [maps[_some(draw, crops == other)] for other in LEAF_CROPS if other not in hidden]
    is_negative = np.array([row.label == NEGATIVE for row in weeds])
    of_kinds += [of_weeds[_some(draw, kind)] for kind in (is_negative, ~is_negative)]
    other = np.isin(labels, other_labels)
    few = {row["image"] for row in few_of_each([row.fields for row in rows])}
    other &= np.array([row.image in few for row in rows])
    encoder = InnerEncoder([BELOW_LAST])
    pack = INSECT_PACK if crop == INSECTS else crop
    contents = other_things(listed, pack, pools, data)
    others = np.stack([encoder.maps(_pixels(one))[0].astype(np.float16) for one in contents])
    if crop == INSECTS:
        insects = pool.read_rows(pools / "pests")
        own = (
            maps_of(pools / "pests", insects, kept),
            np.array([row.label for row in insects]),
            np.array([row.group for row in insects]),
        )
    else:
        is_own = np.isin(labels, entries[crop]["own"])
        own = maps[is_own], labels[is_own], groups[is_own]
    return Subject(
        *own,
        np.concatenate(of_kinds),
        maps[other],
        groups[other],
        others,
    )


def _some(draw: np.random.Generator, chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.sort(draw.permutation(np.flatnonzero(chosen))[:STRANGERS_OF_KIND])


def _pixels(content: bytes) -> NDArray[np.uint8]:
    with Image.open(io.BytesIO(content)) as picture:
        return shrunk_once(np.asarray(ImageOps.exif_transpose(picture).convert("RGB")))


def judged(body: LastBlocks, subject: Subject) -> tuple[Judged, NDArray[np.str_]]:
    """Return what packs on an encoder make of the subject, and the group of each judged own picture."""
    own, strange, look, others = (
        numbers_of(body, maps)
        for maps in (subject.own, subject.strangers, subject.look_alikes, subject.others)
    )
    names = tuple(np.unique(subject.labels).tolist())
    classes = np.array([names.index(label) for label in subject.labels])
    data = TrainingData(own, (own.shape[1],), classes, tuple(subject.groups.tolist()), names, ())
    strangers = Strangers(strange, np.zeros(len(strange), np.int64), ("strangers",))
    right, held_groups = [], []
    found = Judged(np.zeros(0, np.bool_), [], [], [], [])
    split = GroupShuffleSplit(DRAWS, test_size=HELD, random_state=SEED)
    for number, (rest, held) in enumerate(split.split(own, classes, subject.groups)):
        draw = np.random.default_rng(number)
        learnt = draw.permutation(rest)[:MOST_LEARNT]
        right.append(
            fit_names(data, learnt, STRENGTH).logits(own[held]).argmax(axis=1) == classes[held]
        )
        held_groups.append(subject.groups[held])
        head = fit_strangers(data, learnt, strangers)
        _add(found.others, found.others_area, head.odds(own[held]), head.odds(others))
        if not len(look):
            continue
        given = draw.permutation(len(look))[:GIVEN]
        left = ~np.isin(subject.look_alike_groups, subject.look_alike_groups[given])
        few = Strangers(look[given], np.zeros(len(given), np.int64), ("look-alikes",))
        head = fit_look_alikes(data, learnt, few)
        _add(found.look_alikes, found.look_alikes_area, head.odds(own[held]), head.odds(look[left]))
    return found._replace(right=np.concatenate(right)), np.concatenate(held_groups)


def _add(
    passing: list[float], areas: list[float], own: NDArray[np.float64], others: NDArray[np.float64]
) -> None:
    """Note the share of others that pass where ``PASSING`` of the own do, and the area under the curve."""
    passing.append(float((others <= np.quantile(own, PASSING)).mean()))
    is_other = np.repeat([0, 1], [len(own), len(others)])
    areas.append(float(roc_auc_score(is_other, np.concatenate([own, others]))))


def interval_by_group(values: Floats, groups: NDArray[np.str_]) -> tuple[float, float]:
    """Return the 95 % interval of a mean by drawing whole groups."""
    _, number = np.unique(groups, return_inverse=True)
    sums, counts = np.bincount(number, values), np.bincount(number)
    draw = np.random.default_rng(0)
    means = []
    for _ in range(2000):
        drawn = draw.integers(0, len(sums), len(sums))
        means.append(sums[drawn].sum() / counts[drawn].sum())
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("crop", choices=(*LEAF_CROPS, INSECTS))
    parser.add_argument("--pools", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kept", type=Path, required=True)
    parser.add_argument("--published", type=Path, required=True)
    parser.add_argument("--without", choices=LEAF_CROPS, nargs="*", default=[])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--out", type=Path, help="file for the trained encoder")
    options = parser.parse_args()
    subject = subject_of(options.crop, options.pools, options.data, options.kept)
    folder = options.pools / "leaf_disease"
    rows = pool.read_rows(folder)
    left_out = {options.crop, *options.without}
    leaves = task_of(
        folder, rows, [row.fields["crop"] not in left_out for row in rows], options.kept
    )
    folder = options.pools / "weeds"
    rows = pool.read_rows(folder)
    learnt = np.array(split_rows(rows, "days")[0]) == "learn"
    weeds = task_of(folder, rows, learnt.tolist(), options.kept)
    body, weed_head = trained(options.published, leaves, weeds, options.epochs, options.rate)
    if options.out:
        write_encoder(body, options.published, options.out)
    numbers = torch.from_numpy(numbers_of(body, weeds.maps[0][~learnt]))
    with torch.inference_mode():
        right = weed_head(numbers).argmax(1).numpy() == weeds.classes[~learnt]
    low, high = interval_by_group(
        right.astype(np.float32), np.array([row.group for row in rows])[~learnt]
    )
    print(
        f"weeds on days left out, right: {right.mean():.3f} ({low:.3f} to {high:.3f}, by day) of {len(right)}"
    )
    frozen = LastBlocks(options.published)
    encoders = {"frozen": frozen, "trained": body, "averaged": frozen.averaged(body)}
    results = {name: judged(encoder, subject) for name, encoder in encoders.items()}
    for name, (found, _) in results.items():
        look_alikes = (
            f"; look-alikes that pass {np.mean(found.look_alikes):.3f}, area {np.mean(found.look_alikes_area):.3f}"
            if found.look_alikes
            else ""
        )
        print(
            f"{options.crop}, {name}: names right {found.right.mean():.3f} of {len(found.right)}; "
            f"other things that pass {np.mean(found.others):.3f} of {len(subject.others)}, area "
            f"{np.mean(found.others_area):.3f}{look_alikes}"
        )
    frozen_right, groups = results["frozen"][0].right, results["frozen"][1]
    for name in ("trained", "averaged"):
        gain = results[name][0].right.astype(np.float32) - frozen_right
        low, high = interval_by_group(gain, groups)
        print(
            f"{options.crop}, {name}: names right, gain {gain.mean():+.3f} ({low:+.3f} to {high:+.3f}, by group)"
        )


if __name__ == "__main__":
    main()
