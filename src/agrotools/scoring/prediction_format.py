"""Contract of a format of prediction files: how a file of another program is read, scored and written."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agrotools.core import Mode, Record

if TYPE_CHECKING:
    from agrotools.formats.manifest import Manifest
    from agrotools.scoring.embedders import Embedder
    from agrotools.scoring.predictions import ScoredFile


class PredictionInput(NamedTuple):
    """Prediction file and the optional inputs given with it."""

    file: Path
    data: Path | None = None
    """Data set that holds the answers (``--data``)."""
    judgements: Path | None = None
    """File with replies of a judge (``--judgements``)."""
    embedder: "Embedder | None" = None


class PredictionContent(NamedTuple):
    """Content of a prediction file, as JSON data."""

    content: Any
    questions: int | None = None
    """Number of questions in the data set; set if the published scorer pairs predictions with questions by position."""


@dataclass(frozen=True)
class PredictionFormat:
    """Format of another program's prediction files, which are read, scored (published and corrected) and written."""

    title: str
    """Name of the benchmark in a heading."""
    family: str
    """Prefix of its metric ids."""
    compare: "Callable[[PredictionInput], ScoredFile]"
    differences: Mapping[str, str] = field(default_factory=dict[str, str])
    """Metrics as published, in the order of tables, each with a description of how the corrected metric differs."""
    published_suffix: str = ""
    corrected_suffix: str = "_corrected"
    """Suffixes of published and corrected metric ids."""
    refused: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """Options that do not apply (``data``, ``judgements``, ``embedder``), each with a message and a hint."""
    write: "Callable[[Manifest, Mode, Sequence[Record]], PredictionContent | None] | None" = None
    """Function that returns the prediction file of one mode of a run from its valid records; None if the mode
    has none."""
