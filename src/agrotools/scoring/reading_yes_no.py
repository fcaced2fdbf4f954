"""Reading yes or no out of an answer: a plain yes or no, or what the answer says of the slot's subject."""

import re
from typing import NamedTuple

from agrotools.core import BooleanSlot
from agrotools.scoring.reading import after_correction, sentences
from agrotools.scoring.reading_qualifiers import last_place, speaks_of, subject
from agrotools.text.negation import Negations
from agrotools.text.normalise import CJK, WORD, normalise


class YesNo(NamedTuple):
    """What a text says (None: nothing, or both), the words that say so, and by which rule."""

    said: bool | None
    words: tuple[str, ...]
    rule: str


_END = (
    r"(?=[\s\"'*]*(?:[,.;:!?/|)\]-]|$|\n|(?:or|and|because|it|it's|there|this|these|the|i|we|not|yes)"
    rf"(?!{WORD})|[,，。;]))"
)
_START = r"(?:(?<=[,.;:!?\n(\"'*| /])|^)"
# "whether", and the copula before the answer itself (答案是否, 答案是:没有): neither of them answers.
_NO_ANSWER = re.compile(
    rf"是否(?!定)(?=[{CJK}])|有没有|有无|是(?=[ :\"']{{0,3}}(?:否|没有|不是|是|yes|no|true|false))|"
    r"(?:yes or no|yes/no|true or false|true/false)(?=\s?(?:\?|question|answer))|"
    r"\b(?:true|false)(?: |-)(?:colou?r|positives?|negatives?)|否则|是非题?"
)
_YES = re.compile(
    rf"(?<!{WORD})(?:yes|yep|yeah|true|affirmative)(?!{WORD})|"
    rf"{_START}(?:是的|对的|正确|(?:是|有|对)(?=[\s\"'*]*(?:[,.;:!?)]|$|,|。|yes|no)))"
)
_NO = re.compile(
    rf"(?<!{WORD})(?:false|nope|negative(?= *[.,;\n]| *$)|(?:no|not){_END}|(?<=yes )no|not at all)(?!{WORD})|"
    rf"{_START}(?:不是|不对|没有|不)(?=[\s\"'*]*(?:[,.;:!?)]|$|,|。|yes))|否(?![认则])|不正确"
)
_WEAK_NO = re.compile(
    rf"(?<!{WORD})(?:no(?! (?:doubt|question))|none)(?!{WORD})|没有|不是|并没有|并未|"
    r"(?:(?<=[,.;:!?\n ,。])|^)(?:未|尚未|不|无)"
)
_WEAK_YES = re.compile(r"(?:(?<=[,.;:!?\n ,。])|^)(?:有|是|已)")
_EITHER = re.compile(
    r"maybe,? (?:(?:and|or) )?maybe not|(?:may|might) or (?:may|might) not|maybe yes,? maybe no|也许是,?也许不是"
)

# Predicates that a slot may ask about, and their opposites.
_PREDICATES = (
    (
        r"chang\w*|alter\w*|convert\w*|transform\w*|modif\w*|变化|改变|变更|转变|变动|变了",
        r"unchanged|same|stable|unaltered|不变|没变|无变化|一致",
    ),
    (
        r"present|presence|exists?|visible|found|detected|contains?|occurs?|存在|发现|出现|检测到",
        r"absent|absence|missing|缺失",
    ),
    (
        r"exceed\w*|surpass\w*|above|超过|超出|高于|达到",
        r"below|under|within|beneath|低于|未达|不到",
    ),
    (r"within|inside|in range|之内|范围内", r"outside|beyond|out of range|超出|范围外|范围之外"),
    (
        r"increas\w*|grew|grown|grow|grows|growing|rose|risen|rises|rising|expand\w*|larger|enlarged|增加|增长|扩大|变大|增多",
        r"decreas\w*|declin\w*|shrank|shrunk|shrink|shrinks|shrinking|fell|fallen|reduc\w*|smaller|减少|下降|缩小|变小",
    ),
    (r"healthy|健康", r"unhealthy|diseased|sick|infected|infested|患病|生病|感染|病害"),
    (r"ripe|mature|成熟", r"unripe|immature|未成熟"),
    (r"same|identical|equal|相同|一样|一致", r"different|differs?|不同|不一样"),
    (r"irrigated|灌溉", r"rain-fed|rainfed|unirrigated"),
)


def _compiled(words: str) -> re.Pattern[str]:
    parts = words.split("|")
    latin = "|".join(part for part in parts if part[0] < "\u2e80")
    chinese = "|".join(part for part in parts if part[0] >= "\u2e80")
    return re.compile(rf"(?<!{WORD})(?:{latin})(?!{WORD})" + (f"|{chinese}" if chinese else ""))


_COMPILED_PREDICATES = tuple((_compiled(yes), _compiled(no)) for yes, no in _PREDICATES)
_MORE = re.compile(
    rf"(?<!{WORD})(?:more|larger|greater|higher|bigger|taller|exceeds?|outnumbers?|更多|更大|更高)(?!{WORD})|更多|更大|更高"
)
_LESS = re.compile(rf"(?<!{WORD})(?:fewer|less|smaller|lower|shorter)(?!{WORD})|更少|更小|更低")
_THAN = re.compile(r"\bthan\b|[比更]|\bmore\b")
_UNDECIDED = re.compile(
    r"\b(?:whether|if|unclear|uncertain|unsure|unknown|(?:cannot|can't|could not|unable to) (?:tell|say|"
    r"determine|judge))\b"
)
_IF = re.compile(r"[^.;\n]{0,40}\bif\b")
_PRESENCE = frozenset(("present", "presence", "visible", "detected", "found", "exist", "contain"))
_ENOUGH = 0.6
_IN_GENERAL = re.compile(r"\b(?:usually|typically|often|normally|in general)\b|通常|一般|往往")
_CONCLUDES = re.compile(
    r"\W*(?:so|therefore|thus|hence|in conclusion|overall|in short|in summary)\b|\W*(?:因此|所以|综上|总之)"
)


def read_yes_no(slot: BooleanSlot, text: str) -> YesNo:
    """What ``text`` answers to ``slot``: yes and no together are no answer."""
    if _EITHER.search(text):
        return YesNo(None, (), "undecided")
    text = _NO_ANSWER.sub(lambda said: " " * len(said[0]), text)
    plain = plain_answers(text)
    if plain:
        return _decided(plain, "yes or no")
    said = _of_the_subject(slot, text)
    if said:
        return _decided(said, "what is said of the subject")
    weak = [(False, match[0]) for match in _WEAK_NO.finditer(text)]
    weak = weak or [(True, match[0]) for match in _WEAK_YES.finditer(text)]
    return _decided(weak[:1], "yes or no") if weak else YesNo(None, (), "no yes or no")


def _decided(found: list[tuple[bool, str]], rule: str) -> YesNo:
    words = tuple(dict.fromkeys(word for _, word in found))[:20]
    if len({said for said, _ in found}) > 1:
        return YesNo(None, words, "both yes and no")
    return YesNo(found[0][0], words, rule)


def plain_answers(text: str) -> list[tuple[bool, str]]:
    """Each yes and no of normalised ``text`` that is an answer in itself and not denied or taken back."""
    found = sorted(
        [(match.start(), match.end(), True, match[0]) for match in _YES.finditer(text)]
        + [(match.start(), match.end(), False, match[0]) for match in _NO.finditer(text)]
    )
    if not found:
        return []
    negations = Negations(text, [(start, end) for start, end, _, _ in found])
    begin = after_correction(text, found[-1][0])
    return [(said, word) for start, _, said, word in found if start >= begin and not negations.before(start)]


def _of_the_subject(slot: BooleanSlot, text: str) -> list[tuple[bool, str]]:
    label = normalise(f"{slot.name.replace('_', ' ')} {slot.label}")
    if _THAN.search(label) and (_MORE.search(label) or _LESS.search(label)):
        return _compared(slot, label, text)
    for yes, no in _COMPILED_PREDICATES:
        asked_yes, asked_no = yes.search(label), no.search(label)
        if not asked_yes and not asked_no:
            continue
        negations = Negations(text)
        found: list[tuple[int, bool, str]] = []
        covered: set[int] = set()
        for pattern, polarity in ((no, False), (yes, True)):
            for match in pattern.finditer(text):
                clause = _clause_before(text, match.start())
                if _UNDECIDED.search(clause) or (" would " in clause and _IF.match(text, match.end())):
                    continue
                if covered.isdisjoint((match.start(), match.end() - 1)):
                    covered.update(range(match.start(), match.end()))
                    denied = negations.before(match.start()) or negations.after(match.end())
                    found.append((match.start(), polarity != denied, match[0]))
        if found:
            turned = asked_yes is None
            begin = after_correction(text, max(start for start, _, _ in found))
            return [(said != turned, word) for start, said, word in sorted(found) if start >= begin]
    return _said_of_label(slot, text)


def _clause_before(text: str, at: int) -> str:
    return re.split(r"[.;\n]", text[max(0, at - 80) : at])[-1]


_COPULA = re.compile(r"(?<!there) (?:is|are|was|were|has been|have been|has|have) ")
_OF_IT = re.compile(r"\W*(?:(?:so|therefore|thus|hence),? )?(?:it|they|this|these) ")


def _said_of_label(slot: BooleanSlot, text: str) -> list[tuple[bool, str]]:
    """Sentences that say, or deny, what the label says."""
    words = subject(slot).words - _PRESENCE
    rest = _COPULA.split(normalise(slot.label), maxsplit=1)[1:]
    predicate = frozenset(word for word in words if rest and speaks_of(rest[0], {word}))
    predicate = predicate or words
    found: list[tuple[bool, str]] = []
    for part in sentences(text):
        named = [word for word in words if speaks_of(part, {word})]
        if _UNDECIDED.search(part) or _IN_GENERAL.search(part):
            continue
        # "It is not flooded", of what stands before it; but "the field is dry" says nothing of a flood.
        of_it = bool(predicate) and _OF_IT.match(part) is not None and predicate <= set(named)
        if of_it or (words and len(named) >= _ENOUGH * len(words) and not predicate.isdisjoint(named or predicate)):
            last = max(last_place(part, word) for word in named)
            said = (not Negations(part).before(last), part[:60])
            found = [said] if _CONCLUDES.match(part) else [*found, said]
    return found


def _compared(slot: BooleanSlot, label: str, text: str) -> list[tuple[bool, str]]:
    """ "There are more weeds than crop", against a label that compares the same two."""
    words = sorted(subject(slot).words, key=label.find)
    found: list[tuple[bool, str]] = []
    for part in sentences(text):
        said = _MORE.search(part) or _LESS.search(part)
        named = [word for word in words if speaks_of(part, {word})]
        if said is None or len(named) < min(2, len(words)) or len(named) < _ENOUGH * len(words):
            continue
        same_way = (_MORE.search(part) is None) == (_MORE.search(label) is None)
        in_order = len(named) < 2 or part.find(named[0]) < part.find(named[-1])
        denied = Negations(part).before(said.end()) or Negations(part).before(said.start())
        found.append(((same_way == in_order) != denied, part[:60]))
    return found
