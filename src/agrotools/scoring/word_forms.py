"""Forms of a label's words in a sentence: endings, families (deep, depth), opposites, Chinese translations."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from agrotools.core.form_item import FormItem
from agrotools.text.clauses import Negations
from agrotools.text.normalise import CJK, WORD, data_lines, late_pattern, normalise, stemmer, translated

_ROOT_FORMS = {
    form: words[0] for line in data_lines("word_forms.txt") for words in [line.split()] for form in words[1:]
}
_FORMS = {root: [form for form, of in _ROOT_FORMS.items() if of == root] for root in _ROOT_FORMS.values()}
_ENDING = late_pattern(r"(?<=[a-z]{3})(?:ations?|ings?|ied|ies|edly|ed|es|e?s|ers?|ly|ment|e|y|ion|ions|al|age)$")


def _root(word: str) -> str:
    word = _ROOT_FORMS.get(word, word)
    root = _ENDING.sub("", word) if len(word) > 3 else word
    if len(root) > 3 and root[-1] == root[-2] and root[-1] in "bdglmnprt":
        root = root[:-1]
    return root


@lru_cache(maxsize=4_000)
def word_pattern(word: str, min_chinese: int = 1) -> re.Pattern[str]:
    """Return the pattern of a word.

    An English word matches in any form and in Chinese translations of at least ``min_chinese`` characters; a Chinese
    word matches literally."""
    if word > "\u2e80":
        return re.compile(re.escape(word))
    root = _root(word)
    forms = [re.escape(form) for form in (word, *_FORMS.get(_ROOT_FORMS.get(word, word), ()))]
    ending = "[a-z]*" if len(root) > 3 else rf"(?:{re.escape(root[-1])}?(?:e?s|e?d|ing|e|y|ies|ied|en|e?ness))?"
    chinese = dict.fromkeys(each for each in (*translated(word), *translated(root)) if len(each) >= min_chinese)
    return re.compile("|".join([rf"(?<![a-z\d])(?:{'|'.join(forms)}|{re.escape(root)}{ending})(?![a-z\d])", *chinese]))


_ENDINGS = late_pattern(
    r"(?:ation|ment|ness|ance|ence|able|ible|less|ful|ing|ion|age|ous|ive|ity|est|ant|ent|ish|ure|al|at|ed|en|er|es|ic|ie|"
    r"is|iz|ly|or|th|d|e|i|s|t|y){0,4}"
)


def is_form(written: str, word: str) -> bool:
    """Return True unless ``written`` is a compound that begins with ``word``: "wheatgrass" for "wheat"."""
    root = _root(word)
    if not written.startswith(root):
        return True
    return _ENDINGS.fullmatch(written.removeprefix(root).removeprefix(root[-1])) is not None


_LATIN = late_pattern(rf"{WORD}{{3,}}|\bph\b")


@cache
def _family_heads() -> dict[str, str]:
    families = map(str.split, data_lines("word_families.txt"))
    return {stemmer().stemWord(word): words[0] for words in families for word in words}


@lru_cache(maxsize=4_000)
def _stem_root(word: str) -> str:
    stemmed: str = stemmer().stemWord(word)
    return _family_heads().get(stemmed, stemmed)


@lru_cache(maxsize=8_000)
def roots(text: str) -> frozenset[str]:
    """Return the roots of the words of ``text``; words of one family share a root."""
    return frozenset(_stem_root(word) for word in _LATIN.findall(text))


def says(word: str, spoken_roots: frozenset[str], text: str) -> bool:
    """Return True if ``text``, whose :func:`roots` are ``spoken_roots``, has a form of ``word`` or its translation."""
    if word > "\u2e80":
        return word in text
    if _stem_root(word) in spoken_roots:
        return True
    return not text.isascii() and any(chinese in text for chinese in translated(word))


_COMPARE = frozenset("多大高宽长重密快好深厚少小低矮窄短轻稀慢差浅薄")


class Family(NamedTuple):
    """Patterns of words of one meaning and of its opposite: either of them, and the opposites alone."""

    either: re.Pattern[str]
    opposite: re.Pattern[str]
    in_label: re.Pattern[str]

    def find(self, text: str, *, in_label: bool = False) -> list[tuple[int, int, bool]]:
        """Return start, end, and True for assertion or False for the opposite, of each word of the family in ``text``.

        With ``in_label`` only words count that show that a label belongs to the family: "exceeds" denies "within", but
        a label with "exceeds" does not ask for a range.
        """
        return [
            (match.start(), match.end(), self.opposite.fullmatch(match[0]) is None)
            for match in (self.in_label if in_label else self.either).finditer(text)
        ]


def _pattern(words: list[str]) -> re.Pattern[str]:
    latin = [word for word in words if word < "\u2e80"]
    chinese = [word for word in words if word > "\u2e80"]
    parts = "|".join(
        re.escape(word).replace(r"\*", "[a-z]*").replace("_", " ") for word in sorted(latin, key=len, reverse=True)
    )
    return re.compile(
        "|".join(
            [rf"(?<![a-z\d])(?<![a-z\d]-)(?:{parts})(?![a-z\d])", *map(_alone, sorted(chinese, key=len, reverse=True))]
        )
    )


def _alone(word: str) -> str:
    """Return the pattern of a Chinese word; comparatives of one character must not match in 大棚 or 长势."""
    return rf"(?:(?<=[更较最偏很]){word}|{word}(?![{CJK}])|{word}(?=[的于得出些]))" if word in _COMPARE else word


def _read_family(line: str) -> Family:
    yes, _, no = line.partition("/")
    # Words match only from their beginning, so "chang*" does not match in "unchanged".
    affirming = [word for word in (yes + no).split() if word[0] != "~"]
    yes, no = yes.replace("~", ""), no.replace("~", "")
    return Family(_pattern(yes.split() + no.split()), _pattern(no.split()), _pattern(affirming))


@lru_cache(maxsize=1)
def _all_families() -> tuple[Family, ...]:
    return tuple(map(_read_family, data_lines("opposites.txt")))


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """Return all families except comparatives."""
    return _all_families()[1:]


@lru_cache(maxsize=1)
def presence() -> Family:
    """Return the family of "present" and "visible"; naming a thing also states its presence."""
    return next(family for family in families() if family.either.fullmatch("present"))


def comparatives(asked: str = "") -> Family:
    """Return the family of comparatives: more and less. Of the harm that a text asks for, more is worse."""
    return _of_harm() if _HARM.search(asked) else _all_families()[0]


def senses(item: FormItem) -> tuple[tuple[Family, bool], ...]:
    """Return the families of words in a label, with True for assertion and False for the opposite."""
    return _senses(question(item))


def question(item: FormItem) -> str:
    """Return the normalised label without its options: "half with more trees" of "...: upper or lower"."""
    return normalise(item.label).partition(":")[0]


@lru_cache(maxsize=1_000)
def _senses(label: str) -> tuple[tuple[Family, bool], ...]:
    compared = comparatives(label)
    more = compared.find(label, in_label=True)[-1:]
    hits_by_family = [
        (family, hits[-1])
        for family in families()
        if family is not presence() and (hits := family.find(label, in_label=True))
    ]
    # "fewer clouds" asks for the opposite of clouds; "wetter" belongs to both families.
    less = [hit for hit in more if not hit[2]]
    flipped = [(family, hit[2] != any(word[1] <= hit[0] for word in less)) for family, hit in hits_by_family]
    return (*((compared, hit[2]) for hit in more), *flipped)


_HARM = late_pattern(
    r"\b(?:un(?:healthy|ripe)|(?:diseas|infect|infest|damag|affect|attack|injur|weed|rott|dead|lost|loss|sick|lesion)\w*)"
)
_SWAPPED = {"better": "worse", "worse": "better", "更好": "更差", "更差": "更好"}


@cache
def _of_harm() -> Family:
    """Return the comparatives with "worse" and "better" swapped."""
    words = [_SWAPPED.get(word, word) for word in data_lines("opposites.txt")[0].split()]
    return _read_family(" ".join(["worst sicker sickest", *words, "best cleaner cleanest healthier healthiest"]))


def sense_of(text: str, slot_senses: Sequence[tuple[Family, bool]]) -> int:
    """Return 1 if ``text`` states the requested sense, -1 for its opposite, 0 for neither or both."""
    if not slot_senses or not text.strip():
        return 0
    negations = Negations(text)
    for family, asserts_label in slot_senses:
        verdicts = {
            (asserts == asserts_label) != ((negations.count_before(start) + text.startswith(" no ", end)) % 2 == 1)
            for start, end, asserts in family.find(text)
        }
        if len(verdicts) == 1:
            return 1 if verdicts.pop() else -1
    return 0
