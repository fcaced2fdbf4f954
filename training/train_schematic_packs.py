"""Train the packs that ship for schematic drawings, and measure them: insects and weeds drawn by agrotools itself.

    python training/train_schematic_packs.py [--only pests|weeds] [--photos ../shared/data]

Needs the extra ``train``. Pictures are drawn from seeds that no benchmark of the default seed uses (those lie from
20,261,120 on), trained on as ``agrotools packs train`` does, and measured on drawings of other seeds and, with
``--photos``, on photographs, which must not be named. Writes ``src/agrotools/data/packs/schematic_<kind>/`` and the
card beside it.
"""

import argparse
import io
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import numpy as np
import orjson
from PIL import Image

from agrotools.build.scenes.grounds import NUISANCES
from agrotools.build.scenes.insects import SPECIES
from agrotools.build.scenes.pest_plates import make_marked_plate, make_pest_plate
from agrotools.build.scenes.scene import Difficulty, Scene
from agrotools.build.scenes.weed_plates import make_marked_weeds, make_weed_plate
from agrotools.build.scenes.weed_shapes import WEED_SHAPES
from agrotools.tools.recognition.confidence import wilson
from agrotools.tools.recognition.pack_training import LabelledImage, train_pack
from agrotools.tools.recognition.packs import PackInfo, read_pack
from agrotools.vision.reading import read_image

PACKS = Path(__file__).resolve().parents[1] / "src" / "agrotools" / "data" / "packs"
LICENCE = (
    "Learnt from drawings by agrotools, as the shipped nets see them; Apache-2.0, as agrotools. No photograph is among"
    " the drawings; what the nets learnt from is on their cards."
)
LEARN, MEASURE = 10_000_000, 20_000_000
"""First seeds of the drawings to learn from and of those to measure on."""
WHOLE, PARTS = 18, 9
"""Drawings of a species and difficulty to learn from: whole plates, and what an outline encloses."""
MEASURED = 6
"""Whole plates of a species and difficulty to measure on; half as many outlined ones."""
NAMED_FROM = 0.5
_LEVELS: tuple[Difficulty, ...] = (0, 1, 2, 3)
_PHOTOS = 200
Make = Callable[[int, Difficulty, str | None], Scene]
KINDS: dict[str, tuple[tuple[str, ...], Make, Make, tuple[str, ...]]] = {
    "pests": (
        tuple(insect.slug for insect in SPECIES),
        make_pest_plate,
        make_marked_plate,
        ("jute_pests", "deepweeds", "orchard_apples"),
    ),
    "weeds": (tuple(WEED_SHAPES), make_weed_plate, make_marked_weeds, ("deepweeds", "jute_pests", "cwfid")),
}


def pictures_of(
    kind: str, first: int, whole: int, parts: int, leave_out: str | None = None
) -> Iterator[tuple[np.ndarray, str, Difficulty, str]]:
    """Pictures as a camera would store them, with species, difficulty and "whole" or "outlined"."""
    species, make_whole, make_marked, _ = KINDS[kind]
    seed = first
    for slug in species:
        if slug == leave_out:
            continue
        for difficulty in _LEVELS:
            for number in range(whole + parts):
                seed += 1
                if number < whole:
                    yield (
                        stored(make_whole(seed, difficulty, slug).images["rgb"], difficulty),
                        slug,
                        difficulty,
                        "whole",
                    )
                    continue
                scene = make_marked(seed, difficulty, slug)
                x0, y0, x1, y1 = cast("list[int]", scene.truth["box"])
                picture = stored(scene.images["rgb"], difficulty)
                yield np.ascontiguousarray(picture[y0:y1, x0:x1]), slug, difficulty, "outlined"


def stored(rgb: np.ndarray, difficulty: Difficulty) -> np.ndarray:
    """After a JPEG of the difficulty's quality."""
    buffer = io.BytesIO()
    Image.fromarray(rgb).save(buffer, "JPEG", quality=NUISANCES[difficulty].jpeg)
    return np.asarray(Image.open(buffer).convert("RGB"))


def train(kind: str, folder: Path) -> PackInfo:
    labelled: list[LabelledImage] = []
    for number, (pixels, slug, _, _) in enumerate(pictures_of(kind, LEARN, WHOLE, PARTS)):
        path = folder / f"{number:05d}.png"
        Image.fromarray(pixels).save(path, compress_level=1)
        labelled.append(LabelledImage(path, slug, path.name))
    out = PACKS / f"schematic_{kind}"
    shutil.rmtree(out, ignore_errors=True)
    return train_pack(labelled, out, licence_note=LICENCE, progress=print)


def judged(kind: str, pixels: np.ndarray) -> tuple[str | None, bool]:
    """What the pack says of a picture, as the tools read it: the name or None, and whether it is known at all."""
    judgement = read_pack(PACKS / f"schematic_{kind}").judge(pixels)
    shares = judgement.probabilities()
    best = int(shares.argmax())
    named = judgement.is_known and float(shares[best]) >= NAMED_FROM
    return (judgement.classes[best] if named else None), judgement.is_known


def measure(kind: str) -> dict[str, dict[str, float]]:
    """Share of fresh drawings named right, named wrong and not named, by difficulty and by how they are shown."""
    counts: dict[str, list[int]] = {}
    for pixels, slug, difficulty, shown in pictures_of(kind, MEASURE, MEASURED, MEASURED // 2):
        named, _ = judged(kind, pixels)
        place = 0 if named == slug else (2 if named is None else 1)
        for key in (f"difficulty {difficulty}, {shown}", "all"):
            counts.setdefault(key, [0, 0, 0])[place] += 1
    return {key: figures(*found) for key, found in sorted(counts.items())}


def figures(right: int, wrong: int, none: int) -> dict[str, float]:
    total = right + wrong + none
    low, high = wilson(right, total)
    return {"n": total, "right": right / total, "low": low, "high": high, "wrong": wrong / total, "none": none / total}


def photos(kind: str, data: Path) -> dict[str, dict[str, float]]:
    """Photographs that the pack names all the same, by data set."""
    found: dict[str, dict[str, float]] = {}
    for name in KINDS[kind][3]:
        paths = sorted(path for path in (data / name).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
        if not paths:
            continue
        some = [paths[int(k)] for k in np.random.default_rng(0).permutation(len(paths))[:_PHOTOS]]
        named = [judged(kind, read_image(path).pixels) for path in some]
        wrong, known = sum(one is not None for one, _ in named), sum(known for _, known in named)
        found[name] = {"n": len(some), "named": wrong / len(some), "taken_for_known": known / len(some)}
    return found


def card(kind: str, info: PackInfo, fresh: dict[str, dict[str, float]], of_photos: dict[str, dict[str, float]]) -> str:
    own = info.figures
    size = (PACKS / f"schematic_{kind}" / "weights.npz").stat().st_size
    refused = "" if own.refused_of_left_out is None else f"{own.refused_of_left_out:.2f}"
    lines = [
        f"# Model card: schematic_{kind}",
        "",
        f"Names schematic drawings of {len(info.classes)} {kind} that agrotools makes itself,"
        " so that chains that begin with a name can be tested where no photograph may be shipped. It knows"
        " drawings only and says nothing of photographs. Written by `training/train_schematic_packs.py`.",
        "",
        "- **What it is**: a pack (a linear head on the embeddings of the shipped nets and on colour and texture),"
        f" {size:,} bytes.",
        f"- **Data**: {own.pictures} drawings (`build/scenes`), seeds from {LEARN}; a third are what an outline"
        " encloses.",
        f"- **Licence**: {info.licence_note}",
        f"- **Species**: {', '.join(name.replace('_', ' ') for name in info.classes)}.",
        f"- **Abstention**: familiarity of at least {info.threshold:.3f}, which keeps {own.kept:.2f} of the drawings"
        f" out of fold; {refused} of drawings of species left out of training are refused.",
        "",
        f"## Fresh drawings (seeds from {MEASURE})",
        "",
        "| drawings | n | named right (95 %) | named wrong | not named |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {int(one['n'])} | {one['right']:.3f} ({one['low']:.3f} to {one['high']:.3f}) "
            f"| {one['wrong']:.3f} | {one['none']:.3f} |"
            for name, one in fresh.items()
        ),
        "",
        "## Photographs, which must not be named",
        "",
        "| pictures | n | named all the same | taken for known |",
        "|---|---|---|---|",
        *(
            f"| {name.replace('_', ' ')} | {int(one['n'])} | {one['named']:.3f} | {one['taken_for_known']:.3f} |"
            for name, one in of_photos.items()
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple(KINDS))
    parser.add_argument("--photos", type=Path)
    parser.add_argument("--measure", action="store_true", help="measure the packs that are there")
    given = parser.parse_args()
    PACKS.mkdir(exist_ok=True)
    for kind in [given.only] if given.only else list(KINDS):
        if not given.measure:
            with tempfile.TemporaryDirectory() as folder:
                train(kind, Path(folder))
        info = read_pack(PACKS / f"schematic_{kind}").info
        fresh, of_photos = measure(kind), photos(kind, given.photos) if given.photos else {}
        (PACKS / f"schematic_{kind}.md").write_text(card(kind, info, fresh, of_photos), encoding="utf-8")
        sys.stdout.write(
            orjson.dumps({"fresh": fresh, "photos": of_photos}, option=orjson.OPT_INDENT_2).decode() + "\n"
        )


if __name__ == "__main__":
    main()
