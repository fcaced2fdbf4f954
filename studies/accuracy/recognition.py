"""Accuracy of the recognition tools: names and refusals."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from accuracy.study import Bench, Columns, Figure, Study, mean_of
from agrotools.core import ToolError
from agrotools.knowledge.kb_names import kb_names
from agrotools_tools.recognition.candidates import identifier
from agrotools_tools.recognition.labelled_pictures import LabelledImage
from agrotools_tools.recognition.pack_training import train_pack


@dataclass(frozen=True)
class Answer:
    """Answer of a tool for one image.

    ``true``: label of the image. ``likeliest``: True if the likeliest candidate is correct, refused or not.
    ``refused``: True if the tool rejected the image as unlike all known classes. ``named``: True if the tool named the
    candidate as its answer. ``probability``: of the likeliest candidate; None if the image was refused. ``scene``:
    images of one scene are not independent.
    """

    true: str
    likeliest: bool
    refused: bool
    named: bool
    probability: float | None
    scene: str = ""


def answers(
    bench: Bench,
    items: Iterable[dict[str, Any]],
    *,
    true: Callable[[str], str] = lambda label: label,
    scene: Callable[[dict[str, Any]], str] = lambda _: "",
    backend: str | None = None,
    **arguments: Any,
) -> list[Answer]:
    """Return the answer of the tool for each image.

    ``true`` maps the label of an image to the label that counts as correct, ``scene`` an image to its scene.

    Raises:
        ToolError: any error but ``low_confidence``, which counts as an answer.
    """
    names, crop = kb_names(), arguments.get("crop")
    identified: list[Answer] = []
    for item in items:
        label = true(item["label"])
        try:
            result = bench.call(image=bench.folder / item["image"], backend=backend, **arguments)
        except ToolError as error:
            if error.kind != "low_confidence":
                raise
            identified.append(
                Answer(
                    label,
                    names.mean_same(label, error.candidates[0], crop),
                    True,
                    False,
                    None,
                    scene(item),
                )
            )
        else:
            best = result.candidates[0]
            is_right, named = names.mean_same(label, identifier(best), crop), not result.abstained
            identified.append(Answer(label, is_right, False, named, best.score, scene(item)))
    return identified


_COVERAGES = (0.5, 0.8, 1.0)
"""Shares of the images, the surest first, of which the errors are reported."""
_LEAST_PROBABILITIES = 5
"""Number of probabilities under which their calibration is not reported."""


def figures_of_known(
    given: Sequence[Answer],
    suffix: str = "",
    goal: float | None = None,
    note: str = "",
    by_class: bool = True,
) -> list[Figure]:
    """Return top-1 accuracy over all images and over named images, and the shares refused and left open."""
    columns = Columns()
    for one in given:
        columns.add(
            one.scene,
            likeliest=one.likeliest,
            named=one.likeliest if one.named else None,
            refused=one.refused,
        )
        columns.add(
            one.scene,
            probability=one.probability,
            answered=None if one.probability is None else one.likeliest,
        )
        columns.add(
            one.scene, open=not one.refused and not one.named, **{f"of {one.true}": one.likeliest}
        )
    figures = [columns.mean(f"top-1 of all{suffix}", "likeliest", goal=goal, note=note)]
    if columns["named"]:
        figures.append(columns.mean(f"right where one is named{suffix}", "named", note=note))
    open_note = "no candidate more likely right than wrong"
    figures += [
        columns.mean_error(
            f"refused as unknown{suffix}", "refused", goal=0.1, note="of known classes"
        ),
        columns.mean_error(f"candidates, none named{suffix}", "open", note=open_note),
    ]
    if len(columns["probability"]) >= _LEAST_PROBABILITIES:
        pair = ("probability", "answered")
        answered = f"of the {len(columns['probability'])} of {len(given)} that have a probability"
        figures.append(
            columns.calibration(
                f"calibration error of the probability{suffix}", *pair, note=answered
            )
        )
        figures.append(
            columns.aurc(
                f"area under the curve of errors by coverage{suffix}", *pair, note=answered
            )
        )
        figures += [
            columns.risk(
                f"wrong among the surest {100 * part:.0f} %{suffix}", *pair, part, note=answered
            )
            for part in _COVERAGES
        ]
    for label in sorted({one.true for one in given}) if by_class else ():
        figures.append(columns.mean(f"top-1{suffix}, {label.replace('_', ' ')}", f"of {label}"))
    return figures


def figures_of_unknown(given: Sequence[Answer]) -> list[Figure]:
    """Return the share refused and the share with no name given, for images of unknown classes."""
    return [
        mean_of("refused as unknown", [one.refused for one in given], goal=0.8),
        mean_of(
            "nothing named",
            [not one.named for one in given],
            note="refused, or no candidate likely",
        ),
    ]


_COFFEE = {
    "healthy": "coffee_healthy",
    "miner": "coffee_leaf_miner",
    "leaf_miner": "coffee_leaf_miner",
    "rust": "coffee_rust",
    "phoma": "coffee_brown_spot_phoma",
    "brown_spot_phoma": "coffee_brown_spot_phoma",
    "cercospora": "coffee_cercospora",
}
_PACK_NOTE = (
    "a pack trained on the even pictures of each class, asked about the odd ones; no group is known"
)


def _known(bench: Bench, crop: str, true: Callable[[str], str], goal: float) -> list[Figure]:
    """Score the tool without and with the crop as an argument."""
    results = answers(bench, bench.items(), true=true)
    with_crop = answers(bench, bench.items(), true=true, crop=crop)
    return [
        *figures_of_known(results, goal=goal),
        *figures_of_known(with_crop, ", crop given", goal=goal, by_class=False),
    ]


def _unknown(bench: Bench) -> list[Figure]:
    return figures_of_unknown(answers(bench, bench.items()))


def _pack(bench: Bench) -> list[Figure]:
    items = bench.items()
    places: dict[str, int] = {}
    learn, ask = [], []
    for item in items:
        place = places[item["label"]] = places.get(item["label"], -1) + 1
        (ask if place % 2 else learn).append(item)
    folder = bench.scratch / "pack"
    train_pack(
        [LabelledImage(bench.folder / one["image"], one["label"], one["id"]) for one in learn],
        folder,
    )
    results = answers(bench, ask, backend=f"pack:{folder}")
    return figures_of_known(
        results, f", pack of {len(learn)} pictures", note=_PACK_NOTE, by_class=False
    )


PEST_DISEASE_STUDIES = (
    Study(
        "diagnose_pest_disease",
        "bean_leaf_class",
        partial(_known, crop="bean", true="bean_{}".format, goal=0.80),
    ),
    Study(
        "diagnose_pest_disease",
        "coffee_leaf_class",
        partial(_known, crop="coffee", true=lambda label: _COFFEE.get(label, label), goal=0.85),
    ),
    *(
        Study("diagnose_pest_disease", folder, _unknown)
        for folder in ("apple_leaf_class", "rice_disease")
    ),
    Study("diagnose_pest_disease", "bean_leaf_class", _pack),
)


def _species(bench: Bench) -> list[Figure]:
    # The id begins with the day; pictures of one day show one place.
    results = answers(
        bench,
        bench.items(),
        true=lambda label: label.lower().replace(" ", "_"),
        scene=lambda item: item["id"][:8],
    )
    return figures_of_known(results, goal=0.85)


WEED_STUDIES = (
    Study("identify_weed", "deepweeds", _species),
    *(
        Study("identify_weed", folder, _unknown)
        for folder in ("apple_leaf_class", "coffee_leaf_class")
    ),
)
