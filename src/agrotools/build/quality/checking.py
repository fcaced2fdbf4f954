"""All checks of a benchmark that need no baseline, in one pass after the other."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from agrotools.benchmarks.checks.leaks import named_argument, names_tool, revealed_answer, step_words
from agrotools.build.quality.finding import Finding
from agrotools.build.quality.metadata import check_metadata
from agrotools.build.quality.order import order_faults
from agrotools.build.quality.queries import check_queries
from agrotools.build.quality.scale import check_scale
from agrotools.build.quality.written import check_written, text_reader
from agrotools.core import Sample, ToolError, UsageError
from agrotools.core.progress import Progress, no_progress
from agrotools.tools import get_tool

CHECKS: dict[str, str] = {
    "near_duplicate": "pictures of two unrelated samples are nearly the same",
    "same_query": "two questions are the same but for numbers and names of files",
    "shared_sentence": "two questions share a sentence",
    "not_implicit": "the question names a tool, an argument or a step",
    "answer_in_query": "the question says its answer",
    "answer_in_note": "what is said of a file says the answer",
    "answer_in_metadata": "EXIF or comments of a file say the answer",
    "answer_in_path": "the name under which a file is stored says the answer",
    "answer_in_picture": "the answer is written in the picture",
    "position_in_metadata": "a file says where it was taken",
    "ambiguous_scale": "an answer in physical units without a scale",
    "order_not_unique": "another sequence of tools gives the answer too",
    "guessable_tolerance": "the naive guess is within the tolerance more often than chance",
    "solved_blind": "a baseline that looks at no picture gives the right answer",
}
"""What each check finds. The last two are made by :mod:`agrotools.build.assist.screening`, which may run baselines."""


def check_quality(
    samples: Sequence[Sample], root: Path, *, read_text: bool = False, progress: Progress = no_progress
) -> tuple[list[Finding], list[str]]:
    """Findings of all checks on a benchmark's samples (clusters set, files relative to ``root``), and what was not
    checked, in words.

    ``read_text``: whether to look for answers written in pictures, which takes seconds for each.
    """
    checks: list[Callable[[], Iterable[Finding]]] = [
        lambda: check_near_duplicates(samples, root, progress),
        lambda: check_queries(samples),
        lambda: check_implicit(samples),
        lambda: check_told(samples),
        lambda: check_metadata(samples, root),
        lambda: check_scale(samples),
        lambda: check_orders(samples),
    ]
    left_out: list[str] = []
    if not read_text:
        left_out.append("text in pictures was not read")
    elif reader := text_reader():
        checks.append(lambda: check_written(samples, root, reader, progress))
    else:
        left_out.append("text in pictures was not read: pip install agrotools[ocr]")
    return [finding for check in checks for finding in check()], left_out


def check_near_duplicates(samples: Sequence[Sample], root: Path, progress: Progress = no_progress) -> Iterator[Finding]:
    """Check ``near_duplicate``: nearly the same picture in samples of two clusters, which count as independent."""
    from agrotools.build.quality.pictures import Look, look_of_file, near_pairs

    shown: dict[str, list[Sample]] = {}
    for sample in samples:
        for file in sample.files:
            if file.kind in ("image", "raster"):
                shown.setdefault(file.path, []).append(sample)
    paths: list[str] = []
    looks: list[Look] = []
    for number, path in enumerate(shown, start=1):
        if (look := look_of_file(root / path)) is not None:
            paths.append(path)
            looks.append(look)
        progress("pictures compared", number, len(shown))
    for first, second, alike in near_pairs(looks):
        one, two = shown[paths[first]][0], shown[paths[second]][0]
        if one.cluster == two.cluster and one.cluster is not None:
            continue
        names = _name_of(one, paths[first]), _name_of(two, paths[second])
        for sample, own, other, its in ((one, names[0], two, names[1]), (two, names[1], one, names[0])):
            message = f"{own} looks like {its} of {other.id} (correlation {alike:.3f})"
            yield Finding(id=sample.id, check="near_duplicate", severity="warning", message=message)


def _name_of(sample: Sample, path: str) -> str:
    return next(file.name for file in sample.files if file.path == path)


def check_implicit(samples: Iterable[Sample]) -> Iterator[Finding]:
    """Check ``not_implicit``."""
    for sample in samples:
        named = next((name for name in sample.toolset if names_tool(sample.query, name)), None)
        arguments = {name for tool in sample.toolset for name in _arguments(tool)}
        found = (
            (named and f"names the tool {named}")
            or ((name := named_argument(sample.query, arguments)) and f"names the argument {name}")
            or ((words := step_words(sample.query)) and f"names a step or a method: {words!r}")
        )
        if found:
            yield Finding(id=sample.id, check="not_implicit", severity="error", message=f"the question {found}")


def _arguments(tool: str) -> Iterable[str]:
    try:
        return get_tool(tool).spec.agreement
    except (UsageError, ToolError):
        return ()  # `agrotools validate` says that there is no such tool.


def check_told(samples: Iterable[Sample]) -> Iterator[Finding]:
    """Checks ``answer_in_query`` and ``answer_in_note``."""
    for sample in samples:
        for slot in sample.answer:
            if said := revealed_answer(slot, sample.query):
                message = f"the question holds {said!r}, (part of) the answer {slot.name!r}"
                yield Finding(id=sample.id, check="answer_in_query", severity="error", message=message)
            for file in sample.files:
                if file.note and (said := revealed_answer(slot, file.note)):
                    message = f"the note on {file.name} holds {said!r}, (part of) the answer {slot.name!r}"
                    yield Finding(id=sample.id, check="answer_in_note", severity="error", message=message)


def check_orders(samples: Iterable[Sample]) -> Iterator[Finding]:
    """Check ``order_not_unique``; see :mod:`agrotools.build.quality.order` for the rule."""
    for sample in samples:
        for fault in order_faults(sample):
            yield Finding(id=sample.id, check="order_not_unique", severity="warning", message=fault.message)
