"""Test of a new run against an older one: what both must share, and the scores that are tested.

Two runs come in, as folders or as files of ``gate --save``; the verdict of :mod:`agrotools.scoring.gate` goes out, with
what speaks against it. Runs that differ in more than the version under test are refused, not compared.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

from agrotools.core import Mode, UsageError
from agrotools.formats.manifest import Manifest, TaskTypes
from agrotools.runner.rescore import (
    benchmark_differences,
    check_distinct,
    scored_run,
    warnings_of_looks,
)
from agrotools.runner.saved_run import opened_run
from agrotools.runner.store import read_manifest
from agrotools.runner.yardsticks import headline_mode
from agrotools.scoring.gate import Gate, gate


class GatedRuns(NamedTuple):
    """Result of testing a new run against an older one.

    ``new``, ``old``: names of the models; ``warnings``: what speaks against the test; ``task_types``: those that both
    runs are limited to.
    """

    result: Gate
    new: str
    old: str
    warnings: tuple[str, ...] = ()
    task_types: TaskTypes | None = None


def gate_runs(
    new: Path,
    old: Path,
    mode: str | None = None,
    max_drop: float = 0.0,
    *,
    allow_invalid: bool = False,
) -> GatedRuns:
    """Test whether the score of a new run is lower than that of an older one by more than ``max_drop``.

    Args:
        new: run folder, or a file of ``agrotools gate --save``.
        old: the older one.
        mode: mode that is tested; by default the headline mode of those that both have.
        max_drop: allowed drop of the score, of which 1 is the highest.
        allow_invalid: test the samples that both have a score of, even if many are invalid.

    Raises:
        UsageError: the runs differ in more than the version that is tested, or have too few clusters in common.
        RunStoreError: a run cannot be read.
    """
    with opened_run(new) as newer, opened_run(old) as older:
        of_new, of_old = read_manifest(newer), read_manifest(older)
        differences = _differences([of_new, of_old], compare_modes=mode is None)
        if differences:
            raise UsageError(
                f"these runs cannot be compared: {differences[0]}", hint="run NEW as OLD was run"
            )
        result = gate(
            scored_run(newer),
            scored_run(older),
            _mode([of_new, of_old], mode),
            max_drop,
            allow_invalid=allow_invalid,
        )
        warnings = tuple(warnings_of_looks((newer, older)))
    check_distinct([new, old])
    names = (of_new.shown_model, of_old.shown_model)
    return GatedRuns(result, *names, warnings, of_new.task_types)


def _differences(manifests: Sequence[Manifest], *, compare_modes: bool) -> list[str]:
    """Return the differences that make a test of two runs meaningless."""
    found = benchmark_differences(manifests)
    for field, (words, nothing) in _COMPARED_FIELDS.items():
        values = [getattr(manifest, field) for manifest in manifests]
        if values[0] != values[1]:
            named = ["quick part" if value is True else str(value or nothing) for value in values]
            found.append(f"different {words}: {' / '.join(named)}")
    modes = [", ".join(sorted(manifest.modes)) for manifest in manifests]
    both_end_to_end = all("end-to-end" in manifest.modes for manifest in manifests)
    if compare_modes and modes[0] != modes[1] and not both_end_to_end:
        found.append(f"different modes: {' / '.join(modes)} (--mode chooses one that both have)")
    return found


_COMPARED_FIELDS = {
    "scoring": ("scoring versions", "whole"),
    "quick": ("parts of the benchmark", "whole"),
    "task_types": ("task types", "all"),
    "degrade": ("degradations", "none"),
    "faults": ("faults in tool calls", "none"),
    "shard": ("shards", "whole"),
}
"""Fields of a manifest that two tested runs share: their name, and the word for a value that is not set."""


def _mode(manifests: Sequence[Manifest], mode: str | None) -> Mode:
    """Return the mode that is tested: the chosen one, else the headline mode of those that both runs have."""
    first, second = manifests
    common = cast("tuple[Mode, ...]", tuple(each for each in first.modes if each in second.modes))
    if mode is None:
        return headline_mode(common)
    if mode not in common:
        raise UsageError(
            f"mode {mode} is not in both runs", hint=f"both have: {', '.join(common) or 'none'}"
        )
    return mode
