"""What AgML says of its data sets, and which of their classes the knowledge base has."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from agrotools.build.sources.public.diseased_plants import Disease
from agrotools.tools.lookup.kb_names import kb_names

_HEALTHY = ("healthy", "normal", "fresh", "background", "no virus", "no damage")


@dataclass(frozen=True)
class Described:
    """What AgML says of a data set; ``classes`` by their numbers, from 1. ``crop`` of leaves of one crop; ``nouns``:
    what a box of each class holds, empty where that cannot be counted."""

    name: str
    task: str
    about: str
    classes: tuple[str, ...]
    licence: str
    url: str
    crop: str | None = None
    nouns: tuple[str, ...] = ()

    @property
    def get_it(self) -> str:
        return (
            f"get it with AgML (pip install agml; agml.data.AgMLDataLoader('{self.name}')), and give the folder that"
            f" holds {_LAYOUT[self.task]}"
        )


_LAYOUT = {
    "image_classification": "a folder of pictures for each class",
    "semantic_segmentation": "images and annotations",
    "object_detection": "images and annotations.json",
}


@cache
def described() -> Mapping[str, Described]:
    """What is known of AgML's data sets, by name."""
    text = files("agrotools.data").joinpath("agml.toml").read_text("utf-8")
    return {
        name: Described(name, **{**told, "classes": tuple(told["classes"]), "nouns": tuple(told.get("nouns", ()))})
        for name, told in tomllib.loads(text).items()
    }


@cache
def diseases_of(of: Described) -> dict[str, Disease]:
    """The classes that are diseases which the knowledge base has, by name of the folder."""
    found: dict[str, Disease] = {}
    for name in of.classes:
        crop, said = of.crop, _noun(name)
        if "___" in name:
            crop, said = (_noun(part) for part in name.split("___", 1))
        if crop is None or is_healthy(name):
            continue
        said = said.removeprefix(f"{crop} ")
        names = (said, f"{crop} {said}")
        entries = (kb_names().of_name(one, ("disease",), crop) for one in names)
        entry = next((one for one in entries if one is not None and kb_names().is_on(one, crop)), None)
        if entry is not None and entry.id not in {one.entry.id for one in found.values()}:
            found[name] = Disease(f"{crop} {said}", crop, entry)
    return found if len(found) > 1 else {}


def are_known_weeds(of: Described) -> bool:
    """Whether every class is one of the weeds whose questions name them, or ``negative``."""
    return all(name == "negative" or kb_names().of_shipped(name) for name in of.classes)


def is_healthy(name: str) -> bool:
    """Whether a class is of plants without a disease."""
    return any(word in _noun(name) for word in _HEALTHY)


def _noun(name: str) -> str:
    """``Wheat Head`` as ``wheat head``, ``green_cabbage`` as ``green cabbage``."""
    return " ".join(name.replace("_", " ").replace("-", " ").lower().split())
