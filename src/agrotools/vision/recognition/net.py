"""A net that names pictures: an ONNX file and the description beside it.

``data/nets/NAME.json`` says what the net is (classes, input, temperature, abstention, figures) and names its weights by
hash; ``data/nets/NAME.md`` is its card. Both are written with the weights by ``training/``. Weights are read whole and
checked before ONNX Runtime sees them; a graph that keeps numbers in other files is refused. A net from elsewhere is
loaded only where a caller names its description by path.
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, FiniteFloat, StringConstraints, model_validator

from agrotools.vision.net_files import Described, DescribedNet, nets_folder, read_description
from agrotools.vision.onnx_session import open_session
from agrotools.vision.recognition.confidence import Floats, Judgement, Score, known_score
from agrotools.vision.recognition.looking import net_input
from agrotools.vision.weights_file import checked_bytes, unusable

NetName = Literal["weeds", "leaves"]
SHIPPED: tuple[NetName, ...] = ("weeds", "leaves")
_MOST_CLASSES = 5000
_EXTERNAL = b"\x0a\x08location"
"""How a graph in protobuf says that a tensor lies in another file."""
_Positive = Annotated[FiniteFloat, Field(gt=0)]


class NetInput(Described):
    """What the graph takes: float32 (n, 3, height, width), RGB in 0..1, normalised in the graph."""

    name: str
    shape: tuple[Literal["n"], Literal[3], Annotated[int, Field(ge=16, le=2048)], Annotated[int, Field(ge=16, le=2048)]]
    colour: Literal["RGB"]
    range: tuple[Literal[0], Literal[1]]
    normalised_in_graph: Literal[True]


class NetOutputs(Described):
    """Widths of the outputs ``logits`` and ``embedding``; ``likeness`` is one number where there is that output."""

    logits: int
    embedding: int
    likeness: Literal[1] | None = None


class Abstention(Described):
    """A picture is taken for known where ``score`` is at least ``threshold``; shares as measured in validation."""

    score: Score
    threshold: FiniteFloat
    kept_of_known: FiniteFloat
    kept: FiniteFloat | None = None


class NetInfo(DescribedNet):
    """What a net is, as its description says."""

    classes: Annotated[tuple[Annotated[str, StringConstraints(min_length=1)], ...], Field(min_length=2)]
    input: NetInput
    outputs: NetOutputs
    temperature: _Positive
    abstention: Abstention
    crops: dict[str, tuple[str, ...]] = {}
    """Classes of each crop, where a caller may know the crop."""
    figures: dict[str, Any] = {}
    licence: str = ""
    split: str = ""

    @property
    def side(self) -> tuple[int, int]:
        """Height and width of the input, pixels."""
        return self.input.shape[2], self.input.shape[3]

    @property
    def gives(self) -> tuple[str, ...]:
        """Names of the graph's outputs."""
        return ("logits", "embedding") if self.outputs.likeness is None else ("logits", "embedding", "likeness")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.classes)) < len(self.classes) or len(self.classes) > _MOST_CLASSES:
            raise ValueError(f"classes must be distinct, and {_MOST_CLASSES} at most")
        if self.outputs.logits != len(self.classes):
            raise ValueError("as many logits as classes are needed")
        if self.abstention.score == "likeness" and self.outputs.likeness is None:
            raise ValueError("a net that abstains by likeness needs that output")
        if strange := {name for own in self.crops.values() for name in own} - set(self.classes):
            raise ValueError(f"crops name classes that there are not: {', '.join(sorted(strange))}")
        return self


@dataclass(frozen=True, eq=False)
class Seen:
    """What a net says of pictures: ``logits`` (n, classes), ``embedding`` (n, width), and how like they are to those it
    learnt from, (n,), where it says so."""

    logits: Floats
    embedding: NDArray[np.float32]
    likeness: Floats | None


@dataclass(frozen=True, eq=False)
class Net:
    info: NetInfo
    session: Any

    def judge(self, pixels: NDArray[np.uint8]) -> Judgement:
        """The net's answer for one picture, uint8 (rows, columns, 3).

        Raises:
            ToolError: as :meth:`look`.
        """
        seen, rule = self.look(pixels), self.info.abstention
        score = float(known_score(rule.score, seen.logits, self.info.temperature, seen.likeness)[0])
        return Judgement(self.info.classes, seen.logits[0], self.info.temperature, score, rule.threshold)

    def look(self, pixels: NDArray[np.uint8]) -> Seen:
        """What the net says of one picture, uint8 (rows, columns, 3): arrays of one row.

        Raises:
            ToolError: ``backend_unavailable`` where it does not answer with finite numbers of the shapes described.
        """
        what = f"the net {self.info.name}"
        try:
            answers = self.session.run([*self.info.gives], {self.info.input.name: net_input(pixels, self.info.side)})
        except Exception as error:  # ONNX Runtime's own kinds of error, whatever the graph leads it to
            raise unusable(what, "cannot be run", _hint_for(self.info.name)) from error
        wanted = [(1, self.info.outputs.logits), (1, self.info.outputs.embedding), (1,)][: len(answers)]
        if [one.shape for one in answers] != wanted or not all(np.isfinite(one).all() for one in answers):
            raise unusable(what, "does not answer as its description says", _hint_for(self.info.name))
        likeness = answers[2].astype(np.float64) if len(answers) > 2 else None
        return Seen(answers[0].astype(np.float64), answers[1].astype(np.float32), likeness)


def shipped_files(name: NetName) -> tuple[Path, Path]:
    """Description and weights of a net of the package."""
    return nets_folder() / f"{name}.json", nets_folder() / f"{name}.onnx"


def shipped_net(name: NetName) -> Net:
    """A net of the package, loaded once.

    Raises:
        ToolError: ``backend_unavailable``: its files are missing, damaged, or not those that were shipped.
    """
    return read_net(shipped_files(name)[0])


def net_files(description: Path) -> tuple[Path, Path]:
    """The files of the net with that description.

    Raises:
        ToolError: as :func:`read_info`.
    """
    return description, description.parent / read_info(description).weights


def read_net(description: Path) -> Net:
    """The net that a description names, its weights beside it. Kept in memory until one of the files changes.

    Raises:
        ToolError: ``backend_unavailable``: a file is missing, no description, other weights, no graph that fits.
    """
    info = read_info(description)
    weights = description.parent / info.weights
    try:
        status = weights.stat()
        stamp = (status.st_mtime_ns, status.st_size)
    except OSError:
        stamp = (0, 0)
    return _loaded(info.model_dump_json(), str(weights), stamp)


def read_info(description: Path) -> NetInfo:
    """A description as it stands.

    Raises:
        ToolError: ``backend_unavailable``: missing or no description of a net.
    """
    return read_description(description, NetInfo, what=f"the net {description.stem}", hint=_hint_for(description.stem))


@lru_cache(maxsize=4)
def _loaded(info_json: str, weights: str, stamp: tuple[int, int]) -> Net:  # noqa: ARG001 - the stamp is part of the key
    info = NetInfo.model_validate_json(info_json)
    what, hint = f"the weights of the net {info.name}", _hint_for(info.name)
    content = checked_bytes(Path(weights), info.sha256, what=what, hint=hint)
    if _EXTERNAL in content:
        raise unusable(what, "want to read other files", hint)
    session = open_session(content, takes=info.input.name, gives=info.gives, what=what, hint=hint)
    return Net(info, session)


def _hint_for(name: str) -> str:
    return "install agrotools again" if name in SHIPPED else "export the net and its description again"
