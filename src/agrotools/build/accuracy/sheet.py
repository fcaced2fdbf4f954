"""Overlays of a bench for a person to look at: copies, and one contact sheet per tool and folder."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from agrotools.build.accuracy.studies import Planned

TILES = 20
"""A sheet shows at most this many overlays, evenly spread over those there are."""
_COLUMNS = 5
_TILE_PX = 480
_MARGIN_PX = 8


def keep_overlays(folder: Path, study: Planned, overlays: Sequence[Path], *, numbered: bool = False) -> Path:
    """Copy ``overlays`` to ``folder/TOOL/FOLDER/NNN_NAME`` and draw ``folder/TOOL_FOLDER.png``; returns the latter.

    ``numbered``: the study's number follows its folder, for a tool that has several studies on it.
    """
    # A folder of studies may have a readable name ("plants drawn here"); on disk it is one word.
    word = "_".join(study.folder.replace("/", " ").split())
    if numbered:
        word = f"{word}_{study.number}"
    copies = folder / study.tool / word
    copies.mkdir(parents=True, exist_ok=True)
    for number, overlay in enumerate(overlays):
        shutil.copyfile(overlay, copies / f"{number:03}_{overlay.name}")
    step = max(1, -(-len(overlays) // TILES))
    path = folder / f"{study.tool}_{word}.png"
    contact_sheet(overlays[::step], path)
    return path


def contact_sheet(pictures: Sequence[Path], path: Path) -> None:
    """One PNG with the pictures side by side, each shrunk to fit its tile."""
    from PIL import Image

    tiles: list[Image.Image] = []
    for picture in pictures:
        with Image.open(picture) as opened:
            tile = opened.convert("RGB")
        tile.thumbnail((_TILE_PX, _TILE_PX))
        tiles.append(tile)
    columns = min(_COLUMNS, max(1, len(tiles)))
    rows = [tiles[start : start + columns] for start in range(0, len(tiles), columns)]
    heights = [max(tile.height for tile in row) + _MARGIN_PX for row in rows]
    width = columns * (_TILE_PX + _MARGIN_PX) + _MARGIN_PX
    sheet = Image.new("RGB", (width, sum(heights) + _MARGIN_PX), (255, 255, 255))
    y = _MARGIN_PX
    for row, height in zip(rows, heights, strict=True):
        for column, tile in enumerate(row):
            sheet.paste(tile, (_MARGIN_PX + column * (_TILE_PX + _MARGIN_PX), y))
        y += height
    sheet.save(path)
