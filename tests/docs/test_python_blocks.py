"""The Python of README and documentation runs as it is written, the blocks of a page one after the other.

The blocks of ``extending.md`` and ``metric.md`` are functions and classes for others to call: ``test_extending.py`` and
``test_metric_page.py`` do. That of
``comparing.md`` needs a folder of Inspect's logs; those of ``agents.md`` are parts of programs.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agrotools.loading.benchmarks import load_benchmark
from agrotools.sandbox.running import RUNNERS, probe
from agrotools_build import env
from support.picture_files import field, planted_rows
from support.text_benchmark import write_text_benchmark

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[2]
BLOCKS = {
    page.name: blocks
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if (blocks := re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
}


def write_photo(folder: Path) -> None:
    crop, weeds = planted_rows()
    Image.fromarray(field(crop | weeds)).save(folder / "field.jpg")


def write_corpus(folder: Path) -> None:
    (folder / "corpus").mkdir()
    (folder / "corpus" / "rice.txt").write_text("水稻纹枯病由立枯丝核菌引起。", encoding="utf-8")


def write_farm(folder: Path) -> None:
    write_text_benchmark(folder / "my-farm", 6)


def write_study(folder: Path) -> None:
    write_farm(folder)
    (folder / "examples").mkdir()
    study = (ROOT / "examples" / "thirteen_models.toml").read_text(encoding="utf-8")
    (folder / "examples" / "thirteen_models.toml").write_text(
        study.replace('"embedded"', '"my-farm"')
    )


def write_run(folder: Path) -> None:
    shutil.copytree(ROOT / "tests" / "golden" / "runs" / "drawn-react", folder / "runs" / "my-run")


def write_two_runs(folder: Path) -> None:
    for name in ("a", "b"):
        run = ROOT / "tests" / "golden" / "runs" / "drawn-react"
        shutil.copytree(run, folder / "runs" / name)


def write_released(folder: Path) -> None:
    row = {
        "text": "How many?",
        "task": "tree",
        "pics": [],
        "gold": {"t": "float", "v": 3, "eps": 1},
    }
    trace = [{"fn": "count", "kwargs": {"what": "tree"}, "out": 3}]
    (folder / "theirs.json").write_text(json.dumps([{**row, "trace": trace}]))


def find_sandbox(_folder: Path) -> None:
    if not any(probe(runner).holds for runner in RUNNERS):
        pytest.skip("no sandbox works here")


def nothing(_folder: Path) -> None: ...


def best_row(names: dict[str, Any]) -> bool:
    return (names["best"].model, names["best"].value) == ("Qwen-Plus", "63.21")


def converted_question(_names: dict[str, Any]) -> bool:
    (sample,) = load_benchmark("agrotools", "NEW").samples
    found = sample.answer[0]
    return (found.value, found.abs_tol, found.from_, sample.family) == (
        3,
        1,
        "steps[0].observation.value",
        "CM",
    )


def runs_read(names: dict[str, Any]) -> bool:
    run, fas = names["run"], names["fas"]
    assert (len(run), fas.n, fas.mode, len(names["guess"].samples())) == (6, 6, "end-to-end", 6)
    return names["page"].is_file() and bool(names["difference"].metric)


def episode_rewarded(names: dict[str, Any]) -> bool:
    assert names["reward"] in (-1, 0, 1), "a refusal"
    return "Question: " in names["prompt"] and '"value": 42' in names["observation"]


PAGES: dict[str, tuple[Callable[[Path], None], Callable[[dict[str, Any]], Any]]] = {
    "exports.md": (write_run, bool),
    "published.md": (nothing, best_row),
    "python.md": (nothing, runs_read),
    "released.md": (write_released, converted_question),
    "retrieval.md": (write_corpus, lambda names: names["passage"].source.endswith("rice.txt")),
    "sandbox.md": (
        find_sandbox,
        lambda names: names["result"].termination == "ok" and names["result"].artifacts,
    ),
    "studies.md": (write_study, lambda names: len(names["result"].states) == 13),
    "tool_servers.md": (
        write_photo,
        lambda names: 0 < names["plant_cover"](image_path="field.jpg")["cover"] < 1,
    ),
    "tools.md": (write_photo, lambda names: 0 < names["result"].veg_pct < 100),
    "training.md": (nothing, episode_rewarded),
    "tutorial.md": (write_two_runs, lambda names: set(names["scores"]) == {"agent A", "agent B"}),
}
"""What the blocks of a page need, and what holds for the names that they define."""


def test_no_page_is_left_out():
    assert BLOCKS.keys() == PAGES.keys() | {
        "agents.md",
        "comparing.md",
        "extending.md",
        "metric.md",
    }


@pytest.fixture
def two_drawn_together(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Draw two questions at a time instead of the usual number; no test takes the groups of another."""
    monkeypatch.setattr(env, "DRAWN_TOGETHER", 2)
    env.questions.cache_clear()
    yield
    env.questions.cache_clear()


@pytest.mark.usefixtures("two_drawn_together")
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    if page == "released.md":
        monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    prepare, holds = PAGES[page]
    prepare(tmp_path)
    names: dict[str, Any] = {"__name__": "python_of_a_page"}
    for block in BLOCKS[page]:
        exec(compile(block, page, "exec"), names)
    assert holds(names)


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/*.md"))),
        *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("examples/*.py"))),
        *(
            str(path.relative_to(ROOT))
            for path in sorted(ROOT.glob("examples/ripeness/src/*/*.py"))
        ),
    ],
    ids=lambda path: Path(path).name,
)
def test_pages_examples_and_the_plugin_import_public_modules_alone(path: str):
    text = (ROOT / path).read_text(encoding="utf-8")
    modules = re.findall(r"^ *(?:from|import) (agrotools[_.\w]*)", text, re.MULTILINE)
    assert set(modules) <= {
        *("agrotools", "agrotools.calling", "agrotools.plugin"),
        *("agrotools_build", "agrotools_tools"),
    }
