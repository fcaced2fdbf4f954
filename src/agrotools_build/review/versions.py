"""Samples that reviewers corrected or wrote: one line for each version, in a folder beside the journal of decisions.

A version is applied only to the content that its author saw. Of a benchmark that was built again, samples that are
unchanged keep their corrections; the others lose them, and the page says how many.
"""

import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path

from pydantic import JsonValue, ValidationError

from agrotools.core import BenchmarkError, Sample, first_error
from agrotools_build.review.agreement import Reviewer
from agrotools_build.review.line_journal import JournalLine, LineJournal

VERSIONS_FILE = "versions.jsonl"
FROM_NOTHING = ""
"""``of`` of a version whose question was written from nothing."""


class Version(JournalLine):
    """Version of a sample that a reviewer saved. ``of``: content that it replaces (:func:`content_of`)."""

    sample: dict[str, JsonValue]
    of: str = FROM_NOTHING
    by: Reviewer
    at: str = ""
    """time of storage, UTC, ISO 8601"""

    @property
    def sample_id(self) -> str:
        return str(self.sample.get("id", ""))


def content_of(sample: Sample) -> str:
    """Return the first 16 digits of the SHA-256 of a sample, which a decision on it names."""
    # Runs store samples with their cluster, benchmark folders without it.
    text = sample.model_dump_json(by_alias=True, exclude={"cluster"})
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def written_folder(journal: Path) -> Path:
    """Return the folder of versions and unfinished work beside a journal of decisions: ``review.written``."""
    return journal.with_suffix(".written")


class Versions:
    """Latest version of each sample that reviewers corrected or wrote; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._journal = LineJournal(folder / VERSIONS_FILE, Version)
        self._guard = threading.Lock()
        self._read = 0
        self._samples: dict[str, Sample] = {}
        self._history: dict[str, list[Version]] = {}
        self.outdated = 0
        """number of versions of contents that are no longer there"""

    def update(self, contents: Mapping[str, str]) -> dict[str, Sample]:
        """Read lines that were added, and return the samples that they change, by id.

        ``contents``: content of each sample of the benchmark, by id. BenchmarkError: a line holds no sample.
        """
        self._journal.refresh()
        with self._guard:
            lines = self._journal.lines()
            added, self._read = lines[self._read :], len(lines)
            changed: dict[str, Sample] = {}
            for version in added:
                if version.of != self._content(version.sample_id, contents):
                    self.outdated += 1
                    continue
                sample = self._parsed(version)
                self._samples[sample.id] = changed[sample.id] = sample
                self._history.setdefault(sample.id, []).append(version)
            return changed

    def _content(self, sample_id: str, contents: Mapping[str, str]) -> str:
        if (latest := self._samples.get(sample_id)) is not None:
            return content_of(latest)
        return contents.get(sample_id, FROM_NOTHING)

    def _parsed(self, version: Version) -> Sample:
        try:
            return Sample.model_validate(version.sample)
        except ValidationError as error:
            why = (
                f"{self._journal.path}: version {version.id} holds no sample: {first_error(error)}"
            )
            raise BenchmarkError(why, hint="remove that line") from error

    def append(self, version: Version) -> bool:
        """Store a version (OSError if not); False if it was stored already."""
        self.folder.mkdir(exist_ok=True)
        return self._journal.append(version)

    def sample(self, sample_id: str) -> Sample | None:
        """Return the latest version of a sample; None if nobody changed it."""
        return self._samples.get(sample_id)

    def history(self, sample_id: str) -> list[Version]:
        """Return the versions of a sample, the oldest first."""
        return [*self._history.get(sample_id, ())]

    @property
    def written(self) -> list[Sample]:
        """Samples that were written from nothing."""
        return [
            self._samples[sample_id]
            for sample_id, versions in self._history.items()
            if versions[0].of == FROM_NOTHING
        ]

    @property
    def corrected(self) -> list[str]:
        """Ids of samples that were corrected."""
        return [
            sample_id
            for sample_id, versions in self._history.items()
            if versions[0].of != FROM_NOTHING
        ]
