"""Measure how many thin drawn rectangles ``extract_marked_region`` finds after a picture is saved as a JPEG.

Figures of docs/accuracy.md, "extract_marked_region": marks with thin lines.

    python performance/thin_marks.py DATA [--pictures 60] [--false]

``DATA`` holds folders of photographs (``DATASET/images``). On each of some photographs one rectangle is drawn with
Pillow's ``ImageDraw.rectangle``, whose width is the real one, and the picture is saved as PNG and as JPEG of quality 90
and 75 with colours at half resolution (4:2:0). A mark counts as found if a box overlaps it by more than half (IoU).
With ``--false``, marks found on the photographs without a mark are counted, too.
"""

import argparse
import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "studies"))

from accuracy.extract_marked_region import LEAST_SIDE_PX, find_photos
from agrotools.core import ToolError
from agrotools.text.agreement_values import box_iou
from agrotools.vision import Box
from agrotools.vision.reading import RgbImage, read_image
from agrotools_tools.marks import MarkColour
from agrotools_tools.marks.measure import PURE_COLOURS, find_marks_in_large

WIDTHS = (2, 3, 4, 6)
COLOURS: tuple[MarkColour, ...] = ("blue", "yellow", "red", "green", "magenta", "cyan")
"""White is left out: it has no colour to lose."""
QUALITIES = {"PNG": None, "JPEG 90": 90, "JPEG 75": 75}
FOUND = 0.5
LEAST_PX, LEAST, MOST, MARGIN_PX = 24, 0.08, 0.6, 4
"""Sides of a rectangle, pixels and shares of those of the picture, and its distance from the edge: as in the study."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--pictures", type=int, default=60)
    parser.add_argument("--false", action="store_true", help="count false marks, too")
    options = parser.parse_args()
    paths = find_photos(options.data)
    large = [path for path in paths if min(Image.open(path).size) >= LEAST_SIDE_PX]
    places = np.linspace(0, len(large) - 1, options.pictures).astype(int)
    chosen = [large[place] for place in places]
    photos = [read_image(path) for path in chosen]
    print(f"{len(photos)} photographs, one rectangle each")
    for width in WIDTHS:
        for name, quality in QUALITIES.items():
            missed: list[str] = []
            for number, photo in enumerate(photos):
                colour = COLOURS[number % len(COLOURS)]
                pixels, box = marked(photo, colour, width, quality, seed=number)
                if not is_found(pixels, box):
                    missed.append(colour)
            by_colour = ", ".join(
                f"{each} {missed.count(each)}" for each in COLOURS if each in missed
            )
            found = len(photos) - len(missed)
            print(f"{width} px, {name}: {found} found; missed: {by_colour or 'none'}", flush=True)
    if options.false:
        false = [path for path in paths if _marks_on(path)]
        print(f"false marks on {len(false)} of {len(paths)} photographs")
        for path in false:
            print(f"  {path.relative_to(options.data)}")


def marked(
    photo: RgbImage, colour: MarkColour, width: int, quality: int | None, seed: int
) -> tuple[np.ndarray, Box]:
    """Return a picture with one rectangle, saved and read again, and the bounds of the rectangle."""
    draw = np.random.default_rng(seed)
    across, down = (
        int(draw.integers(max(LEAST_PX, round(LEAST * side)), round(MOST * side)))
        for side in (photo.width, photo.height)
    )
    x0 = int(draw.integers(MARGIN_PX, photo.width - across - MARGIN_PX))
    y0 = int(draw.integers(MARGIN_PX, photo.height - down - MARGIN_PX))
    image = Image.fromarray(photo.pixels)
    # The corners are the first and the last pixel of the rectangle; the line grows inwards.
    corners = (x0, y0, x0 + across, y0 + down)
    ImageDraw.Draw(image).rectangle(corners, outline=PURE_COLOURS[colour], width=width)
    box = (x0, y0, x0 + across + 1, y0 + down + 1)
    if quality is None:
        return np.asarray(image), box
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality, subsampling=2)
    return np.asarray(Image.open(buffer).convert("RGB")), box


def is_found(pixels: np.ndarray, box: Box) -> bool:
    """Return True if a mark that is found is the one drawn."""
    marks, _ = find_marks_in_large(pixels)
    return any(box_iou(mark.box, box) > FOUND for mark in marks)


def _marks_on(path: Path) -> bool:
    try:
        return bool(find_marks_in_large(read_image(path).pixels)[0])
    except ToolError:
        return False


if __name__ == "__main__":
    main()
