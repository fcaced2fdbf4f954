"""Decide which templates about the public data sets the tools of the package reach, from other pictures.

Makes src/agrotools_build/sources/reach.toml.

    python training/decide_reach.py

Evidence about things of the same kind (:data:`EVIDENCE`): the questions of ``field``, with the scores of their
recorded results, and the classes of drawn scenes, which ``study_scene_classes.py`` has measured. A template is
**reached** if the mean score in ``field``, and the oracle's mean rate on drawn scenes of all difficulties, are at least
that of ``split_field.py``, whichever there are; **beyond** if not. Without evidence it stays undecided. The sides of
``split_field.py`` are no evidence here: there, a question of few places is beyond although the tools answer it.
Nothing is decided on pictures of the data sets themselves, except for the pictures of DeepWeeds that ``field`` shows.
"""

import tomllib
from collections import defaultdict
from importlib.resources import files
from pathlib import Path
from statistics import fmean

from revise_field import recorded_scores
from split_field import REACHED_FROM

import agrotools_build.sources
from agrotools.loading.pack import read_pack
from agrotools_build.templates import load_templates
from agrotools_build.templates.template import TEMPLATES

OUT = Path(agrotools_build.sources.__path__[0]) / "reach.toml"
HEIGHTS = (
    "Amazon forests of ForestGapR",
    "Canopy height models (ForestTools, NEON)",
    "Longleaf pines of rLiDAR",
    "Second canopy height model of ForestTools",
)
EVIDENCE = {
    "agromind": ((), "fruit_counts", ["drawn_count"]),
    "deepnir": ((), "fruit_counts", ["drawn_count"]),
    "deepweeds": (("DeepWeeds",), "", ["weed"]),
    "fpcd": ((), "pond_pairs", ["pond"]),
    "open-canopy": (HEIGHTS, "tracts", ["canopy", "tracts"]),
    "papple": ((), "apples", ["drawn_apple_boxes"]),
    # Not CWFID: heads learnt from its other half, so it does not show what tools reach in another field.
    "weedmap": ((), "rows", TEMPLATES),
}
"""Data sets of ``field``, kind of drawn scenes and files of templates, by part; other parts have nothing like it."""


def decided(part: str) -> dict[str, list[str]]:
    """Return the templates reached and those beyond reach."""
    photographs, kind, asked = EVIDENCE[part]
    names = {template.template for file in asked for template in load_templates(file)}
    found: dict[str, list[bool]] = defaultdict(list)
    scores: dict[str, list[float]] = defaultdict(list)
    alike = [sample for sample in read_pack("field").samples if sample.source in photographs]
    score_of = recorded_scores(alike)
    for sample in alike:
        if sample.answerable:
            scores[str(sample.template)].append(score_of[sample.id])
    for template, each in scores.items():
        found[template].append(fmean(each) >= REACHED_FROM)
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
