"""Shards of a run: parts of its samples, each run on a machine of its own (``--shard 3/16``), and their merging.

Samples that share a cluster stay together, and shards have about the same number of requests. The split follows from
the samples and modes of the run alone, so that every machine computes the same one. The merged run folder equals that
of the same run without shards: ``agrotools eval`` with its folder resumes it.
"""

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

from agrotools.core import Mode, RunStoreError, UsageError
from agrotools.core.files import MANIFEST_FILE, sha256_of_file
from agrotools.core.progress import Progress, no_progress
from agrotools.core.texts import command_line, count_text
from agrotools.formats.manifest import (
    IDENTITY,
    Manifest,
    Shard,
    spell_difference,
    sum_setup,
    sum_usage,
)
from agrotools.models.metered import SPEND_FILE
from agrotools.models.probe import PROBE_FILE
from agrotools.runner.estimate import expected_requests
from agrotools.runner.plan import WorkItems
from agrotools.runner.prompts import PROMPTS_FILE, add_prompts, complete_lines
from agrotools.runner.records import RecordIndex, record_index
from agrotools.runner.rescore import (
    JUDGEMENTS_FILE,
    JUDGES_SPEND_FILE,
    RUBRICS_PREFIX,
    SCORES_FILE,
)
from agrotools.runner.store import RunStore, folder_error, read_manifest

_SAME = (
    "benchmark",
    "benchmark_version",
    "benchmark_options",
    "benchmark_hash",
    "clean_hash",
    "toolset",
    *(field for field in IDENTITY if field not in ("benchmark", "benchmark_hash", "shard")),
    "modes",
    "epochs",
)
"""Fields of the manifest in which shards of one run agree; those that explain a difference come first."""
_OF_MACHINE = ("agrotools", "python", "base_url", "vlm_base_url", "libraries")
"""Fields in which they may differ, with a note."""
_SAME_OF_SHARDS = ("count", "planned", "sample_ids")


def shard_text(shard: object) -> str:
    """Return a shard, ``"3/16"`` or ``(3, 16)``, as text; UsageError if it is none of 1 to the count."""
    given = (
        "/".join(map(str, cast("Sequence[object]", shard)))
        if isinstance(shard, tuple | list)
        else str(shard)
    )
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*/\s*([0-9]{1,18})\s*", given)
    if match is None:
        raise UsageError(
            f"shard {given!r} is not of the form NUMBER/COUNT",
            hint="e.g. 3/16, the third of 16 shards",
        )
    number, count = map(int, match.groups())
    if not 1 <= number <= count:
        hint = (
            f"shards are numbered from 1/{count} to {count}/{count}"
            if count
            else "at least one shard, e.g. 1/1"
        )
        raise UsageError(f"there is no shard {number}/{count}", hint=hint)
    return f"{number}/{count}"


def shard_run(items: WorkItems, manifest: Manifest, shard: str) -> tuple[WorkItems, Manifest]:
    """Return items and manifest of one shard of a run; UsageError if there are more shards than clusters."""
    number, count = map(int, shard.split("/"))
    own_positions = split(items, count)[number - 1]
    part = items.among({items.ids[at] for at in own_positions})
    one_epoch: dict[Mode, int] = {
        mode: n // manifest.epochs for mode, n in manifest.planned.items()
    }
    whole = Shard(number=number, count=count, sample_ids=manifest.sample_ids, planned=one_epoch)
    update = {"shard": whole, "sample_ids": part.sample_ids(), "planned": part.sizes()}
    return part, manifest.model_copy(update=update)


def split(items: WorkItems, count: int) -> list[set[int]]:
    """Return the positions of the samples of each shard.

    The cluster with the most requests comes first, and each goes to the shard with the fewest requests so far (Graham's
    rule of longest processing times, at most a third above the best possible split).

    Raises:
        UsageError: there are more shards than clusters.
    """
    costs, members = Counter[str](), dict[str, set[int]]()
    for part in items.parts:
        for at in part.positions if part.epoch == 0 else ():
            sample = items.samples[at]
            cluster = sample.cluster or sample.id
            costs[cluster] += expected_requests(sample, part.mode)
            members.setdefault(cluster, set()).add(at)
    if count > len(costs):
        raise UsageError(
            f"{count} shards of {count_text(len(costs), 'cluster')}: some would be empty, because samples that share"
            " a file run on one machine",
            hint=f"--shard NUMBER/{len(costs)} or fewer",
        )
    shards = [set[int]() for _ in range(count)]
    loads = [0] * count
    for cluster in sorted(costs, key=lambda name: (-costs[name], name)):
        least = loads.index(min(loads))
        shards[least] |= members[cluster]
        loads[least] += costs[cluster]
    return shards


class MergedRun(NamedTuple):
    """Folder of a merged run, its numbers of records and shards, and notes for the user.

    ``gaps``: shards that are not complete.
    """

    run: Path
    records: int
    shards: int
    gaps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _ShardRun(NamedTuple):
    path: Path
    manifest: Manifest
    shard: Shard
    records: RecordIndex


def merge_runs(
    runs: Sequence[Path],
    out: Path,
    *,
    allow_missing: bool = False,
    progress: Progress = no_progress,
) -> MergedRun:
    """Merge the shards of a run into a new run folder.

    The folder is written beside ``out`` and renamed at the end, so that an interrupted merge leaves no part of it.

    Args:
        runs: folders of all shards, in any order.
        out: folder of the merged run, which must not exist or be empty.
        allow_missing: merge what is there if shards are missing or not finished.

    Raises:
        UsageError: a run is not a shard, shards of different runs or the same shard twice, or shards are missing or not
            finished.
        RunStoreError: a run cannot be read, a line of its records is damaged, or ``out`` cannot be written.
    """
    shards = _read_shards(runs)
    notes = [*_check_same(shards), *(note for each in shards for note in each.records.notes)]
    gaps = _gaps(shards)
    if gaps and not allow_missing:
        raise UsageError(
            "; ".join(gaps),
            hint="give the folders of all shards, and finish each with its agrotools eval command; --allow-missing"
            " merges what is there",
        )
    with _new_folder(out) as folder:
        with RunStore(folder, _with_all_machines(shards)) as store:
            for number, each in enumerate(shards):
                progress("shards", number, len(shards))
                for record in each.records:
                    store.append(record)
            notes += _copy_others([each.path for each in shards], folder)
        progress("shards", len(shards), len(shards))
    return MergedRun(
        out, sum(len(each.records) for each in shards), len(shards), tuple(gaps), tuple(notes)
    )


def whole_manifest(manifest: Manifest) -> Manifest:
    """Return the manifest of the run that a shard is a part of."""
    shard = manifest.shard
    if shard is None:
        return manifest
    planned: dict[Mode, int] = {mode: n * manifest.epochs for mode, n in shard.planned.items()}
    return manifest.model_copy(
        update={"shard": None, "sample_ids": shard.sample_ids, "planned": planned}
    )


def _read_shards(runs: Sequence[Path]) -> list[_ShardRun]:
    shards: dict[int, _ShardRun] = {}
    for run in {run.resolve(): run for run in runs}.values():
        manifest = read_manifest(run)
        if manifest.shard is None:
            raise UsageError(
                f"{run} is not a shard: it was run without --shard, or merged before",
                hint="merge the runs of agrotools eval --shard NUMBER/COUNT",
            )
        number = manifest.shard.number
        if number in shards:
            raise UsageError(
                f"shard {number} is in two folders, {shards[number].path} and {run}",
                hint="give one",
            )
        shards[number] = _ShardRun(run, manifest, manifest.shard, record_index(run).undamaged())
    if not shards:
        raise UsageError("no run is given", hint="agrotools merge RUN... --out DIR")
    return [*shards.values()]


def _check_same(shards: Sequence[_ShardRun]) -> Iterator[str]:
    """Yield notes on differences of the machines; UsageError if the shards are not of the same run."""
    first = shards[0]
    for each in shards[1:]:
        fields = [
            (name, getattr(first.manifest, name), getattr(each.manifest, name)) for name in _SAME
        ]
        fields += [
            (name, getattr(first.shard, name), getattr(each.shard, name))
            for name in _SAME_OF_SHARDS
        ]
        if different := next((field for field in fields if field[1] != field[2]), None):
            difference = spell_difference(*different, (f"in {first.path}", f"in {each.path}"))
            raise UsageError(
                f"{first.path} and {each.path} are not shards of one run: {difference}",
                hint="run every shard with the same command except --shard",
            )
    notes = {
        spell_difference(name, *values, ("in one", "in another")): None
        for each in shards[1:]
        for name in _OF_MACHINE
        if len(
            set(map(str, values := (getattr(first.manifest, name), getattr(each.manifest, name))))
        )
        > 1
    }
    yield from (f"shards were run on different machines: {difference}" for difference in notes)
    owners: dict[str, Shard] = {}
    for each in shards:
        for sample_id in each.manifest.sample_ids:
            if (owner := owners.setdefault(sample_id, each.shard)) is not each.shard:
                raise UsageError(
                    f"sample {sample_id} is in the shards {owner} and {each.shard}",
                    hint="run all shards with one version of agrotools, which splits a run in one way",
                )


def _gaps(shards: Sequence[_ShardRun]) -> list[str]:
    """Return what is missing: ``shards 4, 9 of 16 are missing``, and shards with fewer records than planned."""
    count = shards[0].shard.count
    planned = {each.shard.number: sum(each.manifest.planned.values()) for each in shards}
    done = {each.shard.number: len(each.records) for each in shards}
    missing = [str(number) for number in range(1, count + 1) if number not in planned]
    part = [
        f"{number}/{count} ({done[number]} of {count_text(n, 'record')})"
        for number, n in sorted(planned.items())
        if done[number] < n
    ]
    noun, verb = ("shard", "is") if len(missing) == 1 else ("shards", "are")
    gaps = [f"{noun} {', '.join(missing)} of {count} {verb} missing"] if missing else []
    gaps += [f"not finished: {', '.join(part)}"] if part else []
    lacking = sum(whole_manifest(shards[0].manifest).planned.values()) - sum(planned.values())
    if lacking and not missing:
        gaps.append(
            f"{count_text(lacking, 'record')} in no shard: the shards were split by different versions of agrotools"
        )
    return gaps


def _with_all_machines(shards: Sequence[_ShardRun]) -> Manifest:
    manifests = [each.manifest for each in shards]
    libraries: dict[str, dict[str, None]] = {}
    for name, version in (pair for each in manifests for pair in each.libraries.items()):
        libraries.setdefault(name, {})[version] = None
    update: dict[str, Any] = {
        "agrotools": " / ".join(dict.fromkeys(each.agrotools for each in manifests)),
        "python": " / ".join(dict.fromkeys(each.python for each in manifests)),
        "libraries": {name: " / ".join(versions) for name, versions in libraries.items()},
        "usage": sum_usage(*(each.usage for each in manifests)),
        "setup": sum_setup(*(each.setup for each in manifests)),
    }
    if any(each.sealed is False for each in manifests):
        update["sealed"] = False
    return whole_manifest(manifests[0]).model_copy(update=update)


def _copy_others(runs: Sequence[Path], folder: Path) -> list[str]:
    """Copy prompts, artifacts, ledgers and replies of judges into ``folder``; return notes on what is not there."""
    known = set[bytes]()
    for run in runs:
        add_prompts(run, folder, known)
        for path in (run / "artifacts").glob("[!.]*"):
            target = folder / "artifacts" / path.name
            # An artifact has the hash of its content as its name: one that a kill cut off is left.
            is_whole = (
                path.is_file()
                and not path.is_symlink()
                and sha256_of_file(path) == path.name.partition(".")[0]
            )
            if is_whole and not target.exists():
                shutil.copyfile(path, target)
    lacking = [str(run) for run in runs if not (run / PROMPTS_FILE).is_file()]
    for name in (SPEND_FILE, JUDGES_SPEND_FILE, JUDGEMENTS_FILE):
        for source in filter(Path.exists, (run / name for run in runs)):
            with (folder / name).open("ab") as joined:
                joined.writelines(complete_lines(source))
    rubrics = {
        tuple(each.read_bytes() for each in own): own
        for own in map(_rubrics_of, runs)
        if own is not None
    }
    if len(rubrics) > 1:
        names = [str(own[0]) if own else "the built-in ones" for own in rubrics.values()]
        raise UsageError(
            f"shards were judged by different rubrics: {' / '.join(names)}",
            hint="judge all of them by the same rubrics again",
        )
    probes = [path for run in runs if (path := run / PROBE_FILE).is_file()]
    for path in (*(each for own in rubrics.values() for each in own), *probes[:1]):
        shutil.copyfile(path, folder / path.name)
    return (
        [f"no requests to models are stored in {', '.join(lacking)}"]
        if 0 < len(lacking) < len(runs)
        else []
    )


def _rubrics_of(run: Path) -> list[Path] | None:
    """Return the user's rubrics of a run, none for the built-in ones; None if it was not judged."""
    own = sorted(run.glob(f"{RUBRICS_PREFIX}*"))
    return own if own or (run / JUDGEMENTS_FILE).is_file() else None


@contextmanager
def _new_folder(target: Path) -> Generator[Path]:
    """Yield a new folder beside ``target`` that takes its name if the block succeeds, and is removed if it fails.

    Raises:
        RunStoreError: ``target`` is not empty, or cannot be written.
    """
    target = target.absolute()
    try:
        if target.is_file() or (target.is_dir() and any(target.iterdir())):
            hint = "choose a new folder with --out, or remove it"
            if (target / MANIFEST_FILE).is_file() and not (target / SCORES_FILE).exists():
                hint += f"; if a merge was stopped while it scored, {command_line('score', target)} finishes it"
            raise RunStoreError(f"{target} exists; it was not changed", hint=hint)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{target.name}.merging-", dir=target.parent
        ) as beside:
            folder = Path(beside) / target.name
            folder.mkdir()
            yield folder
            os.sync()
            folder.rename(target)
    except OSError as error:
        raise folder_error(target, error) from error
