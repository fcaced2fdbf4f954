"""Scores that a run folder holds: those of another scoring version stay as they are until they are asked for anew."""

import re
from collections.abc import Sequence
from pathlib import Path

import orjson
from pydantic import ValidationError

from agrotools.core import RunStoreError, UsageError
from agrotools.core.files import copy_whole
from agrotools.scoring import Summary
from agrotools.scoring.metrics import FIRST_VERSION, SCORING_VERSION, check_one_version

SCORES_FILE = "scores.json"
_OPENING = re.compile(rb'\s*\{\s*"summary":\s*\{\s*"format":\s*\d+,\s*(?:"scoring":\s*"([0-9A-Za-z.]{1,20})")?')
_OPENING_BYTES = 400


def stored_version(run: Path) -> str | None:
    """The scoring version of the scores of a run folder; None where it holds none, or what was never scores."""
    try:
        with (run / SCORES_FILE).open("rb") as file:
            opening = _OPENING.match(file.read(_OPENING_BYTES))
    except OSError:
        return None
    if opening is None:
        return None
    return opening[1].decode() if opening[1] else FIRST_VERSION


def other_version_summary(run: Path) -> Summary | None:
    """The stored summary of a run, where it is of another scoring version; None where there is none.

    Raises:
        RunStoreError: it cannot be read.
    """
    version = stored_version(run)
    if version in (None, SCORING_VERSION):
        return None
    try:
        return Summary.model_validate(orjson.loads((run / SCORES_FILE).read_bytes())["summary"])
    except (OSError, ValueError, KeyError, ValidationError) as error:
        raise RunStoreError(
            f"the scores of {run}, of scoring version {version}, cannot be read: {str(error).splitlines()[0]}",
            hint=f"agrotools score {run} --rescore scores it again by version {SCORING_VERSION}",
        ) from error


def shown_as_stored(runs: Sequence[Path], needs: Sequence[str]) -> dict[Path, Summary]:
    """The runs whose stored scores are shown as they are, being of another scoring version than the present one.

    ``needs``: options that cannot be had without scoring anew.

    Raises:
        ScoringVersionError: the runs are of different scoring versions;
        UsageError: one of ``needs`` is asked for of stored scores;
        RunStoreError: they cannot be read.
    """
    stored = {run: found for run in runs if (found := other_version_summary(run)) is not None}
    check_one_version([stored[run].scoring if run in stored else SCORING_VERSION for run in runs])
    for run, summary in stored.items():
        if needs:
            raise UsageError(
                f"{needs[0]}: {run} holds scores of scoring version {summary.scoring}, which stay as they are",
                hint=f"add --rescore to score it again by version {SCORING_VERSION}",
            )
    return stored


def keep_other_version(run: Path) -> None:
    """Keep scores of another scoring version as ``scores-vN.json`` before they are written anew.

    Raises:
        OSError: they cannot be copied.
    """
    version = stored_version(run)
    if version not in (None, SCORING_VERSION) and not (kept := run / f"scores-v{version}.json").exists():
        copy_whole(run / SCORES_FILE, kept)
