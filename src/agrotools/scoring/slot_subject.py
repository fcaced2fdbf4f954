"""Comparison of the words around a number with the label of a slot, to find what the number describes."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from agrotools.core.form_item import FormItem
from agrotools.text.normalise import CJK, WORD, WORD_END, WORD_START, late_pattern, normalise, reading_words, translated
from agrotools.text.numbers import Quantity

_NEAR = 80


class Phrase(NamedTuple):
    """Words around a number.

    ``before`` begins after the last comma, bracket or number; ``behind`` ends at the next. ``between`` is the whole
    text between the previous number and this one. ``endpoint``: the number is the start or end value of a change.
    ``bracketed``: the number is in brackets; ``explained``: the brackets also hold words or signs that describe it.
    """

    before: str
    behind: str
    between: str
    endpoint: bool
    bracketed: bool
    explained: bool

    @property
    def words(self) -> str:
        return f"{self.before} {self.behind}"


_EDGE = late_pattern(r"[,;:()\[\]\n|]|,|、|。")
_BEHIND_EDGE = late_pattern(rf"[,;()\[\]\n|]|,|、|。|{WORD_START}(?:and|but|while|whereas|or|so){WORD_END}|而|但|和")
_NEW_PART = late_pattern(rf"^.*{WORD} (?:and|but|while|whereas) (?=.*$)")
_TOWARDS_NEXT = late_pattern(rf"(?<= )(?:(?:a|an|the) )?(?:{WORD}+ ){{1,2}}(?:of|is|are|was|were|has|have|at) $")
_RESULT = late_pattern(r"[ )\]]*[=≈/×*÷+][ ≈(]*")
_CHANGE = late_pattern(
    rf"{WORD_START}(?:fell|falls?|fallen|rose|rises?|risen|grew|grown|grows?|shrank|shrunk|drop\w*|declin\w*|"
    rf"decreas\w*|"
    rf"increas\w*|reduc\w*|chang\w*|went|expand\w*|gain\w*|los[st]\w*|differ\w*){WORD_END}|减少|增加|下降|上升|变化|增长|降"
)
_FROM = late_pattern(rf"(?:{WORD_START}(?:down |up )?from(?: an? [a-z]+ of)? ?|从|由)$")
_TO = late_pattern(rf"(?:{WORD_START}(?:down |up )?to ?|至|到|降至|增至|为)$")


def phrases(text: str, quantities: Sequence[Quantity]) -> list[Phrase]:
    """Return the words around each of ``quantities`` in ``text``, in order."""
    inside = _brackets(text)
    changes = _CHANGE.search(text) is not None
    clauses: list[Phrase] = []
    for index, quantity in enumerate(quantities):
        last = quantities[index - 1].end if index else 0
        following = quantities[index + 1].start if index + 1 < len(quantities) else len(text)
        head = text[max(last, quantity.start - _NEAR) : quantity.start]
        tail = text[quantity.end : min(following, quantity.end + _NEAR)]
        before = _EDGE.split(head)[-1]
        if (quantity.start > 0 and text[quantity.start - 1] in ":=") or head.rstrip().endswith((":", "=")):
            before = _EDGE.split(head.rstrip(" :="))[-1]
        if index and (new_part := _NEW_PART.search(before)):
            before = before[new_part.end() :]
        if index and _RESULT.fullmatch(head):
            before = clauses[-1].before  # "the mean is 22 / 4 = 5.5"
        if quantity.end + len(tail) == following < len(text):
            tail = _TOWARDS_NEXT.sub("", tail)  # "86 ha of forest around the burnt area of 40 ha"
        edge = _BEHIND_EDGE.search(tail)
        noun = quantity.noun or ""
        behind = f"{noun} {tail[: edge.start()] if edge else tail}" if noun else tail[: edge.start()] if edge else tail
        if not behind.strip() and tail.lstrip().startswith("("):
            behind = tail.lstrip()[1:].split(")")[0]  # "92 mm (maximum)"
        is_endpoint = changes and (
            _FROM.search(before) is not None
            or (_TO.search(before) is not None and any(phrase.endpoint for phrase in clauses[-1:]))
        )
        bracket = inside.get(quantity.start)
        clauses.append(
            Phrase(
                before,
                behind,
                text[last : quantity.start] if index else "",
                is_endpoint,
                bracket is not None,
                bracket is not None and _EXPLAINED.search(bracket) is not None,
            )
        )
    return clauses


_EXPLAINED = late_pattern(rf"[=+*×÷/]|{WORD}{{3,}}|\b(?:in|of|n)\b|[{CJK}]")
_BRACKETS = late_pattern(r"[(\[]([^()\[\]]{0,400})[)\]]")


def _brackets(text: str) -> dict[int, str]:
    """Return the text of the surrounding brackets for each position inside brackets."""
    inside: dict[int, str] = {}
    for bracket in _BRACKETS.finditer(text):
        inside.update(dict.fromkeys(range(bracket.start(), bracket.end()), bracket[1]))
    return inside


_KINDS: dict[str, str] = {
    "highest": r"heaviest|thickest|oldest|largest|biggest|maximum|max|highest|tallest|longest|widest|greatest|"
    r"最大|最高|最长",
    "lowest": r"lightest|thinnest|youngest|smallest|minimum|min|lowest|shortest|narrowest|最小|最低|最短",
    "mean": r"mean|average[sd]?|avg|averaging|平均|均值",
    "median": r"median|中位",
    "spread": r"standard deviation|standard error|std|sd|se|variance|uncertainty|margin of error|error|confiden\w+|ci|"
    r"interval|标准差|误差|置信",
    "setting": r"threshold|score|probability|resolution|spacing|iou|id|p-value|scale|阈值|得分|分辨率",
    "change": r"chang\w*|difference|increas\w*|decreas\w*|loss|lost|gain\w*|declin\w*|reduction|more|fewer|"
    r"变化|减少|增加|差|少收|多收|少了|多了|"
    r"比[^,。;]{1,12}[多少]",
    "ratio": r"ratio|quotient|比值|之比",
    "total": r"total(?:s|ling|ing)?|sum|altogether|in all|overall|combined|合计|总计|总共|总|共",
    "first": r"first|before|initial(?:ly)?|earlier|previous(?:ly)?|left|第一|之前|原来|此前",
    "second": r"second|after|later|afterwards|now|right|第二|之后|现在",
    "third": r"third|fourth|fifth|other|others|another|第三|其他|其它",
    "place": r"(?:image|img|tile|plot|photo|picture|field|row|zone|region|section|block)s? ?#?(?:\d+|[a-h])|图\d|"
    r"step \d",
    "each": r"each|every|apiece|per|density|rate|daily|每|密度",
    "dead": r"dead|missing|unripe|diseased|healthy|young|mature|枯死|死亡|病",
}


def _any_of(words: str) -> str:
    listed = _SPLIT.split(words)
    latin = "|".join(word for word in listed if word[0].isascii())
    # One pair of look-arounds for all words, because a pattern with a pair for each takes far longer to compile.
    return "|".join([rf"{WORD_START}(?:{latin}){WORD_END}", *(word for word in listed if not word[0].isascii())])


_SPLIT = late_pattern(r"\|(?![^(]*\))")
_KIND = {kind: late_pattern(_any_of(words)) for kind, words in _KINDS.items()}
_GENERAL = frozenset({"total", "mean"})
"""Kinds of value that a label without a kind may refer to."""


class Subject(NamedTuple):
    """Subject of a slot's name and label: the stems of their words and the kinds of value they name."""

    words: frozenset[str]
    kinds: frozenset[str]
    label: frozenset[str] = frozenset()
    counted: frozenset[str] = frozenset()
    years: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    lettered: re.Pattern[str] | None = None
    of: dict[str, str] = {}
    places: frozenset[int] = frozenset()
    pairs: frozenset[str] = frozenset()
    entities: dict[str, set[str]] = {}
    """``label`` holds the words of the label alone, ``counted`` all words except those after "per", "each" and
    "inside". ``years`` and ``letters`` ("tree A", or bands, "NIR-R-G") are named by the label; ``lettered`` is the
    pattern that finds such letters."""


_FILLING_CJK = frozenset("的数量个总面积平均中图像片值大小和与在多少是为有每占比例")


def subject(item: FormItem) -> Subject:
    """Return the subject of ``item``."""
    return _subject(item.name, item.label)


_GENITIVE = late_pattern(rf"({WORD}+) of (?:(?:the|an?|all|both) )?({WORD}{{3,}})")
_INSIDE = late_pattern(r"inside the ([^,;:\n]*)")
_LETTERED = late_pattern(r"(?<![a-z])([a-z]{3,}) ([b-h]|a(?= *$))(?![a-z'])")
_COMPOSITE = late_pattern(r"(?<![a-z\d-])((?:nir|swir|re|[rgb])(?:-(?:nir|swir|re|[rgb]))+)(?![a-z\d-])")


@lru_cache(maxsize=4_000)
def _subject(name: str, label: str) -> Subject:
    text = normalise(f"{name.replace('_', ' ')} {label}")
    latin = [word for word in re.findall(rf"{WORD}{{3,}}|\bph\b", text) if word not in reading_words("number_label")]
    chinese = [letter for letter in re.findall(f"[{CJK}]", text) if letter not in _FILLING_CJK]
    words = frozenset([*(stem(word) for word in latin), *chinese])
    spoken_words = frozenset(word for word in words if speaks_of(normalise(label), (word,)))
    apart = re.findall(rf"(?:per|each|every) ({WORD}{{3,}})", text) + " ".join(_INSIDE.findall(text)).split()
    years = tuple(dict.fromkeys(re.findall(r"(?<!\d)(?:19|20)\d\d(?!\d)", text)))
    lettered = list(_LETTERED.finditer(normalise(label)))
    pattern = None
    if lettered:
        nouns = "|".join(dict.fromkeys(re.escape(stem(match[1])) for match in lettered))
        pattern = re.compile(rf"(?<![a-z])(?:{nouns})s? ([a-h])(?![a-z'])|(?<![a-z\d])([a-h])(?=[{CJK}])")
    letters = tuple(match[2] for match in lettered) or tuple(_COMPOSITE.findall(normalise(label)))
    pattern = _COMPOSITE if letters and not lettered else pattern
    return Subject(
        words,
        kinds(text),
        spoken_words or words,
        words.difference(map(stem, apart)),
        years,
        letters,
        pattern,
        {stem(match[1]): stem(match[2]) for match in _GENITIVE.finditer(normalise(label))},
        _places(text),
        frozenset(pair for run in re.findall(f"[{CJK}]{{2,}}", text) for pair in map("".join, pairwise(run))),
        {
            kind: n_named
            for kind, n_named in named_entities(normalise(label)).items()
            if kind != "time" or _TIMED.search(label)
        },
    )


def stem(word: str) -> str:
    """Return a word without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3]
    if word.endswith("es") and len(word) > 4 and word[-3] in "sxzo":
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def speaks_of(text: str, words: Collection[str]) -> bool:
    """Return True if ``text`` has one of ``words`` (stems or single Chinese characters)."""
    padded = f" {text}".replace("-", " ")
    if not any(word in text if word > "\u2e80" else f" {word}" in padded for word in words):
        return not text.isascii() and any(
            chinese in text for word in words for chinese in translated(word) if word < "\u2e80"
        )
    return True


def count_words_of(text: str, words: Collection[str]) -> int:
    """Return the number of ``words`` that ``text`` has, in the sense of :func:`speaks_of`."""
    return sum(speaks_of(text, (word,)) for word in words)


@lru_cache(maxsize=4_000)
def kinds(text: str) -> frozenset[str]:
    """Return the kinds of value that ``text`` names: highest, mean, first, ..."""
    return frozenset(kind for kind, pattern in _KIND.items() if pattern.search(text))


def kinds_of(phrase: Phrase) -> frozenset[str]:
    """Return the kinds of value that the words around a number name."""
    return kinds(phrase.words)


_PLACES = (
    ("north", "northern", "北"),
    ("south", "southern", "南"),
    ("east", "eastern", "东"),
    ("west", "western", "西"),
    ("left", "left-hand", "左"),
    ("right", "right-hand", "右"),
    ("upper", "top", "further up", "uphill", "上"),
    ("lower", "bottom", "further down", "downhill", "下"),
)
_PLACE = [
    (
        re.compile(rf"(?<![a-z-])(?:{'|'.join(words[:-1])})(?![a-z-])"),
        re.compile(f"{words[-1]}(?=[侧边部半面方图块]|[{CJK}]?(?:地块|田|图))"),
    )
    for words in _PLACES
]


@lru_cache(maxsize=4_000)
def _places(text: str) -> frozenset[int]:
    return frozenset(
        index for index, (latin, chinese) in enumerate(_PLACE) if latin.search(text) or chinese.search(text)
    )


def last_place_named(text: str) -> int | None:
    """Return the index of the last place (left, right, north, ...) in ``text``; None if it names none."""
    mentions = [
        (match.start(), index)
        for index, (latin, chinese) in enumerate(_PLACE)
        for pattern in (latin, chinese)
        for match in pattern.finditer(text)
    ]
    return max(mentions)[1] if mentions else None


_NUMBERED = late_pattern(
    r"(?<![a-z])(?:image|photo|picture|plot|field|parcel|tree|row|tile|sample|variety|pond|plant|tank|block|site|hive|"
    r"pen|lane|trap|zone|bed|greenhouse|farm|station|line)s? ?[#_]?(\d{1,3}|[a-h])(?![a-z\d])|图 ?(\d)|(\d{1,3})号|"
    rf"(?<![a-z\d.])([a-h])(?=[{CJK}])|^\W*([a-h])(?= ?[:=|])"
)
_ORDINAL = [late_pattern(rf"{WORD_START}(?:{latin}){WORD_END}|第[{chinese}]") for latin, chinese in (
    ("first(?! glance)|1st", "一1"), ("second|2nd", "二2"), ("third|3rd", "三3"), ("fourth|4th", "四4"))]  # fmt: skip
YEAR = late_pattern(r"(?<![\d.])(?:19|20)\d\d(?![\d.])")
_EARLY = late_pattern(
    rf"{WORD_START}(?:earlier|initial|former|previous|original|first){WORD_END}|前(?:一?期|时相)|第一期|早期|[变灾]化?前"
)
_LATE = late_pattern(
    rf"{WORD_START}(?:later|latter|latest|second|now|currently|today|present|recent){WORD_END}|后(?:一?期|时相)|第二期|"
    rf"晚期|[变灾]化?后|现"
)
_TIMED = late_pattern(
    r"(?i)(?:earlier|initial|former|previous|original|first|later|latter|latest|second|recent) "
    r"(?:image|photo|picture|scene|date|period|year|map|survey|epoch|visit|flight|acquisition)|[期相后]"
)


@lru_cache(maxsize=20_000)
def named_entities(text: str) -> dict[str, set[str]]:
    """Return the places, numbered things, years and times (first or last of several) that ``text`` names, by kind."""
    entities = {
        "place": {str(index) for index in _places(text)},
        "number": {next(filter(None, match.groups())) for match in _NUMBERED.finditer(text)},
        "ordinal": {str(index) for index, pattern in enumerate(_ORDINAL) if pattern.search(text)},
        "year": set(YEAR.findall(text)),
        "time": {name for name, pattern in (("early", _EARLY), ("late", _LATE)) if pattern.search(text)},
    }
    return {kind: names for kind, names in entities.items() if names}


def of_other_thing(text: str, target: Subject, years: Sequence[str]) -> bool | None:
    """Return True if ``text`` is about another place, time or numbered thing than the label; None if it names none.

    ``years`` are the years in the whole answer in ascending order; the last one counts as the later time.
    """
    verdict = None
    here = named_entities(text) if target.entities else {}
    for kind, names in target.entities.items():
        mentioned = set(here.get(kind, ()))
        if kind == "time" and len(years) > 1:
            mentioned |= {"late" if year == years[-1] else "early" for year in here.get("year", ())}
        if mentioned and not mentioned & names:
            return True
        verdict = False if mentioned else verdict
    return verdict


def of_another(before: str, target: Subject) -> bool:
    """Return True if ``before`` names another owner of the value ("the NDVI of the weeds") than the label."""
    for genitive in _GENITIVE.finditer(before):
        other = target.of.get(stem(genitive[1]))
        if other is not None and stem(genitive[2]) != other and not speaks_of(genitive[2], target.words):
            return True
    return False


def is_other_kind(phrase: Phrase, target: Subject) -> bool:
    """Return True if a number is of another kind than the slot asks for: the largest instead of the mean."""
    phrase_kinds = kinds_of(phrase)
    if phrase_kinds & target.kinds or phrase_kinds <= {"change"}:
        return False
    return bool(target.kinds - {"change"}) or not phrase_kinds <= _GENERAL | {"change"}
