"""The published JSON Schemas are those of the models that write the files."""

import json
import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from agrotools.core import Record, Sample
from agrotools.formats.benchmark import BenchmarkHeader
from agrotools.runner.manifest import Manifest

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"
MODELS: dict[str, type[BaseModel]] = {
    "record": Record, "manifest": Manifest, "sample": Sample, "benchmark": BenchmarkHeader,
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_published_schema_is_current(name: str):
    """``AGROTOOLS_UPDATE_SNAPSHOTS=1`` writes the files anew."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"} | MODELS[name].model_json_schema()
    path = SCHEMAS / f"{name}.schema.json"
    if os.environ.get("AGROTOOLS_UPDATE_SNAPSHOTS"):
        path.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == schema
