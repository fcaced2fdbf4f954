"""Leaves named against the labels of their collections, leaves of unknown crops, and a pack trained on half of them."""

from collections.abc import Callable
from functools import partial

from agrotools.build.accuracy.figures import Figure
from agrotools.build.accuracy.recognition import answers, figures_of_known, figures_of_unknown
from agrotools.build.accuracy.study import Bench, Study
from agrotools.tools.recognition.pack_training import LabelledImage, train_pack

_COFFEE = {
    "healthy": "coffee_healthy",
    "miner": "coffee_leaf_miner",
    "leaf_miner": "coffee_leaf_miner",
    "rust": "coffee_rust",
    "phoma": "coffee_brown_spot_phoma",
    "brown_spot_phoma": "coffee_brown_spot_phoma",
    "cercospora": "coffee_cercospora",
}
_BEAN_NOTE = "light and soil of a session go with the class, and sibling shots are possible: optimistic"
_COFFEE_NOTE = "one collection, leaves on a white board; the label is the predominant stress of several"
_PACK_NOTE = "a pack trained on the even pictures of each class, asked about the odd ones; no group is known"


def _bean(label: str) -> str:
    return f"bean_{label}"


def _known(bench: Bench, crop: str, true: Callable[[str], str], goal: float, note: str) -> list[Figure]:
    """As a caller gets it who does not know the crop, and one who does."""
    given = answers(bench, bench.items(), true=true)
    with_crop = answers(bench, bench.items(), true=true, crop=crop)
    return [
        *figures_of_known(given, goal=goal, note=note),
        *figures_of_known(with_crop, ", crop given", goal=goal, note=note, by_class=False),
    ]


def _unknown(bench: Bench) -> list[Figure]:
    return figures_of_unknown(answers(bench, bench.items()), "leaves of a crop in no training pool, crop not given")


def _pack(bench: Bench) -> list[Figure]:
    items = bench.items()
    places: dict[str, int] = {}
    learn, ask = [], []
    for item in items:
        place = places[item["label"]] = places.get(item["label"], -1) + 1
        (ask if place % 2 else learn).append(item)
    folder = bench.scratch / "pack"
    train_pack([LabelledImage(bench.folder / one["image"], one["label"], one["id"]) for one in learn], folder)
    given = answers(bench, ask, backend=f"pack:{folder}")
    return figures_of_known(given, f", pack of {len(learn)} pictures", note=_PACK_NOTE, by_class=False)


STUDIES = (
    Study(
        "diagnose_pest_disease", "bean_leaf_class", partial(_known, crop="bean", true=_bean, goal=0.80, note=_BEAN_NOTE)
    ),
    Study(
        "diagnose_pest_disease",
        "coffee_leaf_class",
        partial(_known, crop="coffee", true=_COFFEE.__getitem__, goal=0.85, note=_COFFEE_NOTE),
    ),
    *(Study("diagnose_pest_disease", folder, _unknown) for folder in ("apple_leaf_class", "rice_disease")),
    Study("diagnose_pest_disease", "bean_leaf_class", _pack),
)
