"""Questions that went because a reviewer found them unclear, not answerable or not worth asking (``rejected.toml``)."""

import hashlib
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from agrotools.core import Sample

_DIGITS = 12
"""Digits of the SHA-256 that name a question; two of a few thousand hardly share them."""


def question_key(sample: Sample) -> str:
    """Return what names a question in every build: a hash of its words and of the files that it shows."""
    shown = "\n".join(str(file.sha256) for file in sample.files)
    return hashlib.sha256(f"{sample.query}\n{shown}".encode()).hexdigest()[:_DIGITS]


@cache
def _reasons() -> dict[str, str]:
    return tomllib.loads(Path(__file__).with_name("rejected.toml").read_text("utf-8"))


def without_rejected(samples: Sequence[Sample]) -> list[Sample]:
    """Return the samples without those that were rejected, and without twins of questions that are no longer asked."""
    asked = {sample.id for sample in samples if question_key(sample) not in _reasons()}
    answerable = {sample.id for sample in samples if sample.answerable}
    kept: list[Sample] = []
    for sample in samples:
        lost_twin = sample.twin is not None and sample.twin not in asked
        if sample.id not in asked or (lost_twin and sample.twin in answerable):
            continue
        kept.append(sample.model_copy(update={"twin": None}) if lost_twin else sample)
    return kept
