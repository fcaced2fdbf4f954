"""Statement that the label of a yes-or-no slot makes: its subject, what it says of it, and what it compares."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from agrotools.scoring.slot_subject import named_entities
from agrotools.scoring.word_forms import Family, comparatives, families, presence, word_pattern
from agrotools.text.clauses import OTHER_TIME, Negations
from agrotools.text.normalise import CJK, WORD, normalise


class Statement(NamedTuple):
    """Statement of a label: its subject's words, and the words or families of what is said of it."""

    subject: tuple[re.Pattern[str], ...]
    predicate: tuple[re.Pattern[str], ...]
    words: tuple[re.Pattern[str], ...]
    said: tuple[re.Pattern[str], ...]
    families: tuple[tuple[Family, bool], ...]
    compared: tuple[bool, tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]] | None
    entities: dict[str, set[str]]
    denied: bool
    universal: bool
    partial: bool
    of_time: bool
    chinese: bool


_FILLING = frozenset(
    """the of in on and or for number there are is was were be been being has have had which what per with from that how
    much this these by its at to than any some all every each both part will can could may must does did do not no a an
    it them they their more most as into out if whether now still yet between two
    show shows showing sign signs symptom symptoms evidence trace traces indication indications""".split()
)


_COPULA = re.compile(
    rf"(?<!{WORD})(?:is|are|was|were|has been|have been|has|have|had|does|do|will be|should be|must be|can be|"
    rf"remains?|"
    rf"looks?|appears?|seems?)(?!{WORD})|已经?|正在|处于|属于|位于|为|是|有"
)


_THERE_IS = re.compile(r"^\W*(?:whether )?there (?:is|are|was|were|has been|have been)(?= )")


def _words(text: str) -> list[str]:
    """The words of a label that carry meaning; of Chinese each two characters that stand side by side."""
    found: list[str] = []
    for run in re.findall(rf"{WORD}{{2,}}|[{CJK}]+", text):
        if run > "\u2e80":
            for part in re.split("[的了在中里是有为和与及被已经正并都均所于上]+", run):
                found += (
                    [part[at : at + 2] for at in range(0, max(1, len(part) - 1), 1 if len(part) < 4 else 2)]
                    if part
                    else []
                )
                if len(part) > 3 and len(part) % 2:
                    found.append(part[-2:])
        elif run not in _FILLING and (len(run) > 2 or run == "ph"):
            found.append(run)
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1_000)
def label_statement(name: str, label: str) -> Statement:
    text = re.sub(r"^\W*(?:whether|if) |是否", "", normalise(label))
    if not _words(text):
        text = normalise(name.replace("_", " "))
    there = _THERE_IS.search(text)
    bare = text[there.end() :] if there else text
    copula = None if there else _COPULA.search(bare)
    offset = copula.end() if copula and bare[copula.end() :].strip() else 0
    compared = _comparison(bare)
    chosen = [] if compared else _said_families(bare, offset, everywhere=copula is None)
    covered = [(start, end) for start, end, _, _ in chosen]
    subject = _words_outside(bare, covered, 0)
    head: list[str] = []
    if any(family is presence() for _, _, family, _ in chosen):
        head = subject
    elif not chosen and not compared:
        head = _words_outside(bare, covered, offset) or subject
    negations = Negations(bare)
    denied = any(negations.before(start) or negations.after(end) for start, end in covered) or (
        not chosen and compared is None and (negations.before(len(bare)) or bare.startswith(("no ", "没有", "无")))
    )
    patterns = _patterns(subject)
    words = dict(zip(_words(bare), _patterns(_words(bare)), strict=True))
    return Statement(
        patterns,
        tuple(pattern for word, pattern in zip(subject, patterns, strict=True) if word in head),
        tuple(words.values()),
        tuple(pattern for word, pattern in words.items() if word not in subject),
        tuple((family, asserts) for _, _, family, asserts in chosen),
        compared,
        named_entities(text),
        denied,
        _WHOLE.search(text) is not None,
        there is not None or _SOME.search(text) is not None,
        OTHER_TIME.search(text) is not None,
        max(text) > "\u2e80",
    )


def _patterns(words: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Patterns that find each word; of Chinese also what shortens it with the word beside it: 残膜 for 残留地膜."""
    found: list[re.Pattern[str]] = []
    for before, word, behind in zip(["", *words], words, [*words[1:], ""], strict=False):
        pairs = [
            pair for pair in ((before, word), (word, behind)) if min(pair) > "\u2e80" and pair[0][-1] != pair[1][0]
        ]
        short = "".join(f"|[{one}][{other}]" for one, other in pairs)
        found.append(re.compile(re.escape(word) + short) if short else word_pattern(word))
    return tuple(found)


_WHOLE = re.compile(rf"(?<!{WORD})(?:all|every|each|entire\w*|whole)(?!{WORD})|所有|全部|都|(?<!平)均|每")


_SOME = re.compile(rf"^\W*(?:(?:an?|some|part|any)(?!{WORD})|有)|(?<!{WORD})(?:part|some) of|部分")


def _said_families(label: str, offset: int, *, everywhere: bool) -> list[tuple[int, int, Family, bool]]:
    """The words of families in what a label says from ``offset`` on, but for those that describe a noun of it."""
    found = [
        (*hits[-1][:2], family, hits[-1][2]) for family in families() if (hits := family.find(label, in_label=True))
    ]
    if everywhere:
        found = [each for each in found if not _LOCATIVE.match(label[each[0] :])]
    said = sorted((each for each in found if each[0] >= offset), key=lambda each: each[0])
    return said or (found if everywhere else [])


def _words_outside(label: str, covered: Sequence[tuple[int, int]], offset: int) -> list[str]:
    places = [(label.find(word, offset), word) for word in _words(label[offset:])]
    return [word for at, word in places if not any(start < at + len(word) and at < end for start, end in covered)]


_LOCATIVE = re.compile(rf"(?:between|within|inside)(?!{WORD})(?! (?:the )?(?:\d|limit|range|bound|recommended))")


THAN = re.compile(rf"(?<!{WORD})(?:than|compared (?:to|with)|versus)(?!{WORD})")


THAN_CHINESE = re.compile("(?<![百分占对])比(?![例重较])|(?<=[高低多少大小长短优差重轻强早晚])于")


def _comparison(
    label: str,
) -> tuple[bool, tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]] | None:
    """True if a label says more (or less) of one thing than of another, and the words of either that are its own."""
    than = THAN.search(label)
    chinese = THAN_CHINESE.search(label)
    if than is None and chinese is None:
        return None
    more = comparatives().find(label)
    if not more:
        return None
    if than:
        one, other = label[: more[-1][0]], label[than.end() :]
        if not _words(one):
            one = label[: than.start()]
    else:
        one = label[: more[0][0] if chinese and chinese[0] == "于" else chinese.start()] if chinese else ""
        other = label[chinese.end() :] if chinese else ""
    if re.search(r"\d", other) and not re.search(r"(?:19|20)\d\d|image|图|plot", other):
        return None  # "more than 30 trees"
    mine, theirs = _own_words(one), _own_words(other)
    shared = set(mine) & set(theirs)
    mine, theirs = [w for w in mine if w not in shared], [w for w in theirs if w not in shared]
    if not mine and not theirs:
        return None
    return more[-1][2], tuple(map(word_pattern, mine)), tuple(map(word_pattern, theirs))


def _own_words(text: str) -> list[str]:
    return _words(text) + re.findall(rf"(?<!{WORD})(?:[a-h]|\d+)(?!{WORD})", text)
