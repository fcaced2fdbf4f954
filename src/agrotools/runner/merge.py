"""Merging of the shards of a run (:mod:`agrotools.runner.shards`) into one run folder.

The result equals the run folder of the same run without shards: ``agrotools eval`` with its folder resumes it.
"""

import os
import secrets
import shutil
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any, NamedTuple

from agrotools.core import Mode, Record, RunStoreError, UsageError
from agrotools.core.base import Progress, command_line, count_text, no_progress
from agrotools.core.files import MANIFEST_FILE, artifact_path, read_lines, sha256_of_file
from agrotools.models.metered import SPEND_FILE
from agrotools.models.probe import PROBE_FILE
from agrotools.runner.judging import SPEND_FILE as JUDGES_SPEND_FILE
from agrotools.runner.manifest import IDENTITY, Manifest, Shard, spell_difference, sum_usage
from agrotools.runner.prompts import PROMPTS_FILE, add_prompts, complete_lines
from agrotools.runner.records import Key, RecordIndex, record_index
from agrotools.runner.rescore import JUDGEMENT_HINT, JUDGEMENTS_FILE, RUBRICS_PREFIX, SCORES_FILE
from agrotools.runner.store import RunLock, RunStore, folder_error, read_manifest
from agrotools.scoring.judging.judgements import Judgement

_SAME = (
    *("benchmark", "benchmark_version", "benchmark_options", "benchmark_hash", "clean_hash", "toolset"),
    *(field for field in IDENTITY if field not in ("benchmark", "benchmark_hash", "shard")),
    *("modes", "epochs"),
)
"""Fields of the manifest in which shards of one run agree; those that explain a difference come first."""
_OF_MACHINE = ("agrotools", "python", "base_url", "vlm_base_url", "libraries")
"""Fields in which they may differ, with a note."""


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
    runs: Sequence[Path], out: Path, *, allow_missing: bool = False, progress: Progress = no_progress
) -> MergedRun:
    """Merge the shards of a run into a new run folder.

    The folder is written beside ``out`` and renamed at the end, so that an interrupted merge leaves no part of it. Two
    folders of the same shard count as one: of a sample that both have, the last finished record counts.

    Args:
        runs: folders of all shards, in any order.
        out: folder of the merged run, which must not exist or be empty.
        allow_missing: merge what is there if shards are missing or not finished.

    Raises:
        UsageError: a run is not a shard, shards of different runs, or shards are missing or not finished.
        RunStoreError: a run cannot be read, a line of its records is damaged, or ``out`` cannot be written.
    """
    shards = _read_shards(runs)
    notes = [*_check_same(shards), *_repeated(shards), *(note for each in shards for note in each.records.notes)]
    gaps = _gaps(shards)
    if gaps and not allow_missing:
        raise UsageError(
            "; ".join(gaps),
            hint="give the folders of all shards, and finish each with its agrotools eval command; --allow-missing"
            " merges what is there",
        )
    manifest, total = _with_all_machines(shards), 0
    named: set[tuple[str, str]] = set()
    with _new_folder(out) as folder:
        with RunStore(folder, manifest) as store:
            for number, each in enumerate(shards):
                progress("shards", number, len(shards))
                for record in each.records:
                    if _counts(shards, each, record.key):
                        store.append(record)
                        total += 1
                        named |= _artifacts_of(record)
            notes += _copy_others(shards, folder)
            notes += _note_of_absent(named, folder)
        progress("shards", len(shards), len(shards))
    n_shards = len({each.shard.number for each in shards})
    return MergedRun(out, total, n_shards, tuple(gaps), tuple(notes))


def whole_manifest(manifest: Manifest) -> Manifest:
    """Return the manifest of the run that a shard is a part of."""
    shard = manifest.shard
    if shard is None:
        return manifest
    planned: dict[Mode, int] = {mode: n * manifest.epochs for mode, n in shard.planned.items()}
    return manifest.model_copy(update={"shard": None, "sample_ids": shard.sample_ids, "planned": planned})


def _read_shards(runs: Sequence[Path]) -> list[_ShardRun]:
    shards: list[_ShardRun] = []
    for run in {run.resolve(): run for run in runs}.values():
        manifest = read_manifest(run)
        if manifest.shard is None:
            raise UsageError(
                f"{run} is not a shard: it was run without --shard, or merged before",
                hint="merge the runs of agrotools eval --shard NUMBER/COUNT",
            )
        shards.append(_ShardRun(run, manifest, manifest.shard, record_index(run).undamaged()))
    if not shards:
        raise UsageError("no run is given", hint="agrotools merge RUN... --out DIR")
    return shards


def _check_same(shards: Sequence[_ShardRun]) -> list[str]:
    """Return notes on differences of the machines; UsageError if the shards are not of the same run."""
    first, notes = shards[0], dict[str, None]()
    for each in shards[1:]:
        for field in _SAME:
            _refuse(first, each, field, (getattr(first.manifest, field), getattr(each.manifest, field)))
        for field in ("count", "planned", "sample_ids"):
            _refuse(first, each, field, (getattr(first.shard, field), getattr(each.shard, field)))
        for field in _OF_MACHINE:
            values = getattr(first.manifest, field), getattr(each.manifest, field)
            if values[0] != values[1]:
                difference = spell_difference(field, *values, ("in one", "in another"))
                notes[f"shards were run on different machines: {difference}"] = None
    owners: dict[str, Shard] = {}
    for each in shards:
        for sample_id in each.manifest.sample_ids:
            owner = owners.setdefault(sample_id, each.shard)
            if owner.number != each.shard.number:
                raise UsageError(
                    f"sample {sample_id} is in the shards {owner} and {each.shard}",
                    hint="run all shards with one version of agrotools, which splits a run in one way",
                )
    return list(notes)


def _repeated(shards: Sequence[_ShardRun]) -> Iterator[str]:
    """Yield a note for each shard that is in several folders."""
    for number, count in Counter(each.shard.number for each in shards).items():
        if count > 1:
            folders = ", ".join(str(each.path) for each in shards if each.shard.number == number)
            yield f"shard {number} is in {count} folders ({folders}): of a sample in several, the last finished counts"


def _refuse(first: _ShardRun, other: _ShardRun, field: str, values: tuple[object, object]) -> None:
    """Raise a UsageError if the values of a field differ."""
    if values[0] != values[1]:
        difference = spell_difference(field, *values, (f"in {first.path}", f"in {other.path}"))
        raise UsageError(
            f"{first.path} and {other.path} are not shards of one run: {difference}",
            hint="run every shard with the same command but for --shard",
        )


def _counts(shards: Sequence[_ShardRun], run: _ShardRun, key: Key) -> bool:
    """Return True if, of all folders of its shard, ``run`` has the last finished record of ``key``, or else the last
    record."""
    having = [each for each in shards if each.shard.number == run.shard.number and key in each.records]
    finished = [each for each in having if each.records.has_finished(key)]
    return bool(having) and [*having, *finished][-1] is run


def _gaps(shards: Sequence[_ShardRun]) -> list[str]:
    """Return what is missing: ``shards 4, 9 of 16 are missing``, and shards with fewer records than planned."""
    count = shards[0].shard.count
    keys = ((each, key) for each in shards for key in each.records.each_key())
    done = Counter(each.shard.number for each, key in keys if _counts(shards, each, key))
    planned: dict[int, int] = {}
    for each in shards:
        planned[each.shard.number] = max(planned.get(each.shard.number, 0), sum(each.manifest.planned.values()))
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
    """Return the manifest of the merged run, which names the versions of all machines."""
    manifests = [each.manifest for each in shards]
    libraries: dict[str, dict[str, None]] = {}
    for name, version in (pair for each in manifests for pair in each.libraries.items()):
        libraries.setdefault(name, {})[version] = None
    update: dict[str, Any] = {
        "agrotools": " / ".join(dict.fromkeys(each.agrotools for each in manifests)),
        "python": " / ".join(dict.fromkeys(each.python for each in manifests)),
        "libraries": {name: " / ".join(versions) for name, versions in libraries.items()},
        "usage": sum_usage(*(each.usage for each in manifests)),
    }
    if any(each.sealed is False for each in manifests):
        update["sealed"] = False
    return whole_manifest(manifests[0]).model_copy(update=update)


def _copy_others(shards: Sequence[_ShardRun], folder: Path) -> list[str]:
    """Copy prompts, artifacts, ledgers and replies of judges into ``folder``; return notes on what is not there."""
    paths = [each.path for each in shards]
    known = set[bytes]()
    for each in shards:
        add_prompts(each.path, folder, known, lambda key, each=each: _counts(shards, each, key))
    lacking = [str(path) for path in paths if not (path / PROMPTS_FILE).is_file()]
    notes = [f"no requests to models are stored in {', '.join(lacking)}"] if 0 < len(lacking) < len(paths) else []
    damaged = [path for run in paths for path in _copy_artifacts(run / "artifacts", folder / "artifacts")]
    damaged = [path for path in damaged if not (folder / "artifacts" / path.name).exists()]
    for name in (SPEND_FILE, JUDGES_SPEND_FILE):
        _append_lines([path / name for path in paths], folder / name)
    _copy_judging(paths, folder)
    if probe := next((path / PROBE_FILE for path in paths if (path / PROBE_FILE).is_file()), None):
        shutil.copyfile(probe, folder / PROBE_FILE)
    if damaged:
        files = count_text(len(damaged), "artifact")
        notes.append(f"left out {files} whose content is not that of the name (first: {damaged[0]})")
    return notes


def _copy_artifacts(source: Path, target: Path) -> list[Path]:
    """Copy files that are named by their content; return those whose content is another one."""
    damaged: list[Path] = []
    for path in sorted(source.iterdir()) if source.is_dir() else ():
        if path.name.startswith(".") or path.is_symlink() or not path.is_file() or (target / path.name).exists():
            continue
        if sha256_of_file(path) == path.name.partition(".")[0]:
            shutil.copyfile(path, target / path.name)
        else:
            damaged.append(path)
    return damaged


def _artifacts_of(record: Record) -> set[tuple[str, str]]:
    """Return hash and name of each file of tools that a record names."""
    steps = record.trajectory.steps if record.trajectory else ()
    observations = (step.observation for step in steps if step.observation is not None)
    return {(each.sha256, each.name) for seen in observations for each in seen.artifacts if each.sha256}


def _note_of_absent(named: Iterable[tuple[str, str]], folder: Path) -> list[str]:
    """Return a note on files of tools that records name and no shard has."""
    files = {(digest, name): artifact_path(folder, digest, Path(name).suffix) for digest, name in named}
    absent = sorted({digest: name for (digest, name), path in files.items() if not path.is_file()}.values())
    if not absent:
        return []
    return [f"{count_text(len(absent), 'file')} of tools missing from all shards and from reports (first: {absent[0]})"]


def _append_lines(sources: Iterable[Path], target: Path) -> None:
    """Append the complete lines of all sources to ``target``, which is not made without any."""
    for source in sources:
        if source.exists():
            with target.open("ab") as joined:
                joined.writelines(complete_lines(source))


def _copy_judging(paths: Sequence[Path], folder: Path) -> None:
    """Copy each reply of judges once, and the user's rubrics; UsageError if shards have different ones."""
    rubrics: dict[tuple[str, bytes], Path | None] = {}
    for run in paths:
        own = [*run.glob(f"{RUBRICS_PREFIX}*")]
        rubrics |= {(path.name, path.read_bytes()): path for path in own}
        if not own and (run / JUDGEMENTS_FILE).is_file():
            rubrics["the built-in ones", b""] = None
    if len(rubrics) > 1:
        first, second = [path or name for (name, _), path in rubrics.items()][:2]
        raise UsageError(
            f"shards were judged by different rubrics: {first} / {second}",
            hint="judge all of them by the same rubrics again",
        )
    for path in filter(None, rubrics.values()):
        shutil.copyfile(path, folder / path.name)
    replies: dict[tuple[object, ...], Judgement] = {}
    for run in paths:
        for each in read_lines(run / JUDGEMENTS_FILE, Judgement, JUDGEMENT_HINT):
            replies.setdefault((each.judge, each.asked, each.vote), each)
    if replies:
        lines = b"".join(each.model_dump_json().encode() + b"\n" for each in replies.values())
        (folder / JUDGEMENTS_FILE).write_bytes(lines)


@contextmanager
def _new_folder(target: Path) -> Generator[Path]:
    """Yield a new folder beside ``target`` that takes its name if the block succeeds, and is removed if it fails.

    What a killed merge has left there is removed.

    Raises:
        RunStoreError: ``target`` is not empty, or cannot be written.
    """
    target = target.absolute()
    try:
        if target.is_file() or (target.is_dir() and any(target.iterdir())):
            hint = "choose a new folder with --out, or remove it"
            if (target / MANIFEST_FILE).is_file() and not (target / SCORES_FILE).exists():
                hint += f"; if a merge was stopped while it scored, {command_line('score', target)} finishes it"
            raise RunStoreError(f"{target} exists; it is left as it is", hint=hint)
        target.parent.mkdir(parents=True, exist_ok=True)
        for abandoned in target.parent.glob(f".{escape(target.name)}.merging-*"):
            with suppress(RunStoreError, OSError):  # in use by another merge
                RunLock(abandoned).close()
                shutil.rmtree(abandoned)
        folder = target.parent / f".{target.name}.merging-{secrets.token_hex(4)}"
        folder.mkdir()
        try:
            yield folder
            os.sync()
            folder.rename(target)
        except RunStoreError as error:  # it names a folder that will be gone, and says that a run can be resumed
            message = error.message.replace(str(folder), str(target))
            raise RunStoreError(message, hint=(error.hint or "").removesuffix(" to resume")) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError as error:
        raise folder_error(target, error) from error
