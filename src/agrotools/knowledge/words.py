"""Words as the retrieval compares them: folded, split, stemmed, put under one concept, cut into n-grams."""

import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files

from agrotools.text.normalise import CJK, normalise

_TOKEN = re.compile(rf"[{CJK}]+|[^\W_{CJK}]+")
_CJK = re.compile(f"[{CJK}]")

STOPWORDS = frozenset(
    "a about above after again all also am an and any are as at be because been before being below between both but "
    "by can cannot could did do does doing down during each etc few for from further get gets getting give go goes "
    "going got had has have having he help her here hers him his how i if in into is it its itself just kind let "
    "like look looks looking may me might more most much must my near need no nor not now of off on once one only "
    "onto or other our ours out over own please s same say see seem seems she should show shows so some somebody "
    "someone something such t tell than that the their them then there these they thing things this those through "
    "to too under until up us very want was way we were what when where which while who whom whose why will with "
    "would you your yours explain describe define find know mean means called name named information info question "
    "answer advice guide i'm don't it's what's can't".split()
)
"""Words that say nothing of the matter."""

ASKING = frozenset(
    "management manage managing control controlling controls controlled treat treating treatment treatments treated "
    "prevent preventing prevention threshold thresholds symptom symptoms sign signs cause causes caused causing "
    "identification identify identifying recognise recognize recognising recognizing diagnose diagnosis biology "
    "ecology life cycle lifecycle spread spreads spreading damage damages damaging damaged harm infest infestation "
    "infested infect infection infected infects attack attacks attacked economic action level spray spraying "
    "sprayed rid deal problem problems pest pests disease diseases weed weeds crop crops plant plants insect "
    "insects bug bugs species field fields farm farmer farmers garden grow grows growing grown scout scouting "
    "monitor monitoring monitored method methods formula calculate calculated value values reference meaning "
    "measure measured best common early stop fight reduce kill killing scientific latin family host hosts picture "
    "photo image".split()
)
"""Words that ask for something of a thing without saying which thing. They rank sections, but count for no entry."""


SECTION_WORDS: dict[str, frozenset[str]] = {
    section: frozenset(words.split())
    for section, words in {
        "management": "manage management managing control controlling treat treating treatment prevent preventing "
        "prevention against rid deal reduce stop fight kill spray spraying avoid measures remove 防治 防控 治疗 预防",
        "symptoms": "symptom symptoms sign signs damage look looks 症状 危害",
        "thresholds": "threshold thresholds economic 阈值 指标",
        "identification": "identify identification recognise recognize identifying recognising recognizing 识别 鉴别",
        "causes": "cause causes caused causing why pathogen favours favors 病因 原因",
        "life_cycle": "life cycle spread spreads overwinter overwinters biology generations 生活史",
        "reference_values": "formula calculate compute computed computing definition range 公式",
    }.items()
}
"""Words of a question that say which section it asks for."""


def section_asked(query: str) -> str | None:
    """The section that most words of a question point to, None where none does."""
    text = folded(query)
    said = text.split()
    counts = {
        section: sum(word in words for word in said) + sum(word in text for word in words if has_cjk(word))
        for section, words in SECTION_WORDS.items()
    }
    best = max(counts, key=lambda section: counts[section])
    return best if counts[best] else None


@lru_cache(100_000)
def folded(text: str) -> str:
    """``text`` as names are compared: normalised, without accents and punctuation, one space between words.

    Idempotent. Characters of Chinese, Japanese and Korean stand for themselves.
    """
    plain = unicodedata.normalize("NFKD", normalise(text))
    plain = "".join(char for char in plain if not unicodedata.combining(char)).replace("'", "")
    # Decomposing takes Hangul apart and may bring upper case back; composing again keeps the folding idempotent.
    plain = normalise(unicodedata.normalize("NFKC", plain)).replace("'", "")
    return " ".join(_TOKEN.findall(plain))


def has_cjk(text: str) -> bool:
    return _CJK.search(text) is not None


def tokens(text: str) -> tuple[str, ...]:
    """Words of ``text``, folded; a run of Chinese characters gives its pairs (a single character itself)."""
    found: list[str] = []
    for word in folded(text).split():
        if _CJK.match(word):
            found += [word[at : at + 2] for at in range(len(word) - 1)] or [word]
        else:
            found.append(word)
    return tuple(found)


@lru_cache(100_000)
def stem(word: str) -> str:
    """An English word without its ending: plural, -ing, -ed, -ish, -y. Rough; both sides go through it."""
    if len(word) <= 3 or not word.isascii():
        return word
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ves", "f"), ("shes", "sh"), ("ches", "ch"), ("xes", "x")):
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            word = word[: -len(ending)] + instead
            break
    else:
        if word.endswith("s") and not word.endswith(("ss", "us", "is")):
            word = word[:-1]
    for ending in ("ening", "ened", "ing", "edly", "ed", "ish", "like"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
                word = word[:-1]
            break
    if len(word) > 4 and word.endswith("y") and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


@cache
def concepts() -> dict[str, str]:
    """Stem -> the concept it stands for, from ``concepts.toml``: growers and textbooks use different words."""
    table = tomllib.loads(files("agrotools.knowledge").joinpath("concepts.toml").read_text("utf-8"))
    found: dict[str, str] = {}
    for concept, words in table.items():
        for word in (concept, *words):
            found.setdefault(stem(folded(word)), f"={concept}")
    return found


def terms(text: str) -> tuple[str, ...]:
    """Terms of ``text`` for matching: stems without stop words, words of like meaning as one."""
    same = concepts()
    stems = (stem(word) for word in tokens(text) if word not in STOPWORDS)
    return tuple(same.get(found, found) for found in stems)


@cache
def asking_terms() -> frozenset[str]:
    return frozenset(term for word in ASKING for term in terms(word))


def ngrams(text: str) -> Iterator[str]:
    """n-grams of 3 to 5 characters of a folded text with a space at both ends; 1 to 3 of each Chinese run."""
    latin: list[str] = []
    for word in text.split():
        if _CJK.match(word):
            for size in (1, 2, 3):
                yield from (word[at : at + size] for at in range(len(word) - size + 1))
        else:
            latin.append(word)
    if latin:
        padded = f" {' '.join(latin)} "
        for size in (3, 4, 5):
            yield from (padded[at : at + size] for at in range(len(padded) - size + 1))
