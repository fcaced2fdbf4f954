"""How often near-duplicate pictures are found, and how often different ones are taken for such.

    python performance/near_duplicates.py DATA [--most N]

DATA is a folder of folders with photographs. Copies are made of each (JPEG at quality 50, half the size, brighter,
edges trimmed by 2 % and 5 %, mirrored); all pairs of different files are the other half. Pairs taken for
near-duplicates are printed with their names: look at them, two photos of one scene are in many collections.
"""

import argparse
import io
import itertools
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from agrotools.build.quality.checking import Look, look_of, near_pairs
from agrotools.core import ToolError
from agrotools.vision.reading import read_image

SUFFIXES = {".jpg", ".jpeg", ".png"}


def copies(picture: Image.Image) -> dict[str, Image.Image]:
    packed = io.BytesIO()
    picture.save(packed, "JPEG", quality=50)
    width, height = picture.size
    return {
        "JPEG quality 50": Image.open(io.BytesIO(packed.getvalue())),
        "half the size": picture.resize((max(1, width // 2), max(1, height // 2))),
        "15 % brighter": picture.point(lambda value: min(255, round(value * 1.15))),
        "trimmed by 2 %": ImageOps.crop(picture, round(0.02 * min(width, height))),
        "trimmed by 5 %": ImageOps.crop(picture, round(0.05 * min(width, height))),
        "mirrored": ImageOps.mirror(picture),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--most", type=int, default=2000)
    given = parser.parse_args()
    paths = sorted(
        path
        for path in given.data.rglob("*")
        if path.suffix.lower() in SUFFIXES and not {"masks", "mask", "depth"} & set(path.parts)
    )[: given.most]
    looks: list[Look] = []
    names: list[str] = []
    found: dict[str, list[bool]] = {}
    for path in paths:
        try:
            pixels = np.asarray(read_image(path).pixels)
        except ToolError:
            continue
        if (look := look_of(pixels)) is None:
            continue
        looks.append(look)
        names.append(str(path.relative_to(given.data)))
        for kind, copy in copies(Image.fromarray(pixels)).items():
            other = look_of(np.asarray(copy.convert("RGB")))
            found.setdefault(kind, []).append(other is not None and any(near_pairs([look, other])))
    for kind, hits in found.items():
        print(f"{kind}: {sum(hits)} of {len(hits)} copies found ({100 * np.mean(hits):.1f} %)")
    pairs = list(near_pairs(looks))
    all_pairs = len(list(itertools.combinations(range(len(looks)), 2)))
    print(f"{len(looks)} pictures, {all_pairs} pairs of different files, {len(pairs)} taken for near-duplicates")
    for first, second, alike in pairs:
        print(f"  {alike:.3f}  {names[first]}  {names[second]}")


if __name__ == "__main__":
    main()
