"""Words of a text and their stems (contractions expanded, numbers in digits), and the vocabulary of denials.

Supports English and Chinese.
"""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from agrotools.text.normalise import CJK, late_pattern, normalise, stemmer

MOST_BYTES = 64 * 1024
"""Only this many bytes at the beginning of a text are read."""
_CONTRACTIONS = (
    (re.compile(r"\bcan(?:no|'?)t\b"), "can not"),
    (re.compile(r"\bwon'?t\b"), "will not"),
    (re.compile(r"\b(do|does|did|is|are|was|were|should|would|could|has|have|had|must|need)n'?t\b"), r"\1 not"),
    (re.compile(r"\b(it|that|there|what)'s\b"), r"\1 is"),
    (re.compile(r"\b(it|they|we|you|i)'(?:ll|d|ve|re|m)\b"), r"\1"),
    (re.compile(r"'s\b|s'(?=\s)"), ""),
    (re.compile(r"\binstead of\b"), "insteadof"),
    (re.compile(r"\bper cent\b"), "percent"),
    (re.compile(r"\bfortnight\b"), "2 weeks"),
    (re.compile(r"\bhalf a dozen\b"), "6"),
    (re.compile(r"\b(e|i)\.\s?(g|e)\."), r"\1\2"),
    (re.compile(r"(?<=\w)-(?=[a-z])"), " "),
)
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen twenty".split()
    )
} | {"dozen": "12", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "hundred": "100"}
_NUMBER_WORD = late_pattern(rf"\b({'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})\b")
_CHINESE_DIGITS = dict(zip("一二两三四五六七八九十", "1 2 2 3 4 5 6 7 8 9 10".split(), strict=True))
_CHINESE_NUMBER = late_pattern(
    r"([一二两三四五六七八九十])([一二三四五六七八九十]?)(?=[头只个年周次粒株条片处点到至毫厘厅行日月天])"
)
_DAYS = late_pattern(r"(?<![\d.,-])(\d{1,2})(?:\s?(?:-|to|至|到|~)\s?(\d{1,2}))?\s?(?:days|天|日)(?![a-z历])")
_TWO_SPANS = late_pattern(
    r"\b(\d+) ?(weeks?|days?|years?|months?) (?:to|or|-) (\d+) ?(?:weeks?|days?|years?|months?)\b"
)
_TOKEN = late_pattern(
    rf"(?P<number>\d+(?:[.,]\d+)*(?:\s?(?:-|to|and|or|至|到|~)\s?\d+(?:\.\d+)?)?)|(?P<word>[^\W\d_{CJK}]+)"
    rf"|(?P<cjk>[{CJK}])|(?P<mark>[%.!?;:,、。\n()\"\[\]|/]|-(?=\s))|(?P<bullet>[*+•])"
)
_RANGE = late_pattern(r"\s?(?:-|to|and|or|至|到|~)\s?")
_GRAMMAR: dict[str, Any] = tomllib.loads((files("agrotools.data") / "open_text" / "grammar.toml").read_text("utf-8"))
_IRREGULAR = {form: word for word, forms in _GRAMMAR["irregular"].items() for form in forms.split()}
_WHOLE = frozenset("useful useless hardly barely rarely scarcely lately".split())
_DROPPED = frozenset(
    "the a an of its your their our my his her any some such very really also even quite actually ever at still "
    "then therein thereby particularly especially mainly mostly usually often generally typically".split()
)
NONE, LIST, COMMA, COLON, CONTRAST, SENTENCE = range(6)
_MARKS = dict.fromkeys(',()"[]-/', COMMA) | dict.fromkeys(".!?;。\n|", SENTENCE) | {"、": LIST, ":": COLON, "%": NONE}
_KEYWORDS_EN = late_pattern(r"[^.,;:!?()\n]+")
_KEYWORDS_ZH = late_pattern(rf"(?:[{CJK}][{CJK}\d-]{{0,11}} +){{9,}}[{CJK}]{{1,9}}")
_JOINING = frozenset("the a an of and or to in on is are with for that by from it as at be so into not which".split())
_FEWEST_KEYWORDS = 18
"""A run of this many words without punctuation and with few function words is a keyword list, not a statement."""


class Span(NamedTuple):
    """Range of word indices from ``start`` to ``end``, exclusive."""

    start: int
    end: int


class Word(NamedTuple):
    """A word: its stem, its written form, and its position in the normalised text."""

    stem: str
    written: str
    start: int
    end: int


@lru_cache(maxsize=50_000)
def stem_of(word: str) -> str:
    """Return the stem of a lower-case word, shared by all its forms."""
    if not word.isascii() or word in _WHOLE:
        return word
    return stemmer().stemWord(_IRREGULAR.get(word, word).replace("isation", "ization"))


Trie = dict[str, Any]
"""Phrases as nested dictionaries by stem; the key ``""`` holds the meanings of the phrase that ends there."""


def add_to(trie: Trie, words: Iterable[str], meaning: str) -> None:
    """Add a phrase, as its stems, to a trie."""
    for word in words:
        trie = trie.setdefault(word, {})
    trie.setdefault("", []).append(meaning)


def plain_text(text: str) -> str:
    """Return the first 64 KiB of a text, normalised: contractions expanded, number words as digits."""
    text = normalise(text.encode("utf-8", "ignore")[:MOST_BYTES].decode("utf-8", "ignore"))
    text = re.sub(r"[*_`#]+", " ", text).replace(">", " more than ").replace("≥", " at least ")
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    text = _NUMBER_WORD.sub(lambda found: _NUMBER_WORDS[found[1]], text)
    text = _CHINESE_NUMBER.sub(_in_digits, text)
    return _TWO_SPANS.sub(r"\1-\3 \2", _DAYS.sub(_weeks, text))


def _in_digits(match: re.Match[str]) -> str:
    """Return a Chinese number below 100, or two in a row ("两三个"), in digits."""
    first, second = (_CHINESE_DIGITS.get(each, "") for each in match.groups())
    if "10" not in (first, second) or not second:
        return "-".join(filter(None, (first, second)))
    return f"1{second}" if first == "10" else f"{first}0"


def _weeks(match: re.Match[str]) -> str:
    """Return a number of days as weeks if it is a multiple of 7."""
    days = [int(number) for number in match.groups() if number]
    if any(number % 7 or not number for number in days):
        return match[0]
    return "-".join(str(number // 7) for number in days) + ("weeks" if match[0].endswith("s") else "周")


def stems_of(phrase: str) -> list[str]:
    """Return the stems by which a phrase is searched for in a text."""
    stems: list[str] = []
    for match in _TOKEN.finditer(plain_text(phrase)):
        if match.lastgroup == "number":
            stems.append("-".join(_RANGE.split(match[0].replace(",", ""))))
        elif match.lastgroup in ("word", "cjk") and match[0] not in _DROPPED:
            stems.append(stem_of(match[0]))
        elif match[0] == "%":
            stems.append("%")
    return stems


@cache
def _tables() -> dict[str, list[str]]:
    text = (files("agrotools.data") / "open_text" / "polarity.toml").read_text("utf-8")
    return {
        kind: [phrase for phrase in (part.strip() for part in listed.replace("\n", " ").split(",")) if phrase]
        for kind, listed in tomllib.loads(text).items()
    }


@cache
def polarity() -> Trie:
    trie: Trie = {}
    for kind in ("neutral", "contrast", "allow", "dismiss", "deny", "worsens"):
        for phrase in _tables()[kind]:
            add_to(trie, stems_of(phrase), kind)
    return trie


@cache
def stems_of_kind(kind: str) -> frozenset[str]:
    return frozenset(stem for phrase in _tables()[kind] for stem in stems_of(phrase))


@cache
def words_of_kind(kind: str) -> frozenset[str]:
    return frozenset(_tables()[kind])


@cache
def bare_words() -> frozenset[str]:
    """Return words and stems that carry no idea on their own: prepositions, auxiliaries."""
    return words_of_kind("bare") | stems_of_kind("bare")


def split_words(text: str) -> tuple[list[Word], list[int], list[Span]]:
    """Split a text from :func:`plain_text` into words.

    Returns:
        The words, the boundary before each word (plus one for the end of the text), and the spans of questions.
    """
    words: list[Word] = []
    before: list[int] = []
    questions: list[Span] = []
    boundary, since, listed = SENTENCE, 0, False
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup, match[0]
        if kind == "mark" and piece != "%":
            mark = _MARKS[piece]
            if piece == "." and _is_abbreviation(text, words, match.end()):
                continue
            if piece == "\n":
                listed = listed or boundary == COLON
                rest = text[match.end() : match.end() + 4].lstrip(" ")
                if boundary == COLON or (listed and re.match(r"[-*+•]|\d+[.)]", rest)):
                    mark = COLON if boundary == COLON else COMMA
                else:
                    listed = False
            if piece == "?":
                questions.append(Span(since, len(words)))
            boundary = max(boundary, mark)
            if mark == SENTENCE:
                since = len(words)
            continue
        if kind == "bullet":
            continue
        if kind == "number":
            piece = "-".join(_RANGE.split(piece.replace(",", "")))
            word = Word(piece, piece, *match.span())
        else:
            if piece in _DROPPED:
                continue
            word = Word(stem_of(piece), piece, *match.span())
        words.append(word)
        before.append(boundary)
        boundary = NONE
    before.append(SENTENCE)
    return words, before, questions


def _is_abbreviation(text: str, words: Sequence[Word], end: int) -> bool:
    if not words or words[-1].end != end - 1:
        return False
    return len(words[-1].written) == 1 and words[-1].written.isascii() and text[end : end + 1] == " "


def keyword_runs(text: str, words: Sequence[Word]) -> list[Span]:
    """Return the spans of keyword lists, which are not statements."""
    runs = [match for match in _KEYWORDS_EN.finditer(text) if _is_keyword_run(match[0])]
    runs += _KEYWORDS_ZH.finditer(text)
    starts = [word.start for word in words]
    return [Span(bisect_left(starts, run.start()), bisect_left(starts, run.end())) for run in runs]


def _is_keyword_run(run: str) -> bool:
    words = run.split()
    if len(words) < _FEWEST_KEYWORDS or re.search(f"[{CJK}]", run):
        return False
    return sum(word in _JOINING for word in words) * 16 < len(words)


@cache
def grammar(name: str) -> frozenset[str]:
    """Return a closed class of words (pointers, auxiliaries, ...) from ``data/open_text/grammar.toml``."""
    return frozenset(_GRAMMAR[name].split())


WORTH_IN_CHINESE = tuple(_GRAMMAR["worth_in_chinese"].split())
