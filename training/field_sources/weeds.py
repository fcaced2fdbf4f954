"""Crops and weeds: potatoes and sugar beets from drones."""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from field_sources.snapshot import Prepared, Reader, Snapshot, drawn_by_lot

_CROP, _WEED = 1, 2
_FEWEST_OF_A_BLOCK, _MOST_OF_A_BLOCK = 4, 6
"""Pictures of a block: some questions compare four of them."""
_BLOCK = 3
"""Side of a block in tiles: neighbouring tiles show halves of the same plants, so a block is one cluster."""

Cell = tuple[int, int]
"""Column and row of a tile in its map."""


def _blocks(cells: Mapping[str, tuple[str, Cell]]) -> dict[str, list[str]]:
    """Return the tiles (paths) of each block; a tile has the name of its map, and its cell there."""
    blocks: dict[str, list[str]] = defaultdict(list)
    for path, (name, (column, row)) in cells.items():
        blocks[f"{name}_{column // _BLOCK}_{row // _BLOCK}"].append(path)
    return blocks


def _drawn_blocks(blocks: Mapping[str, list[str]], number: int) -> Iterable[tuple[str, list[str]]]:
    """Yield blocks drawn by lot, with four to six tiles of each, drawn by lot."""
    large_enough = [block for block, paths in blocks.items() if len(paths) >= _FEWEST_OF_A_BLOCK]
    for block in drawn_by_lot(large_enough, number):
        yield block, drawn_by_lot(blocks[block], _MOST_OF_A_BLOCK)


_POTATO_FOLDER = "dataset/annotation_json_raw/images/"
_POTATO_BLOCKS = 25
"""More than the field has."""
_FEWEST_POTATOES = 2


def _read_potato_weeds(prepared: Prepared) -> None:
    """Tiles of one orthomosaic of a potato field, with outlines of potatoes and weeds; names give column and row."""
    snapshot = prepared.snapshot
    outlines: dict[str, list[dict[str, object]]] = {}
    cells: dict[str, tuple[str, Cell]] = {}
    for path in snapshot.paths(_POTATO_FOLDER, ".jpg"):
        column, row = path.removesuffix(".jpg").rpartition("tile_")[2].split("_")
        shapes = json.loads(snapshot.text(path.replace(".jpg", ".json")))["shapes"]
        if sum(shape["label"] == "potato" for shape in shapes) >= _FEWEST_POTATOES:
            outlines[path] = shapes
            cells[path] = ("field", (int(column), int(row)))
    for block, paths in _drawn_blocks(_blocks(cells), _POTATO_BLOCKS):
        for path in paths:
            name = path.rpartition("/")[2].removesuffix(".jpg")
            potatoes = [each for each in outlines[path] if each["label"] == "potato"]
            weeds = [each for each in outlines[path] if each["label"] == "weed"]
            size = snapshot.picture(path).size
            drawn = Image.new("L", size)
            # Potatoes last: a loose outline of a weed may reach over a leaf of one.
            for shapes, number in ((weeds, _WEED), (potatoes, _CROP)):
                for shape in shapes:
                    corners = [(x, y) for x, y in shape["points"]]  # pyright: ignore
                    ImageDraw.Draw(drawn).polygon(corners, fill=number)
            prepared.add(
                name,
                block,
                {"image": path},
                mask=prepared.store_mask(name, np.asarray(drawn)),
                plants=[_middle(shape["points"]) for shape in potatoes],  # pyright: ignore
            )


def _middle(points: list[list[float]]) -> list[float]:
    """Return the middle of the box around an outline."""
    corners = np.array(points)
    return [float(each) for each in (corners.min(0) + corners.max(0)) / 2]


POTATO_WEEDS = Reader(
    "paglab/UAV-weed-detection-paper",
    "7680ff97bc5d7586f34c7efa772c97fc96106e9f",
    _read_potato_weeds,
)

_BEET_FOLDER = "datasets/RedEdge/3CH/"
_BEET_BLOCKS = 30
_LEAST_VALID = 0.999
"""Share of a frame that shows ground: the others reach over the edge of the map and are black there, so that it is not
plain what a percentage refers to."""
_LEAST_COVER = 0.002
"""Share of crop and of weeds, so that both are there to be asked about."""
_LEAST_MATCH = 0.8
"""Correlation of the pixels of two edges that adjoin."""


def _read_beet_weeds(prepared: Prepared) -> None:
    """Frames of five maps of sugar beets (WeedMap), near infrared with two other bands, and experts' masks."""
    snapshot = prepared.snapshot
    folders = [path for path in snapshot.paths(_BEET_FOLDER, ".png") if "/images/" in path]
    frames = {path: np.asarray(snapshot.picture(path).convert("RGB")) for path in folders}
    cells = _cells_by_edges(frames)
    classes: dict[str, NDArray[np.uint8]] = {}
    for path in cells:
        mask = _beet_classes(snapshot, path)
        valid = np.count_nonzero(frames[path].any(axis=2)) / mask.size
        least = min(np.count_nonzero(mask == each) for each in (_CROP, _WEED)) / mask.size
        if valid >= _LEAST_VALID and least >= _LEAST_COVER:
            classes[path] = mask
    blocks = _blocks({path: cells[path] for path in classes})
    for block, paths in _drawn_blocks(blocks, _BEET_BLOCKS):
        for path in paths:
            part, _, frame = path.removeprefix(_BEET_FOLDER).partition("/images/")
            name = f"{part}_{frame.removesuffix('.png')}"
            prepared.add(
                name, block, {"image": path}, mask=prepared.store_mask(name, classes[path])
            )


def _beet_classes(snapshot: Snapshot, path: str) -> NDArray[np.uint8]:
    label = path.replace("/images/", "/labels/").replace("/frame_", "/label_")
    colours = np.asarray(snapshot.picture(label).convert("RGB")) > 127
    red, green = colours[..., 0], colours[..., 1]
    return np.where(green & ~red, _CROP, np.where(red & ~green, _WEED, 0)).astype(np.uint8)


def _cells_by_edges(frames: Mapping[str, NDArray[np.uint8]]) -> dict[str, tuple[str, Cell]]:
    """Return map and cell of each frame, known by edges that adjoin: the frames' numbers mix three of the maps.

    The edges give five maps of 71 to 144 frames, and no two neighbours contradict each other.
    """
    paths = list(frames)
    pixels = np.stack([frames[path] for path in paths]).astype(np.float32)
    neighbours: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    across = _adjoining(pixels[:, :, -1], pixels[:, :, 0])
    down = _adjoining(pixels[:, -1], pixels[:, 0])
    for pairs, step in ((across, (1, 0)), (down, (0, 1))):
        for one, other in pairs:
            neighbours[one].append((other, *step))
            neighbours[other].append((one, -step[0], -step[1]))
    found: dict[int, tuple[str, Cell]] = {}
    for number in range(len(paths)):
        if number in found or number not in neighbours:
            continue
        name = f"map_{number}"
        found[number] = (name, (0, 0))
        waiting = deque([number])
        while waiting:
            one = waiting.popleft()
            column, row = found[one][1]
            for other, right, below in neighbours[one]:
                if other not in found:
                    found[other] = (name, (column + right, row + below))
                    waiting.append(other)
    return {paths[number]: cell for number, cell in found.items()}


def _adjoining(ends: NDArray[np.float32], starts: NDArray[np.float32]) -> list[tuple[int, int]]:
    """Return pairs of frames of which the end of one and the start of the other match each other best."""
    match = _normed(ends) @ _normed(starts).T
    np.fill_diagonal(match, -1)
    best, back = match.argmax(axis=1), match.argmax(axis=0)
    return [
        (one, int(other))
        for one, other in enumerate(best)
        if match[one, other] > _LEAST_MATCH and back[other] == one
    ]


def _normed(edges: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return edges of mean 0 and length 1; an edge that is mostly black is 0 and matches none."""
    flat = edges.reshape(len(edges), -1)
    shows_ground = (flat > 0).mean(axis=1, keepdims=True) > 0.7
    centred = flat - flat.mean(axis=1, keepdims=True)
    return shows_ground * centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-6)


BEET_WEEDS = Reader(
    "viariasv/weedMap",
    "86bf44d3ecde5470f662ff53693fadc542354343",
    _read_beet_weeds,
)

_SESAME_FOLDERS = ("dataset/test/images/", "dataset/valid/images/")
"""Its ``train`` holds sheared copies of other photographs."""
_SESAME, _WEED_BOX = "0", "1"
_OF_EACH = {_SESAME: 56, _WEED_BOX: 64}
"""Photographs of each kind; copies among them are left out later, and weeds have more of them."""
_FEW_PLANTS = 2
"""Photographs with more boxes of sesame show seedlings of a few pixels."""


def _read_sesame_weeds(prepared: Prepared) -> None:
    """Photographs of sesame or of weeds from close above, with boxes; a photograph with both is not taken.

    The numbers in their names are random (those of a tool that made the copies), so place and day cannot be known: the
    plant is the cluster, and look-alikes are in ``left_out.toml``.
    """
    snapshot = prepared.snapshot
    kinds: dict[str, list[str]] = defaultdict(list)
    for folder in _SESAME_FOLDERS:
        for path in snapshot.paths(folder, ".jpg"):
            lines = snapshot.text(path.replace("/images/", "/labels/").replace(".jpg", ".txt"))
            boxes = [line.split()[0] for line in lines.splitlines() if line.strip()]
            if len({*boxes}) == 1 and (boxes[0] == _WEED_BOX or len(boxes) <= _FEW_PLANTS):
                kinds[boxes[0]].append(path)
    for kind, number in _OF_EACH.items():
        for path in drawn_by_lot(kinds[kind], number):
            name = path.rpartition("/")[2].split("_jpeg")[0]
            label = "weed" if kind == _WEED_BOX else "sesame"
            prepared.add(name, name, {"image": path}, label=label)


SESAME_WEEDS = Reader(
    "Talatam-prakash/Crop-or-Weed-Detection",
    "ee5379daefbe758564b2b0116bd16fa21c609cbc",
    _read_sesame_weeds,
)
