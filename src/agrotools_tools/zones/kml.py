"""Polygons of a KML file: those of all folders, with the name, the folders and the data of each placemark.

Links to other files and addresses are not followed.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from agrotools_tools.zones import import_of_zones

FOLDER = "folder"
"""Field with the folders of a placemark, a slash between them."""
_ROOT = re.compile(rb"<(?:\w+:)?kml[\s>]")
_ENTITY = b"<!ENTITY"
"""Start of a definition that may make a small file endless."""


class Placemarks(NamedTuple):
    """Polygons of shapely, (n,), and their fields. ``others``: number of placemarks without a polygon."""

    polygons: NDArray[Any]
    fields: dict[str, list[Any]]
    others: int
    links: int


def is_kml(head: bytes) -> bool:
    """Return True if a file that begins so is KML."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and bool(_ROOT.search(head))


def read_kml(path: Path) -> Placemarks:
    """Read a KML file. ValueError, ParseError: it is damaged."""
    content = path.read_bytes()
    if _ENTITY in content:
        raise ValueError("it defines entities")
    shapely = import_of_zones("shapely")
    root = ElementTree.fromstring(content)
    polygons: list[Any] = []
    records: list[dict[str, Any]] = []
    others = 0
    for placemark, folders in _placemarks(root):
        parts = [_polygon(part) for part in placemark.iter() if _tag(part) == "Polygon"]
        if not parts:
            others += 1
            continue
        polygons.append(parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts))
        records.append(_fields_of(placemark, folders))
    names = [*dict.fromkeys(name for record in records for name in record)]
    fields = {name: [record.get(name) for record in records] for name in names}
    links = sum(_tag(part) == "NetworkLink" for part in root.iter())
    return Placemarks(np.array(polygons, object), fields, others, links)


def _tag(element: ElementTree.Element) -> str:
    """Return the tag without its namespace."""
    return element.tag.rpartition("}")[2]


def _text(parent: ElementTree.Element, tag: str) -> str:
    found = next((child for child in parent if _tag(child) == tag), None)
    return "" if found is None else (found.text or "").strip()


def _placemarks(
    root: ElementTree.Element,
) -> Iterator[tuple[ElementTree.Element, tuple[str, ...]]]:
    """Yield the placemarks in the order of the file, each with the names of its folders."""
    waiting: list[tuple[ElementTree.Element, tuple[str, ...]]] = [(root, ())]
    while waiting:
        element, folders = waiting.pop()
        if _tag(element) == "Placemark":
            yield element, folders
            continue
        if _tag(element) == "Folder":
            folders = (*folders, _text(element, "name"))
        waiting += [(child, folders) for child in reversed(element)]


def _fields_of(placemark: ElementTree.Element, folders: Sequence[str]) -> dict[str, Any]:
    """Return name, folders, description and extended data of a placemark."""
    fields: dict[str, Any] = {"name": _text(placemark, "name") or None}
    if folders:
        fields[FOLDER] = "/".join(folders)
    if description := _text(placemark, "description"):
        fields["description"] = description
    for part in placemark.iter():
        name = part.get("name")
        if name and _tag(part) == "SimpleData":
            fields[name] = (part.text or "").strip() or None
        elif name and _tag(part) == "Data":
            fields[name] = _text(part, "value") or None
    return fields


def _polygon(element: ElementTree.Element) -> Any:
    shapely = import_of_zones("shapely")
    rings: dict[str, list[list[tuple[float, float]]]] = {
        "outerBoundaryIs": [],
        "innerBoundaryIs": [],
    }
    for boundary in element:
        if _tag(boundary) in rings:
            texts = [part.text or "" for part in boundary.iter() if _tag(part) == "coordinates"]
            rings[_tag(boundary)] += [_corners(text) for text in texts]
    outer = rings["outerBoundaryIs"]
    return shapely.Polygon(outer[0] if outer else None, rings["innerBoundaryIs"] if outer else None)


def _corners(text: str) -> list[tuple[float, float]]:
    """Return longitude and latitude of ``longitude,latitude,height`` with spaces between corners."""
    corners = re.sub(r"\s*,\s*", ",", text).split()
    return [(float(x), float(y)) for x, y, *_ in (corner.split(",") for corner in corners)]
