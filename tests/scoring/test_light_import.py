import subprocess
import sys

HEAVY = ("numpy", "scipy", "rich", "matplotlib", "rasterio", "cv2", "skimage", "aiohttp", "PIL")


def test_scoring_and_report_are_imported_without_anything_heavy():
    code = f"import sys, agrotools.report, agrotools.scoring; print([m for m in {HEAVY!r} if m in sys.modules])"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"
