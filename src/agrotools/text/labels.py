"""Finding labels in an answer: whether each is asserted, and how much of a claim that is."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from agrotools.text.negation import Negations, joined, listed_with
from agrotools.text.normalise import CJK, WORD, normalise


class Strength(IntEnum):
    """What an asserted label is in its sentence: "lantana has square stems", "lantana grows here", "it is lantana"."""

    COMPARED = 0
    NAMED = 1
    CLAIMED = 2


class LabelMatch(NamedTuple):
    """One occurrence of a label: which one, where (in normalised text), and whether the text asserts it."""

    label: str
    text: str
    start: int
    end: int
    asserted: bool
    strength: Strength = Strength.NAMED


_SUFFIX = "(?:png|jpe?g|tiff?|webp|bmp|gif|npy|csv|json|txt|pdf)(?![a-z])"
"""Of files: "image_2" is not named by "image_2.png"."""


@lru_cache(maxsize=20_000)
def label_pattern(alias: str) -> re.Pattern[str]:
    """The pattern that finds ``alias`` as a whole, in singular or plural: in no word, longer number or range."""
    plain = normalise(alias).strip()
    # Behind a letter a space, an underscore and a hyphen are the same: "siam weed", "siam-weed", "image 2".
    body = re.sub(r"(?<=[^\W\d_])(?:\\?[ _-])+(?=[^\W_])", r"[\\s_-]{1,3}", re.escape(plain))
    body = re.sub(r"(?:\\ )+", r"\\s{1,3}", body)
    if re.search(r"(?<![a-z])leaf$", plain):
        body = f"{body[:-1]}(?:f|ves)"
    third = "" if plain[:1] in "+-" else r"(?<![-+](?=\d))"
    # Only a number can be part of a longer one.
    front = r"(?<!\d[.,])" if plain[:1].isdigit() else ""
    behind = r"(?![.,]\d)" if plain[-1:].isdigit() else ""
    return re.compile(rf"(?<!{WORD}){front}{third}{body}{_plural(plain)}(?!{WORD}){behind}(?!\.{_SUFFIX})")


def _plural(plain: str) -> str:
    """What may stand behind a name of at least three letters: its plural ending."""
    if not re.search(r"[a-z]{3}$", plain):
        return ""
    return "(?:e?s)?" if re.search(r"(?:[sxz]|ch|sh)$", plain) else "s?"


def find_labels(text: str, labels: Mapping[str, Iterable[str]]) -> list[LabelMatch]:
    """All occurrences in normalised ``text`` of the labels (each with its names), in order.

    A match inside a longer match of another label does not count ("rust" in "bean rust"). An occurrence is asserted
    unless its clause denies it, it is joined by comma, or, nor to a denied one, or it is only asked about.
    """
    found = [
        (match.start(), match.end(), label, len(match[0]) - len(normalise(name).strip()))
        for label, names in labels.items()
        for name in dict.fromkeys(names)
        if name.strip() and _first_word(name) in text
        for match in label_pattern(name).finditer(text)
    ]
    outermost = _outermost(found)
    if not outermost:
        return []
    negations = Negations(text, [(start, end) for start, end, _ in outermost])
    behind = [
        negations.after(end) or _denied_behind(text, end) or _crossed_out(text, start) for start, end, _ in outermost
    ]
    denials = [negations.before(start) or denied for (start, _, _), denied in zip(outermost, behind, strict=True)]
    for index in range(1, len(outermost)):
        if denials[index - 1] and joined(text, outermost[index - 1][1], outermost[index][0]):
            denials[index] = True
    is_listed = False
    for index in range(len(outermost) - 2, -1, -1):
        start, end = outermost[index][1], outermost[index + 1][0]
        listed = listed_with(text, start, end)
        # "A, B and C are not": the comma goes on with the list of one subject.
        if behind[index + 1] and (listed or (is_listed and joined(text, start, end))):
            denials[index] = behind[index] = True
        is_listed = listed or (is_listed and joined(text, start, end))
    found_matches: list[LabelMatch] = []
    for (start, end, label), denied in zip(outermost, denials, strict=True):
        strength = _strength(text, start, end)
        before = found_matches[-1] if found_matches else None
        if before and before.strength is Strength.COMPARED and _AND_THE.fullmatch(text, before.end, start):
            strength = min(strength, Strength.COMPARED)  # "B would be smaller, and C darker"
        found_matches.append(LabelMatch(label, text[start:end], start, end, not denied, strength))
    return found_matches


@lru_cache(maxsize=20_000)
def _first_word(name: str) -> str:
    first = re.split(r"[\s_-]+", normalise(name).strip())[0]
    return first[:-1] if first.endswith("leaf") else first


def _outermost(found: list[tuple[int, int, str, int]]) -> list[tuple[int, int, str]]:
    """Occurrences that lie inside no longer one (of whichever label: a label's own shorter names go as well).

    Where two labels fit the same words, that which is written so wins over that whose plural it is.
    """
    kept: list[tuple[int, int, str]] = []
    furthest = -1
    for start, end, label, _ in sorted(found, key=lambda item: (item[0], -item[1], abs(item[3]))):
        if end > furthest:
            kept.append((start, end, label))
            furthest = end
    return kept


_AND_THE = re.compile(r"[^.;!?\n:]{1,80},? and (?:the |an? )?")
_ASKED = re.compile(r"[^.!?。\n;]{0,200}\?")
_CONFIRMED = re.compile(r"[\s\"'*]*(?:yes|yep|correct|indeed|是|对)(?![a-z])")


_NOT_SO = re.compile(
    r"(?:\s?\([^()\n]{0,60}\))?,? (?:can|could|is|are|was|were|has|have|must)"
    r"(?: (?:also|therefore|thus|be|been|safely))* "
    r"(?:ruled out|excluded|dismissed|eliminated|discarded|rejected|unlikely|absent)\b|"
    r", does not |,? has no (?:pixels|area)\b|"
    r" ?(?:\||:|-|=|->|→)+ ?(?:0|zero|none|absent|not (?:found|seen|present|detected)|no|nil|❌|✗|✘|✖|无|没有)"
    r"(?=[ \"']*(?:[|\n,;)]|\.(?!\d)|$))| (?:❌|✗|✘|✖)|"
    r"[^.:;!?\n]{0,60}? but (?:found|saw|see|detected|there (?:was|were|is|are)) (?:neither|none|nothing)\b|"
    r", (?:in|by) contrast,|"
    rf"(?: (?!(?:and|but|or|so|that|which|then|nor) ){WORD}+)? "
    rf"(?:(?:is|are|was|were|does|do|did|has|have|can|could|would|seems?|appears?|looks?|shows?|remains?)"
    rf"(?: (?:not?|never|unaffected|unlikely|absent)|n't)|cannot|can't)(?!{WORD})|: ?(?:no|none|absent|"
    rf"not)(?!{WORD})|(?:并?未|并?不是|没有)|"
    rf"[^.:;!?\n]{{0,40}}?,? but (?:it|they|this|that|these|those)(?: (?:is|are|was|were) not|(?:'s| is| are|'re) not|"
    rf" (?:is|are|was|were|does|do)n't)(?: (?:it|them|that|so|the case))?(?=\s*(?:[.,:;!?\n]|$))"
)


_CROSS = re.compile(r"(?:❌|✗|✘|✖)[\s*\"'|]*$|\[ \] ?$")


def _crossed_out(text: str, start: int) -> bool:
    """Whether a cross or an empty box stands before the label that begins at ``start``."""
    return _CROSS.search(text, max(0, start - 12), start) is not None


def _denied_behind(text: str, end: int) -> bool:
    """Whether what follows a label denies it ("the root shows no damage"), or it is only asked about."""
    return _NOT_SO.match(text, end) is not None or _asked(text, end)


def _asked(text: str, end: int) -> bool:
    """Whether a question holds the label that ends at ``end``, and no yes follows."""
    question = _ASKED.match(text, end)
    return question is not None and not _CONFIRMED.match(text, question.end())


_ADVERB = (
    "most|very|quite|likely|probably|almost|certainly|clearly|definitely|indeed|also|called|named|identified|classified|"
    "now|currently|at|on|[a-z]{3,}est|the one|photo|image|file|frame|"
    "diagnosed|recogni[sz]ed|labell?ed|known|to|be|as|in|of|species|class|type|an?|the|therefore|thus|so|hence|typical|"
    "common|mature|young|adult|infected|with|by|单|典型的?|一[种株个张]|最可能|应该?"
)
_CLAIM = re.compile(
    rf"(?:(?<!{WORD})(?:is|are|was|were|it's|this's|that's|(?<!not )only|shows?|depicts?|"
    r"species|identified|classified|diagnosed|"
    r"conclude|therefore|thus|hence|so|answer|must be|identify|classify|diagnosis|indicat(?:es?|ing)|"
    r"suggests?|confirms?|"
    rf"points? to|consistent with|characteristic of|typical of|match(?:es)?|belongs? to|leaves|leaving|"
    rf"left with)(?!{WORD})|[:=]|[为是])"
    rf"[\s\"'*(:]*(?:(?:{_ADVERB})[\s\"'*(:]+|(?:{_ADVERB})(?=[{CJK}])){{0,6}}[\"'*(]*$"
)
_HEDGE = re.compile(
    rf"(?<!{WORD})(?:could|may|might|possibly|perhaps|maybe|either|or|candidates?|options?|whether|if|considered?|"
    rf"consider)(?!{WORD})|可能是|也许|或许|或者|还是"
)
_COMPARED = re.compile(
    r"\b(?:than|followed by|ahead of|similar to|similar species|resembl(?:es?|ing)|compared (?:to|with)|"
    r"comparison with|related to|relative of|"
    r"versus|(?:top|rank|no\.?) ?[-#]? ?[2-9]:?|vs\.?|reminiscent of|rule out) (?:in |on |at |for |"
    r"of )?(?:the |an? |that of |those of )?$|(?:比|相比|而\s?)$"
)
_DESCRIBED = re.compile(
    r"(?:'s)?(?: (?:plants?|leaves|leaf|flowers?|larvae|adults?|weeds?))?(?: also)?"
    r" (?:ha(?:[sd]|ve)(?! (?:the )?(?:more|"
    r"most|higher|highest|larger|"
    r"largest|fewer|fewest|less|least|lower|lowest|greater|greatest))|would|typically|usually|often|"
    r"tends?|features?|produces?|grows?|(?:is|are) (?:also )?(?:often|typically|usually|known|characteri[sz]ed|"
    r"common|native|found|frequent|widespread))\b|"
    r"(?: \w+)?,? the \w+ is (?:weaker|smaller|lower|less)\b|"
    r"(?:的|通常|一般|往往|具有)"
)
# "It was at V3 two weeks ago and will reach V10": a label of another time.
_EARLIER = re.compile(
    r"\b(?:was|were|had been|left)\b[^.;!?,\n]*$|(?:此前|之前|以前|先前|原先|早前|曾经?|前期)[^。;,\n]{0,8}$"
)
_AGO = re.compile(
    r"[^.;!?,\n]{0,40}\b(?:ago|last (?:week|month|year|time)|yesterday|earlier|previously)\b|"
    r"[^。;,\n]{0,12}(?:已经?过|已?结束)"
)
_LATER = re.compile(
    r"\b(?:will|would|going to|expected to|about to)(?: \w+){0,3} $|(?:即将|将要?|预计|未来)[^。;,\n]{0,8}$"
)
_LIKENED = re.compile(" ?(?:相比|不同|相似|相近|类似)")
_ALONE_BEFORE = re.compile(r"(?:^|[.!?。\n])[^\w\n]*(?:an? |the )?$")
_ALONE_BEHIND = re.compile(r"[^\w\n]*(?:$|\n)|[\"'*)]*[.!。]")


_REASON = re.compile(r"\b(?:because|since|whereas|although|though|against)\b[^.;!?\n]*$")


_BEST = re.compile(
    r"\)? (?:separates?|is|are|performs?|works?|fits?|stands? out)[^.;,\n]{0,60} (?:best|most suitable)\b"
)


_LARGER = re.compile(
    r",? (?:has|contains|shows)(?: (?:the|clearly|far))* (?:more|most|larger|largest|higher|highest|greater|greatest)\b"
)


def _strength(text: str, start: int, end: int) -> Strength:
    before = text[max(0, start - 60) : start]
    if (
        _COMPARED.search(before)
        or _DESCRIBED.match(text, end)
        or (before.rstrip()[-1:] in ("与", "和", "跟") and _LIKENED.match(text, end))
    ):
        return Strength.COMPARED
    if _REASON.search(before) and not _CLAIM.search(before):
        return Strength.COMPARED
    if _LATER.search(before) or (_AGO.match(text, end) and _EARLIER.search(before)):
        return Strength.COMPARED
    if _EARLIER.search(before) and before[-1:] > "\u2e80":
        return Strength.COMPARED
    if _BEST.match(text, end) or (text[start:end][-4:].find(".") >= 0 and _LARGER.match(text, end)):
        return Strength.CLAIMED
    if _CLAIM.search(before) and not _HEDGE.search(_CLAUSE.split(before)[-1]):
        return Strength.CLAIMED
    alone = _ALONE_BEFORE.search(before) and _ALONE_BEHIND.match(text, end)
    return Strength.CLAIMED if alone else Strength.NAMED


_CLAUSE = re.compile(r"[!?。\n;,]|\.(?!\d)|\bbut\b|而是|但")
_SENTENCE_END = re.compile(r"[!?。\n;]|\.(?!\d)")
_CONCLUSION = re.compile(
    rf"(?:(?<!{WORD})(?:in conclusion|to conclude|conclusion|in summary|overall|(?:the|my) (?:final )?answer|"
    r"final answer|"
    rf"I conclude|after (?:all|closer)|on closer)(?!{WORD})|综上|总之|实际(?:上|出现|存在)|答案|结论|最终)"
    rf"|(?P<local>(?<!{WORD})(?:so|therefore|thus|hence|consequently|this means)(?!{WORD})|因此|所以|故而)",
    re.IGNORECASE,
)


# "t1.jpg | 4", "frame_06.png: 11.2 cm", "62 % sand": a value of the label.
_DATUM = re.compile(r"[\"'*)]* ?(?:[|:=→]|->|-(?= )) ?[~≈]? ?\d| 0?\.\d+(?=[,;.]? |$)")
_SHARE = re.compile(r"\d ?% (?:of )?$")
# "leaf1.png is healthy" where what is ill is asked: said of the other one.
_SOUND = re.compile(
    r" ?(?:is|are|looks?|appears?|remains?|shows?|为|是|属于?|表现)(?: \w+){0,2} ?"
    r"(?:healthy|free (?:of|from)|unaffected|undamaged|intact|normal|clean|no |健康|正常|无)"
)
_ILL = re.compile(r"diseas|infect|infest|damag|affect|sick|ill\b|wilt|病|害|受损")


def claims(
    matches: Sequence[LabelMatch],
    text: str,
    *,
    several: bool = False,
    asked: str = "",
    fits: Callable[[str], int] | None = None,
) -> list[LabelMatch]:
    """The asserted occurrences by which ``text`` answers: those of its conclusion, of its claims, or all.

    What stands before the last conclusion ("therefore ...") is how the answer came about; so are mentions before the
    first claim ("it is ..."), and comparisons beside anything else. What follows a claim counts: it takes it back.
    ``several``: more than one label is asked for, so that only a conclusion of the whole counts as one. ``asked``: what
    is asked for, ``fits`` how many of its words a text has.
    """
    asserted = [match for match in matches if match.asserted]
    if len({match.label for match in asserted}) < 2:
        return asserted
    if not several:
        stated = [match for match in asserted if not _is_datum(text, match)]
        if _ILL.search(asked):
            stated = [match for match in stated if not _SOUND.match(text, match.end)]
        asserted = stated or asserted
        if len({match.label for match in asserted}) < 2:
            return asserted
    if fits is not None and (named := _answering(asserted, text, fits, several=several)):
        return named
    begins = [
        mark.end() for mark in _CONCLUSION.finditer(text, 0, asserted[-1].start) if not (several and mark["local"])
    ]
    asserted = (_within_sentence(asserted, text, begins) if begins else []) or asserted
    best = max(match.strength for match in asserted)
    before = [None, *asserted]
    asserted = [
        match
        for match, last in zip(asserted, before, strict=False)
        if match.strength > Strength.COMPARED
        or best is Strength.COMPARED
        # "Leaves and stems have spots" names both alike.
        or (several and last and listed_with(text, last.end, match.start))
    ]
    if several:
        return asserted
    if best is not Strength.CLAIMED:
        return asserted if fits is None else _subjects(asserted, text, fits)
    first = next(index for index, match in enumerate(asserted) if match.strength is Strength.CLAIMED)
    return asserted[first:]


_MOST_CLAIMS = 200


def _is_datum(text: str, match: LabelMatch) -> bool:
    return (
        _DATUM.match(text, match.end) is not None
        or _SHARE.search(text, max(0, match.start - 12), match.start) is not None
    )


def _answering(
    asserted: Sequence[LabelMatch], text: str, fits: Callable[[str], int], *, several: bool
) -> list[LabelMatch]:
    """The labels of the sentence that repeats what is asked ("the pests on the trap are ..."), and those behind it."""
    best = 1
    found: list[LabelMatch] = []
    asserted = asserted[-_MOST_CLAIMS:]
    here = [match for match in asserted if fits(_clause_around(text, match)) >= 0]
    if here and len(here) < len(asserted):
        if len({match.label for match in here}) == 1:
            return here
        asserted = here
    for index, match in enumerate(asserted):
        if match.strength is not Strength.CLAIMED:
            continue
        begin = max(
            (end.end() for end in _SENTENCE_END.finditer(text, max(0, match.start - 400), match.start)),
            default=max(0, match.start - 400),
        )
        spoken = fits(text[begin : match.start])
        if spoken > best:
            best, found = spoken, [each for each in asserted[index:] if several or each.strength > Strength.COMPARED]
    return found


_LESS = re.compile(r"\b(?:fewer|less|least|lower|lowest|smaller|smallest|without|no)\b")


def _subjects(asserted: list[LabelMatch], text: str, fits: Callable[[str], int]) -> list[LabelMatch]:
    """The label of which the text says what is asked: "soil_b.png shows the wetter soil; soil_a.png is dry"."""
    behind = [
        (0 if _LESS.search(said) else fits(said), match)
        for match in asserted[-_MOST_CLAIMS:]
        for said in (_CLAUSE.split(text[match.end : match.end + 120])[0],)
    ]
    most = max(words for words, _ in behind)
    fullest = [match for words, match in behind if words == most]
    return fullest if most > 1 and len({match.label for match in fullest}) == 1 else asserted


def _clause_around(text: str, match: LabelMatch) -> str:
    before = _CLAUSE.split(text[max(0, match.start - 80) : match.start])[-1]
    return before + _CLAUSE.split(text[match.end : match.end + 80])[0]


def _within_sentence(asserted: Sequence[LabelMatch], text: str, begins: Sequence[int]) -> list[LabelMatch]:
    """The occurrences from the last of ``begins`` on whose sentence holds one."""
    index = len(asserted)
    for begin in reversed(begins):
        while index > 0 and asserted[index - 1].start >= begin:
            index -= 1
        if index < len(asserted):
            end = _SENTENCE_END.search(text, begin)
            if end is None or asserted[index].start < end.start():
                return list(asserted[index:])
    return []
