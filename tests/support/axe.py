"""Faults of a page by the rules of axe-core, which npm provides."""

import json
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path

import pytest

from support.browser import Page

AXE = "axe-core@4.10.3"


@cache
def axe_script() -> str:
    """The script of axe-core; the test is skipped if it cannot be had."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here")
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", AXE]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            pytest.skip("axe-core cannot be fetched")
        with tarfile.open(Path(folder) / done.stdout.split()[-1]) as archive:
            script = archive.extractfile("package/axe.min.js")
            return script.read().decode()


async def serious_faults(page: Page) -> list[str]:
    """Each serious or critical fault of the page with up to three elements that have it."""
    await page.evaluate(axe_script())
    found = json.loads(
        await page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(JSON.stringify)")
    )
    assert len(found["passes"]) > 10
    faults = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    return [
        f"{each['id']}: {[node['html'][:160] for node in each['nodes'][:3]]}" for each in faults
    ]
