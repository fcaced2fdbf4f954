"""The benchmarks that are known by name: what each needs, and whether its files are there."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from agrotools.benchmarks import BENCHMARKS
from agrotools.core import AgrotoolsError


class Known(NamedTuple):
    """What a benchmark is and what it needs. ``find`` gives where its files lie below a folder, or raises."""

    about: str
    needs: str
    find: Callable[[Path | None], str]


class Listed(NamedTuple):
    """A benchmark as ``agrotools benchmarks list`` shows it. ``found`` is None where nothing was looked for."""

    name: str
    about: str
    needs: str
    found: bool | None
    where: str


def list_benchmarks(data_root: Path | None) -> list[Listed]:
    """Every benchmark that is known by name, those of plug-ins included; files are looked for below ``data_root``."""
    return [_listed(name, data_root) for name in BENCHMARKS.names()]


def file_roots(name: str, data_root: Path | None) -> list[Path]:
    """Folders that the paths of a published benchmark's files are relative to; none where the files are not found."""
    from agrotools.benchmarks.published.ways import PUBLISHED_WAYS
    from agrotools.core.files import cache_dir

    if name not in PUBLISHED_WAYS:
        return []
    try:
        # Frames of videos lie in the cache.
        return [Path(KNOWN[name].find(data_root)).parent, cache_dir().resolve()]
    except AgrotoolsError:
        return []


def _listed(name: str, data_root: Path | None) -> Listed:
    known = KNOWN.get(name)
    if known is None:
        return Listed(name, "of an installed plug-in", "see its own documentation", None, "")
    if data_root is None and name != "embedded":
        return Listed(name, known.about, known.needs, None, "")
    try:
        return Listed(name, known.about, known.needs, True, known.find(data_root))
    except AgrotoolsError as error:
        return Listed(name, known.about, known.needs, False, error.message)


def _embedded(_: Path | None) -> str:
    from agrotools.benchmarks.embedded import embedded_folder, is_intact

    folder = embedded_folder()
    return f"{folder}{'' if is_intact(folder) else ' (is drawn when it is first used)'}"


def _questions(name: str) -> Callable[[Path | None], str]:
    def find(data_root: Path | None) -> str:
        from agrotools.benchmarks.agrieval import QuestionSettings
        from agrotools.benchmarks.agrieval.files import find_files

        root, paths = find_files(name, data_root, QuestionSettings())
        return f"{root}: {', '.join(path.name for path in paths)}"

    return find


def _gta(data_root: Path | None) -> str:
    from agrotools.benchmarks.gta import GTA_LAYOUT
    from agrotools.benchmarks.published.places import find_file

    return str(find_file(GTA_LAYOUT, data_root))


def _gta2(data_root: Path | None) -> str:
    from agrotools.benchmarks.gta2 import layout_of
    from agrotools.benchmarks.published.places import find_file

    return str(find_file(layout_of("end"), data_root))


def _thinkgeo(data_root: Path | None) -> str:
    from agrotools.benchmarks.published.places import find_file
    from agrotools.benchmarks.thinkgeo import THINKGEO_LAYOUT

    return str(find_file(THINKGEO_LAYOUT, data_root))


def _agent_x(data_root: Path | None) -> str:
    from agrotools.benchmarks.agent_x import AGENT_X_LAYOUT
    from agrotools.benchmarks.published.places import find_file

    return str(find_file(AGENT_X_LAYOUT, data_root))


KNOWN: dict[str, Known] = {
    "embedded": Known("78 questions on drawn scenes, all agricultural tools", "nothing", _embedded),
    "agrieval": Known(
        "examination questions on agriculture, in Chinese, without tools",
        "DIR/AgriEval/Dataset/*.json of github.com/YanPioneer/AgriEval",
        _questions("agrieval"),
    ),
    "cmmlu-agronomy": Known(
        "questions on agronomy, in Chinese, without tools",
        "DIR/cmmlu/agronomy.csv, data/test/agronomy.csv of github.com/haonan-li/CMMLU",
        _questions("cmmlu-agronomy"),
    ),
    "gta": Known(
        "229 general questions on images, 14 tools",
        "DIR/gta_dataset/dataset.json and image/, gta_dataset.zip of github.com/open-compass/GTA, release v0.1.0",
        _gta,
    ),
    "gta-2": Known(
        "tasks on files of any kind, graded by a judge on trees of sub-tasks; 13 of its 37 tools are here",
        "DIR/gta_dataset_v2/end.json (or step.json), toolmeta.json and files, releases of github.com/open-compass/GTA",
        _gta2,
    ),
    "thinkgeo": Known(
        "436 questions on optical and 50 on radar images from above, 14 tools",
        "DIR/ThinkGeo_dataset/ThinkGeoBench.json and image/, huggingface.co/datasets/MBZUAI/ThinkGeo",
        _thinkgeo,
    ),
    "agent-x": Known(
        "828 questions on images and videos, 14 tools",
        "DIR/AgentX/data.json and files/, huggingface.co/datasets/Tajamul21/Agent-X",
        _agent_x,
    ),
}
