"""Train the fruit net that ``count_objects`` ships: apples, pears, cherries and tomatoes as boxes with scores.

Makes src/agrotools_tools/data/nets/fruits.*.

    python training/train_fruit_net.py --pool ../shared/train --test-data ../shared/data --work DIR

Needs the group ``train-nets``. Learns from tiles of 416 pixels (orchard tiles of 640 pixels, shrunk), holds an eighth
of the training photographs back to choose the threshold of each fruit (best F1), and reports on the pool's validation
photographs. ``calibrate_fruit_counts.py`` then calibrates counts. Seeds are fixed, each epoch has its own, and
``--resume`` goes on from the last whole epoch.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from nets import pool
from nets.augment import Changes
from nets.card import overlap_lines, share
from nets.detection import Decodable, Detector, Drawn, Found, decode, detection_loss, draw, matches
from nets.export import export_onnx, input_of, latency_ms, session_of, write_description
from nets.learning import Schedule, learn
from nets.model import Shape, parameters_of
from nets.recipe import begin, parser_of
from nets.tiles import Tile, Window, cut_batch, read_tiles
from torch import Tensor, nn

FRUITS = ("apple", "pear", "cherry", "tomato")
SIDE = 416
THRESHOLDS = tuple(round(0.1 + 0.01 * step, 2) for step in range(71))
LICENCE = (
    "CC BY 4.0: AppleBBCH81, AppleBBCH76, Pear640, CherryBBCH81, CherryBBCH72 and tomato_plant (Mendeley 8h3s6jkyff), "
    "all at github.com/ai-agriculture-circuits-and-systems."
)
FAILURES = (
    "Fruit of the row behind is often not labelled, so what it finds there counts as false and precision reads low.",
    "Cherries are 5 to 25 pixels wide; many lie under leaves or touch.",
    "Pears come from 16 photographs, tomatoes from one plant factory under coloured light: expect less elsewhere.",
    "It has seen tiles of orchard photographs at one scale: fruit much larger or smaller than here is missed.",
)
log = logging.getLogger("train_fruit_net")


@dataclass(frozen=True)
class Plan(Schedule):
    shape: Shape = field(
        default_factory=lambda: Shape(stem=16, widths=(32, 64, 112, 160), depths=(1, 2, 2, 1))
    )
    changes: Changes = field(default_factory=lambda: Changes(gain=0.1, brightness=0.25))
    window: Window = field(default_factory=Window)
    rounds: int = 2
    """Windows cut from a tile in an epoch."""


PLAN = Plan(
    epochs=60, seed=31, batch=12, rate=1.5e-3, average=0.997, sides=((0.0, 256), (0.7, 320))
)


def batches_of(
    plan: Plan, tiles: Sequence[Tile], epoch: int, generator: torch.Generator
) -> Iterator[tuple[Tensor, Drawn]]:
    """Each fruit's tiles are drawn as often as the square root of their number says."""
    numbers = {fruit: sum(tile.label == fruit for tile in tiles) for fruit in FRUITS}
    weight = torch.tensor([numbers[tile.label] ** -0.5 for tile in tiles])
    order = torch.multinomial(
        weight, plan.rounds * len(tiles), replacement=True, generator=generator
    )
    for places in order.split(plan.batch):
        some = [tiles[place] for place in places.tolist()]
        images, boxes, classes = cut_batch(
            some, plan.side(epoch), plan.window, plan.changes, generator
        )
        yield images, draw(boxes, classes, len(FRUITS), plan.side(epoch))


def of_label(found: Found, fruit: str, least: float) -> Found:
    """Those of the fruit that a caller asks for."""
    wanted = (found.classes == FRUITS.index(fruit)) & (found.scores >= least)
    return Found(found.boxes[wanted], found.scores[wanted], found.classes[wanted])


def found_by_net(net: nn.Module, tiles: Sequence[Tile]) -> list[Found]:
    net.eval()
    found: list[Found] = []
    with torch.inference_mode():
        for tile in tiles:
            heat, distances = Decodable(net)(tile.picture[None].float() / 255)  # type: ignore[arg-type]
            found.append(decode(heat[0].numpy(), distances[0].numpy(), THRESHOLDS[0]))
    return found


def found_by_file(path: Path, tiles: Sequence[Tile]) -> list[Found]:
    session = session_of(path)
    found: list[Found] = []
    for tile in tiles:
        heat, distances = session.run(
            ["heat", "distances"], {"image": (tile.picture[None].float() / 255).numpy()}
        )
        found.append(decode(heat[0], distances[0], THRESHOLDS[0]))
    return found


def figures(
    tiles: Sequence[Tile], found: Sequence[Found], fruit: str, least: float
) -> dict[str, float]:
    """Precision, recall and F1 at IoU 0.5 in tiles that hold the fruit."""
    right = said = true = 0
    own_tiles = [(tile, one) for tile, one in zip(tiles, found, strict=True) if tile.label == fruit]
    for tile, everything in own_tiles:
        own = of_label(everything, fruit, least)
        right += int(matches(own, tile.boxes).sum())
        said += len(own.boxes)
        true += len(tile.boxes)
    precision, recall = right / max(1, said), right / max(1, true)
    return {
        "tiles": len(own_tiles),
        "fruits": true,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(1e-9, precision + recall),
    }


def thresholds_of(tiles: Sequence[Tile], found: Sequence[Found]) -> dict[str, float]:
    """Return the score with the best F1 of each fruit."""
    return {
        fruit: max(THRESHOLDS, key=lambda least: figures(tiles, found, fruit, least)["f1"])
        for fruit in FRUITS
    }


def model_card(description: dict[str, Any]) -> str:
    rows = [
        f"| {fruit} | {int(one['tiles'])} | {int(one['fruits'])} | {share(one['precision'])} | {share(one['recall'])} "
        f"| {share(one['f1'])} |"
        for fruit, one in description["figures"].items()
    ]
    return "\n".join(
        [
            f"# Model card: {description['name']}",
            "",
            "Finds apples, pears, cherries and tomatoes as boxes with scores. Written by",
            f"`{description['recipe']}`.",
            "",
            "- **What it is**: a residual network with heat maps of centres,",
            f"  {description['parameters']:,} parameters, trained from scratch for",
            f"  {description['epochs']} epochs (seed {description['seed']});",
            f"  {description['bytes']:,} bytes as ONNX, {description['latency_ms']} ms of one core for 416 x 416.",
            "- **Input**: RGB, sides multiples of 32; scale as of orchard tiles of 640 pixels shrunk to 416.",
            f"- **Data**: {description['tiles']} tiles. {description['licence']}",
            f"- **Split**: {description['split']}",
            *overlap_lines(description["overlap"]),
            f"- **Thresholds of the score**: {description['thresholds']} (best F1).",
            "",
            "## Figures on photographs not learnt from (IoU 0.5)",
            "",
            "| fruit | tiles | fruits | precision | recall | F1 |",
            "|---|---|---|---|---|---|",
            *rows,
            "",
            "## Where it fails",
            "",
            *(f"- {failure}" for failure in FAILURES),
            "",
        ]
    )


def main() -> None:
    options = parser_of("Train the fruit net.", Path("build/nets")).parse_args()
    overlap = begin(options, ("fruit_boxes",))
    plan = replace(PLAN, epochs=options.epochs or PLAN.epochs)
    tiles = read_tiles(options.pool / "fruit_boxes", FRUITS)
    held = pool.halves(tiles, lambda tile: tile.part == "train", 0.125, seed=5)
    calibrate = [tile for place, tile in enumerate(tiles) if place in held]
    report = [tile for tile in tiles if tile.part == "val"]
    learnt = [
        tile for place, tile in enumerate(tiles) if tile.part == "train" and place not in held
    ]
    watched = [tile for tile in report if tile.picture.shape[1:] == (SIDE, SIDE)][::3]
    log.info(
        "%d tiles to learn from, %d to calibrate on, %d to report",
        len(learnt),
        len(calibrate),
        len(report),
    )

    def watch(net: nn.Module) -> dict[str, float]:
        found = found_by_net(net, watched)
        return {f"{fruit}_f1": figures(watched, found, fruit, 0.3)["f1"] for fruit in FRUITS}

    torch.manual_seed(plan.seed)
    net = learn(
        plan,
        Detector(len(FRUITS), plan.shape),
        math.ceil(plan.rounds * len(learnt) / plan.batch),
        lambda epoch, generator: batches_of(plan, learnt, epoch, generator),
        detection_loss,
        watch,
        options.work,
        {"plan": asdict(plan), "learnt": len(learnt)},
        resume=options.resume,
        minutes_cpu=options.pilot,
    )
    assert isinstance(net, Detector)
    path = options.out / "fruits.onnx"
    digest = export_onnx(Decodable(net), (SIDE, SIDE), ("heat", "distances"), path, any_size=True)
    thresholds = thresholds_of(calibrate, found_by_file(path, calibrate))
    found = found_by_file(path, report)
    description: dict[str, Any] = {
        "name": "fruits",
        "recipe": "training/train_fruit_net.py",
        "weights": path.name,
        "sha256": digest,
        "bytes": path.stat().st_size,
        "parameters": parameters_of(net),
        "classes": list(FRUITS),
        "input": input_of((SIDE, SIDE))
        | {"shape": ["n", 3, "height", "width"], "sides": "multiples of 32"},
        "stride": 4,
        "outputs": {
            "heat": "score of a box about this place, 0 beside a peak",
            "distances": "left, top, right, bottom",
        },
        "thresholds": thresholds,
        "figures": {fruit: figures(report, found, fruit, thresholds[fruit]) for fruit in FRUITS},
        "latency_ms": latency_ms(path, (SIDE, SIDE)),
        "tiles": len(tiles),
        "epochs": plan.epochs,
        "seed": plan.seed,
        "split": "the pool's, by photograph (tomato: look-alike set); an eighth of its training part calibrates",
        "licence": LICENCE,
        "overlap": overlap,
    }
    write_description(options.out / "fruits.json", description)
    (options.out / "fruits.md").write_text(model_card(description))
    for fruit in FRUITS:
        log.info("%s: %s", fruit, description["figures"][fruit])


if __name__ == "__main__":
    main()
