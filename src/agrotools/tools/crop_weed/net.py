"""The shipped net that parts crop from weeds in photographs in true colours like those it learnt from.

``data/nets/crop_weed.json`` says what it is, ``data/nets/crop_weed.md`` is its card; both and the weights are written
by ``training/train_crop_weed_net.py``. The weights are CC BY-SA 4.0, as the photographs they learnt from are. It knows
one crop: a picture that is strange to it is not parted.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat

from agrotools.vision.nets import Described, DescribedNet, nets_folder, read_whole_net, unusable

LONGEST_PX = 336
"""To which the longest side of a picture is brought: the training photographs showed about as much ground."""
_MULTIPLE = 32
_HINT = "install agrotools again"
_WHAT = "the crop and weed net"

Share = Annotated[FiniteFloat, Field(ge=0, le=1)]


class Strangeness(Described):
    """A picture over ``threshold`` is not one the net can be asked about."""

    threshold: Annotated[FiniteFloat, Field(gt=0)]


class Overlap(Described):
    iou: Share


class Figures(Described):
    """On photographs of the same field that were not learnt from."""

    n: int
    crop: Overlap
    weeds: Overlap


class CropWeedNetInfo(DescribedNet):
    """What the net is, as its description says."""

    classes: tuple[Literal["soil"], Literal["crop"], Literal["weed"]]
    strangeness: Strangeness
    figures: dict[str, Figures]

    @property
    def as_tool(self) -> Figures:
        """Figures of plants found by colour and parted by the net."""
        return next(iter(self.figures.values()))


@dataclass(frozen=True, eq=False)
class Parted:
    """``crop``: bool (rows, columns), where crop is at least as likely as weeds, whether or not a plant is there;
    ``strangeness``: about 1 for a picture like those learnt from."""

    crop: NDArray[np.bool_]
    strangeness: float


@dataclass(frozen=True, eq=False)
class CropWeedNet:
    info: CropWeedNetInfo
    session: Any

    def part(self, pixels: NDArray[np.uint8]) -> Parted:
        """Crop against weeds in a photograph, uint8 (rows, columns, 3).

        Raises:
            ToolError: ``backend_unavailable`` where the graph does not answer as described.
        """
        import cv2

        height, width = pixels.shape[:2]
        factor = LONGEST_PX / max(height, width)
        size = max(1, round(width * factor)), max(1, round(height * factor))
        kind = cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
        small = np.asarray(cv2.resize(np.ascontiguousarray(pixels), size, interpolation=kind))
        border = ((0, -size[1] % _MULTIPLE), (0, -size[0] % _MULTIPLE), (0, 0))
        image = np.pad(small, border, mode="reflect").transpose(2, 0, 1)[None] / np.float32(255)
        try:
            chances, strange = self.session.run(["chances", "strange"], {"image": np.ascontiguousarray(image)})
        except Exception as error:  # ONNX Runtime's own kinds of error
            raise unusable(_WHAT, "cannot be run", _HINT) from error
        wanted = ((1, len(self.info.classes), *image.shape[2:]), (1,))
        if (chances.shape, strange.shape) != wanted or not (np.isfinite(chances).all() and np.isfinite(strange).all()):
            raise unusable(_WHAT, "does not answer as its description says", _HINT)
        lead = (chances[0, 1] - chances[0, 2])[: size[1], : size[0]]
        large = cv2.resize(lead, (width, height), interpolation=cv2.INTER_LINEAR)
        return Parted(np.asarray(large >= 0), float(strange[0]))


def crop_weed_net_files() -> list[Path]:
    """The files that the net's answers depend on."""
    return [nets_folder() / "crop_weed.json", nets_folder() / "crop_weed.onnx"]


@lru_cache(maxsize=1)
def load_crop_weed_net() -> CropWeedNet:
    """The shipped net.

    Raises:
        ToolError: ``backend_unavailable`` where its files are missing, or are not those that were shipped.
    """
    return read_crop_weed_net(crop_weed_net_files()[0])


def read_crop_weed_net(description: Path) -> CropWeedNet:
    """The net that a description names, its weights beside it.

    Raises:
        ToolError: ``backend_unavailable``: a file is missing, no description, other weights, no graph that fits.
    """
    return CropWeedNet(
        *read_whole_net(description, CropWeedNetInfo, gives=("chances", "strange"), what=_WHAT, hint=_HINT)
    )
