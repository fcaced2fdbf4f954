"""Automatic checks of a benchmark's quality: what a person should look at before they trust it.

``agrotools validate`` finds what is broken; these find what is sound and yet of little worth: pictures that are nearly
the same, answers that stand in a file's metadata, numbers that can be guessed. Nothing is dropped: each finding names a
sample, a check, how bad it is, and what was found.
"""

from agrotools.build.quality.checking import CHECKS, Finding, check_quality, read_findings, write_findings
from agrotools.formats.folder import QUALITY_FILE

__all__ = ["CHECKS", "QUALITY_FILE", "Finding", "check_quality", "read_findings", "write_findings"]
