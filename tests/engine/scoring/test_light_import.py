import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

HEAVY = ("numpy", "scipy", "rich", "matplotlib", "rasterio", "cv2", "skimage", "aiohttp", "PIL")


def test_scoring_and_report_are_imported_without_anything_heavy():
    show = f"print([m for m in {HEAVY!r} if m in sys.modules])"
    code = f"import sys, agrotools.scoring; {show}; import agrotools.report; {show}"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert process.stdout.split("\n")[:2] == ["[]", "[]"]
