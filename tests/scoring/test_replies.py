"""Replies as models write them, each with the score that a careful reader would give."""

import json
from pathlib import Path

import pytest

from agrotools.core import BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, KeywordsSlot, ToleranceSlot
from agrotools.scoring.corrected.keywords import states
from agrotools.scoring.slots import score_slot

DEEPWEEDS = (
    *("Chinee apple", "Lantana", "Parkinsonia", "Parthenium", "Prickly acacia", "Rubber vine", "Siam weed"),
    "Snake weed",
)


def number(name: str, label: str, value: float, unit: str | None = None, abs_tol: float = 0, rel_tol: float = 0):
    return ToleranceSlot(name=name, label=label, value=value, unit=unit, abs_tol=abs_tol, rel_tol=rel_tol)


def name(key: str, value: str, *aliases: str, options: tuple[str, ...] = ()) -> ExactSlot:
    others = tuple(option for option in options if option != value)
    return ExactSlot(name=key, label=key, value=value, aliases=aliases, distractors=others)


def keywords(*groups: tuple[str, ...], without: tuple[tuple[str, ...], ...] = ()) -> KeywordsSlot:
    return KeywordsSlot(name="answer", label="the answer", whitelist=groups, blacklist=without)


def changed(value: bool) -> BooleanSlot:
    return BooleanSlot(name="changed", label="whether the farmland changed", value=value)


SLOTS = {
    "trees": number("trees", "number of trees", 14),
    "trees15": number("trees", "number of trees", 15),
    "trees21": number("trees", "number of trees", 21),
    "trees120": number("trees", "number of trees", 120),
    "notrees": number("trees", "number of trees (树木数量)", 0),
    "seedlings": number("seedlings", "number of seedlings", 1204),
    "cover": number("canopy_cover", "canopy cover", 42.5, "%", abs_tol=0.1),
    "severity": number("severity", "lesion severity", 0.35, "fraction", abs_tol=0.02),
    "area": number("wheat_area", "wheat area", 3.2, "ha", rel_tol=0.01),
    "loss": number("area_lost", "pond area lost", 3.2, "ha", rel_tol=0.01),
    "change": number("area_change", "change in pond area", -3.2, "ha", rel_tol=0.01),
    "mean": number("mean_diameter", "mean fruit diameter", 75, "mm", rel_tol=0.01),
    "leaf": number("leaf_length", "length of the leaf", 76, "mm", abs_tol=1),
    "ndvi": number("ndvi", "mean NDVI", 0.62, abs_tol=0.005),
    "yield": number("grain_yield", "grain yield", 4.5, "t/ha", rel_tol=0.01),
    "rows": ExactSlot(name="rows", label="number of rows", value=7),
    "weed": name("species", "Lantana", "Lantana camara", options=DEEPWEEDS),
    "siam": name("species", "Siam weed", options=DEEPWEEDS),
    "open": name("species", "Lantana", "Lantana camara"),
    "pest": name("pest", "brown planthopper", "Nilaparvata lugens"),
    "disease": name("disease", "rice blast", options=("rice blast", "brown spot", "bacterial blight", "healthy")),
    "changed": changed(True),
    "same": changed(False),
    "weeds": BooleanSlot(name="weeds_present", label="whether weeds are present", value=False),
    "more": BooleanSlot(name="more_weeds", label="whether there are more weeds than crop", value=True),
    "parts": ChoiceSetSlot(
        name="parts",
        label="affected parts",
        value=("leaf", "stem"),
        choices=("leaf", "stem", "root", "fruit"),
        aliases={"leaf": ("leaves",)},
    ),
    "which": FileSlot(
        name="weedier", label="image with more weeds", value="image_2.jpg", choices=("image_1.jpg", "image_2.jpg")
    ),
    "ears": number("ears", "number of wheat ears", 41, abs_tol=4),
    "orchard": number("trees", "number of trees in the orchard", 86, abs_tol=3),
    "seed": number("seed_rate", "seed rate", 165, "kg/ha", abs_tol=5),
    "p95": number("p95", "95th percentile of the canopy height", 23.1, "m", abs_tol=0.5),
    "net": number("pond_net", "net change in pond area", 0.42, "ha", abs_tol=0.02),
    "volume": number("volume", "volume of water in the pond", 5200, "m^3", rel_tol=0.05),
    "gone": number("ponds_gone", "number of ponds that disappeared", 0),
    "canopy": number("canopy_height", "mean canopy height", 12.4, "m", abs_tol=0.3),
    "lost": number("area_lost", "area of farmland lost", 3.2, "ha", abs_tol=0.1),
    "weedcover": number("weed_share", "share of the field covered by weeds", 18.6, "%", abs_tol=0.5),
    "ratio": number("ratio", "ratio of weed to crop area", 0.35, abs_tol=0.01),
    "density": number("density", "plant density", 6.8, "1/m^2", abs_tol=0.1),
    "growth": number("growth", "height growth of the weed", 4.2, "cm/week", abs_tol=0.1),
    "extra": ExactSlot(name="extra", label="how many more apples the right image shows", value=9),
    "treat": BooleanSlot(name="treat", label="treatment threshold exceeded", value=True),
    "suitable": BooleanSlot(name="suitable", label="the density is within the recommended range", value=False),
    "classes": ChoiceSetSlot(
        name="classes",
        label="classes present in the map",
        value=("crop", "soil", "weed"),
        choices=("crop", "soil", "weed", "water"),
        aliases={"weed": ("weeds", "杂草"), "crop": ("作物",), "soil": ("bare soil", "土壤"), "water": ("水体",)},
    ),
    "map": FileSlot(
        name="map",
        label="map with the larger weed area",
        value="map_2019.png",
        choices=("map_2017.png", "map_2019.png"),
    ),
    "insect": name(
        "pest",
        "rice leaf roller",
        "Cnaphalocrocis medinalis",
        "稻纵卷叶螟",
        options=("rice leaf roller", "brown planthopper", "rice stem borer", "army worm"),
    ),
    "blight": name("disease", "late blight", "Phytophthora infestans", "晚疫病"),
    "band": name("band", "NIR", "near infrared", "近红外", options=("red", "green", "blue", "NIR")),
    "six": keywords(("6", "six", "$6")),
    "aircraft": keywords(("yes",), ("3", "three")),
    "colours": keywords(("red",), ("blue",)),
}
REPLIES = [
    (row["slot"], row["reply"], row["score"])
    for row in map(json.loads, (Path(__file__).parent / "replies.jsonl").read_text(encoding="utf-8").splitlines())
]


@pytest.mark.parametrize(("slot", "reply", "score"), REPLIES)
def test_a_reply_scores_what_a_careful_reader_would_give(slot: str, reply: str, score: int):
    scored = score_slot(SLOTS[slot], [SLOTS[slot]], reply)
    assert scored.value == score, scored.reading


@pytest.mark.parametrize(
    ("slot", "reply", "score"), [row for row in REPLIES if row[0] in ("six", "aircraft", "colours")]
)
def test_the_corrected_scores_of_keywords_read_the_same(slot: str, reply: str, score: int):
    lists = SLOTS[slot]
    if "not" not in reply:  # what is denied counts there, as published
        assert states(reply, {"whitelist": [list(group) for group in lists.whitelist]}) == bool(score)
