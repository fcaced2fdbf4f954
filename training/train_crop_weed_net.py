"""Train the net by which ``measure_crop_weed_area`` parts crop from weeds in photographs like those it has seen.

    python training/train_crop_weed_net.py --pool ../shared/train --test-data ../shared/data --work DIR

Needs the group ``train-nets`` and agrotools itself, whose plants (by colour) the net parts. Learns from a peanut field
in true colours, holds an eighth of the training blocks back to choose how strange a picture may be, and reports on the
pool's validation blocks. Seeds are fixed, each epoch has its own, and ``--resume`` goes on from the last whole epoch.
The data is share-alike: so are the weights, which lie in a file of their own.
"""

import io
import logging
import math
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nets import pool
from nets.card import overlap_lines, share
from nets.export import export_onnx, input_of, latency_ms, session_of, write_description
from nets.learning import Schedule, learn
from nets.model import Shape, parameters_of
from nets.recipe import begin, parser_of
from nets.segmentation import Masked, Segmenter, Strangeness, Windows, padded, segmentation_loss, windows_of
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from agrotools.vision.vegetation import choose_index, segment

CLASSES = ("soil", "crop", "weed")
SOIL, CROP, WEED = range(3)
SIZE = (252, 336)
WEIGHTS = (0.5, 1.0, 2.5)
"""Of the classes in the loss: weeds are few and small."""
KEEP = 0.95
LICENCE = (
    "Peanut-dataset (github.com/ptdkhoa/Peanut-dataset, commit ec8e68d19b15487c56a6cff6f309f822861b05f9), "
    "CC BY-SA 4.0, by Tran and Phan (IEEE Access 11, 2023). The licence is share-alike: these weights are "
    "CC BY-SA 4.0 too."
)
FAILURES = (
    "One crop, one region, seedlings on light soil seen from about a metre above. Of other crops it knows nothing: "
    "what looks unlike its training pictures is refused by the strangeness, which was never tried on seedlings of "
    "other crops under the same light, since there are no pictures of them here.",
    "Weeds of a few pixels are lost; grass leaves lose their tips.",
    "Weeds as large as the crop, with leaves like those of the crop, were hardly seen in training.",
)
log = logging.getLogger("train_crop_weed_net")
Classes = NDArray[np.uint8]


@dataclass(frozen=True)
class Plan(Schedule):
    shape: Shape = field(default_factory=lambda: Shape(stem=16, widths=(24, 48, 80, 112), depths=(1, 1, 2, 1)))
    windows: Windows = field(default_factory=Windows)


PLAN = Plan(epochs=32, seed=41, batch=12, rate=2e-3, average=0.997, sides=((0.0, 192), (0.6, 256)))


def read_masked(folder: Path, rows: Sequence[pool.Row]) -> Masked:
    """All pictures as they lie or turned by a quarter, so that they are of one size: they are seen from above."""
    pictures = torch.empty((len(rows), 3, *SIZE), dtype=torch.uint8)
    masks = torch.empty((len(rows), *SIZE), dtype=torch.uint8)
    with zipfile.ZipFile(folder / "images_masks.zip") as archive:
        for number, row in enumerate(rows):
            with Image.open(io.BytesIO(archive.read(row.image))) as opened:
                picture = np.asarray(opened.convert("RGB"))
            with Image.open(io.BytesIO(archive.read(row.fields["mask"]))) as opened:
                mask = np.asarray(opened)
            if mask.shape != SIZE:
                picture, mask = np.rot90(picture), np.rot90(mask)
            pictures[number] = torch.from_numpy(picture.transpose(2, 0, 1).copy())
            masks[number] = torch.from_numpy(mask.copy())
    return Masked(pictures, masks)


def said_by_file(path: Path, pictures: Tensor) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Chances (n, classes, height, width) and strangeness (n,) of uint8 pictures, one at a time."""
    session, (height, width) = session_of(path), pictures.shape[2:]
    answers = [session.run(["chances", "strange"], {"image": padded(picture).numpy()}) for picture in pictures]
    chances = np.concatenate([one[0][:, :, :height, :width] for one in answers])
    return chances, np.concatenate([one[1] for one in answers]).astype(float)


def by_colour(pictures: Tensor, chances: NDArray[np.float32]) -> list[Classes]:
    """As the tool does: plants by their colour, each pixel of them crop or weed by the net."""
    found: list[Classes] = []
    for picture, some in zip(pictures.numpy(), chances, strict=True):
        bands: Any = dict(zip("RGB", picture, strict=True))
        plants = segment(choose_index("auto", bands), bands, np.ones(picture.shape[1:], bool)).mask
        found.append(np.where(plants, np.where(some[CROP] >= some[WEED], CROP, WEED), SOIL).astype(np.uint8))
    return found


def overlaps(found: Sequence[Classes], masks: Sequence[Classes]) -> NDArray[np.float64]:
    """Pixels in common and pixels in either (pictures, 2, 3): of plants, crop and weeds."""
    table = np.zeros((len(masks), 2, 3))
    for number, (one, two) in enumerate(zip(found, masks, strict=True)):
        for place, kinds in enumerate(((CROP, WEED), (CROP,), (WEED,))):
            mine, true = np.isin(one, kinds), np.isin(two, kinds)
            table[number, :, place] = (mine & true).sum(), (mine | true).sum()
    return table


def iou_figures(found: Sequence[Classes], masks: Sequence[Classes], groups: Sequence[str]) -> dict[str, Any]:
    """IoU of all pixels together and of each block of pictures that holds the class, and the error of weed shares."""
    table = overlaps(found, masks)
    names = sorted(set(groups))
    of_group = np.stack([table[[group == name for group in groups]].sum(0) for name in names])
    true = np.stack([overlaps(masks, masks)[[group == name for group in groups]].sum(0)[0] > 0 for name in names])
    shares = [
        [100 * (classes == WEED).sum() / max(1, (classes != SOIL).sum()) for classes in some] for some in (found, masks)
    ]
    together = table.sum(0)
    return {
        "n": len(masks),
        "blocks": len(names),
        **{
            name: {
                "iou": together[0, place] / together[1, place],
                "of_blocks": sorted(joint / either for joint, either in of_group[true[:, place], :, place]),
            }
            for place, name in enumerate(("plants", "crop", "weeds"))
        },
        "weed_share_error_points": float(np.abs(np.subtract(*shares)).mean()),
    }


def others_of(folder: Path, number: int = 150) -> dict[str, Tensor]:
    """Pictures of other things in the pool, in the size of these."""
    found: dict[str, Tensor] = {}
    for task, name, wanted in (
        ("weeds", "weeds of rangeland", lambda _: True),
        ("leaf_disease", "leaves", lambda row: row.fields["crop"] in ("bean", "chilli", "blackgram")),
        ("fruit_boxes", "orchards", lambda _: True),
    ):
        rows = [row for row in pool.read_rows(folder / task) if wanted(row)]
        some = rows[:: max(1, len(rows) // number)]
        found[name] = pool.read_pictures(folder / task, some, SIZE)
    return found


def model_card(description: dict[str, Any]) -> str:
    rows = [
        f"| {way} | {name} | {share(one[name]['iou'])} | {', '.join(map(share, one[name]['of_blocks']))} |"
        for way, one in description["figures"].items()
        for name in ("plants", "crop", "weeds")
    ]
    main, strange = description["figures"]["plants by colour, parted by the net"], description["strangeness"]
    refused = "; ".join(f"{kind} {share(one['share'])} of {one['n']}" for kind, one in strange["refused"].items())
    return "\n".join(
        [
            "# Model card: crop_weed",
            "",
            "Names pixels of field photographs in true colours: soil, crop (peanut seedlings) or weeds. Written by",
            f"`{description['recipe']}`.",
            "",
            f"- **What it is**: a residual network with a fine branch, {description['parameters']:,} parameters,",
            f"  trained from scratch for {description['epochs']} epochs (seed {description['seed']});",
            f"  {description['bytes']:,} bytes as ONNX, {description['latency_ms']} ms of one core for 336 x 256.",
            "- **Input**: RGB, longest side brought to 336 pixels, sides multiples of 32.",
            f"- **Data and licence of these weights**: {description['licence']}",
            f"- **Split**: {description['split']}",
            *overlap_lines(description["overlap"]),
            f"- **Strangeness**: a picture over {strange['threshold']:.3f} is refused; that keeps",
            f"  {share(strange['kept_of_known'])} of the pictures it was chosen on and {share(strange['kept'])} of",
            f"  those reported below. Refused of other pictures: {refused}.",
            "",
            f"## Figures on {main['n']} pictures of {main['blocks']} blocks not learnt from",
            "",
            "| how | of | IoU, all pixels together | IoU of each block |",
            "|---|---|---|---|",
            *rows,
            "",
            f"Share of weeds in the plants, mean absolute error: {main['weed_share_error_points']:.1f} points.",
            "",
            "## Where it fails",
            "",
            *(f"- {failure}" for failure in FAILURES),
            "",
        ]
    )


def main() -> None:
    options = parser_of("Train the crop and weed net.", Path("build/nets")).parse_args()
    overlap = begin(options, ("vegetation_masks",))
    plan = replace(PLAN, epochs=options.epochs or PLAN.epochs)
    folder = options.pool / "vegetation_masks"
    rows = pool.read_rows(folder)
    held = pool.halves(rows, lambda row: row.part == "train", 0.125, seed=5)
    parts = {
        "learn": [row for place, row in enumerate(rows) if row.part == "train" and place not in held],
        "calibrate": [row for place, row in enumerate(rows) if place in held],
        "report": [row for row in rows if row.part == "val"],
    }
    some = {part: read_masked(folder, own) for part, own in parts.items()}
    log.info("pictures: %s", {part: len(own) for part, own in parts.items()})
    masks = {part: list(own.masks.numpy()) for part, own in some.items()}

    def watch(net: nn.Module) -> dict[str, float]:
        net.eval()
        with torch.inference_mode():
            answers = [net(padded(picture))[0][0, :, : SIZE[0], : SIZE[1]] for picture in some["calibrate"].pictures]
        joint, either = overlaps([one.argmax(0).byte().numpy() for one in answers], masks["calibrate"]).sum(0)
        return dict(zip(("plants", "crop", "weeds"), (joint / either).tolist(), strict=True))

    torch.manual_seed(plan.seed)
    net = learn(
        plan,
        Segmenter(len(CLASSES), plan.shape),
        math.ceil(plan.windows.rounds * len(parts["learn"]) / plan.batch),
        lambda epoch, generator: windows_of(some["learn"], plan.windows, plan.batch, plan.side(epoch), generator),
        lambda output, target: segmentation_loss(output, target, WEIGHTS),
        watch,
        options.work,
        {"plan": asdict(plan), "learnt": len(parts["learn"])},
        resume=options.resume,
        minutes_cpu=options.pilot,
    )
    assert isinstance(net, Segmenter)
    net.eval()
    with torch.inference_mode():
        known = torch.cat([net(padded(picture))[1] for picture in some["learn"].pictures])
    path = options.out / "crop_weed.onnx"
    side = (256, 352)
    digest = export_onnx(Strangeness(net, known), side, ("chances", "strange"), path, any_size=True)
    chances, strange = said_by_file(path, some["report"].pictures)
    of_known = np.sort(said_by_file(path, some["calibrate"].pictures)[1])
    threshold = float(np.ceil(of_known[math.ceil(KEEP * len(of_known)) - 1] * 1e4) / 1e4)
    others = {kind: said_by_file(path, pictures)[1] for kind, pictures in others_of(options.pool).items()}
    groups = [row.group for row in parts["report"]]
    description: dict[str, Any] = {
        "name": "crop_weed",
        "recipe": "training/train_crop_weed_net.py",
        "weights": path.name,
        "sha256": digest,
        "bytes": path.stat().st_size,
        "parameters": parameters_of(net),
        "classes": list(CLASSES),
        "input": input_of(side)
        | {"shape": ["n", 3, "height", "width"], "resize": "longest side 336", "sides": "multiples of 32"},
        "outputs": {"chances": "of each class in each pixel", "strange": "about 1 for pictures like those learnt from"},
        "strangeness": {
            "threshold": threshold,
            "kept_of_known": float((of_known <= threshold).mean()),
            "kept": float((strange <= threshold).mean()),
            "refused": {
                kind: {"n": len(one), "share": float((one > threshold).mean())} for kind, one in others.items()
            },
        },
        "figures": {
            "plants by colour, parted by the net": iou_figures(
                by_colour(some["report"].pictures, chances), masks["report"], groups
            ),
            "net alone": iou_figures(list(chances.argmax(1).astype(np.uint8)), masks["report"], groups),
        },
        "latency_ms": latency_ms(path, side),
        "epochs": plan.epochs,
        "seed": plan.seed,
        "split": "the pool's, by blocks of ten neighbouring pictures; an eighth of its training blocks calibrates",
        "licence": LICENCE,
        "overlap": overlap,
    }
    write_description(options.out / "crop_weed.json", description)
    (options.out / "crop_weed.md").write_text(model_card(description))
    log.info(
        "written to %s: %s", options.out, {key: one["weeds"]["iou"] for key, one in description["figures"].items()}
    )


if __name__ == "__main__":
    main()
