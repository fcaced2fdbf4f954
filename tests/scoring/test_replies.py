"""Replies as models write them, each with the score that a careful reader would give."""

import json
from pathlib import Path

import pytest

from agrotools.benchmarks._dialogs.answer_keywords import states
from agrotools.core import BooleanSlot, ChoiceSetSlot, ExactSlot, FileSlot, KeywordsSlot, ToleranceSlot
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
    "sheep": ExactSlot(name="sheep", label="number of sheep on the pasture", value=37),
    "lai": number("lai", "leaf area index of the maize", 3.4, abs_tol=0.1),
    "nstock": number("n_stock", "nitrogen stock in the topsoil", 4.2, "t/ha", abs_tol=0.1),
    "tank": number("tank_2020", "volume of water in the tank in 2020", 840, "m^3", abs_tol=10),
    "dT": number(
        "dt", "difference in canopy temperature between stressed and watered plants", 2.6, "degC", abs_tol=0.2
    ),
    "water_level": number("level", "change in water level since May", -0.8, "m", abs_tol=0.05),
    "soil_ph": number("ph", "pH of the soil", 6.3, abs_tol=0.05),
    "rice_stage": ExactSlot(
        name="stage",
        label="growth stage of the rice",
        value="tillering",
        choices=("seedling", "tillering", "booting", "heading"),
        aliases={"tillering": ("分蘖期",), "booting": ("孕穗期",), "heading": ("抽穗期",), "seedling": ("苗期",)},
    ),
    "west_crop": ExactSlot(
        name="crop",
        label="crop on the western field",
        value="barley",
        choices=("wheat", "barley", "oats", "rapeseed"),
        aliases={"barley": ("大麦",), "wheat": ("小麦",), "oats": ("燕麦",), "rapeseed": ("油菜",)},
    ),
    "wetter": FileSlot(
        name="wetter", label="image with the wetter soil", value="soil_b.png", choices=("soil_a.png", "soil_b.png")
    ),
    "limiting": ChoiceSetSlot(
        name="defic",
        label="nutrients that limit growth",
        value=("nitrogen", "sulphur"),
        choices=("nitrogen", "phosphorus", "potassium", "sulphur", "zinc"),
        aliases={
            "nitrogen": ("N", "氮"),
            "sulphur": ("S", "sulfur", "硫"),
            "potassium": ("钾",),
            "phosphorus": ("磷",),
            "zinc": ("锌",),
        },
    ),
    "mach": ChoiceSetSlot(
        name="machines",
        label="machines in the yard",
        value=("tractor", "baler"),
        choices=("tractor", "baler", "combine", "sprayer"),
        aliases={"tractor": ("拖拉机",), "baler": ("打捆机",), "combine": ("收割机",), "sprayer": ("喷雾机",)},
    ),
    "lodged": BooleanSlot(name="lodged", label="part of the wheat has lodged", value=True),
    "leak": BooleanSlot(name="leak", label="the irrigation pipe is leaking", value=False),
    "road": BooleanSlot(name="road", label="a new road crosses the field", value=True),
    "yld": number("yield", "grain yield of plot B", 7.1, "t/ha", abs_tol=0.1),
    "cows": ExactSlot(name="cows", label="number of cows lying down", value=12),
    "dens": number("density", "number of plants per square metre", 28, "1/m^2", abs_tol=1),
    "meanw": number("mean_weight", "mean weight of the bulbs", 84, "g", abs_tol=1),
    "pans": ExactSlot(name="pans", label="number of salt pans", value=18),
    "goats": ExactSlot(name="goats", label="number of goats in the right picture", value=9),
    "palm": number("palm_h", "height of palm C", 11.5, "m", abs_tol=0.3),
    "burnt": number("burnt", "burnt area", 86, "ha", abs_tol=2),
    "bio": number("dry_matter", "dry matter yield of the meadow", 3.9, "t/ha", abs_tol=0.1),
    "shade": number("shade_effect", "effect of the trees on air temperature", -1.9, "degC", abs_tol=0.1),
    "npar": number("parasitised", "share of parasitised eggs", 34, "%", abs_tol=1),
    "hens": ExactSlot(name="hens", label="number of hens in 2022", value=410),
    "soilt": ExactSlot(
        name="soil",
        label="soil type of the lower slope",
        value="gley",
        choices=("podzol", "gley", "cambisol", "chernozem"),
    ),
    "barley": ExactSlot(
        name="disease",
        label="disease of the barley",
        value="net blotch",
        choices=("net blotch", "scald", "powdery mildew", "brown rust"),
        aliases={
            "net blotch": ("网斑病",),
            "scald": ("云纹病",),
            "powdery mildew": ("白粉病",),
            "brown rust": ("叶锈病",),
        },
    ),
    "most_fruit": FileSlot(
        name="best", label="photo that shows the most fruit", value="p3.jpg", choices=("p1.jpg", "p2.jpg", "p3.jpg")
    ),
    "birds": ChoiceSetSlot(
        name="birds",
        label="birds seen at the pond",
        value=("heron", "duck"),
        choices=("heron", "duck", "stork", "coot"),
        aliases={"heron": ("苍鹭",), "duck": ("鸭",), "stork": ("鹳",), "coot": ("骨顶鸡",)},
    ),
    "lower_field": BooleanSlot(name="flooded", label="the lower field is flooded", value=True),
    "cropchg": BooleanSlot(
        name="crop_changed", label="the crop on the field changed between the two dates", value=False
    ),
    "lime": BooleanSlot(name="lime", label="lime is needed", value=True),
    "cans": ExactSlot(name="cans", label="number of milk cans", value=24),
    "mean_h": number("mean_height", "mean height of the sunflowers", 1.62, "m", abs_tol=0.05),
    "vineyard": number("loss_2021", "area of vineyard lost by 2021", 4.4, "ha", abs_tol=0.1),
    "rye": number("seeding", "seeding rate of the rye", 145, "kg/ha", abs_tol=4),
    "breed": ExactSlot(
        name="breed", label="breed of the cattle", value="Angus", choices=("Angus", "Hereford", "Holstein", "Simmental")
    ),
    "cloudy": FileSlot(
        name="cloudy", label="image with more clouds", value="s2_may.tif", choices=("s2_may.tif", "s2_june.tif")
    ),
    "organs": ChoiceSetSlot(
        name="organs",
        label="organs with spots",
        value=("leaf", "pod"),
        choices=("leaf", "pod", "stem", "root"),
        aliases={"leaf": ("叶",), "pod": ("荚",), "stem": ("茎",), "root": ("根",)},
    ),
    "mown": BooleanSlot(name="mown", label="the meadow was mown", value=True),
}
MISREAD = pytest.mark.xfail(strict=True, reason="a careful reader would, ours does not")
REPLIES = [
    pytest.param(row["slot"], row["reply"], row["score"], marks=MISREAD if row.get("misread") else ())
    for row in map(json.loads, (Path(__file__).parent / "replies.jsonl").read_text(encoding="utf-8").splitlines())
]


@pytest.mark.parametrize(("slot", "reply", "score"), REPLIES)
def test_a_reply_scores_what_a_careful_reader_would_give(slot: str, reply: str, score: int):
    scored = score_slot(SLOTS[slot], [SLOTS[slot]], reply)
    assert scored.value == score, scored.reading


@pytest.mark.parametrize(
    ("slot", "reply", "score"), [row for row in REPLIES if row.values[0] in ("six", "aircraft", "colours")]
)
def test_the_corrected_scores_of_keywords_read_the_same(slot: str, reply: str, score: int):
    lists = SLOTS[slot]
    if "not" not in reply:  # what is denied counts there, as published
        assert states(reply, {"whitelist": [list(group) for group in lists.whitelist]}) == bool(score)
