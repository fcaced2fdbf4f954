"""A study: one tool, one folder of images with truth, and the figures that come of comparing them.

A module for a tool defines ``STUDIES``, a tuple of these, and a function per study::

    def _severity(bench: Bench) -> list[Figure]:
        errors = []
        for item in bench.items():
            result = bench.call(image=bench.folder / item["image"])
            errors.append(abs(result.severity_pct - 100 * item["lesion_fraction_of_leaf"]))
        return [mean_of("lesion severity, mean absolute error, points", errors, goal=1.7, higher_is_better=False)]

    STUDIES = (Study("analyze_lesions", "coffee_lesions", _severity),)
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agrotools.build.accuracy.figures import Figure
from agrotools.build.sources.reading import read_items
from agrotools.core import Artifact, SampleFile, ToolError
from agrotools.tools import get_tool
from agrotools.tools.result import ToolResult
from agrotools.tools.workspace import CallContext, call_context, write_artifact


@dataclass
class Bench:
    """The surroundings of a study: its folder, its tool, and the clock.

    ``scratch`` is where artifacts go (a folder per call); it is removed afterwards, but overlays can be kept.
    """

    tool: str
    folder: Path
    scratch: Path
    call_ms: list[float] = field(default_factory=list)
    call_megapixels: list[float] = field(default_factory=list)
    overlays: list[Path] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True)

    def items(self) -> list[dict[str, Any]]:
        """The folder's ``truth.json``: one entry per image; file names are relative to the folder.

        Raises:
            BenchmarkError: it is missing, or no list of objects.
        """
        return read_items(self.folder)

    def call(
        self, *, infos: Mapping[Path, SampleFile] | None = None, backend: str | None = None, **arguments: Any
    ) -> Any:
        """Call the tool and take the time: reading, measuring and drawing.

        ``infos`` is what a sample would say of its files (scale, bands, intrinsics). The first call of a study is
        made twice, so that importing libraries is not counted.

        Raises:
            ToolError: as the tool.
        """
        made = self.scratch / f"call-{len(self.call_ms)}"
        tool = get_tool(self.tool)
        work = CallContext(
            keep=lambda artifact, content: write_artifact(made, artifact, content),
            # Tools know a file by its real path.
            infos={path.resolve(): info for path, info in (infos or {}).items()},
            backend=backend,
        )
        with call_context(work):
            if not self.call_ms:
                tool(**arguments)
            started = time.perf_counter()
            result: ToolResult = tool(**arguments)
            self.call_ms.append(1000 * (time.perf_counter() - started))
        self.call_megapixels.append(sum(_megapixels(value) for value in arguments.values() if isinstance(value, Path)))
        for artifact in (getattr(result, name) for name in type(result).model_fields):
            if isinstance(artifact, Artifact) and artifact.kind == "overlay":
                self.overlays.append(made / artifact.name)
        return result

    def made(self, artifact: Artifact) -> Path:
        """Path of an artifact of the last call."""
        return self.scratch / f"call-{len(self.call_ms) - 1}" / artifact.name


@dataclass(frozen=True)
class Study:
    """Study of ``tool`` on the folder of that name. ``measure`` returns the figures.

    ``needs_folder`` is False where the images are drawn by our own code (``folder`` then says what they are).
    """

    tool: str
    folder: str
    measure: Callable[[Bench], list[Figure]]
    needs_folder: bool = True


def _megapixels(path: Path) -> float:
    from agrotools.vision.formats import file_format
    from agrotools.vision.rasters import open_raster

    try:
        if file_format(path) in ("tiff", "envi"):
            with open_raster(path) as raster:
                return raster.width * raster.height / 1e6
        from PIL import Image

        with Image.open(path) as image:
            return image.width * image.height / 1e6
    except (ToolError, OSError):
        return 0.0
