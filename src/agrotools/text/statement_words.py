"""Words of a text and their stems (contractions written out, numbers in digits), and the vocabulary of denials.

English and Chinese.
"""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

from agrotools.text.normalise import CJK, normalise

MOST_BYTES = 64 * 1024
"""Text beyond is not read."""
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
_NUMBER_WORD = re.compile(rf"\b({'|'.join(sorted(_NUMBER_WORDS, key=len, reverse=True))})\b")
_CHINESE_DIGITS = dict(zip("一二两三四五六七八九十", "1 2 2 3 4 5 6 7 8 9 10".split(), strict=True))
_CHINESE_NUMBER = re.compile(
    r"([一二两三四五六七八九十])([一二三四五六七八九十]?)(?=[头只个年周次粒株条片处点到至毫厘厅行日月天])"
)
_DAYS = re.compile(r"(?<![\d.,-])(\d{1,2})(?:\s?(?:-|to|至|到|~)\s?(\d{1,2}))?\s?(?:days|天|日)(?![a-z历])")
_TWO_SPANS = re.compile(r"\b(\d+) ?(weeks?|days?|years?|months?) (?:to|or|-) (\d+) ?(?:weeks?|days?|years?|months?)\b")
_TOKEN = re.compile(
    rf"(?P<number>\d+(?:[.,]\d+)*(?:\s?(?:-|to|and|or|至|到|~)\s?\d+(?:\.\d+)?)?)|(?P<word>[^\W\d_{CJK}]+)"
    rf"|(?P<cjk>[{CJK}])|(?P<mark>[%.!?;:,、。\n()\"\[\]|/]|-(?=\s))|(?P<bullet>[*+•])"
)
_RANGE = re.compile(r"\s?(?:-|to|and|or|至|到|~)\s?")
_IRREGULAR = {
    "hoed": "hoe", "overfeeding": "overfeed", "overfed": "overfeed", "hoeing": "hoe", "leaves": "leaf",
    "leafs": "leaf", "mould": "mold", "mouldy": "mold", "moulds": "mold", "moldy": "mold", "grey": "gray",
    "greyish": "gray", "grayish": "gray", "plough": "plow", "ploughing": "plow", "ploughed": "plow",
    "colour": "color", "coloured": "color", "dug": "dig", "fed": "feed", "ate": "eat", "eaten": "eat",
    "grown": "grow", "grew": "grow", "sown": "sow", "sowed": "sow", "lice": "louse", "larvae": "larva",
    "larval": "larva", "pupae": "pupa", "fungi": "fungus", "fungal": "fungus", "bacteria": "bacterium",
    "bacterial": "bacterium", "fallen": "fall", "fell": "fall", "drawn": "draw", "shown": "show",
    "taken": "take", "took": "take", "kept": "keep", "left": "leave", "leaving": "leave", "rotten": "rot",
    "rotting": "rot", "rotation": "rotate", "rotating": "rotate", "rotations": "rotate",
    "rotated": "rotate", "rotates": "rotate", "tyre": "tire", "fertiliser": "fertilizer",
    "fertilisers": "fertilizer", "fertilise": "fertilize", "fertilising": "fertilize", "thrown": "throw",
    "bitten": "bite", "percent": "%", "ploughs": "plow", "odour": "odor", "favour": "favor",
    "favours": "favor", "favoured": "favor", "mice": "mouse", "lying": "lie", "lies": "lie", "dying": "die",
    "tried": "try", "centre": "center", "broken": "break", "broke": "break", "swollen": "swell",
    "shrunken": "shrink", "shrunk": "shrink", "tunnelled": "tunnel", "tunnelling": "tunnel",
    "diarrhoea": "diarrhea", "kilometres": "kilometer", "millimetre": "mm", "millimetres": "mm",
    "millimeter": "mm", "millimeters": "mm", "sulphur": "sulfur", "buds": "bud", "budding": "bud",
    "sooty": "soot", "webbing": "web", "webs": "web",
}  # fmt: skip
_WHOLE = frozenset("useful useless hardly barely rarely scarcely lately".split())
_DROPPED = frozenset(
    "the a an of its your their our my his her any some such very really also even quite actually ever at still "
    "then therein thereby particularly especially mainly mostly usually often generally typically".split()
)
NONE, LIST, COMMA, COLON, CONTRAST, SENTENCE = range(6)
_MARKS = dict.fromkeys(',()"[]-/', COMMA) | dict.fromkeys(".!?;。\n|", SENTENCE) | {"、": LIST, ":": COLON, "%": NONE}
_KEYWORDS_EN = re.compile(r"[^.,;:!?()\n]+")
_KEYWORDS_ZH = re.compile(rf"(?:[{CJK}]{{1,9}} +){{9,}}[{CJK}]{{1,9}}")
_JOINING = frozenset("the a an of and or to in on is are with for that by from it as at be so into not which".split())
_FEWEST_KEYWORDS = 18
"""A run of so many words without a mark, and with hardly a word that joins them, is no statement."""


class Span(NamedTuple):
    """Words ``start`` to ``end`` (not included) of a text."""

    start: int
    end: int


class Word(NamedTuple):
    """A word: its stem, as written, and where it stands in the normalised text."""

    stem: str
    written: str
    start: int
    end: int


@lru_cache(maxsize=50_000)
def stem_of(word: str) -> str:
    """The stem under which all forms of a lower-case word are found."""
    if not word.isascii() or word in _WHOLE:
        return word
    return stemmer().stemWord(_IRREGULAR.get(word, word).replace("isation", "ization"))


@cache
def stemmer() -> Any:
    """The English stemmer, made once."""
    return snowballstemmer.stemmer("english")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


Trie = dict[str, Any]
"""Words by their stems, in turn; under ``""`` what the words so far stand for."""


def add_to(trie: Trie, words: Iterable[str], meaning: str) -> None:
    """Put a phrase (by its stems) into a trie."""
    for word in words:
        trie = trie.setdefault(word, {})
    trie.setdefault("", []).append(meaning)


def plain_text(text: str) -> str:
    """The part of a text that is read, in one form: contractions written out, numbers in digits."""
    text = normalise(text.encode("utf-8", "ignore")[:MOST_BYTES].decode("utf-8", "ignore"))
    text = re.sub(r"[*_`#]+", " ", text).replace(">", " more than ").replace("≥", " at least ")
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    text = _NUMBER_WORD.sub(lambda found: _NUMBER_WORDS[found[1]], text)
    text = _CHINESE_NUMBER.sub(_in_digits, text)
    return _TWO_SPANS.sub(r"\1-\3 \2", _DAYS.sub(_weeks, text))


def _in_digits(found: re.Match[str]) -> str:
    """A Chinese number below 100, or two in a row ("两三个"), in digits."""
    first, second = (_CHINESE_DIGITS.get(each, "") for each in found.groups())
    if "10" not in (first, second) or not second:
        return "-".join(filter(None, (first, second)))
    return f"1{second}" if first == "10" else f"{first}0"


def _weeks(found: re.Match[str]) -> str:
    """Full weeks for a number of days."""
    days = [int(number) for number in found.groups() if number]
    if any(number % 7 or not number for number in days):
        return found[0]
    return "-".join(str(number // 7) for number in days) + ("weeks" if found[0].endswith("s") else "周")


def stems_of(phrase: str) -> list[str]:
    """The stems of a phrase's words, as they are looked for in a text."""
    stems: list[str] = []
    for found in _TOKEN.finditer(plain_text(phrase)):
        if found.lastgroup == "number":
            stems.append("-".join(_RANGE.split(found[0].replace(",", ""))))
        elif found.lastgroup in ("word", "cjk") and found[0] not in _DROPPED:
            stems.append(stem_of(found[0]))
        elif found[0] == "%":
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
    """Stems of words that are no idea of a phrasing: prepositions, auxiliaries."""
    return words_of_kind("bare") | stems_of_kind("bare")


def split_words(text: str) -> tuple[list[Word], list[int], list[Span]]:
    """The words of a plain text, the boundary before each (and at the end), and its questions."""
    words: list[Word] = []
    before: list[int] = []
    questions: list[Span] = []
    boundary, since, listed = SENTENCE, 0, False
    for found in _TOKEN.finditer(text):
        kind, piece = found.lastgroup, found[0]
        if kind == "mark" and piece != "%":
            mark = _MARKS[piece]
            if piece == "." and _is_abbreviation(text, words, found.end()):
                continue
            if piece == "\n":
                listed = listed or boundary == COLON
                rest = text[found.end() : found.end() + 4].lstrip(" ")
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
            word = Word(piece, piece, *found.span())
        else:
            if piece in _DROPPED:
                continue
            word = Word(stem_of(piece), piece, *found.span())
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
    """Runs of bare keywords, which state nothing."""
    runs = [found for found in _KEYWORDS_EN.finditer(text) if _is_keyword_run(found[0])]
    runs += _KEYWORDS_ZH.finditer(text)
    starts = [word.start for word in words]
    return [Span(bisect_left(starts, run.start()), bisect_left(starts, run.end())) for run in runs]


def _is_keyword_run(run: str) -> bool:
    words = run.split()
    if len(words) < _FEWEST_KEYWORDS or re.search(f"[{CJK}]", run):
        return False
    return sum(word in _JOINING for word in words) * 16 < len(words)


LEADING = frozenset("on to that with of by for in from about".split())
POINTERS = frozenset("these this those them it which that".split())
PLURAL = frozenset("all both none everything 都 均 全 这 此 统 皆 概".split())
PREDICATES = frozenset(
    "is are was were am should must will would can could may might help work reduce control prevent matter".split()
)
WORTH_IN_CHINESE = tuple("价值 意义 必要 作用 效果 用处 好处 道理 依据 根据 帮助 区别 差别 益处 效用 成效".split())
VERDICTS = frozenset("fail fails failed not never hardly scarcely barely rarely seldom 不是 no".split())
PLACES = frozenset(
    "ignore forget neglect overlook disregard look check come comes emerge emerges germinate germinates appear appears "
    "turn turns grow grows found bother".split()
)
"""Verbs after which "where ..." is itself what is denied: "do not look where hay was fed"."""
NEEDLESS = frozenset({"不必", "无需", "无须", "不用", "毋须", "毋需", "不需要", "用不着"})
COPULA = frozenset("is are was were be am been".split())
LEAVING = COPULA | frozenset("leave leaves leaving left eat eats eating need needs do have has with to of".split())
AUXILIARY = frozenset("do does did will would can could should must may might has have had shall need".split())
LINKS = COPULA | frozenset("get have has had been becom may might can will would could".split())
MODAL = frozenset("should must need shall".split())
DESCRIBED = frozenset("skipped overlooked neglected forgotten ignored omitted".split())
WHO = frozenset("that which you we they who".split())
TURNING = frozenset(
    "not no never none nobody nothing nor wrong wrongly mistake mistaken misconception myth nonsense fals far anything "
    "untrue incorrect foolish silly unwise doubt unlikely reject contrary 不 没 无 毫 非 误 错 谣 胡 瞎 反".split()
)
BARELY = frozenset("hardly scarcely barely nothing none neither".split())
COUNTED = frozenset("not 1 none no neither nothing hardly scarcely barely single few either all much little".split())
POINTED = frozenset("these those this that them it such kind sort".split())
PRONOUNS = frozenset("they it these those this that none neither".split())
SUPPOSING = frozenset("if had were 要 如 若 假".split())
POINTING = frozenset(
    "it they them this that these those which none neither nothing both all any such whole everything anything "
    "这 它 都 全 皆".split()
)
"""Words by which a clause speaks of what was said before."""
NONE_OF = frozenset("anything that what 1 such these kind sort".split())
SAYINGS = frozenset(
    "whoever anyone anybody claim idea belief notion theory advice story assertion suggestion view".split()
)
WISHES = frozenset("enjoy like want wish love fancy prefer must".split())
SITES = frozenset("building housing dwelling planting crossing opening landing parking".split())
"""Places that end like a verb: what is far from them is not denied."""
SINGLE = frozenset("it this that 它".split())
SEVERAL = frozenset("these those them they both neither none such above 这 些 都 上 它 们".split())
NOUN_HEADS = {
    "plant": frozenset("food debris residu remain densiti space wast materi stress".split()),
    "water": frozenset("mold jet stress suppli".split()),
    "cover": frozenset(["crop"]),
}
"""Stems after which a verb is the first part of a noun: "plant food", "water mould"."""
PROBLEMS = frozenset("blight rust mildew scab diseas pest insect bug fungus bacterium 病 虫".split())
"""Names of what is fought: "the blight is not impressed" judges what was said before."""
SPRAYS = frozenset("spray treatment treat insecticid pesticid chemic".split())
CLAUSE = frozenset("if when where which who that while after before whenever as".split())
