"""What came of running reference calls again, for people and for programs."""

from collections import defaultdict
from typing import TYPE_CHECKING

import typer
from pydantic import JsonValue

if TYPE_CHECKING:
    from agrotools.benchmarks.rerunning import Difference, Rerun

_EXAMPLES = 3
_LONGEST = 80


def print_rerun(rerun: "Rerun", threads: int) -> None:
    """Print how many calls were run, and what differs by tool and field, with examples."""
    from agrotools.benchmarks.rerunning import kind_of_place

    by_kind: dict[tuple[str, str], list[Difference]] = defaultdict(list)
    for difference in rerun.differences:
        by_kind[difference.tool, kind_of_place(difference.where)].append(difference)
    typer.echo(
        f"rerun: {rerun.calls} calls of {rerun.samples} samples, {_threads(threads)} each, {_python()}: "
        f"{_told(len(rerun.differences), 'value')} other than recorded"
    )
    if rerun.not_recorded:
        typer.echo(f"  not run, for nothing is recorded: {_told(rerun.not_recorded, 'call')}")
    if rerun.artifacts:
        typer.echo(f"  files that tools made: {rerun.same_bytes} of {rerun.artifacts} have the recorded bytes")
    for (tool, place), differences in sorted(by_kind.items(), key=lambda item: (-len(item[1]), item[0])):
        samples = len({difference.sample for difference in differences})
        typer.echo(f"  {tool}: {place}, {_told(len(differences), 'value')} in {_told(samples, 'sample')}")
        for each in differences[:_EXAMPLES]:
            typer.echo(
                f"    {each.sample}, step {each.step}, {each.where}: {_short(each.recorded)} -> {_short(each.now)}"
            )


def rerun_as_json(rerun: "Rerun", threads: int) -> dict[str, JsonValue]:
    """The same as data, every difference in it."""
    return {
        "rerun": {
            "samples": rerun.samples,
            "calls": rerun.calls,
            "not_recorded": rerun.not_recorded,
            "threads": threads,
            "python": _python().removeprefix("Python "),
            "artifacts": rerun.artifacts,
            "artifacts_same_bytes": rerun.same_bytes,
            "differences": [difference.model_dump(mode="json") for difference in rerun.differences],
        }
    }


def _python() -> str:
    from platform import python_version

    return f"Python {python_version()}"


def _threads(count: int) -> str:
    return _told(count, "thread")


def _told(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _short(value: JsonValue) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
