"""Samples: a question on files, with its gold; and the view of it that a policy may see."""

from typing import Annotated

from pydantic import Field, JsonValue

from agrotools.core.frozen_model import FrozenModel
from agrotools.core.slot import Slot
from agrotools.core.taxonomy import AnswerType, FileKind
from agrotools.core.trajectory import ReferenceTrajectory

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]


class Intrinsics(FrozenModel):
    """Pinhole camera parameters in pixels of the original image."""

    fx_px: Annotated[float, Field(gt=0)]
    fy_px: Annotated[float, Field(gt=0)]
    cx_px: float
    cy_px: float


class SampleFile(FrozenModel):
    """A file of a sample. Policies and tools know it by ``name``; ``path`` is relative to the benchmark folder."""

    name: FileName
    path: str
    kind: FileKind
    sha256: str | None = None
    width_px: int | None = None
    height_px: int | None = None
    bands: tuple[str, ...] | None = None
    """Band names in file order, e.g. ``("B", "G", "R", "RE", "NIR")``."""
    gsd_m: Annotated[float | None, Field(gt=0)] = None
    """Ground sampling distance in metres per pixel."""
    crs: str | None = None
    intrinsics: Intrinsics | None = None
    depth_unit_mm: Annotated[float | None, Field(gt=0)] = None
    classes: dict[str, str] | None = None
    """For masks: class index to meaning, e.g. ``{"1": "crop"}``."""
    note: str | None = None
    """What the person asking would know of the file, e.g. ``false colour: near infrared shown as green``."""

    @property
    def known_arguments(self) -> dict[str, JsonValue]:
        """Arguments of tools that its metadata answers, and that hold where a call leaves them out.

        ``gsd_m`` and ``depth_unit_mm`` as they stand, ``fx_px`` to ``cy_px`` of the intrinsics, ``bands`` as band name
        to number (from 1), ``label_map`` as meaning to class numbers.
        """
        known: dict[str, JsonValue] = {"gsd_m": self.gsd_m, "depth_unit_mm": self.depth_unit_mm}
        if self.intrinsics is not None:
            known |= self.intrinsics.model_dump()
        if self.bands is not None:
            known["bands"] = {name: number for number, name in enumerate(self.bands, start=1)}
        if self.classes is not None:
            known["label_map"] = _numbers_by_meaning(self.classes)
        return {name: value for name, value in known.items() if value is not None}


def _numbers_by_meaning(classes: dict[str, str]) -> dict[str, JsonValue]:
    numbers = {index: int(index) for index in classes if index.isdecimal()}
    return {
        meaning: [numbers[index] for index, other in classes.items() if other == meaning and index in numbers]
        for meaning in classes.values()
    }


class Sample(FrozenModel):
    """One question with its files and its gold. Only :class:`SampleView` ever reaches a policy."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,119}$")]
    query: Annotated[str, Field(min_length=1)]
    files: tuple[SampleFile, ...]
    family: str
    task_type: str
    answer_type: AnswerType
    template: str
    source: str
    toolset: tuple[str, ...]
    reference: ReferenceTrajectory | None = None
    answer: Annotated[tuple[Slot, ...], Field(min_length=1)]
    no_tool_eligible: bool = True
    cluster: str | None = None
    """Samples that share a file, transitively. Computed by the loader; a stored value is not trusted."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    groups: dict[str, str] = Field(default_factory=dict)
    """What else results are broken down by, e.g. ``{"domain": "forestry"}``."""
    difficulty: dict[str, float] = Field(default_factory=dict)
    """What was measured of how hard it is, e.g. ``{"calls": 3, "unused_files": 1}``; no policy sees it."""
    canary: str = ""
    """GUID of the benchmark, on every line, so that a leak into training data can be found; no policy sees it."""

    @property
    def published_paths(self) -> dict[str, str] | None:
        """By name of each file its path in the files of a benchmark that others publish; None for samples of ours."""
        paths = self.metadata.get("published_paths")
        if isinstance(paths, dict):
            return {name: str(path) for name, path in paths.items()}
        # Entries of GTA and ThinkGeo; those of Agent-X (with ``file_path``) call files by other names than paths.
        published = "entry" in self.metadata and "file_path" not in self.metadata
        return {file.name: file.path for file in self.files} if published else None

    @property
    def schematic(self) -> bool:
        """Whether it asks to recognise what a schematic drawing shows, which its ``metadata`` says: no headline metric
        counts it."""
        return self.metadata.get("schematic") is True


class SampleView(FrozenModel):
    """All that a policy may know of a sample. ``files[].path`` is where the host reads the file, never shown."""

    id: str
    query: str
    files: tuple[SampleFile, ...]
    toolset: tuple[str, ...]
    answer_form: str
    form_lines: tuple[str, ...] = ()
    """The lines that the answer form asks for, such as ``trees: <number>``."""
    paths: dict[str, str] | None = None
    """By name of each file the path that those who published the question call it by; None where they are we."""
    closing: bool = False
    """Whether the answer is asked for now, and no further call. Step-by-step alone knows; few protocols tell."""
    bare: bool = False
    """Whether ``query`` is the whole prompt: a model is told nothing else, and its whole reply is the answer."""
