"""The documentation site builds without a broken link, and the files about the project agree."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel

from agrotools.core import Record, Sample
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.formats.manifest import Manifest
from agrotools.report.citing import AUTHORS, TITLE
from agrotools.report.results import Result

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "docs" / "schemas"
MODELS: dict[str, type[BaseModel]] = {
    "record": Record, "manifest": Manifest, "sample": Sample, "benchmark": BenchmarkHeader, "result": Result,
}  # fmt: skip


@pytest.mark.slow
def test_the_site_builds_without_a_broken_link(tmp_path: Path):
    pytest.importorskip("zensical", reason="zensical (extra docs) is not installed")
    for name in ("docs", "src"):
        shutil.copytree(
            ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("data", "__pycache__")
        )
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-3000:]
    assert "Build the index of a corpus" in (tmp_path / "site" / "api" / "index.html").read_text(
        encoding="utf-8"
    )


def test_there_is_one_version_and_every_page_is_reached():
    text = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    assert {path.name for path in (ROOT / "docs").glob("*.md")} == set(
        re.findall(r'"([\w-]+\.md)"', text)
    )
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150, "three screens"
    for target in re.findall(r"\]\(([^)#:]+)(?:#[\w-]+)?\)", text):
        assert (ROOT / target).exists(), target
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (cited,) = re.findall(
        r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert cited == project["version"]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f'title: "{TITLE}"' in citation
    assert f'name: "{AUTHORS}"' in citation
    assert f"## [{cited}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_page_for_language_models_links_every_page_of_the_navigation():
    navigation = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    pages = {f"docs/{name}" for name in re.findall(r'"([\w-]+\.md)"', navigation)}
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "llms.txt").read_text(encoding="utf-8"))
    assert pages - set(links) == set()
    for target in links:
        assert (ROOT / target).exists(), target


def test_every_file_of_the_reading_page_exists():
    page = (ROOT / "docs" / "reading.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| \d+ \|", line)]
    files = [path for row in rows for path in re.findall(r"`(agrotools[a-z_/]*\.py)`", row)]
    assert files
    for path in files:
        assert (ROOT / "src" / path).is_file(), path


@pytest.mark.parametrize("name", MODELS)
def test_published_schema_is_current(name: str):
    """``AGROTOOLS_UPDATE_SNAPSHOTS=1`` writes the files anew."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | MODELS[
        name
    ].model_json_schema()
    path = SCHEMAS / f"{name}.schema.json"
    if os.environ.get("AGROTOOLS_UPDATE_SNAPSHOTS"):
        path.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == schema
