"""Run the reference calls of packed benchmarks again where tools have changed, and pack the new results.

Makes the packs in src/agrotools_benchmarks/data again.

    python training/record_again.py WORK [--names embedded frontier field] [--data DATA]

A step runs again if the version of its tool differs from the one that the pack names, or if its arguments follow from a
result that changed; all others keep what was recorded. Questions, answers and true results stay: use
``pack_benchmarks.py`` and ``pack_field.py`` where a change of a tool moves them. Where results changed, raise the
version of the benchmark in these two scripts first; decisions of reviews are carried over to samples of which results
alone changed. ``DATA`` is a mirror of the photographs of ``field``, as ``agrotools benchmarks get field --mirror``
takes it; WORK takes drawn scenes and copies.

A call whose back-end is not on this machine cannot run. What was recorded stays, and the calls are printed: look
whether the change of the tool can concern them. The same holds for a result of a head for crop and weeds that has other
weights here, because the head would differ, not the tool.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parent))

NAMES = ("embedded", "frontier", "field")
WORKERS = 2


@dataclass
class Changes:
    """What differs from the recorded results: number of calls by tool and place, and calls that could not run.

    ``other_heads``: recorded heads for crop and weeds that are not here with these weights.
    """

    other_heads: set[str] = field(default_factory=set)
    ran: Counter[str] = field(default_factory=Counter)
    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    values: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--data", type=Path, help="photographs of field")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    options = parser.parse_args()
    work = cast(Path, options.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("AGROTOOLS_CACHE", str(work / "cache"))
    for name in options.names:
        record_again(name, work, options.data, is_dry=options.dry)


def record_again(name: str, work: Path, data: Path | None, *, is_dry: bool) -> None:
    """Run the calls of a benchmark that may have changed, print what differs, and write its pack."""
    from pack_benchmarks import VERSIONS
    from pack_field import VERSION

    from agrotools.calling import get_tool
    from agrotools.formats.benchmark import content_hash_of
    from agrotools.formats.writing import canary_of
    from agrotools.loading.pack import read_pack

    pack = read_pack(name)
    recorded = cast("dict[str, str]", pack.header.metadata["tools"])
    changed = {tool for tool, version in recorded.items() if get_tool(tool).version != version}
    print(f"{name}: tools of another version: {', '.join(sorted(changed)) or 'none'}")
    changes = Changes(other_heads=other_heads(pack.header.metadata))
    references = run_calls(pack, folder_of(name, work, data), changed, changes)
    print(f"  ran {dict(changes.ran)}")
    for (tool, place), count in sorted(changes.places.items()):
        print(f"  {tool} {place}: {count}")
    for line in (*changes.values, *changes.lacking):
        print(f"  {line}")
    are_same = all(
        sample.reference == reference
        for sample, reference in zip(pack.samples, references, strict=True)
    )
    version = {**VERSIONS, "field": VERSION}[name]
    if not are_same and version == pack.header.version:
        print(f"  results differ: raise the version of {name}, which is {version}")
    tools = {tool: get_tool(tool).version for tool in recorded}
    # The canary of drawn benchmarks goes with their version, that of field with its first build.
    is_of_version = pack.header.canary == canary_of(name, pack.header.version)
    canary = canary_of(name, version) if is_of_version else pack.header.canary
    metadata = {**pack.header.metadata, "tools": tools}
    header = pack.header.model_copy(
        update={"version": version, "metadata": metadata, "canary": canary}
    )
    samples = [
        sample.model_copy(update={"reference": reference, "canary": canary})
        for sample, reference in zip(pack.samples, references, strict=True)
    ]
    print(f"  content {content_hash_of(header, samples)}")
    if not is_dry:
        write(name, pack, header, samples)


def other_heads(metadata: Mapping[str, Any]) -> set[str]:
    """Return the names of recorded heads for crop and weeds that are not here, or have other weights here."""
    from agrotools_tools.crop_weed.heads import list_heads

    here = {head.name: head.weights_sha256 for head in list_heads()[0]}
    recorded = cast("dict[str, str]", metadata.get("heads", {}))
    return {name for name, weights in recorded.items() if here.get(name) != weights}


def folder_of(name: str, work: Path, data: Path | None) -> Path:
    """Return the folder of a benchmark with its files, drawn or copied."""
    from agrotools.loading.benchmarks import load_benchmark
    from agrotools.loading.obtaining import Request, obtain

    root: Path | None = None
    if name == "field":
        if data is None:
            raise SystemExit("field needs --data, the folder of its photographs")
        root = work / "obtained"
        obtained = obtain("field", Request(root, str(data.resolve())))
        if obtained.failures:
            raise SystemExit(f"not in {data}: {', '.join(each.path for each in obtained.failures)}")
    return load_benchmark(name, root).root


def run_calls(pack: Any, root: Path, changed: set[str], changes: Changes) -> list[Any]:
    """Return the reference of each sample with new results of the changed tools."""
    import asyncio

    from agrotools.calling.cache import ResultCache
    from agrotools.calling.execution import ToolExecutor
    from agrotools.calling.services import run_now

    async def run() -> list[Any]:
        async with ToolExecutor(
            workers=WORKERS, timeout_s=300, cache=ResultCache(), backends=pack.header.backends
        ) as executor:
            gate = asyncio.Semaphore(2 * WORKERS)

            async def one(sample: Any) -> Any:
                async with gate:
                    return await reference_again(sample, root, changed, executor, changes)

            return await asyncio.gather(*(one(sample) for sample in pack.samples))

    return run_now(run())


async def reference_again(
    sample: Any, root: Path, changed: set[str], executor: Any, changes: Changes
) -> Any:
    """Return the reference of a sample with new results."""
    from tempfile import TemporaryDirectory

    from agrotools.calling.workspace import Workspace
    from agrotools.core import ToolCall
    from agrotools.core.record import literal_value, update_literals
    from agrotools_build.references import MISSING_BACKEND, without_artifacts

    if sample.reference is None or changed.isdisjoint(sample.reference.tools):
        return sample.reference
    steps: list[Any] = []
    observed: list[Any] = []
    with TemporaryDirectory(prefix="agrotools-") as scratch:
        placed = tuple(
            file.model_copy(update={"path": str(root / file.path)}) for file in sample.files
        )
        workspace = Workspace(placed, Path(scratch), root)
        for number, step in enumerate(sample.reference.steps):
            arguments = cast(Any, update_literals(dict(step.arguments), observed))
            names = {artifact.name for artifact in step.observation.artifacts}
            later = sample.reference.steps[number + 1 :]
            is_used = any(not names.isdisjoint(_texts(dict(each.arguments))) for each in later)
            if step.tool not in changed and arguments == step.arguments and not is_used:
                steps.append(step)
                observed.append(step.observation.result)
                continue
            plain = cast(Any, literal_value(arguments))
            call = ToolCall(tool=step.tool, arguments=plain)
            observation = (await executor.run(call, workspace, sample.toolset)).observation
            changes.ran[step.tool] += 1
            error = observation.error
            recorded_error = step.observation.error
            is_lacking = error is not None and error.kind == MISSING_BACKEND
            was_lacking = recorded_error is not None and recorded_error.kind == MISSING_BACKEND
            if is_lacking and not was_lacking:
                changes.lacking.append(f"{sample.id}, step {number}, {step.tool}: no back-end here")
                observation = step.observation
            notes = str((step.observation.result or {}).get("notes"))
            if any(f"by head {name}" in notes for name in changes.other_heads):
                changes.lacking.append(f"{sample.id}, step {number}, {step.tool}: other head here")
                observation = step.observation
            truth = step.truth
            if not sample.answerable:
                result = observation.result
                truth = None if result is None else without_artifacts(result, observation)
            note_changes(f"{sample.id}, step {number}", step, observation, changes)
            update = {"arguments": arguments, "observation": observation, "truth": truth}
            steps.append(step.model_copy(update=update))
            observed.append(observation.result)
    return sample.reference.model_copy(update={"steps": tuple(steps)})


def _texts(value: Any) -> set[str]:
    """Return all texts in the arguments of a call."""
    if isinstance(value, str):
        return {value}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for part in parts for text in _texts(part)}


def note_changes(where: str, step: Any, observation: Any, changes: Changes) -> None:
    """Count the places in which a new result differs from the recorded one; list those beyond notes and flags."""
    old, new = step.observation, observation
    if (old.error is None) != (new.error is None):
        changes.places[step.tool, "error"] += 1
        changes.values.append(f"{where}, {step.tool}: error {old.error} -> {new.error}")
        return
    before, after = old.result or {}, new.result or {}
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) == after.get(key):
            continue
        if key == "flags":
            old_flags, new_flags = (set(result.get(key) or ()) for result in (before, after))
            for flag in old_flags ^ new_flags:
                sign = "+" if flag in new_flags else "-"
                changes.places[step.tool, f"{sign}{flag}"] += 1
        else:
            changes.places[step.tool, key] += 1
            if key != "notes":
                text = f"{where}, {step.tool} {key}: {before.get(key)} -> {after.get(key)}"
                changes.values.append(text[:300])


def write(name: str, pack: Any, header: Any, samples: Sequence[Any]) -> None:
    """Write the pack, and carry the decisions of reviews over to samples of which results alone changed."""
    import json

    from agrotools.formats.benchmark import content_hash_of
    from agrotools.loading.pack import write_pack
    from agrotools.packages import packaged_file
    from agrotools_build.review.material import facts_of_sample

    facts = {key: value for key, value in pack.described.items() if key not in ("header", "files")}
    if "content_hash" in facts:
        facts["content_hash"] = content_hash_of(header, samples)
    path = packaged_file(f"{name}.jsonl.xz")
    assert path is not None, "the pack was read before"
    write_pack(path, header, pack.files, samples, **facts)
    reviews = path.with_name(f"{name}.review.jsonl")
    if not reviews.exists():
        return
    renamed = {
        facts_of_sample(old, ()).content: facts_of_sample(new, ()).content
        for old, new in zip(pack.samples, samples, strict=True)
    }
    lines = [json.loads(line) for line in reviews.read_text("utf-8").splitlines()]
    moved = [{**line, "content": renamed.get(line["content"], line["content"])} for line in lines]
    text = "".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in moved
    )
    reviews.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
