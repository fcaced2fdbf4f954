"""What studies of recognising tools share: what a tool named, what it refused, and the figures of both."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agrotools.build.accuracy.figures import Figure, mean_of
from agrotools.build.accuracy.study import Bench
from agrotools.core import ToolError
from agrotools.tools.lookup.kb_names import kb_names
from agrotools.tools.recognition.candidates import identifier


@dataclass(frozen=True)
class Answer:
    """``true``: the label of the image; ``likeliest``: whether the likeliest candidate is right, refused or not;
    ``refused``: as unlike all that is known; ``named``: whether the tool called that candidate the best one."""

    true: str
    likeliest: bool
    refused: bool
    named: bool


def answers(
    bench: Bench,
    items: Iterable[dict[str, Any]],
    *,
    true: Callable[[str], str] = lambda label: label,
    backend: str | None = None,
    **arguments: Any,
) -> list[Answer]:
    """What the tool says of each image, against its label after ``true``.

    Raises:
        ToolError: any but ``low_confidence``, which is an answer.
    """
    names = kb_names()
    found: list[Answer] = []
    for item in items:
        label = true(item["label"])
        entries = (names.of_shipped(label), names.of_name(label, ("disease", "pest", "weed")))
        right = {label, *(entry.id for entry in entries if entry)}
        try:
            result = bench.call(image=bench.folder / item["image"], backend=backend, **arguments)
        except ToolError as error:
            if error.kind != "low_confidence":
                raise
            found.append(Answer(label, error.candidates[0] in right, True, False))
        else:
            found.append(Answer(label, identifier(result.candidates[0]) in right, False, not result.abstained))
    return found


def figures_of_known(
    given: Sequence[Answer], suffix: str = "", goal: float | None = None, note: str = "", by_class: bool = True
) -> list[Figure]:
    """Top-1 of the likeliest candidate over all images; over those named; shares refused and left open."""
    named = [float(one.likeliest) for one in given if one.named]
    figures = [
        mean_of(f"top-1 of all{suffix}", [float(one.likeliest) for one in given], goal=goal, note=note),
        *([mean_of(f"right where one is named{suffix}", named, note=note)] if named else []),
        mean_of(
            f"refused as unknown{suffix}",
            [float(one.refused) for one in given],
            higher_is_better=False,
            goal=0.1,
            note="of known classes",
        ),
        mean_of(
            f"candidates, none named{suffix}",
            [float(not one.refused and not one.named) for one in given],
            higher_is_better=False,
            note="no candidate more likely right than wrong",
        ),
    ]
    if by_class:
        for label in sorted({one.true for one in given}):
            own = [float(one.likeliest) for one in given if one.true == label]
            figures.append(mean_of(f"top-1{suffix}, {label.replace('_', ' ')}", own))
    return figures


def figures_of_unknown(given: Sequence[Answer], note: str) -> list[Figure]:
    """Of images of no known class: the share refused, and the share for which nothing was named at all."""
    return [
        mean_of("refused as unknown", [float(one.refused) for one in given], goal=0.8, note=note),
        mean_of("nothing named", [float(not one.named) for one in given], note="refused, or no candidate likely"),
    ]
