"""The Python of README and documentation runs as it is written, the blocks of a page one after the other.

The blocks of ``extending.md`` are functions and classes for others to call: ``test_extending.py`` does. That of
``comparing.md`` needs a folder of Inspect's logs.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agrotools import env
from agrotools.benchmarks.loading import load_benchmark
from agrotools.sandbox.running import RUNNERS, probe
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
    (folder / "examples" / "thirteen_models.toml").write_text(study.replace('"embedded"', '"my-farm"'))


def write_run(folder: Path) -> None:
    shutil.copytree(ROOT / "tests" / "golden" / "runs" / "drawn-react", folder / "runs" / "my-run")


def write_released(folder: Path) -> None:
    row = {"text": "How many?", "task": "tree", "pics": [], "gold": {"trees": {"t": "float", "v": 3, "eps": 1}}}
    trace = [{"fn": "count", "kwargs": {"what": "tree"}, "out": 3}]
    (folder / "theirs.json").write_text(json.dumps([{**row, "trace": trace}]))


def draw_few(_folder: Path) -> None:
    env.DRAWN_TOGETHER = 2


def find_sandbox(_folder: Path) -> None:
    if not any(probe(runner).holds for runner in RUNNERS):
        pytest.skip("no sandbox works here")


PREPARE: dict[str, Callable[[Path], None]] = {
    "agents.md": lambda _folder: None, "README.md": write_photo, "exports.md": write_run,
    "published.md": lambda _folder: None, "python.md": lambda _folder: None, "released.md": write_released,
    "retrieval.md": write_corpus, "sandbox.md": find_sandbox, "studies.md": write_study, "tools.md": write_photo,
    "training.md": draw_few,
}  # fmt: skip


def test_no_page_is_left_out():
    assert BLOCKS.keys() == PREPARE.keys() | {"extending.md", "comparing.md"}


@pytest.fixture
def page(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that the blocks of a page define."""
    monkeypatch.chdir(tmp_path)
    PREPARE[request.param](tmp_path)
    names: dict[str, Any] = {"__name__": "python_of_a_page"}
    for block in BLOCKS[request.param]:
        exec(compile(block, request.param, "exec"), names)
    return names


@pytest.mark.parametrize("page", ["README.md", "tools.md"], indirect=True)
def test_a_tool_measures_a_photo(page: dict[str, Any]):
    assert 0 < page["result"].veg_pct < 100


@pytest.mark.process
@pytest.mark.parametrize("page", ["sandbox.md"], indirect=True)
def test_code_draws_a_plot(page: dict[str, Any]):
    assert (page["result"].termination, len(page["result"].artifacts)) == ("ok", 1)


@pytest.mark.parametrize("page", ["training.md"], indirect=True)
def test_an_episode_earns_a_reward(page: dict[str, Any]):
    assert "Question: " in page["prompt"]
    assert '"value": 42' in page["observation"]
    assert page["reward"] in (-1, 0, 1), "a refusal"


@pytest.mark.parametrize("page", ["retrieval.md"], indirect=True)
def test_a_passage_is_found(page: dict[str, Any]):
    assert page["passage"].source.endswith("rice.txt")


@pytest.mark.parametrize("page", ["published.md"], indirect=True)
def test_published_rows_are_printed(page: dict[str, Any]):
    assert (page["best"].model, page["best"].value) == ("Qwen-Plus", "63.21")


@pytest.mark.parametrize("page", ["released.md"], indirect=True)
@pytest.mark.usefixtures("page")
def test_converted_questions_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AGROTOOLS_CACHE", str(tmp_path / "cache"))
    (sample,) = load_benchmark("agrotools", tmp_path / "NEW").samples
    found = sample.answer[0]
    assert (found.value, found.abs_tol, found.from_, sample.family) == (3, 1, "steps[0].observation.value", "CM")


@pytest.mark.parametrize("page", ["python.md"], indirect=True)
def test_runs_are_read_and_compared(page: dict[str, Any]):
    run, fas = page["run"], page["fas"]
    assert (len(run), fas.n, fas.mode) == (6, 6, "end-to-end")
    assert page["page"].is_file()
    assert len(page["guess"].samples()) == 6
    assert page["difference"].metric


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("docs/*.md"))),
        *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("examples/*.py"))),
        *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("tests/plugins/ripeness/src/ripeness/*.py"))),
    ],
    ids=lambda path: Path(path).name,
)
def test_pages_examples_and_the_plugin_import_public_modules_alone(path: str):
    text = (ROOT / path).read_text(encoding="utf-8")
    modules = re.findall(r"^ *(?:from|import) (agrotools[.\w]*)", text, re.MULTILINE)
    assert set(modules) <= {"agrotools", "agrotools.tools", "agrotools.plugin"}


@pytest.mark.parametrize("page", ["studies.md"], indirect=True)
def test_a_study_is_planned(page: dict[str, Any]):
    assert len(page["result"].states) == 13
