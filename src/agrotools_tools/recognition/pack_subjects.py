"""What the pictures of a pack show: the crops that its labels name, or else those that its maker says.

A class ``healthy`` is on no crop by itself, so a pack that does not know its crops would name a healthy leaf of any.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agrotools.core.readings import Choice, ReadingQuestion

if TYPE_CHECKING:
    from agrotools.knowledge.kb_names import KbNames

ANY = "any"
"""What a pack shows whose pictures are of no crop in particular: weeds, pests, or things on any crop."""
_OF_NO_CROP = frozenset({"weed", "pest", "crop"})
"""Kinds of entries that are the same on every crop."""
_NO_WEED = ("negative", "none", "no weed", "not a weed", "background", "soil", "other")
_MOST_WORDS = 3
"""Words of the longest names of crops."""


def is_negative(label: str) -> bool:
    """Return True if a label means that there is no weed."""
    from agrotools.knowledge.words import folded

    return folded(label) in _NO_WEED


def crops_in_label(label: str, names: "KbNames") -> tuple[str, ...]:
    """Return the crops that a label of a leaf names, in any language that the knowledge base knows.

    A pest or a weed names none, as in ``chinee apple``. A healthy leaf is of all that the label names beside: ``sweet
    potato healthy`` is no potato.
    """
    from agrotools.knowledge.kb_names import healthy_crop
    from agrotools.knowledge.words import folded

    if _is_of_no_crop(label, names):
        return ()
    of_healthy = healthy_crop(label)
    if of_healthy is not None:
        return (of_healthy,) if _is_crop(of_healthy, names) else ()
    words = folded(label).split()
    crops: list[str] = []
    for length in range(min(_MOST_WORDS, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            part = " ".join(words[start : start + length])
            is_in_longer = any(f" {part} " in f" {longer} " for longer in crops)
            if not is_in_longer and _is_crop(part, names):
                crops.append(part)
    return tuple(crops)


def _is_crop(name: str, names: "KbNames") -> bool:
    """Return True for the name of a crop. Labels of data sets, such as "potato healthy", are names of crops, too."""
    from agrotools.knowledge.kb_names import healthy_crop

    return healthy_crop(name) is None and names.key_of_crop(name).startswith("crop.")


def is_known_crop(name: str, names: "KbNames") -> bool:
    """Return True if the knowledge base knows the crop that a name says, alone or with other words."""
    return bool(_crops_named(name, names))


def crop_names(text: str, names: "KbNames") -> tuple[str, ...]:
    """Return the names that the knowledge base gives to the crops in a text: "bean" for ``fagiolo`` and ``frijol``."""
    keys = [names.key_of_crop(crop) for crop in _crops_named(text, names)]
    return tuple(key.removeprefix("crop.").replace("_", " ") for key in keys)


def _crops_named(text: str, names: "KbNames") -> tuple[str, ...]:
    # A label that is a crop itself is of no leaf, so crops_in_label returns none for it.
    return (text,) if _is_crop(text, names) else crops_in_label(text, names)


def shown_by_labels(labels: Sequence[str], names: "KbNames") -> tuple[str, ...]:
    """Return what a pack shows if its labels say it: the crops of its leaves, or :data:`ANY` if there are only pests
    and weeds. Empty if a label does not say its crop."""
    of_leaves = [label for label in labels if not _is_of_no_crop(label, names)]
    if not of_leaves:
        return (ANY,)
    crops_of = [crops_in_label(label, names) for label in of_leaves]
    return _without_repeats(crops_of, names) if all(crops_of) else ()


def crops_shown(shows: Sequence[str], names: "KbNames") -> tuple[str, ...] | None:
    """Return the crops of a pack that shows these things: those that the knowledge base knows, or else all of them,
    none for :data:`ANY`; None if nothing was said."""
    if not shows:
        return None
    if ANY in shows:
        return ()
    known = tuple(name for name in shows if _is_crop(name, names))
    return known or tuple(shows)


def question_on_shows(labels: Sequence[str], names: "KbNames") -> ReadingQuestion:
    """Return the question which crop the pictures of a pack show, with the crops that some labels name."""
    from agrotools.knowledge.kb_names import healthy_crop

    healthy = [(crop,) for label in labels if (crop := healthy_crop(label))]
    named = _without_repeats([*healthy, *(crops_in_label(each, names) for each in labels)], names)
    choices = [Choice(crop) for crop in named]
    choices.append(Choice(ANY, "weeds, pests, or things on any crop"))
    listed = ", ".join(labels[:_LISTED]) + (", ..." if len(labels) > _LISTED else "")
    text = (
        f"Which crop do your pictures show? The labels ({listed}) do not all say it; name it, or:"
    )
    placeholder = "" if named else "CROP"  # no reading is proposed that names leaves of every crop
    return ReadingQuestion(text, "--shows", tuple(choices), is_open=True, placeholder=placeholder)


_LISTED = 4
"""Labels that a question lists."""


def _is_of_no_crop(label: str, names: "KbNames") -> bool:
    """Return True for a label that is no leaf of a crop: a weed, a pest, a crop itself, or none of these."""
    from agrotools.knowledge.kb_names import healthy_crop

    if is_negative(label):
        return True
    if healthy_crop(label) is not None:
        return False
    kinds = {entry.kind for entry in names.all_of_name(label)}
    return bool(kinds) and kinds <= _OF_NO_CROP


def _without_repeats(crops_of: Iterable[Sequence[str]], names: "KbNames") -> tuple[str, ...]:
    """Return crops once each, under the first of their names."""
    by_key: dict[str, str] = {}
    for crops in crops_of:
        for crop in crops:
            by_key.setdefault(names.key_of_crop(crop), crop)
    return tuple(by_key.values())
