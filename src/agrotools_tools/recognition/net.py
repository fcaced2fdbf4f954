"""Image classification nets: ONNX files with their descriptions, input, confidence, and the features used by packs.

``data/nets/NAME.json`` describes the net (classes, input, temperature, abstention, figures) and gives the hash of its
weights; ``data/nets/NAME.md`` is the model card. ``training/`` writes both together with the weights. Weights are read
completely and checked before they are passed to OpenCV.

Confidence consists of calibrated probabilities and familiarity scores. Familiarity by features uses a Gaussian for each
class with a shared covariance, which is full along the main directions within classes and isotropic in all others
(probabilistic PCA: Tipping and Bishop 1999; distance to the nearest class: Lee et al. 2018).

Files that are missing, damaged or inconsistent raise a ``ToolError`` of the kind ``backend_unavailable``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field, FiniteFloat

from agrotools_tools.recognition import NAMED_FROM, NetName, shipped_files
from agrotools_tools.vision.nets import (
    DescribedNet,
    DescriptionPart,
    Graph,
    read_description,
    read_whole_net,
)
from agrotools_tools.vision.strangeness import has_references_of, picture_traits, strangeness

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Judgement:
    """Prediction of a classifier for one picture.

    ``logits``: float64 (classes,). ``score``: familiarity of the picture, in the units of ``threshold``.
    ``is_strange``: no crop is more likely than not, or the picture is unlike the reference pictures of the likeliest
    class (:mod:`agrotools_tools.vision.strangeness`).
    """

    classes: tuple[str, ...]
    logits: Floats
    temperature: float
    score: float
    threshold: float
    is_strange: bool = False

    @property
    def is_known(self) -> bool:
        """True if the picture is similar enough to the training pictures to give an answer."""
        return self.score >= self.threshold and not self.is_strange

    def probabilities(self, allowed: NDArray[np.bool_] | None = None) -> Floats:
        """Return calibrated probabilities, float64 (classes,), restricted to the ``allowed`` classes if given."""
        return probabilities(self.logits[None], self.temperature, allowed)[0]


def probabilities(
    logits: Floats, temperature: float, allowed: NDArray[np.bool_] | None = None
) -> Floats:
    """Return probabilities (n, classes) of logits (n, classes) divided by ``temperature`` (Guo et al. 2017).

    With ``allowed``, bool (classes,), only those classes share the probability, and all others have 0.
    """
    scaled = logits / temperature
    if allowed is not None:
        scaled = np.where(allowed, scaled, -np.inf)
    powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def fit_temperature(logits: Floats, classes: NDArray[np.int64]) -> float:
    """Return the temperature in 0.05..20 that minimises the negative log-likelihood of logits (n, classes), by a golden
    section on its logarithm."""

    def loss(logarithm: float) -> float:
        shares = probabilities(logits, float(np.exp(logarithm)))[np.arange(len(classes)), classes]
        return float(-np.log(np.maximum(shares, 1e-12)).mean())

    low, high = np.log(0.05), np.log(20.0)
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(48):
        one, two = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, two) if loss(one) < loss(two) else (one, high)
    return round(float(np.exp((low + high) / 2)), 4)


def threshold_for_share(scores: Floats, keep: float = 0.9) -> float:
    """Return the largest threshold that at least the share ``keep`` of ``scores`` (n,) reaches."""
    ordered = np.sort(scores)
    return float(ordered[int(np.floor((1 - keep) * len(ordered) + 1e-9))])


def wilson(right: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of ``right / count`` (Wilson 1927); ``right`` may be fractional if ``count`` is an
    effective number."""
    if count == 0:
        return (0.0, 1.0)
    z = 1.96
    share, weight = right / count, z * z / count
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * float(np.sqrt(share * (1 - share) / count + weight / (4 * count)))
    return (max(0.0, middle - half), min(1.0, middle + half))


MOST_DIRECTIONS = 24
_LEAST_VARIANCE = 1e-6
Features = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FeatureDistribution:
    """Gaussian distribution of the features of each class, with a shared covariance.

    ``centres``: (classes, features). ``directions``: (features, k), orthonormal. ``spread``: (k,), variances along
    these directions. ``rest``: variance along any other direction.
    """

    centres: Features
    directions: Features
    spread: Features
    rest: float

    def score(self, features: Features) -> NDArray[np.float64]:
        """Return minus the distance to the nearest class, in standard deviations per feature, float64 (n,)."""
        nearest = np.full(len(features), np.inf)
        for centre in self.centres.astype(np.float64):
            off = features - centre
            along = off @ self.directions
            residual = np.maximum((off * off).sum(axis=1) - (along * along).sum(axis=1), 0)
            nearest = np.minimum(
                nearest, (along * along / self.spread).sum(axis=1) + residual / self.rest
            )
        return -np.sqrt(nearest / features.shape[1])


def fit_distribution(
    features: Features, classes: NDArray[np.int64], count: int
) -> FeatureDistribution:
    """Fit the distribution of features (n, features) of ``count`` classes, each with at least one picture."""
    centres = np.stack([features[classes == number].mean(axis=0) for number in range(count)])
    within = (features - centres[classes]).astype(np.float64)
    degrees = max(1, len(features) - count)
    rank = max(1, min(MOST_DIRECTIONS, degrees // 3, features.shape[1] - 1))
    _, lengths, directions = np.linalg.svd(within, full_matrices=False)
    variances = lengths**2 / degrees
    spread = np.maximum(variances[:rank], _LEAST_VARIANCE)
    rest = max(float(variances[rank:].sum()) / max(1, features.shape[1] - rank), _LEAST_VARIANCE)
    return FeatureDistribution(
        centres, directions[:rank].T.astype(np.float32), spread.astype(np.float32), rest
    )


def net_input(pixels: NDArray[np.uint8], side: tuple[int, int]) -> NDArray[np.float32]:
    """Convert a picture, uint8 (rows, columns, 3), to float32 (1, 3, height, width), RGB in 0..1.

    The picture is resized to ``side`` (height, width) without keeping its aspect ratio, with Pillow's antialiased
    bilinear filter. Nets normalise the input inside their graph.
    """
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    small = np.asarray(picture.resize((side[1], side[0]), Image.Resampling.BILINEAR), np.float32)
    return np.ascontiguousarray(small.transpose(2, 0, 1)[None]) / np.float32(255)


LEAST_SIDE_PX = 512
"""Shorter side that a picture keeps when it is shrunk for all nets at once: more than twice the input of the largest,
so that what a net sees differs little from the picture shrunk in one step, and as much as an overlay shows."""


def shrunk_once(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a large picture, uint8 (rows, columns, 3), shrunk by a whole number; small ones are returned as they are.

    Each net shrinks the picture to its input; on a picture of 12 megapixels, that would be most of the time of a call.
    """
    import cv2

    times = min(pixels.shape[:2]) // LEAST_SIDE_PX
    if times < 2:
        return pixels
    size = (pixels.shape[1] // times, pixels.shape[0] // times)
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)


SHIPPED: tuple[NetName, ...] = ("weeds", "leaves")
NEGATIVE = "negative"
"""Class of pictures without any of the weeds."""
_HINT = "install agrotools again"
_OUTPUTS = ("logits", "embedding", "likeness")


class NetInput(DescriptionPart):
    """Input of the graph: float32 (n, 3, height, width), RGB in 0..1, normalised in the graph."""

    shape: tuple[Literal["n"], Literal[3], int, int]


class Abstention(DescriptionPart):
    """Abstention rule: a picture counts as known if ``score`` reaches ``threshold`` (likeness: Sun et al. 2022).

    ``most_negative``: largest probability of the class ``negative`` with which another one is named.
    """

    score: Literal["max_softmax", "likeness"]
    threshold: FiniteFloat
    most_negative: FiniteFloat = 1.0


class NetInfo(DescribedNet):
    """Description of a net."""

    classes: tuple[str, ...]
    input: NetInput
    outputs: dict[str, int]
    """Widths of the outputs: logits, embedding, and perhaps likeness."""
    temperature: Annotated[FiniteFloat, Field(gt=0)]
    abstention: Abstention
    crops: dict[str, tuple[str, ...]] = {}
    """Classes of each crop, for nets whose callers may know the crop. Classes of no crop are no answers: what falls
    there is refused."""
    uncalibrated: dict[str, str] = {}
    """Crops whose probabilities are not to be given, and why."""
    figures: dict[str, dict[str, Any]] = {}
    """Metrics (``top1`` and others) by kind of pictures; ``days left out`` are those of places that it has not seen."""

    @property
    def side(self) -> tuple[int, int]:
        """Height and width of the input in pixels."""
        return self.input.shape[2], self.input.shape[3]

    @property
    def gives(self) -> list[str]:
        """Names of the graph's outputs."""
        return [name for name in _OUTPUTS if name in self.outputs]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Outputs for n pictures.

    ``logits``: (n, classes). ``embedding``: (n, width). ``likeness``: (n,), similarity to the training pictures, None
    if the net has no such output.
    """

    logits: Floats
    embedding: NDArray[np.float32]
    likeness: Floats | None


@dataclass(frozen=True, eq=False)
class Net:
    info: NetInfo
    graph: Graph

    def judge(self, pixels: NDArray[np.uint8]) -> Judgement:
        """Classify one picture, uint8 (rows, columns, 3)."""
        pixels = shrunk_once(pixels)
        seen, threshold = self.predict(pixels), self.info.abstention.threshold
        shares = probabilities(seen.logits, self.info.temperature)
        score = float((shares if seen.likeness is None else seen.likeness).max())
        label, of_label = (
            self.info.classes[int(shares.argmax())],
            dict(zip(self.info.classes, shares[0], strict=True)),
        )
        of_crops = [sum(of_label[name] for name in own) for own in self.info.crops.values()]
        is_strange = max(of_crops, default=1.0) < NAMED_FROM
        is_strange |= (
            label != NEGATIVE and of_label.get(NEGATIVE, 0.0) > self.info.abstention.most_negative
        )
        if not is_strange and has_references_of(self.info.name, self.info.sha256):
            is_strange = strangeness(
                pixels,
                self.info.name,
                embedding=seen.embedding[0],
                label=label,
                likeness=seen.likeness,
            ).is_strange
        return Judgement(
            self.info.classes, seen.logits[0], self.info.temperature, score, threshold, is_strange
        )

    def predict(self, pixels: NDArray[np.uint8]) -> Prediction:
        """Run the net on one picture, uint8 (rows, columns, 3), and return arrays of one row."""
        answers = self.graph.run(self.info.gives, net_input(pixels, self.info.side))
        likeness = answers[2].astype(np.float64) if len(answers) > 2 else None
        return Prediction(answers[0].astype(np.float64), answers[1], likeness)


def shipped_net(name: NetName) -> Net:
    """Load a net of the package; it is cached."""
    return read_net(shipped_files(name)[0])


def read_net(description: Path) -> Net:
    """Load the net of a description, with the weights in the same folder; cached until the description changes."""
    return _load(description, description.stat().st_mtime_ns if description.is_file() else 0)


def read_info(description: Path) -> NetInfo:
    """Read the description of a net without loading its weights."""
    return read_description(description, NetInfo, what=f"the net {description.stem}", hint=_HINT)


@lru_cache(maxsize=4)
def _load(description: Path, stamp: int) -> Net:  # noqa: ARG001 - the stamp is part of the key
    return Net(
        *read_whole_net(description, NetInfo, what=f"the net {description.stem}", hint=_HINT)
    )


def picture_features(pixels: NDArray[np.uint8], nets: Sequence[Net]) -> list[NDArray[np.float32]]:
    """Return feature blocks of a picture, uint8 (rows, columns, 3): embeddings of each net, then its traits."""
    return [*(net.predict(pixels).embedding[0] for net in nets), picture_traits(pixels)]
