"""What ThinkGeo's paper sorts its questions by, where its file does not say it: use case and difficulty.

Use cases are told by words of the question, of its files' names and of the tools: **our rule**, since the published
file names none. Every use case counts how many of its words are there; most wins, the first of the list where several
have as many, ``other`` where none has any. Difficulty follows the paper's section 3.3.
"""

import re
from collections.abc import Mapping, Sequence

from agrotools.core import Sample

USE_CASES: Mapping[str, tuple[str, ...]] = {
    "disaster_and_change": (
        *("damage[sd]?", "damaged", "disaster", "destroyed", "flood(?:s|ed|ing)?", "hurricane", "wildfires?", "fire"),
        *("volcan(?:o|ic)", "tsunami", "earthquake", "tornado", "debris", "pre[- ]?(?:image|disaster|event)"),
        *("post[- ]?(?:image|disaster|event)", "before and after", "changes?", "changed", "ChangeDetection"),
    ),
    "aviation": (
        *("aircrafts?", "air ?planes?", "planes?", "jets?", "runways?", "airports?", "airfield", "helicopters?"),
        *("hangars?", "taxiways?", "terminals?", "aprons?", "boarding"),
    ),
    "recreation": (
        *("tennis", "basketball", "baseball", "football", "soccer", "courts?", "playgrounds?", "stadiums?", "track"),
        *("golf", "sports?", "players?", "matches", "gymnasium", "recreation(?:al)?"),
    ),
    "industrial_sites": (
        *("storage tanks?", "tanks?", "industrial", "factor(?:y|ies)", "refiner(?:y|ies)", "chimneys?", "silos?"),
        *("warehouses?", "oil", "fuel"),
    ),
    "environment": (
        *("garbage", "waste", "dump(?:s|ing)?", "dumpsites?", "landfills?", "contaminat(?:ion|ed)", "pollut(?:ion|ed)"),
        *(
            "water ?bod(?:y|ies)",
            "agricultur(?:e|al)",
            "crops?",
            "farmland",
            "vegetation",
            "trees?",
            "rivers?",
            "lakes?",
        ),
    ),
    "transportation": (
        *(
            "vehicles?",
            "cars?",
            "trucks?",
            "bus(?:es)?",
            "vans?",
            "traffic",
            "intersections?",
            "roundabouts?",
            "lanes?",
        ),
        *("ships?", "boats?", "vessels?", "harbou?rs?", "docks?", "piers?", "parked", "heading", "highways?"),
    ),
    "urban_planning": (
        *(
            "residential",
            "houses?",
            "buildings?",
            "roofs?",
            "swimming pools?",
            "pools?",
            "parking",
            "roads?",
            "bridges?",
        ),
        *("neighbou?rhoods?", "urban", "zoning", "plots?", "streets?"),
    ),
}
"""Use cases as in the paper's figure 2, with the words that tell them."""

_WORDS = {
    name: re.compile(rf"(?<![A-Za-z])(?:{'|'.join(words)})(?![A-Za-z])", re.IGNORECASE)
    for name, words in USE_CASES.items()
}

COMPLEX_WORDS = ("estimate", "compare", "distribution", "count", "area", "how many", "orientation", "proximity")
"""Words that make a question harder, by the paper."""
EASY_OF, OPTICAL = 281, 436
"""How many of the optical questions the paper calls easy. Where it cuts it does not say."""


def use_case(query: str, names: Sequence[str], tools: Sequence[str]) -> str:
    """The use case that a question is about."""
    text = " ".join([query, *(name.replace("_", " ").replace("-", " ") for name in names), *tools])
    counts = {name: len({found.casefold() for found in words.findall(text)}) for name, words in _WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "other"


def difficulties(samples: Sequence[Sample]) -> list[str]:
    """``easy`` or ``hard`` for each sample.

    Samples are ranked by the number of complex words in the question, then of steps, then as they stand; the first
    281 of 436 (that share of fewer or more) are easy. This gives the paper's totals, and hardly its very sets.
    """
    ranks = sorted(range(len(samples)), key=lambda place: (*_complexity(samples[place]), place))
    easy = set(ranks[: round(len(samples) * EASY_OF / OPTICAL)])
    return ["easy" if place in easy else "hard" for place in range(len(samples))]


def _complexity(sample: Sample) -> tuple[int, int]:
    query = sample.query.casefold()
    return sum(word in query for word in COMPLEX_WORDS), len(sample.reference.steps) if sample.reference else 0
