"""Targets of a count by their names: the detector that finds such things, and kinds and colours of fruit."""

from typing import Literal, get_args

from agrotools.core import ToolError
from agrotools.tools.counting.count_objects import Mode

FruitName = Literal["apple", "pear", "cherry", "tomato"]
"""Fruit that the shipped net knows."""
DETECTORS: dict[Mode, str] = {
    "crown_chm": "tree crowns in a canopy height model",
    "crown_rgb": "tree crowns in a colour picture from above",
    "fruit": "fruit on the plant",
    "plant": "single plants on soil",
    "blob": "round spots",
}
_WORDS: dict[Mode, frozenset[str]] = {
    "crown_rgb": frozenset("tree crown palm canopy conifer pine spruce".split()),
    "fruit": frozenset("fruit apple orange tomato cherry peach nectarine strawberry plum citrus mandarin pear".split()),
    "plant": frozenset("plant seedling crop weed lettuce cabbage beet sunflower maize corn rosette".split()),
    "blob": frozenset("blob spot dot disc colony bale".split()),
}
_TOWARDS: dict[str, tuple[float, float]] = {
    "orange": (0.75, 0.65), "citrus": (0.75, 0.65), "mandarin": (0.75, 0.65), "peach": (0.9, 0.4),
    "nectarine": (0.9, 0.4), "pear": (0.7, 0.7),
}  # fmt: skip
"""Towards which (a*, b*) of Lab a fruit differs from leaves; red ones towards a* alone."""


def mode_for(target: str, has_chm: bool) -> Mode:
    """The detector that finds such things.

    Raises:
        ToolError: ``backend_unavailable`` where none does.
    """
    words = target_words(target)
    last = singular(words[-1]) if words else ""
    for mode, known in _WORDS.items():
        if last in known:
            return "crown_chm" if mode == "crown_rgb" and has_chm else mode
    offline = ", ".join(f"{mode} ({what})" for mode, what in DETECTORS.items())
    raise ToolError(
        "backend_unavailable",
        f"no offline detector finds {target[:60]!r}: that needs a learned back-end; offline detectors: {offline}",
        argument="target",
        hint="choose a mode yourself if one of them fits, e.g. mode='blob' for round things on a plain background",
    )


def detector_target(target: str, mode: Mode) -> str:
    """Target as a detector takes it: fruit by kind, all else by its name."""
    if mode != "fruit":
        return mode
    along_a, along_b = colour_direction(target)
    return "_".join((*fruits_of_net(target), f"{along_a:g}_{along_b:g}"))


def colour_direction(target: str) -> tuple[float, float]:
    """Direction in (a*, b*) in which a fruit stands out from leaves."""
    words = target.lower().split()
    return _TOWARDS.get(singular(words[-1]) if words else "", (1.0, 0.0))


def target_words(target: str) -> list[str]:
    """Words of a target in lower case."""
    return target.lower().replace("_", " ").replace("-", " ").split()


def singular(word: str) -> str:
    """A plain English noun in the singular."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("oes", "ches", "shes", "xes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def fruits_of_net(target: str) -> tuple[FruitName, ...]:
    """The kinds of fruit that the net knows and that a target means; empty where it means others."""
    words = target_words(target)
    last = singular(words[-1]) if words else ""
    names: tuple[FruitName, ...] = get_args(FruitName)
    return names if last == "fruit" and len(words) == 1 else tuple(name for name in names if name == last)
