"""Choice and use of a recogniser: a shipped net, a user's pack, a net given by path."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import NDArray

from agrotools.core import ToolError
from agrotools.knowledge.loading import kb_files
from agrotools.tools.learned import LEARNED
from agrotools.tools.recognition.confidence import Judgement
from agrotools.tools.vlm import VLM
from agrotools.vision import Box
from agrotools.vision.formats import clipped_region
from agrotools.vision.reading import RgbImage

if TYPE_CHECKING:
    from agrotools.tools.recognition.net import NetName

PACK, NET = "pack:", "net:"
BACKENDS = ("offline", PACK, NET, LEARNED, VLM)
BY_NET = "named by the net"
NAMED_FROM = 0.5
"""A candidate is the best one where its calibrated score is at least this: more likely right than wrong."""
_EVEN = 1.0
_LEAST_DETAIL_PX = 64
_DISPUTED = 0.5


def data_files_of(net: "NetName") -> Callable[[], tuple[Path, ...]]:
    """Data files that answers of every back-end depend on."""
    from agrotools.tools.recognition.net import shipped_files

    return lambda: (*shipped_files(net), *kb_files())


def backend_files(backend: str) -> tuple[Path, ...]:
    """The files behind ``pack:NAME``, ``net:PATH`` or ``learned:MODEL``.

    Raises:
        ToolError: ``backend_unavailable``, they are not there.
    """
    from agrotools.tools.learned import weight_files
    from agrotools.tools.recognition.net import net_files
    from agrotools.tools.recognition.packs import pack_files

    if backend.startswith(PACK):
        return pack_files(backend.removeprefix(PACK))
    if backend.startswith(NET):
        return net_files(_path_of_net(backend))
    return weight_files(backend)


def _path_of_net(backend: str) -> Path:
    value = backend.removeprefix(NET)
    if os.sep not in value:
        raise ToolError(
            "backend_unavailable", f"{backend} names no net", hint="a net's description is named by a path with a slash"
        )
    return Path(value).expanduser()


def asks_larger_model(backend: str | None) -> TypeGuard[str]:
    """True if an open model or a vision model behind an endpoint answers instead of a recogniser."""
    return backend is not None and (backend == VLM or backend.startswith(LEARNED))


@dataclass(frozen=True, eq=False)
class ImagePart:
    """A picture, uint8 (rows, columns, 3), and the part ``box`` of it that is looked at."""

    picture: RgbImage
    box: Box
    name: str
    flags: tuple[str, ...]

    @property
    def part(self) -> NDArray[np.uint8]:
        from agrotools.tools.recognition.net import crop_pixels

        return crop_pixels(self.picture.pixels, self.box)


def read_image_part(image: Path, region: Box | None, name: str) -> ImagePart:
    """Read a picture for recognition.

    Raises:
        ToolError: as the readers; ``region_empty``; ``nothing_found`` where all is of one colour.
    """
    from agrotools.tools.recognition.net import crop_pixels
    from agrotools.vision.reading import read_image

    picture = read_image(image, shown_as=name)
    box, clipped = clipped_region(region, picture.width, picture.height, name)
    part = crop_pixels(picture.pixels, box)
    if float(part[:: 1 + part.shape[0] // 256, :: 1 + part.shape[1] // 256].std(axis=(0, 1)).max()) < _EVEN:
        raise ToolError(
            "nothing_found", f"{name} shows one colour only there", argument="image", hint="use a picture of a plant"
        )
    flags = [*picture.flags, *clipped]
    if picture.is_grey:
        flags.append("grey_picture")
    if min(part.shape[:2]) < _LEAST_DETAIL_PX:
        flags.append("low_resolution")
    return ImagePart(picture, box, name, tuple(flags))


@dataclass(frozen=True, eq=False)
class Recogniser:
    """``is_shipped``: its labels are those of the pool; ``crops``: labels of each crop, where it tells crops apart."""

    name: str
    labels: tuple[str, ...]
    crops: dict[str, tuple[str, ...]]
    is_shipped: bool
    judge: Callable[[NDArray[np.uint8]], Judgement]
    notes: tuple[str, ...]
    flags: tuple[str, ...] = ()


def recogniser_for(backend: str | None, shipped: "NetName", image: Path) -> Recogniser:
    """The net or pack that a back-end names; the shipped one by default.

    Raises:
        ToolError: ``backend_unavailable``: it is not there, damaged, or not what its description says.
    """
    from agrotools.tools.recognition.net import read_net, shipped_net
    from agrotools.tools.recognition.packs import load_pack

    if backend is not None and backend.startswith(PACK):
        pack = load_pack(backend.removeprefix(PACK))
        own = pack.info.figures
        notes = (
            f"named by the pack {pack.info.name}: accuracy {own.accuracy:.2f} ({own.accuracy_95[0]:.2f} to "
            f"{own.accuracy_95[1]:.2f}) on {own.pictures} pictures of its own collection, out of fold",
        )
        seen = pack.has_seen(hashlib.sha256(image.read_bytes()).hexdigest())
        flags = ("seen_in_training",) if seen else ()
        return Recogniser(f"pack {pack.info.name}", pack.info.classes, {}, False, pack.judge, notes, flags)
    is_shipped = backend is None or not backend.startswith(NET)
    net = read_net(_path_of_net(backend)) if backend and not is_shipped else shipped_net(shipped)
    notes = (f"{BY_NET} {net.info.name}, which knows {len(net.info.classes)} classes",)
    return Recogniser(f"net {net.info.name}", net.info.classes, net.info.crops, is_shipped, net.judge, notes)


def judge_part(
    recogniser: Recogniser, looked: ImagePart, allowed: Sequence[str] | None, narrowed_by: str
) -> tuple[Judgement, list[tuple[str, float]], tuple[str, ...]]:
    """Judgement on a part of a picture: labels with calibrated scores (best first), and flags.

    With ``allowed`` the choice is among those labels alone. Where the recogniser would rather have said another, the
    flag ``contradicts_`` and ``narrowed_by`` (an argument's name) says so.
    """
    judgement = recogniser.judge(looked.part)
    flags: tuple[str, ...] = ()
    mask = None
    if allowed is not None:
        mask = np.array([label in allowed for label in recogniser.labels], np.bool_)
        if float(judgement.probabilities()[mask].sum()) < _DISPUTED:
            flags = (f"contradicts_{narrowed_by}",)
    shares = judgement.probabilities(mask)
    order = np.argsort(-shares, kind="stable")
    ranked = [
        (recogniser.labels[int(place)], float(shares[place])) for place in order if mask is None or mask[int(place)]
    ]
    return judgement, ranked, flags
