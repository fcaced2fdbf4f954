"""Decide which templates about the public data sets the tools of the package reach, from other pictures.

Makes src/agrotools_build/sources/reach.toml.

    python training/decide_reach.py

Evidence about things of the same kind (:data:`EVIDENCE`): the questions of ``field``, which ``split_field.py`` has
split, and the classes of drawn scenes, which ``study_scene_classes.py`` has measured. A template is **reached** if at
least half of its questions in ``field`` are, and the oracle's mean rate on drawn scenes of all difficulties is at least
that of ``split_field.py``, whichever there are; **beyond** if not. Without evidence it stays undecided. Nothing is
decided on pictures of the data sets themselves, except for the 36 pictures of DeepWeeds that ``field`` shows.
"""

import tomllib
from collections import defaultdict
from importlib.resources import files
from pathlib import Path

from split_field import BEYOND, GROUP, REACHED_FROM

import agrotools_build.sources
from agrotools.loading.pack import read_pack
from agrotools_build.templates import load_templates
from agrotools_build.templates.template import TEMPLATES

OUT = Path(agrotools_build.sources.__path__[0]) / "reach.toml"
EVIDENCE = {
    "agromind": ("", "fruit_counts", ["drawn_count"]),
    "deepnir": ("", "fruit_counts", ["drawn_count"]),
    "deepweeds": ("DeepWeeds", "", ["weed"]),
    "fpcd": ("", "pond_pairs", ["pond"]),
    "open-canopy": ("Canopy height models (ForestTools, NEON)", "tracts", ["canopy", "tracts"]),
    "papple": ("", "apples", ["drawn_apple_boxes"]),
    "weedmap": ("CWFID", "rows", TEMPLATES),
}
"""Data set of ``field``, kind of drawn scenes and files of templates, by part; other parts have nothing like it."""


def decided(part: str) -> dict[str, list[str]]:
    """Return the templates reached and those beyond reach."""
    photographs, kind, asked = EVIDENCE[part]
    names = {template.template for file in asked for template in load_templates(file)}
    found: dict[str, list[bool]] = defaultdict(list)
    sides: dict[str, list[bool]] = defaultdict(list)
    for sample in read_pack("field").samples:
        if sample.source == photographs and sample.answerable:
            sides[str(sample.template)].append(sample.groups[GROUP] != BEYOND)
    for template, each in sides.items():
        found[template].append(2 * sum(each) >= len(each))
    rates: dict[str, list[tuple[int, float]]] = defaultdict(list)
    text = files("agrotools_build.sources.drawn").joinpath("membership.toml").read_text("utf-8")
    for scenes, _, template, _, _, number, rate, *_ in tomllib.loads(text)["classes"]:
        if scenes == kind:
            rates[template].append((number, rate))
    for template, each in rates.items():
        mean = sum(number * rate for number, rate in each) / sum(number for number, _ in each)
        found[template].append(mean >= REACHED_FROM)
    return {
        "reached": sorted(
            template for template, each in found.items() if template in names and all(each)
        ),
        "beyond": sorted(
            template for template, each in found.items() if template in names and not all(each)
        ),
    }


def main() -> None:
    lines = [
        "# What tools reach of the questions about public data sets; training/decide_reach.py states the rule."
    ]
    for part in EVIDENCE:
        sides = (
            f"{side} = [{', '.join(map(repr, names))}]".replace("'", '"')
            for side, names in decided(part).items()
        )
        lines += ["", f"[{part}]", *sides]
    OUT.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
