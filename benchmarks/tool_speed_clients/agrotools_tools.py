"""The jobs by our tools, as they are called from Python."""

from pathlib import Path
from typing import Any

from clock import run

from agrotools.tools import get_tool
from agrotools.tools.workspace import artifacts_in


def _megapixels(image: Path) -> float:
    from PIL import Image

    with Image.open(image) as opened:
        return opened.width * opened.height / 1e6


def _called(tool: str, made: Path, **arguments: Any) -> Any:
    with artifacts_in(made):
        return get_tool(tool)(**arguments)


def vegetation(image: Path, made: Path) -> tuple[int, float]:
    return _called("count_objects", made, image=image, target="plant", mode="plant").count, _megapixels(image)


def lesions(image: Path, made: Path) -> tuple[int, float]:
    return _called("analyze_lesions", made, image=image).n_lesions, _megapixels(image)


def crowns(image: Path, made: Path) -> tuple[int, float]:
    found = _called("count_objects", made, image=image, target="tree", chm=image, mode="crown_chm")
    return found.count, _megapixels(image)


run({"vegetation": vegetation, "lesions": lesions, "crowns": crowns})
