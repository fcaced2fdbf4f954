"""Clauses of a reply and their denials, and its lists of names and numbers.

Supports English and Chinese.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from agrotools.text.normalise import CJK, WORD, WORD_END, WORD_START, late_pattern, reading_words

Span = tuple[int, int]
_B = rf"{WORD_START}"
_E = rf"{WORD_END}"
_PRONOUN = "(?:it|this|that|these|those|they|there|he|she|we|i|you|which|who)"
_BE = "(?:is|are|was|were|be|been|being|must|has|have|had|can|could|do|does|did|will|would|may|might|shows?)"
# A clause continues after these words: "I do not think it is lantana", "it is unlikely that this is lantana".
_GOES_ON = (
    "of that think thinks thought believe believes believed say says said sure certain suggest suggests if whether "
    "likely unlikely possible suspect convinced conclude agree mean means indicate indicates expect feel doubt"
).split()
_NEW_CLAUSE = "".join(  # words of equal length, as a look-behind must be
    rf"(?<!{_B}(?:{'|'.join(word for word in _GOES_ON if len(word) == length)}) )"
    for length in sorted({len(word) for word in _GOES_ON})
)
_CLAUSE_END = late_pattern(
    # 不是玉米是小麦: the denial ends before 是, unless it belongs to 还是 or 就是.
    rf"(?<!是)不是[^,;。\n是]{{1,16}}(?<![的或还不都也就便可但要只才])(?=是)|"
    rf"[;!?。；()\n:,，]|\.(?!\d)|\s-+\s|而是|但|因此|所以|{_B}(?:(?:(?<!anything )but|(?<=be anything )but|however|"
    rf"although|though|whereas|while|because|therefore|thus|hence|so(?! (?:much|many|far))){_E}|"
    rf"and (?=(?:{_PRONOUN}|{_BE}|instead|rather|the|conclude|identify|find|see|choose|settle|think){_E})|"
    rf"{_NEW_CLAUSE}(?=(?:(?:it|this|these|they|there) {_BE}|it's|that's){_E}))"
)
_ASIDE = late_pattern(
    r", (?:which|whose|with) [^,;.!?:\n]{1,80},|"
    rf"(?:{_B}(?:not|never|n't|cannot)|n't),[^,;.!?\n]{{1,40}},|\((?:{WORD}+(?:[ -]{WORD}+){{0,3}}|[{CJK}]{{1,8}})\)|"
    r"(?:^|(?<=[.;!?\n。]))\W{0,8}(?:not? (?:found|seen|present|detected|visible|observed|affected|signs?|trace)|"
    r"absent|none of|未(?:见|发现|检出|受害)|没有(?:发现|看到))[^.;!?\n。:]{0,20}:[^.;!?\n。]{1,300}|\((?:(?!\b(?:it|"
    r"is|are|but|instead|rather)\b)[^().:;\n]){1,60}(?:,|、|和|与|\b(?:and|or)\b)[^().:;\n]{1,200}\)"
)
"""Asides ("not, in my view, lantana"), brackets and list headings, whose punctuation does not end a clause."""
_AT_FIRST = (
    r"(?:at first(?: glance)?|initially|originally|first),? (?:(?:it|this|that|i|we|the \w+) )?"
    r"(?:look|seem|appear|resembl|thought|suspect|assum|believ|guess|consider|took|mistook)\w*"
)
# Words that deny everything after them in their clause.
_BEFORE = late_pattern(
    rf"{_B}(?:not(?! (?:only|just|merely|simply|to mention){_E})|never|unlike|rather than|instead of|neither|nor|"
    rf"cannot|unlikely|improbable|impossible|{WORD}+n't|dont|doesnt|isnt|wasnt|rul(?:e[sd]?|ing) out|exclud(?:e[sd]?|"
    rf"ing)|excepts?|except for|other than|as opposed to|(?<!no )(?<!out )(?<!out a )(?<!beyond )doubt(?:s|ful|ed)?|"
    rf"none(?= (?:has|have|had|is|are|was|were|can|could|shows?|of (?:them|these|those))\b)|nothing|nobody|nowhere|"
    rf"hardly|barely|scarcely|free (?:of|from)|(?:unable|fail(?:s|ed)?) to (?:find|see|detect)|forget(?: about)?|"
    rf"no sign of|none (?:in|on|at|for)|let alone|much less|devoid of|absence of|absent(?=:)|(?:little|no) chance|"
    rf"(?:speaks?|argues?) against|(?:wrong|incorrect|mistaken) to|different from|differs? from|distinct from|"
    rf"(?:distinguish(?:es|ed)?|told|tells?) (?:it |this )?from|(?:confused|mistaken) (?:with|for)|far from|"
    rf"nicht|kein(?:e[mnrs]?)?|pas|não|bukan|không phải|не|ليست?|नहीं|"
    rf"{_AT_FIRST}){_E}|ไม่ใช่|(?<!be )anything but|"
    rf"不(?=是|在|像|属于|认为|觉得|为|含|包括|包含|存在|可能|太可能|大可能|会是|"
    rf"应|符合|适|宜|能|可以|会|算|构成)|并非|而非|绝非|并不|并没有|并未|未见|不(?:需要?|必|宜|用|建议|推荐|再)|无需|"
    rf"无须|没(?:看到|看见|见到|发现|找到)|不见|未发现|排除|区别于|不同于|有别于|乍看|起初|最初"
)
# Determiners: they deny what follows, but only the adjacent number ("no weeds among the 14 trees" does not deny 14).
_WITHOUT = late_pattern(
    rf"{_B}(?:no(?! (?:doubt|question|more than|less than|fewer than){_E})|without(?! (?:a )?(?:doubt|question))|"
    rf"none of|nothing like|zero(?! \d)){_E}|没有(?!疑问|错(?!误))|没(?![有看发错])|无(?!人机|疑|法|误)|未(?!来)"
)
# Predicates that deny what precedes them in their clause.
_AFTER = late_pattern(
    rf"{_B}(?:(?:(?:(?:is|are|was|were|can|could|seems?|looks?|appears?|has|have|been|be|being|very|quite|highly|"
    r"rather|now|therefore|most|thus|also) ){0,5}(?:ruled out|struck off|crossed out|set aside|discounted|"
    r"disregarded|unlikely|excluded|eliminated|rejected|dismissed|discarded|absent|impossible|improbable|implausible|"
    r"incorrect|wrong|false|not (?:likely|possible|present|visible|seen|found|detected|observed|correct|right|"
    r"the (?:right|correct|answer|species|case)|it|supported|plausible|a match|match\w*|fit\w*|consistent|what)|"
    r"isn't it)|(?:does|do|did|can|could|would|should) ?(?:not|n't) (?:match|fit|occur|seem|appear|look|exist|apply|"
    r"belong)|(?:is|are|was|were) (?:zero|nil)|would be (?:much |far |clearly )?too (?:high|low|large|small|many|few|"
    rf"much)){_E}|at first(?: glance)?(?=[ ,]{{1,2}}(?:but|however|yet|though){_E}))|(?:可以|可|应|已|已经)?被?排除|"
    rf"[均都也]?[未没](?:有)?(?:被)?(?:发现|检出|出现|看到|见到|见|找到)|无关|不可能|不太可能|可能性(?:不大|很小|较小|"
    rf"低)|不存在|不符|不是(?=[,;。!?\n]|$)"
)
_JOIN = late_pattern(rf"\s*(?:,|、|或|{_B}(?:or|nor){_E}|,\s*(?:or|nor){_E})\s*(?:(?:an?|the)\s+)?")
_BACK_JOIN = late_pattern(
    rf"\)?\s*,?\s*(?:{_B}(?:or|nor|and){_E}|和|与|及|或|、)\s*(?:(?:an?|the)\s+|[{CJK}]{{1,8}}\()?"
)
_THAT = late_pattern(
    rf"(?:{_B}(?:not|unlikely|impossible|improbable|doubt|cannot)|"
    rf"n't){WORD_END}[^.;!?\n,]{{0,30}}? that{_E}[^.;!?\n]{{0,300}}"
)
"""Denied "that" clauses, in which commas do not end the clause.

Example: "it is not possible that this plant, with its white flowers, is lantana".
"""
_LABEL_HEADING = late_pattern(
    rf"\W*(?:(?!{_BE}{_E}){WORD}+ ){{0,3}}(?:not? [a-z ]{{3,30}}|un[a-z]+ed(?: [a-z ]{{3,30}})?|absent)$|(?:未|"
    rf"没有)[{CJK}]{{1,6}}$"
)
"""Headings that deny the list after them: "not affected: root, stem", but not "no: it is lantana"."""


class Negations:
    """The clauses of a text and their denials, built once and queried by position.

    ``masked`` spans are labels: the "no" inside the label "no weeds" is not a denial.
    """

    def __init__(self, text: str, masked: Sequence[Span] = ()) -> None:
        self._text = text
        asides = sorted(aside.span() for pattern in (_ASIDE, _THAT) for aside in pattern.finditer(text))
        self._clauses = [0]
        at = 0
        for end in _CLAUSE_END.finditer(text):
            while at < len(asides) and asides[at][1] <= end.start():
                at += 1
            if at < len(asides) and asides[at][0] <= end.start() < asides[at][1] and end[0] in ",()、，":
                continue
            begin = self._clauses[-1]
            if (
                end[0] == ":"
                and text[max(0, begin - 1) : begin] in "\n."
                and _LABEL_HEADING.match(text, begin, end.start())
            ):
                continue
            self._clauses.append(end.end())
        self._first = self._by_clause(_BEFORE, masked, first=True)
        self._last = self._by_clause(_AFTER, masked, first=False)
        self._first_determiner: dict[int, int] = {}
        for match in _unmasked(_WITHOUT, text, masked):
            self._first_determiner.setdefault(self._clause(match.end() - 1), match.end())

    def _clause(self, at: int) -> int:
        return bisect_right(self._clauses, at) - 1

    def _by_clause(self, pattern: re.Pattern[str], masked: Sequence[Span], *, first: bool) -> dict[int, int]:
        """Return, by clause, the end of the first match or (``first=False``) the start of the last one."""
        counts: dict[int, int] = {}
        for match in _unmasked(pattern, self._text, masked):
            if first:
                counts.setdefault(self._clause(match.end() - 1), match.end())
            else:
                counts[self._clause(match.start())] = match.start()
        return counts

    def before(self, start: int) -> bool:
        """True if a word of negation or contrast precedes position ``start`` in its clause."""
        clause = self._clause(start)
        return min(self._first.get(clause, start + 1), self._first_determiner.get(clause, start + 1)) <= start

    def clause(self, at: int) -> Span:
        """Return start and end of the clause that contains position ``at``."""
        index = self._clause(at)
        return self._clauses[index], self._clauses[index + 1] if index + 1 < len(self._clauses) else len(self._text)

    def after(self, end: int) -> bool:
        """True if the rest of the clause denies the phrase that ends at ``end``: "... is ruled out"."""
        return self._last.get(self._clause(max(0, end - 1)), -1) >= end


def _unmasked(pattern: re.Pattern[str], text: str, masked: Sequence[Span]) -> list[re.Match[str]]:
    unmasked: list[re.Match[str]] = []
    at = 0
    for match in pattern.finditer(text):
        while at < len(masked) and masked[at][1] <= match.start():
            at += 1
        if at == len(masked) or match.end() > masked[at][1] or match.start() < masked[at][0]:
            unmasked.append(match)
    return unmasked


def is_alternative(text: str, end: int, start: int) -> bool:
    """True if only a comma, "or", "nor", 、 or 或 separates a phrase ending at ``end`` from one at ``start``."""
    return start - end <= 24 and _JOIN.fullmatch(text, end, start) is not None


def shares_predicate(text: str, end: int, start: int) -> bool:
    """True if two names share one predicate: "A and B are ruled out"."""
    return start - end <= 24 and _BACK_JOIN.fullmatch(text, end, start) is not None


# --- lists: names and numbers listed together with a name ------------------------------------------------------------


class ListNeighbours(NamedTuple):
    """The other items of a list, and whether they are alternatives (joined by "or" or a slash)."""

    items: tuple[str, ...]
    alternatives: bool


_REACH = 400
"""Characters searched on either side; longer than any list that still counts as an answer."""
_LONGEST_NAME = 4
_LONGEST_RUN = 6
"""More words than this in a row, none of them typical of a sentence, are a list without separators."""

_JOINT = late_pattern(
    rf"\s*(?:(?P<either>(?:{_B}(?:(?:and/)?or|versus|vs\.?)|,\s*or){_E}|/|\||或者?)|"
    rf"(?P<all>(?:,\s*|{_B})and{_E}|\s*\n\s*(?:[*•-]|\d{{1,3}}[.)])\s|[,、;&+•·→]|->|\s-\s|和|及)|"
    r"(?P<loose>\.(?!\d)|\s*\n[\s*•>#-]*(?:\d{1,3}[.)]\s)?))\s*"
)
_ITEM = late_pattern(
    rf"[\"'*]*((?:{WORD}|[{CJK}]|['’\- ](?={WORD}|[{CJK}])|\.(?=\d))+)[\"'*]*(?:\s?\([^()\n]{{0,80}}\))?"
)
_BRACKET = late_pattern(r"\s*[\"'*]*\s*[(\[]([^()\[\]\n]{0,300})[)\]]")
_WORDS = late_pattern(rf"{WORD}+(?:['’-]{WORD}+)*|[{CJK}]+")

_SENTENCE, _DESCRIBING = reading_words("sentence"), reading_words("describing")
_NO_NAME = ("aceae", "idae", "ly")


def is_name(text: str) -> bool:
    """True if ``text`` could be a name: at most four words, none of them typical of a sentence."""
    words = _WORDS.findall(text)
    if not words or len(words) > _LONGEST_NAME or all(word.isdigit() for word in words):
        return False
    if any(len(word) > 8 for word in words if word[0] >= "\u2e80") or re.search(rf"[{CJK}] ?\d", text):
        return False
    if any(word in _SENTENCE or (word.endswith(_NO_NAME) and word not in _DESCRIBING) for word in words):
        return False
    return any(word not in _DESCRIBING and not word.isdigit() for word in words) and not re.search(
        r"[是为有的在了]", text
    )


def list_neighbours(text: str, start: int, end: int, same: Callable[[str], bool]) -> ListNeighbours:
    """Return the other items of the list that contains ``text[start:end]``.

    ``same`` returns true for items that name the same thing as ``text[start:end]``; they are left out.
    """
    items: list[str] = []
    loose: list[str] = []
    appositions: list[str] = []
    either = False

    def take(item: str, joint: re.Match[str]) -> bool:
        """Add ``item`` to the list; return False if the list ends before it."""
        nonlocal either
        name = item.strip(" \"'*")
        bare = re.sub(r"^(?:an?|the) ", "", name)
        if same(name):
            return True
        if not is_name(bare):
            return False
        if bare != name and not (joint["either"] or items or "and" in joint[0]):
            appositions.append(bare)  # "lantana, a shrub", unlike "a lantana, a parthenium, a rubber vine"
            return joint["loose"] is None
        name = bare
        (loose if joint["loose"] is not None else items).append(name)
        either = either or joint["either"] is not None
        return True

    at = end + len(text[end : end + 3]) - len(text[end : end + 3].lstrip("\"'*"))
    limit = min(len(text), end + _REACH)
    for _ in range(2):  # "(Lantana camara) (Verbenaceae)"
        bracket = _BRACKET.match(text, at, limit)
        if bracket is None:
            break
        inside = [
            part
            for part in re.split(r"[,;/|、]|\bor\b|\band\b", bracket[1])
            if is_name(part) and not same(part.strip())
        ]
        if len(inside) > 1:
            items += [part.strip() for part in inside]
        at = bracket.end()
    while joint := _JOINT.match(text, at, limit):
        item = _ITEM.match(text, joint.end(), limit)
        if (
            item is None
            or text[item.end() : item.end() + 2].lstrip().startswith((":", "="))
            or not take(item[1], joint)
        ):
            break
        at = item.end()
    floor = max(0, start - _REACH)
    for joint, item in _backwards(text, floor, start):
        if not take(item, joint):
            break
    if len(appositions) > 1:
        items += appositions
    items += _run(text, start, end)
    if len(loose) > 1:
        items += loose
    return ListNeighbours(tuple(dict.fromkeys(items)), either)


def _backwards(text: str, floor: int, start: int) -> list[tuple[re.Match[str], str]]:
    """Return the list items before ``start``, nearest first, each with the separator after it.

    The list begins after the last of ``:=?!`` in ``text[floor:start]``.
    """
    stop = max(text.rfind(mark, floor, start) for mark in ":=?!")
    joints = list(_JOINT.finditer(text, max(floor, stop + 1), start))
    if not joints or text[joints[-1].end() : start].strip(" \"'*(") not in ("", "a", "an", "the"):
        return []
    items: list[tuple[re.Match[str], str]] = []
    for index in range(len(joints) - 1, -1, -1):
        begin = joints[index - 1].end() if index else max(floor, stop + 1)
        item = text[begin : joints[index].start()]
        if joints[index]["either"]:  # "it could be siam weed or ..."
            words = item.split()
            begin_at = next((at for at in range(len(words), 0, -1) if words[at - 1] in _SENTENCE), 0)
            item = " ".join(words[begin_at:])
        items.append((joints[index], item))
    return items


def _run(text: str, start: int, end: int) -> list[str]:
    """Return the words around a name that are separated only by spaces, if there are too many for a single name."""
    before = re.split(rf"[^\w\s'-]|\n|[{CJK}]", text[max(0, start - _REACH) : start])[-1].split()
    behind = re.split(rf"[^\w\s'-]|\n|[{CJK}]", text[end : end + _REACH])[0].split()
    run: list[str] = []
    ends = 0
    for words in (reversed(before), behind):
        for word in words:
            if word in _SENTENCE:
                ends += 1
                break
            if word not in _DESCRIBING:
                run.append(word)
    # Without any sentence word, half as many words are too many.
    return run if len(run) * (1 if ends else 2) > _LONGEST_RUN else []


_CLAIMS = late_pattern(
    rf"(?:^|(?<=[.!?;\n。]))[^\w\n]{{0,12}}(?:it|this|that|these|i|(?:the|this) {WORD}+(?: {WORD}+)?)"
    rf"(?: (?:is|are|was|looks like|look like|could be|may be|might be|must be|see|think it is|say|guess)|'s) "
    rf"(?:(?:possibly|perhaps|maybe|probably|likely|also) )*(?:an? |the )?([^.!?;\n。,]{{1,60}})(?=[.!?;\n。,]|$)"
)


def further_claims(text: str, same: Callable[[str], bool]) -> tuple[str, ...]:
    """Return other names in sentences of the form "it is X", or nothing if there are fewer than two.

    A text that says "it is X" with several names is a list spread over sentences.
    """
    names = dict.fromkeys(claim[1].strip(" \"'*") for claim in _CLAIMS.finditer(text))
    others = tuple(name for name in names if (is_name(name) or name.isdigit()) and not same(name))
    return others if len(others) > 1 else ()


_EITHER = rf"(?:,\s*)?{WORD_START}(?:or|versus|vs|maybe|perhaps|possibly){WORD_END}"
_NUMBER_JOINT = late_pattern(
    rf"\s*(?:(?P<either>/|\||{_EITHER}|或)|[,;、&]|{WORD_START}and{WORD_END}|和|\n[\s*•-]*|\s)\s*(?=[$€£¥₹-]?\d)"
)
_NUMBER = late_pattern(r"[$€£¥₹]?-?\d++(?:[.,]\d++)*+")
_NUMBERS_BEFORE = late_pattern(
    rf"((?:[$€£¥₹]?-?\d++(?:[.,]\d++)*+%?+(?>\s*(?:/|\||{_EITHER}|[,;、&]|(?:,\s*)?and\b|\n[\s*•-]*|或|和)\s*(?:(?:or|and)\s)?|\s))+)$"
)
_MOST_NUMBERS = 12
"""A text with more distinct numbers than this is a calculation, whose result is in its last sentence."""
_MOST_STATED = 8


def listed_numbers(text: str, start: int, end: int) -> ListNeighbours:
    """Return the numbers listed with ``text[start:end]``: joined to it by "or", "and", comma, slash or space."""
    numbers: list[str] = []
    either = False
    at = end
    while joint := _NUMBER_JOINT.match(text, at, min(len(text), end + _REACH)):
        number = _NUMBER.match(text, joint.end())
        if number is None:
            break
        either = either or joint["either"] is not None
        numbers.append(number[0])
        at = number.end()
    if before := _NUMBERS_BEFORE.search(text[max(0, start - _REACH // 4) : start]):
        either = either or re.search(r"/|\||\b(?:or|maybe|perhaps|possibly)\b|或", before[1]) is not None
        numbers += _NUMBER.findall(before[1])
    return ListNeighbours(tuple(dict.fromkeys(numbers)), either)


def concluding_numbers(text: str) -> tuple[int, int] | None:
    """Return the span of the result in a text with many numbers; None if the text has at most twelve distinct ones.

    The span is empty if even the last sentence with numbers has too many of them to state a result.
    """
    numbers = list(_NUMBER.finditer(text))
    if len({number[0] for number in numbers}) <= _MOST_NUMBERS:
        return None
    last = numbers[-1]
    begin = max(text.rfind(mark, 0, last.start()) for mark in ("\n", ". ", "! ", "? ", "。")) + 1
    stated = {number[0] for number in numbers if number.start() >= begin}
    return (begin, len(text)) if len(stated) <= _MOST_STATED else (len(text), len(text))
