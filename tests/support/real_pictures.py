"""Real pictures, from the folder of the fixture ``field_data``."""

import json
from pathlib import Path

import pytest


def real_pictures(data: Path, folder: str, most: int) -> list[Path]:
    """Return the first ``most`` pictures of a folder of the real images; skip the test where there is none."""
    truth = data / folder / "truth.json"
    if not truth.is_file():
        pytest.skip(f"no folder {folder} in AGROTOOLS_TEST_DATA")
    return [data / folder / item["image"] for item in json.loads(truth.read_text("utf-8"))[:most]]
