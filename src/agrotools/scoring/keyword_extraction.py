"""Keywords of an English text by a fixed rule: what stands in for the nouns that Agent-X takes from spaCy.

No part of speech is told. A keyword is a word of letters (and digits behind them), of 2 to 29 characters, that is not
in the list of function words below, does not end as adverbs do (-ly), and is taken without the ending of a plural.
Verbs and adjectives therefore stay, and phrases are not taken: more keywords than spaCy's, so that fewer texts have
none. The 21 that occur most often count, the first named first.
"""

import re
from collections import Counter

MOST = 21

_WORD = re.compile(r"[^\W\d_][^\W_]{1,28}(?![^\W_])")
_FUNCTION_WORDS = frozenset(
    """
    a about above across after again against all almost along also although always am among an and another any are
    around as at away back be because become been before behind being below beneath beside besides between beyond both
    but by can cannot could did do does doing done down during each either else enough etc even ever every few first
    for from further gave get gets give given gives go goes got had has have having he hence her here hers herself him
    himself his how however i if in indeed instead into is it its itself just last least less let like made make makes
    many may me might mine more most much must my near neither never next no none nor not nothing now of off often on
    once one only onto or other others our ours out over own per perhaps please rather same say see seem seems seen
    several she should show shows shown since so some something still such take taken than that the their theirs them
    themselves then there therefore these they this those though through throughout thus to together too toward under
    unless until up upon us use used uses using very via was we well were what when where whether which while who whom
    whose why will with within without would yes yet you your yours
    two three four five six seven eight nine ten second third
    """.split()
)


def keywords(text: str) -> list[str]:
    """At most 21 keywords of ``text``, in lower case; the most frequent first, among equals the first named."""
    words = (_singular(word) for word in map(str.lower, _WORD.findall(text)) if _may_be_noun(word))
    return [word for word, _ in Counter(words).most_common(MOST)]


def _may_be_noun(word: str) -> bool:
    return word not in _FUNCTION_WORDS and not (word.endswith("ly") and len(word) > 4)


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word
