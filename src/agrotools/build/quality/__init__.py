"""Automatic checks of a benchmark's quality: findings for a person to inspect.

``agrotools benchmarks check`` finds errors; these checks find valid samples of little value: near-duplicate pictures,
answers in a file's metadata, numbers that can be guessed. Nothing is dropped: each finding names a sample, a check, a
severity and a message.
"""

from agrotools.build.quality.checking import CHECKS, Finding, check_quality, write_findings
from agrotools.formats.benchmark import QUALITY_FILE

__all__ = ["CHECKS", "QUALITY_FILE", "Finding", "check_quality", "write_findings"]
