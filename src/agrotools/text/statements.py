"""Statements of a text: its words, and which of them stand under a denial.

English and Chinese. A denial reaches over its clause ("do not ..."), a judgement over its whole sentence
("... is useless", "it is a mistake to ..."), and one that only points back ("none of this helps") over what it points
at. Work is linear in the length of the text, of which the first ``MOST_BYTES`` are read.
"""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import snowballstemmer  # pyright: ignore[reportMissingTypeStubs]

from agrotools.text.normalise import CJK, normalise

MOST_BYTES = 64 * 1024
"""Text beyond is not read."""

_SHORT_REACH = {"无": 2, "不": 4}

_LONGEST_ITEM = 7
"""Words that an item of a denied list may have."""

_REACH = 80
"""A denial reaches over at most so many words of its clause."""

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
_LEADING = frozenset("on to that with of by for in from about".split())
_POINTERS = frozenset("these this those them it which that".split())
_PLURAL = frozenset("all both none everything 都 均 全 这 此 统 皆 概".split())
_PREDICATES = frozenset(
    "is are was were am should must will would can could may might help work reduce control prevent matter".split()
)
_WORTH_IN_CHINESE = tuple("价值 意义 必要 作用 效果 用处 好处 道理 依据 根据 帮助 区别 差别 益处 效用 成效".split())
_VERDICTS = frozenset("fail fails failed not never hardly scarcely barely rarely seldom 不是 no".split())
_PLACES = frozenset(
    "ignore forget neglect overlook disregard look check come comes emerge emerges germinate germinates appear appears "
    "turn turns grow grows found bother".split()
)
"""Verbs after which "where ..." is itself what is denied: "do not look where hay was fed"."""
_NEEDLESS = frozenset({"不必", "无需", "无须", "不用", "毋须", "毋需", "不需要", "用不着"})
_COPULA = frozenset("is are was were be am been".split())
_LEAVING = _COPULA | frozenset("leave leaves leaving left eat eats eating need needs do have has with to of".split())
_AUXILIARY = frozenset("do does did will would can could should must may might has have had shall need".split())
_LINKS = _COPULA | frozenset("get have has had been becom may might can will would could".split())
_MODAL = frozenset("should must need shall".split())
_DESCRIBED = frozenset("skipped overlooked neglected forgotten ignored omitted".split())
_WHO = frozenset("that which you we they who".split())
_TURNING = frozenset(
    "not no never none nobody nothing nor wrong wrongly mistake mistaken misconception myth nonsense fals far anything "
    "untrue incorrect foolish silly unwise doubt unlikely reject contrary 不 没 无 毫 非 误 错 谣 胡 瞎 反".split()
)
_BARELY = frozenset("hardly scarcely barely nothing none neither".split())
_COUNTED = frozenset("not 1 none no neither nothing hardly scarcely barely single few either all much little".split())
_POINTED = frozenset("these those this that them it such kind sort".split())
_PRONOUNS = frozenset("they it these those this that none neither".split())
_SUPPOSING = frozenset("if had were 要 如 若 假".split())
_POINTING = frozenset(
    "it they them this that these those which none neither nothing both all any such whole everything anything "
    "这 它 都 全 皆".split()
)
"""Words by which a clause speaks of what was said before."""
_NONE_OF = frozenset("anything that what 1 such these kind sort".split())
_SAYINGS = frozenset(
    "whoever anyone anybody claim idea belief notion theory advice story assertion suggestion view".split()
)
_WISHES = frozenset("enjoy like want wish love fancy prefer must".split())
_SITES = frozenset("building housing dwelling planting crossing opening landing parking".split())
"""Places that end like a verb: what is far from them is not denied."""
_SINGLE = frozenset("it this that 它".split())
_SEVERAL = frozenset("these those them they both neither none such above 这 些 都 上 它 们".split())
_NOUN_HEADS = {
    "plant": frozenset("food debris residu remain densiti space wast materi stress".split()),
    "water": frozenset("mold jet stress suppli".split()),
    "cover": frozenset(["crop"]),
}
"""Stems after which a verb is the first part of a noun: "plant food", "water mould"."""
_PROBLEMS = frozenset("blight rust mildew scab diseas pest insect bug fungus bacterium 病 虫".split())
"""Names of what is fought: "the blight is not impressed" judges what was said before."""
_SPRAYS = frozenset("spray treatment treat insecticid pesticid chemic".split())
_CLAUSE = frozenset("if when where which who that while after before whenever as".split())

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


class Statements:
    """A text as words, with the boundary before each word and whether it stands under a denial.

    ``kept``: phrases that are a whole of their own ("not filled"): a denying word within is none. ``worsened`` are the
    words of which something bad is said, which denies a thing that is to be avoided; ``allowed`` those of which it is
    said that they do not matter, which does not.
    """

    def __init__(self, text: str, kept: Trie | None = None) -> None:
        self.text = _plain(text)
        self.words: list[Word] = []
        self.before: list[int] = []
        self._questions: list[Span] = []
        self._split()
        self.stems = [word.stem for word in self.words]
        self._kept = kept or {}
        count = len(self.words)
        self._denials = [0] * (count + 1)
        self._worsened = [0] * (count + 1)
        self._allowed = [0] * (count + 1)
        self._absent = [0] * (count + 1)
        self._reaches: dict[int, list[Span]] = {}
        self._mark = Span(0, 0)
        self._allowing = False
        self._bounds()
        self._deny()
        self._depths = _depths(self._denials)
        self._absences = _depths(self._absent)
        self.denied = [depth > 0 for depth in self._depths]
        self.worsened = [depth > 0 for depth in _depths(self._worsened)]
        self.allowed = [depth > 0 for depth in _depths(self._allowed)]
        self.asked = [False] * count
        for span in (*self._questions, *self._keywords()):
            self.asked[span.start : span.end] = [True] * (span.end - span.start)

    def longest(self, trie: Trie, at: int) -> tuple[int, list[str]]:
        """End and meanings of the longest phrase of ``trie`` that begins at a word; no phrase goes over a boundary.

        Within phrases that are a whole of their own, auxiliaries are read over: "panicles get clipped off".
        """
        end, meanings, here, linked = at, list[str](), at, trie is self._kept
        while here < len(self.stems) and (here == at or self.before[here] <= LIST):
            below = trie.get(self.stems[here])
            if below is None and linked and here > at and self.stems[here] in _LINKS:
                here += 1
                continue
            if below is None:
                break
            trie, here = below, here + 1
            if "" in trie:
                end, meanings = here, trie[""]
        return end, meanings

    def is_denied(self, spans: Sequence[Span]) -> bool:
        """True if one of the words stands under a denial that is not itself among them ("do away with hedges")."""
        own = [reach for span in spans for reach in self._reaches.get(span.start, ())]
        return any(
            self._depths[at] > sum(reach.start <= at < reach.end for reach in own)
            for span in spans
            for at in range(*span)
            if self.denied[at]
        )

    def is_absent(self, spans: Sequence[Span]) -> bool:
        """True if all that denies the words is a "without"."""
        words = [at for span in spans for at in range(*span) if self.denied[at]]
        return bool(words) and all(self._depths[at] == self._absences[at] for at in words)

    @property
    def denials(self) -> list[Span]:
        """The words that deny something."""
        return [span for span, kind in self._marks if kind != "worsens"]

    def clauses(self) -> list[Span]:
        """The words between two marks: clauses, and items of lists."""
        starts = [at for at in range(len(self.stems)) if self.before[at] >= LIST]
        return [Span(start, end) for start, end in pairwise((*starts, len(self.stems)))]

    def other_denials(self, facts: Container[int]) -> list[Span]:
        """Clauses that deny something of their own: no word of ``facts``, and nothing that points at what is said."""
        starts = [at for at in range(len(self.stems)) if self.before[at] >= COMMA]
        spans = (Span(start, end) for start, end in pairwise((*starts, len(self.stems))))
        return [span for span in spans if self._denies_other(span) and not any(at in facts for at in range(*span))]

    def _denies_other(self, clause: Span) -> bool:
        marks = [mark for mark in self._within(*clause) if mark[1] != "worsens"]
        supposed = self.words[self.sentence_of(clause.start)].written in _SUPPOSING
        if not marks or supposed:  # "if a helped, nobody would have rust"
            return False
        judging = {at for span, _ in marks for at in range(*span)}
        rest = [at for at in range(*clause) if at not in judging]
        pointing = {self.words[at].written for at in rest} & _POINTING
        if self._has_idea(*clause, marks[0][0]) and all(kind == "deny" for _, kind in marks):
            pointing -= {"it", "它"}  # "it is not drought"
        empty = _words("worth") | _words("harm")
        return not pointing and any(self._has_content(at, at + 1) and self.stems[at] not in empty for at in rest)

    def sentence_of(self, at: int) -> int:
        """The first word of the sentence that a word stands in."""
        return self._starts[SENTENCE][at]

    def shown(self, start: int, end: int) -> str:
        """The text from one word to before another."""
        return self.text[self.words[start].start : self.words[end - 1].end]

    def _split(self) -> None:
        boundary, since, listed = SENTENCE, 0, False
        for found in _TOKEN.finditer(self.text):
            kind, piece = found.lastgroup, found[0]
            if kind == "mark" and piece != "%":
                mark = _MARKS[piece]
                if piece == "." and self._is_abbreviation(found.end()):
                    continue
                if piece == "\n":
                    listed = listed or boundary == COLON
                    rest = self.text[found.end() : found.end() + 4].lstrip(" ")
                    if boundary == COLON or (listed and re.match(r"[-*+•]|\d+[.)]", rest)):
                        mark = COLON if boundary == COLON else COMMA
                    else:
                        listed = False
                if piece == "?":
                    self._questions.append(Span(since, len(self.words)))
                boundary = max(boundary, mark)
                if mark == SENTENCE:
                    since = len(self.words)
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
            self.words.append(word)
            self.before.append(boundary)
            boundary = NONE
        self.before.append(SENTENCE)

    def _keywords(self) -> list[Span]:
        """Runs of bare keywords, which state nothing."""
        runs = [found for found in _KEYWORDS_EN.finditer(self.text) if self._is_keywords(found[0])]
        runs += _KEYWORDS_ZH.finditer(self.text)
        starts = [word.start for word in self.words]
        return [Span(bisect_left(starts, run.start()), bisect_left(starts, run.end())) for run in runs]

    @staticmethod
    def _is_keywords(run: str) -> bool:
        words = run.split()
        if len(words) < _FEWEST_KEYWORDS or re.search(f"[{CJK}]", run):
            return False
        return sum(word in _JOINING for word in words) * 16 < len(words)

    def _is_abbreviation(self, end: int) -> bool:
        if not self.words or self.words[-1].end != end - 1:
            return False
        return len(self.words[-1].written) == 1 and self.words[-1].written.isascii() and self.text[end : end + 1] == " "

    def _bounds(self) -> None:
        """Start of contrasts, and for each word its sentence."""
        self._marks: list[tuple[Span, str]] = []
        at, table = 0, _polarity()
        while at < len(self.stems):
            end, meanings = self.longest(table, at)
            held, _ = self.longest(self._kept, at)
            if held > end:
                at = held
                continue
            if not meanings and self._is_far_from_doing(at):
                end, meanings = at + 2, ["dismiss"]
            if not meanings:
                at += 1
                continue
            if meanings[0] == "contrast":
                self.before[at] = max(self.before[at], CONTRAST)
            elif meanings[0] != "neutral":
                self._marks.append((Span(at, end), meanings[0]))
            at = end
        count = len(self.words)
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}
        for least in (COMMA, CONTRAST, SENTENCE):
            starts, ends = list(range(count)), [count] * count
            for here in range(count):
                starts[here] = here if self.before[here] >= least else starts[here - 1]
            for here in reversed(range(count - 1)):
                ends[here] = here + 1 if self.before[here + 1] >= least else ends[here + 1]
            self._starts[least], self._ends[least] = starts, ends
        self._contents = [0]
        for word in self.words:
            bare = (
                word.stem in _written("function")
                or word.written in _written("function")
                or word.stem in _words("function")
                or word.stem in _words("effect")
            )
            self._contents.append(self._contents[-1] + (not bare))

    def _is_far_from_doing(self, at: int) -> bool:
        """True if "far from making holes, ..." opens a clause: "far from" any other place denies nothing."""
        doing = self.words[at + 2].written if at + 2 < len(self.words) else ""
        opens = self.before[at] >= COMMA or self.words[at - 1].written in _COPULA
        return self.stems[at : at + 2] == ["far", "from"] and opens and doing.endswith("ing") and doing not in _SITES

    def _deny(self) -> None:
        bad = [span for span, kind in self._marks if kind == "worsens"]
        for span in bad:
            low, high = self._segment(span)
            self._cover(self._worsened, low, high)
        marks = [mark for mark in self._marks if mark[1] != "worsens"]
        for mark, mark_kind in self._uncancelled(marks):
            if self._is_description(mark):
                continue
            self._mark = mark
            span, kind = self._with_effect(mark, mark_kind)
            self._judge_all(mark, kind)
            if kind in ("dismiss", "allow"):
                self._allowing = kind == "allow"
                self._dismiss(span)
            else:
                self._forward(span)
                if kind == "copula" or self._is_needless(span):
                    self._cover(self._denials, self._group_start(span.start), span.start)

    def _is_description(self, span: Span) -> bool:
        """True if what is denied is told, not advised: "trees that were skipped", "those you overlooked"."""
        if self.words[span.start].written not in _DESCRIBED or span.start == 0:
            return False
        before = span.start - 1
        if self.words[before].written in _COPULA or self.words[before].written in _AUXILIARY:
            before -= 1
        return before >= 0 and self.words[before].written in _WHO

    def _judge_all(self, span: Span, kind: str) -> None:
        """Deny the whole sentence, or what was said before, where a judgement stands for all of it."""
        low, high = self._zone(span)
        segment, _ = self._segment(span)
        first = [word.written for word in self.words[segment : segment + 3]]
        opening = {word.written for word in self.words[low : min(low + 4, span.start)]}
        after = self.words[span.end].written if span.end < high else ""
        if span.start == low and self.words[low].written in _BARELY and after in _NONE_OF:
            self._deny_over(low, high)  # "Hardly anything that people recommend (a, b) is of use."
        elif kind == "dismiss" and opening & _SAYINGS:
            self._deny_over(low, span.start)  # "Whoever told you that a, b or c helps was wrong."
        elif kind == "dismiss" and first[:1] == ["if"] and not _WISHES.isdisjoint(first):
            self._deny_over(self._starts[SENTENCE][low], segment)  # "Do a, if you like pointless work."
        start = self._starts[SENTENCE][span.start]
        begun = self._starts[SENTENCE][start - 1] if start else 0
        elliptic = self.words[segment].written in _PRONOUNS and self.before[span.end] >= SENTENCE and not after
        if elliptic and self._only_judges(segment, span.end):
            self._deny_over(begun, segment)  # "Growers believe that a or b helps. I tell you: they do not."
        opens = low == self._starts[SENTENCE][low]  # After "though" or "but" it has its own subject.
        if opens and kind == "dismiss" and not self._has_idea(*self._segment(span), span):
            # Nothing there that it judges: it judges what stands before.
            self._deny_over(low if self._has_idea(low, segment, span) else begun, segment)
        if self._points_at_all(span):
            self._deny_over(0, low)  # "In ten years not one of these practices paid off."
        if start > 0 and self._only_judges(start, self._ends[SENTENCE][span.start]):
            said = {word.written for word in self.words[start : start + _REACH]}
            if said & _SEVERAL:
                self._deny_over(0, start)
            elif said & _SINGLE:
                self._deny_over(begun, start)

    def _has_idea(self, low: int, high: int, but: Span) -> bool:
        """True if a known phrase begins among these words, outside ``but``."""
        if high - low > _REACH:
            return True
        rest = (at for at in range(low, high) if not but.start <= at < but.end and self.stems[at] not in _PROBLEMS)
        return any(self.longest(self._kept, at)[1] for at in rest)

    def _points_at_all(self, span: Span) -> bool:
        """True if a denial is of all that was said: "not one of these (practices) ...", "none of it ..."."""
        at, last = span.start, min(len(self.words), span.start + _REACH)
        while at < last and self.words[at].written in _COUNTED:
            at += 1
        if at == span.start or at >= len(self.words) or self.words[at].written not in _POINTED:
            return False
        if at == span.start + 1 and self.words[span.start].written in ("not", "no"):
            return False
        return at + 1 >= len(self.words) or self.before[at + 1] != NONE or not self._has_content(at + 1, at + 2)

    def _only_judges(self, low: int, high: int) -> bool:
        """True if all that a sentence says is a judgement of something else: "Ignore both: neither has any effect"."""
        if high - low > _REACH:
            return False
        judging = {at for span, kind in self._within(low, high) if kind != "worsens" for at in range(*span)}
        said = (at for at in range(low, high) if at not in judging and self.stems[at] not in _words("worth"))
        return not any(self._has_content(at, at + 1) for at in said)

    def _within(self, low: int, high: int) -> list[tuple[Span, str]]:
        first = bisect_left(self._marks, low, key=lambda mark: mark[0].start)
        last = bisect_left(self._marks, high, key=lambda mark: mark[0].start)
        return self._marks[first:last]

    def _begins_advice(self, at: int) -> bool:
        said = self.words[at].written
        heads = _NOUN_HEADS.get(said, frozenset[str]())
        return said in _written("imperatives") and not heads.intersection(self.stems[at + 1 : at + 2])

    def _uncancelled(self, marks: list[tuple[Span, str]]) -> list[tuple[Span, str]]:
        """Denials that are not denied themselves: "not useless", "do not avoid", "not possible without"."""
        kept: list[tuple[Span, str]] = []
        for span, kind in marks:
            last = kept[-1] if kept else None
            # "gadgets for the gullible", "纯属白费" judge twice; "not useless" does not.
            both = last is not None and last[1] == kind == "dismiss"
            twice = last is not None and both and (last[0].end == span.start or not self._turns(last[0]))
            if last is not None and not twice and self._cancels(last[0], span):
                if kind != "allow":  # "no part of it is safe" still denies that it is safe
                    kept.pop()
            else:
                kept.append((span, kind))
        return kept

    def _turns(self, span: Span) -> bool:
        first = self.words[span.start].written
        return first in _TURNING or self.stems[span.start] in _TURNING

    def _cancels(self, first: Span, second: Span) -> bool:
        reach = 8 if self.stems[second.start] == "without" else 2
        if self.words[first.start].written in ("avoid", "none", "without", "避免") and reach == 2:
            reach = 0  # "avoid useless sprays", "none avoid": no double denial
        if self.stems[second.start] in ("nor", "neither"):
            return False
        gap = range(first.end, second.start + 1)
        return (
            second.start - first.end <= reach
            and all(self.before[at] == NONE for at in gap)
            and not any(self.stems[at] in ("and", "or") for at in gap)
        )

    def _with_effect(self, span: Span, kind: str) -> tuple[Span, str]:
        """A plain denial that judges its subject: "does not help", "is not an answer", "should be avoided"."""
        if kind == "deny" and self._lacks_worth(span):
            return span, "dismiss"
        if kind != "deny" or span.start == 0:
            return span, kind
        said, before = self.words[span.start].written, self.words[span.start - 1].written
        if said == "nothing" and self.before[span.start] == NONE and before not in _LEAVING:
            return span, "dismiss"  # "... accomplish nothing"
        after = self.stems[span.end : span.end + 2]
        earlier = self.words[max(0, span.start - 2)].written
        if said.endswith("ed") and (before in _COPULA or (earlier in _COPULA and before != "not")):
            return span, "dismiss"
        if said not in _VERDICTS:
            return span, kind
        if said in ("fail", "fails", "failed") and after[:1] == ["to"] and after[1:] and after[1] in _words("effect"):
            return span, "dismiss"
        if before == "do" and self.before[span.start - 1] != NONE:
            return span, kind  # "Do not apply ..." has no subject to judge.
        if said == "no" or self.before[span.start] != NONE:
            return span, kind
        if before in _COPULA or "be" in after[:1]:
            rest = after[1:] if "be" in after[:1] else after[:1]
            return (span, kind) if set(rest) & _words("harm") else (span, "copula")
        if after and after[0] in _words("effect") and (before in _AUXILIARY or said != "not"):
            return Span(span.start, span.end + 1), "dismiss"
        return span, kind

    def _is_needless(self, span: Span) -> bool:
        """True if what stands before is what need not be done: "残体不必清除"."""
        said = "".join(word.written for word in self.words[span.start : span.end])
        return said in _NEEDLESS and span.start > 0 and self.words[span.start - 1].written not in "就则便也"

    def _lacks_worth(self, span: Span) -> bool:
        """True if what is denied is a worth: "no measurable benefit", "没有保护的价值"."""
        end = min(self._ends[COMMA][span.start], span.end + _LONGEST_ITEM)
        if self.words[span.start].written == "no":
            return not {*self.stems[span.end : min(end, span.end + 3)]}.isdisjoint(_words("worth"))
        said = "".join(word.written for word in self.words[span.start : end])
        return said[:1] in ("没", "毫", "无") and any(said.find(worth) > 0 for worth in _WORTH_IN_CHINESE)

    def _segment(self, span: Span) -> tuple[int, int]:
        """Words between the nearest boundaries."""
        return self._starts[COMMA][span.start], self._ends[COMMA][span.end - 1]

    def _zone(self, span: Span) -> tuple[int, int]:
        """Words between the nearest contrasts or ends of sentences."""
        return self._starts[CONTRAST][span.start], self._ends[CONTRAST][span.end - 1]

    def _has_content(self, low: int, high: int) -> bool:
        return self._contents[high] > self._contents[low]

    def _group_start(self, at: int) -> int:
        """Start of the subject of a predicate at ``at``: its segment, and those before it that only list."""
        low = self._starts[COMMA][at]
        while self.before[low] in (COMMA, COLON):
            start = self._starts[COMMA][low - 1]
            first = self.words[start].written
            said = {word.written for word in self.words[start : min(low, start + _REACH)]}
            if said & _PREDICATES or self._begins_advice(start) or self._is_marked(start, low):
                break
            if first[:1] > "ÿ" and not {*self.stems[max(low, at - _REACH) : at]} & _PLURAL:
                break
            low = start
        return low

    def _is_marked(self, low: int, high: int) -> bool:
        return any(low <= span.start < high for span, kind in self._near(low) if kind != "worsens")

    def _near(self, at: int) -> list[tuple[Span, str]]:
        first = bisect_left(self._marks, at, key=lambda mark: mark[0].start)
        return self._marks[first : first + 3]

    def _dismiss(self, span: Span) -> None:
        self._deny_over(*span)
        low, high = self._segment(span)
        zone_low, zone_high = self._zone(span)
        follows = self.words[span.end].written if span.end < len(self.words) else ""
        listed = (
            follows in ("on", "to", "that", "with", "of", "by", "for", "in", "from", "about")
            or self.before[span.end] == COLON
        )
        opening = span.start == zone_low and self.words[span.start].written == "far"  # "Far from helping, a and b ..."
        pointing = (self.before[span.end] == COMMA and not listed and not opening) or (low > 0 and follows in _POINTERS)
        if self._has_content(low, span.start):
            near = {*self.stems[max(low, span.start - _REACH) : span.start]}
            start = zone_low if near & _PLURAL else self._group_start(span.start)
            self._deny_over(start, span.start)
            end = zone_high if listed and self.before[span.end] < CONTRAST else high
            if not listed:
                stops = (at for at in range(span.end, min(high, span.end + _REACH)) if self.stems[at] == "and")
                end = next(stops, high)
            self._deny_over(span.end, end)
        elif self._has_content(span.end, zone_high) and not pointing:
            aside = self.before[zone_low] == CONTRAST and self.stems[span.start] == "none"
            self._deny_over(span.end, high if aside else zone_high)
        else:
            self._point_back(span, low)

    def _point_back(self, span: Span, low: int) -> None:
        """Deny what "none of this helps", "which is useless" points at: the sentence so far, or those before."""
        pointed = {*self.stems[max(low, span.end - _REACH) : span.end]}
        start = self._starts[SENTENCE][low]
        if not self._has_content(start, low) and start > 0:
            start = self._starts[SENTENCE][start - 1]
        if pointed & {"none", "all", "everything", "these", "those", "both", "这", "上", "都"}:
            start = 0
        elif start > 0 and pointed & {"they", "them", "它"}:
            start = self._starts[SENTENCE][start - 1]
        self._deny_over(start, low)

    def _forward(self, span: Span) -> None:
        """Deny what follows in the clause, and what is listed with it."""
        low, high = self._segment(span)
        if span.end >= high and self.before[span.end] != COLON:
            if self._has_content(low, span.start):
                self._cover(self._denials, self._group_start(span.start), span.start)
            elif self.before[low] != SENTENCE:
                self._point_back(span, low)
            return
        _, zone_high = self._zone(span)
        if self.before[span.end] == COLON:
            self._cover(self._denials, span.end, zone_high)
            return
        # "无风的傍晚", "不喷药时": one character denies only what stands next to it.
        single = self.stems[span.start] if span.end == span.start + 1 else ""
        stems, zone_high = self.stems, min(zone_high, span.end + _SHORT_REACH.get(single, _REACH))
        rest = stems[span.end : zone_high]
        chained = span.end + max((at for at, stem in enumerate(rest) if stem in ("or", "nor", "或")), default=-1)
        # "Avoid a, b and c" lists what is to be avoided; "a, no b, c and d" does not.
        leads = not self._has_content(self._starts[CONTRAST][span.start], span.start)
        modal = span.start > 0 and self.words[span.start - 1].written in _MODAL and span.start - 1 > low
        places = not _PLACES.isdisjoint(word.written for word in self.words[span.start : span.end + 6])
        end = span.end
        while end < zone_high:
            chain = end <= chained
            if end > span.end and self.before[end] in (COMMA, COLON):
                also = places and stems[end + ("and" in stems[end : end + 1])] == "where"
                adds = self.before[end] == COLON and self._begins_advice(end)
                stop = adds or not (chain or modal or also or (leads and self._goes_on(end, low)))
            elif stems[end] == "and" and end + 1 < zone_high:
                stop = not (chain or modal) and self._begins_advice(end + 1)
            else:
                stop = end > span.end and stems[end] in _CLAUSE and not (places and stems[end] == "where")
                # "No spraying on old trees" speaks of the trees, and against the spraying.
                stop = stop or (stems[end] in ("on", "for", "in") and stems[span.end] in _SPRAYS)
            if stop:
                break
            end += 1
        self._cover(self._denials, span.end, end)

    def _goes_on(self, at: int, low: int) -> bool:
        """True if the segment that begins at ``at`` is one more item of the denied list."""
        if self.words[low].written in _CLAUSE:
            return False
        begin = at + (self.words[at].written in ("and", "then") and at + 1 < len(self.words))
        if self.words[begin].written[:1] > "ÿ" or self._begins_advice(begin):
            return False
        end = self._ends[COMMA][at]
        said = self.words[at : min(end, at + _LONGEST_ITEM)]
        return end - at <= _LONGEST_ITEM and not any(
            word.written in _PREDICATES or word.stem in _words("effect") for word in said
        )

    def _deny_over(self, low: int, high: int) -> None:
        self._cover(self._denials, low, high)
        if self._allowing:
            self._cover(self._allowed, low, high)

    def _cover(self, into: list[int], low: int, high: int) -> None:
        if low >= high:
            return
        into[low] += 1
        into[high] -= 1
        if into is self._denials:
            self._reaches.setdefault(self._mark.start, []).append(Span(low, high))
            if self.stems[self._mark.start : self._mark.end] == ["without"]:
                self._cover(self._absent, low, high)


def _depths(changes: Sequence[int]) -> list[int]:
    return list(accumulate(changes[:-1]))


def _plain(text: str) -> str:
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
    for found in _TOKEN.finditer(_plain(phrase)):
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
def _polarity() -> Trie:
    trie: Trie = {}
    for kind in ("neutral", "contrast", "allow", "dismiss", "deny", "worsens"):
        for phrase in _tables()[kind]:
            add_to(trie, stems_of(phrase), kind)
    return trie


@cache
def _words(kind: str) -> frozenset[str]:
    return frozenset(stem for phrase in _tables()[kind] for stem in stems_of(phrase))


@cache
def _written(kind: str) -> frozenset[str]:
    return frozenset(_tables()[kind])


@cache
def bare_words() -> frozenset[str]:
    """Stems of words that are no idea of a phrasing: prepositions, auxiliaries."""
    return _written("bare") | _words("bare")
