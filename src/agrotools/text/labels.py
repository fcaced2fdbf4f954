"""Labels in an answer: their occurrences, whether each is asserted, and how strongly it counts as the answer."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from agrotools.text.clauses import SUPPOSED, Negations, Sentences, is_alternative, shares_predicate
from agrotools.text.normalise import CJK, WORD, WORD_END, WORD_START, late_pattern, normalise


class LabelMatch(NamedTuple):
    """One occurrence of a label: its position in normalised text, and whether the text asserts it."""

    label: str
    text: str
    start: int
    end: int
    asserted: bool
    weight: float = 1.0


_SUFFIX = "(?:png|jpe?g|tiff?|webp|bmp|gif|npy|csv|json|txt|pdf)"
"""File extensions: "image_2.png" is not an occurrence of the label "image_2"."""
_UNSPACED = late_pattern(f"[{CJK}]")
_NO_WORD = "\u2e80"
"""Character that replaces those of :data:`CJK`; it is neither a letter nor a space."""


@lru_cache(maxsize=20_000)
def label_pattern(alias: str) -> tuple[re.Pattern[str], bool]:
    """Return the pattern that finds ``alias``, singular or plural, but not within a word, longer number or range.

    If the second value is True, the text is to be searched with its characters of :data:`CJK` replaced, which spares
    the pattern the large character class ``WORD``: compiling that takes milliseconds.
    """
    plain = normalise(alias).strip()
    is_spaced = _UNSPACED.search(plain) is None
    letter = r"\w" if is_spaced else WORD
    # After a letter, space, underscore and hyphen are equivalent: "siam weed", "siam-weed", "image 2".
    body = re.sub(r"(?<=[^\W\d_])(?:\\?[ _-])+(?=[^\W_])", r"[\\s_-]{1,3}", re.escape(plain))
    body = re.sub(r"(?:\\ )+", r"\\s{1,3}", body)
    if re.search(r"(?<![a-z])leaf$", plain):
        body = f"{body[:-1]}(?:f|ves)"
    elif re.search(r"[a-z]{2}[^aeiou\W]y$", plain):
        body = f"{body[:-1]}(?:y|ies)"
    third = "" if plain[:1] in "+-" else r"(?<![-+](?=\d))"
    # Only an alias that begins or ends with a digit can be part of a longer number.
    front = r"(?<!\d[.,])" if plain[:1].isdigit() else ""
    behind = r"(?![.,]\d)" if plain[-1:].isdigit() else ""
    # A Chinese name needs no spaces around it: "稗草8株".
    before = "" if plain[:1] > "\u2e80" else rf"(?<!{letter})"
    after = "" if plain[-1:] > "\u2e80" else rf"(?!{letter})"
    return re.compile(rf"{before}{front}{third}{body}{_plural(plain)}{after}{behind}(?!\.{_SUFFIX})"), is_spaced


def _plural(plain: str) -> str:
    """Return the pattern of the plural ending of a name that ends in at least three letters, else ""."""
    if not re.search(r"(?<![.a-z])[a-z]{3,}$", plain):
        return ""
    return "(?:e?s)?" if re.search(r"(?:[sxz]|ch|sh)$", plain) else "s?"


def find_labels(text: str, labels: Mapping[str, Iterable[str]]) -> list[LabelMatch]:
    """Return all occurrences of the labels (each with its names) in normalised ``text``, in order.

    A match inside a longer match of another label does not count ("rust" in "bean rust"). An occurrence is asserted
    unless its clause denies it or it is joined to a denied one by a comma, "or" or "nor".
    """
    spaced = _UNSPACED.sub(_NO_WORD, text)
    occurrences = [
        (match.start(), match.end(), label, len(match[0]) - len(normalise(name).strip()))
        for label, names in labels.items()
        for name in dict.fromkeys(names)
        if name.strip() and _first_word(name) in text
        for pattern, is_spaced in [label_pattern(name)]
        for match in pattern.finditer(spaced if is_spaced else text)
    ]
    outermost = _outermost(occurrences)
    if not outermost:
        return []
    none_of = {
        one: other
        for one, other in pairwise(outermost)
        if text[one[0] : one[1]] == "none" and _OF_NONE.fullmatch(text, one[1], other[0])
    }
    outermost = [each for each in outermost if each not in none_of]
    # "Neither dried up nor refilled" names an option and still denies the others.
    negations = Negations(text, [(start, end) for start, end, _ in outermost if not _NEITHER.match(text, start)])
    starts = [start for start, _, _ in outermost]
    behind = [
        negations.after(end)
        or is_denied_beside(text, start, end, starts)
        or _verdict(text, start, end) < 0
        or (start, end, label) in none_of.values()
        for start, end, label in outermost
    ]
    denials = [negations.before(start) or denied for (start, _, _), denied in zip(outermost, behind, strict=True)]
    goes_on = False
    for index in range(1, len(outermost)):
        between = outermost[index - 1][1], outermost[index][0]
        # "none in A, B and C": after a comma, "and" joins the last item of the denied list.
        goes_on = denials[index - 1] and (
            is_alternative(text, *between) or (goes_on and shares_predicate(text, *between))
        )
        denials[index] = denials[index] or goes_on
    is_listed = False
    for index in range(len(outermost) - 2, -1, -1):
        start, end = outermost[index][1], outermost[index + 1][0]
        listed = shares_predicate(text, start, end)
        # "A, B and C are not": the comma continues the list that forms the subject.
        if behind[index + 1] and (listed or (is_listed and is_alternative(text, start, end))):
            denials[index] = behind[index] = True
        is_listed = listed or (is_listed and is_alternative(text, start, end))
    return [
        LabelMatch(label, text[start:end], start, end, not denied)
        for (start, end, label), denied in zip(outermost, denials, strict=True)
    ]


_NEITHER = late_pattern(r"neither [^.;!?\n]{1,200} nor ")
_OF_NONE = late_pattern(r"(?: (?:was|were|is|are|has|have)(?: been)?)? ")
"""Between "none" and the label of which it says that there is none, so that it is no option of its own."""


@lru_cache(maxsize=20_000)
def _first_word(name: str) -> str:
    first = re.split(r"[\s_-]+", normalise(name).strip())[0]
    return first[:-1] if first.endswith(("leaf", "y")) else first


def _outermost(occurrences: list[tuple[int, int, str, int]]) -> list[tuple[int, int, str]]:
    """Return the occurrences that are not inside a longer occurrence of the same or another label.

    If two labels match the same words, an exact match wins over a plural.
    """
    outermost: list[tuple[int, int, str]] = []
    furthest = -1
    for start, end, label, _ in sorted(occurrences, key=lambda item: (item[0], -item[1], abs(item[3]))):
        if end > furthest:
            outermost.append((start, end, label))
            furthest = end
    return outermost


_AUX = (
    "(?:is|are|was|were|does|do|did|has|have|had|can|could|would|must|may|might|seems?|appears?|looks?|shows?|remains?)"
)
_GONE = (
    "ruled out|excluded|dismissed|eliminated|discarded|rejected|unlikely|absent|missing|out|unaffected|zero|nil|"
    "gone|nowhere|"
    "no longer"
)
# Text after a label that denies it.
_NOT_SO = late_pattern(
    rf"(?: (?!(?:and|but|or|so|that|which|then|nor) ){WORD}+)?,? (?:{_AUX}(?: (?:not?|never)|n't)|cannot|can't|"
    rf"lacks?){WORD_END}| (?:drops?|falls?|fell) out{WORD_END}|,? {_AUX}(?: (?:also|therefore|thus|be|been|safely|"
    rf"all))* (?:{_GONE}){WORD_END}| ?(?:\||:|-|=|->|→)+ ?(?:0|zero|none|absent|not (?:found|seen|present|detected)|"
    rf"not?|nil|❌|✗|✘|✖|无|没有|未见)"
    r"(?=[ \"']*(?:[|\n,;)]|\.(?!\d)|$))|(?: ?0|[^,;。\n]{0,4}[为是]零)(?=[,;、。)\n头只株]|\.(?!\d)|$)| (?:❌|✗|✘|✖)|"
    r", (?:in|by) contrast,|[^.:;!?\n]{0,60}? (?:but|and) (?:found|saw|see|detected|there (?:was|were|is|"
    r"are)) (?:neither|none|"
    rf"nothing){WORD_END}|[^.;\n]{{0,60}} without (?:finding|seeing) (?:either|any|them|it){WORD_END}|"
    r"[^.;\n]{0,40} (?:that|which) (?:(?:i|we|you|one|can|could|must|would|be) ){0,3}(?:excluded?|rule out|dismiss|"
    r"reject)\b|(?:均|都|也|则|就|还|并)?(?:未|不是|不存在|没有|没|无关|不在)|"
    r" ?(?:ではない|ではありません|じゃない|でない|(?:[이가은는] ?)?아(?:님|니)|नहीं|[🚫⛔](?=\s*(?:[,;.\n]|$)))|"
    r"[^.:;!?\n]{0,40}?,? but (?:it|they|this|"
    r"that|these|those)(?:'s| is| are| was| were|'re| do| does)?(?: not|n't)(?: (?:it|them|that|so|"
    r"the case))?(?=\s*(?:[.,:;!?\n]|$))"
)


_ITEM = late_pattern(r"\s*(?:[-*•+]|#{1,6}|\d{1,2}[.)])? ?[\"'*_ ]*$")
_ITEM_BEHIND = late_pattern(r"[\"'*_ ]*(?:\([^()\n]{0,60}\)[\"'*_ ]*)?(?:[:.]|-(?= )) ?[\"'*_ ]*(?=[^\n])")
_FITS = late_pattern(
    rf"{WORD_START}(?:(?P<no>(?:does|do|did|is|are) ?(?:not|n't) (?:fit|match|seen|visible|here)|none|excluded|"
    rf"ruled out|absent|not here|(?<=: )no(?=[.!]?$)|not (?:seen|visible|found|present))|(?:all )?fits|match(?:es)?|"
    rf"yes|confirmed){WORD_END}|(?P<zh>不符|排除|未见|[❌✗✘✖])|符合|吻合|[✅✓✔]"
)


def _verdict(text: str, start: int, end: int) -> int:
    """Return the verdict on a label in the rest of its list item: 1 yes, -1 no, 0 neither."""
    before = text[max(0, start - 80) : start].rpartition("\n")[2]
    row = text[end : end + 400].partition("\n")[0]
    if _ITEM.match(before) and (behind := _ITEM_BEHIND.match(row)):
        verdicts = list(_FITS.finditer(row, behind.end()))
        return 0 if not verdicts else -1 if verdicts[-1]["no"] or verdicts[-1]["zh"] else 1
    return 0


_ASIDE = late_pattern(
    r"(?: ?\([^()\n]{0,80}\))?(?:, (?:which|who|whose|although|though|while|however)[^,;.\n]{0,80},)?"
)
_MARK = late_pattern("[❌✗✘✖✅✓✔☑]")
_CROSS = late_pattern(r"(?:(?P<mark>[❌✗✘✖])|[🚫⛔≠]|(?<![是南北中除莫])非|\[ \])[\s*\"'|]*$")


def _marked_before(text: str, start: int, starts: Sequence[int]) -> bool | None:
    """True if the marks of the label's line precede its labels ("✅ wheat ❌ maize"); None without marks."""
    line = text.rfind("\n", 0, start) + 1
    mark = _MARK.search(text, line)
    if mark is None or "\n" in text[start : mark.start()]:
        return None
    return mark.start() < starts[bisect_left(starts, line)]


def is_denied_beside(text: str, start: int, end: int, starts: Sequence[int]) -> bool:
    """True if a cross or sign before a label, or the text after it ("the root shows no damage"), denies it.

    ``starts`` are the positions of all labels."""
    cross = _CROSS.search(text, max(0, start - 12), start)
    if cross and (cross["mark"] is None or _marked_before(text, start, starts) is not False):
        return True
    end += text.startswith(")", end)
    aside = _ASIDE.match(text, end)
    denial = _NOT_SO.match(text, aside.end() if aside else end)
    if denial is None or (
        denial[0] == "不是" and denial.end() in starts[(at := bisect_left(starts, end)) : at + 1]
    ):  # 小麦不是玉米 denies 玉米
        return False
    return not _MARK.search(denial[0]) or not _marked_before(text, start, starts)


_ADVERB = (
    "most|very|quite|likely|probably|almost|certainly|clearly|definitely|indeed|also|called|named|identified|"
    "classified|"
    "now|currently|at|on|from|[a-z]{3,}est|the one|photo|image|file|frame|"
    "diagnosed|recogni[sz]ed|labell?ed|known|to|be|as|in|of|species|class|type|an?|the|therefore|thus|so|hence|"
    "typical|"
    "common|mature|young|adult|infected|with|by|单|典型的?|一[种株个张]|最可能|应该?"
)
_CLAIM = late_pattern(
    rf"(?:{WORD_START}(?:is|are|was|were|it's|this's|that's|(?:that|this|which) makes|(?<!not )only|just|alone|shows?|"
    rf"depicts?|species|identified|classified|diagnosed|conclude|therefore|thus|hence|so|answer|must be|identify|"
    rf"classify|diagnosis|indicat(?:es?|ing)|suggests?|confirms?|recommend|choose|pick|make it|name is|certain|sure|"
    rf"(?:comes?|stems?|results?) from|points? to|speaks? for|consistent with|characteristic of|typical of|"
    rf"match(?:es)?|belongs? to|leaves|leaving|left with){WORD_END}|[:=→➡]|->|(?:[为是选属即]|符合|"
    rf"处[于在])(?:[{CJK}]{{1,4}}(?<![不的]))?)[\s\"'*(:]*(?:(?:{_ADVERB})[\s\"'*(:]+|"
    rf"(?:{_ADVERB})(?=[{CJK}])){{0,6}}(?:{WORD}{{4,}} )?[\"'*(]*$"
)
_HEDGE = late_pattern(
    rf"{WORD_START}(?:possible|could|may|might|possibly|perhaps|maybe|either|or|candidates?|options?|whether|if|"
    rf"considered?|consider){WORD_END}|可能是|也许|或许|或者|还是"
)
# Words before labels that are only mentioned for comparison or distinction, or that refer to something else.
_COMPARED = late_pattern(
    r"\b(?:than|followed by|ahead of|similar to|similar species|resembl(?:es?|ing)|compared (?:to|with)|"
    r"(?<!look )(?<!looks )like|mimics?|comparison with|related to|relative of|border (?:to|with)|(?<=,) as|"
    r"too \w+ for|in contrast (?:to|with)|contrary to|away from|(?:apart|aside) from|with (?:some|a few|scattered|"
    r"occasional|single)|(?:could|can|may|might|would) (?:look|seem|pass) (?:like|as|for)|mistake (?:this|it) for|"
    r"together with|unlike|versus|(?:top|rank|no\.?) ?[-#]? ?[2-9]:?|vs\.?|reminiscent of|rule out|suspect(?:ed)?|"
    r"considered|past|beyond|before|near|beside|next to|instead of|in second place|next(?: comes| is)?) (?:(?:the|that|"
    r"those)(?: ones?)? )?(?:in |on |at |for |of |with )?(?:the |an? |plain |that of |those of )?$|(?:比|相比|而\s?|"
    r"(?<![更最很])像|除了?|[离距]|其次[是为]?|[多少高低大小优强早晚]于|超过) ?$"
)
_IF_BEHIND = late_pattern(r"[^,;]{0,40}\bif\b|[^,;]{0,30}(?<!\bi )(?<!\bwe )\bwould\b")
_REASON = late_pattern(r"(?:虽然?|尽管)[^,;。\n]*$|\b(?:because|since|whereas|although|though|against)\b[^.;!?\n]*$")
_PAST = late_pattern(
    r"(?: \w+)?(?: (?:is|are|was|were|has|have|had|been|already|now|nearly|just))+ (?:over|past|finished|ended|"
    r"completed?|behind)\b|[^.;!?,\n]{0,40}\b(?:ago|yesterday|last (?:week|month|year|time))\b| (?:will|starts?|"
    r"begins?) |刚过|已?过了?[,。]|已?经?结束"
)
_WAS = late_pattern(r"\b(?:was|were|(?:has|have|had) been) (?:\w+ )?$")
_NOW = late_pattern(r",? (?:(?:and|but|then) )?(?:it |they )?(?:(?:is|are) (?:now|again)|(?:has|have)) ")
_ALONE_BEFORE = late_pattern(r"(?:^|[.!?。\n])[^\w\n]*(?:an? |the )?$")
_ALONE_BEHIND = late_pattern(r"[^\w\n]*(?:$|\n)|[\"'*)]*[.!。]")
_BEST = late_pattern(r"\)?(?: [a-z]+){1,6} (?:best|most (?:suitable|likely|clearly))\b")
_CHAIN = late_pattern(
    rf"(?:[\s,/、&(\"'*]|{WORD_START}(?:and|or|maybe|perhaps|possibly|likely|probably|even|an?|the|either|"
    rf"both){WORD_END}|或者?|和|与|以?及|可能)+"
)
_GLOSS = late_pattern(r"[\"'*]* ?(?:\([^()\n]{1,80}\)|\[[^\[\]\n]{1,80}\]|- ?[^-\n]{1,80} -)")
"""An explanation directly after a label: "small (below 70 mm)"."""
_EITHER = late_pattern(rf"{WORD_START}or{WORD_END}|或")
_VALUE = r"\d[\d.,]* ?[^\d\W]*"
_DEFINITION = late_pattern(
    rf"[\"'*]* ?[(\[](?:(?:below|under|less than|up to|above|over|more than|at least|from|between|[<>≤≥]=?|小于|大于) ?"
    rf"{_VALUE}|{_VALUE} ?(?:-|to|and) ?(?:{_VALUE}|up|over|above|more)|{_VALUE}以[上下])[)\]]"
)
"""A gloss that gives the bounds of a class: "(below 70 mm)", "(70 to 87 mm)"."""
_THING = late_pattern(r"[\d.]|\b[a-z]\b", re.IGNORECASE)
"""Labels of single things, such as "a.png" and "plot 3", unlike those of classes."""
_ITEM_END = late_pattern(rf"[\"'*)]* ?(?:[,/、。;\n]|\.(?!\d)|$| (?:and|or){WORD_END}|[和或与])")
_FROM = late_pattern(rf"{WORD_START}(?:from|between) (?:the |an? )?$|[从由介]于?$")
_TO = late_pattern(rf"[^.;!?\n。]{{0,60}}?(?:{WORD_START}(?:to|and) (?:the |an? )?|[到至与和变转为成]+)")
_CHANGES = late_pattern(r"\b(?:chang|convert|turn|bec[ao]m|shift|transform|went|mov|pass|switch)|变|转|改")
_AND = late_pattern(r"\band\b|而")
_CLAUSE = late_pattern(r"[!?。\n;,]|\.(?!\d)|\bbut\b|而是|但")
# A value given for the label: "t1.jpg | 4", "frame_06.png: 11.2 cm", "62 % sand".
_DATUM = late_pattern(r"[\"'*)]* ?(?:[|:=→(]|->|-(?= ))? ?[~≈]? ?[+-]?\d| 0?\.\d+(?=[,;.]? |$)")
_KEY_BEHIND = late_pattern(r" \(?(?:in|on|of|at|for|by|during) ")
_SHARE = late_pattern(r"\d ?% (?:of )?$|\d (?:of )?$")

# Weights of an occurrence: 0.2 if the label is named in passing, 1 if named, more for signs that it is the answer.
_IN_PASSING = 0.2
_OF_DATUM = 0.4
_CLAIMED = 1.5
_CONCLUDED = 1.5
_ASKED_WORD = 0.4
_IN_SENSE = 0.8
LEAD = 0.4
"""A label leads another if the weight of its best occurrence is larger by at least this much."""
_MOST = 400


def claims(
    matches: Sequence[LabelMatch],
    text: str,
    *,
    several: bool = False,
    fits: Callable[[str], int],
    sense: Callable[[str], int],
    elsewhere: Callable[[str], bool | None],
) -> list[LabelMatch]:
    """Return the asserted occurrences that are the answer of ``text``: those of labels that no other label leads.

    A label counts as much as its best occurrence.

    Args:
        matches: all occurrences of labels in ``text``, in order.
        text: the normalised text.
        several: more than one label is asked for, so that a claim ("it is X") gives no label the lead.
        fits: returns how many words of the question a text contains.
        sense: returns 1 if a text states the asked property, -1 if it states the opposite, else 0.
        elsewhere: returns True if a text refers to another place, time or thing than the question, False if to the
            same one, None if it names none.
    """
    asserted = [match for match in matches if match.asserted][-_MOST:]
    if not asserted:
        return []
    place = Sentences(text)
    starts = [match.start for match in matches]
    weights = [
        _weight(
            text, asserted, chain, number, place, starts, several=several, fits=fits, sense=sense, elsewhere=elsewhere
        )
        for chain in _chains(asserted, text)
        for number in chain
    ]
    denied = {match.label: match.start for match in matches if not match.asserted}
    weights = [
        _IN_PASSING if weight < 2 and denied.get(match.label, -1) > match.start else weight
        for match, weight in zip(asserted, weights, strict=True)
    ]
    for order in (range(1, len(asserted)), range(len(asserted) - 1, 0, -1)):
        for number in order:  # joined labels count alike: "it is A or B"
            one, other = asserted[number - 1], asserted[number]
            joined = _joint(text, one, other)
            least = 1.0 if joined != "or" else _OF_DATUM
            if joined and min(weights[number - 1 : number + 1]) >= least:
                weights[number - 1] = weights[number] = max(weights[number - 1 : number + 1])
    for number, (one, other) in enumerate(pairwise(asserted)):
        if _FROM.search(text, max(0, one.start - 20), one.start) and _TO.fullmatch(text, one.end, other.start):
            clause = text[max(place.begins[place.of(one.start)], one.start - 80) : other.start]
            if _CHANGES.search(clause):  # "it changed from A to B"
                weights[number] = _IN_PASSING
            else:  # "it ranges from A to B"
                weights[number] = weights[number + 1] = max(1.0, *weights[number : number + 2])
    most = max(weights)
    best: dict[str, float] = {}
    for match, weight in zip(asserted, weights, strict=True):
        best[match.label] = max(weight, best.get(match.label, 0.0))
    return [
        match._replace(weight=weight)
        for match, weight in zip(asserted, weights, strict=True)
        if best[match.label] > max(_IN_PASSING, most - LEAD * (1 + several / 2) + 1e-9)
    ]


def _joint(text: str, one: LabelMatch, other: LabelMatch) -> str:
    """Return "or" or "and" if two labels are items of a list, as in "A, B" and "A (below 70 mm) or B", else ""."""
    gloss = _GLOSS.match(text, one.end, other.start)
    between = text[gloss.end() if gloss else one.end : other.start]
    if len(between) > 24 or not _CHAIN.fullmatch(between):
        return ""
    if _EITHER.search(between):
        return "or"
    if gloss is None or _ITEM_END.match(text, other.end):
        return "and"
    # "small (below 70 mm), medium (70 to 87 mm)" lists classes; "a.png (a gap), b.png (none)" says what each shows, and
    # "A (below 70 mm), B begins there" says something else about B.
    next_gloss = _GLOSS.match(text, other.end)
    defined = next_gloss and _DEFINITION.fullmatch(gloss[0]) and _DEFINITION.fullmatch(next_gloss[0])
    return "or" if defined and not _THING.search(f"{one.label} {other.label}") else ""


def _chains(asserted: Sequence[LabelMatch], text: str) -> list[range]:
    """Return runs of labels joined by "and", "or" and the like ("A, B and C"), which share their predicate."""
    starts = [0]
    closed = 0
    for number, (one, other) in enumerate(pairwise(asserted), 1):
        between = text[one.end : min(other.start, one.end + 100)]
        is_line = "\n" in between
        between = between.strip()
        if (
            is_line
            or len(between) > 24
            or not _CHAIN.fullmatch(f" {between} ")
            or (between == "," and one.text[-1:] > "\u2e80")
        ):
            starts.append(number)
            closed = number
        elif between in (",", ", the"):  # a comma alone may separate two statements
            starts.append(number)
        else:
            starts = [start for start in starts if start <= closed]
    return [range(start, end) for start, end in pairwise([*starts, len(asserted)])]


def _is_remark(text: str, asserted: Sequence[LabelMatch], number: int) -> bool:
    """True if a label is in a bracketed remark after another label: "maize (the field beside it is soybean)"."""
    match = asserted[number]
    opened = text.rfind("(", max(0, match.start - 160), match.start)
    closed = text.find(")", match.end, match.end + 160)
    if opened < 0 or closed < 0 or text.find(")", opened, match.start) >= 0:
        return False
    inside = text[opened + 1 : match.start], text[match.end : closed]
    heads = [each for each in asserted[max(0, number - 4) : number] if not text[each.end : opened].strip(" \"'*")]
    return (
        bool(heads)
        and heads[-1].label != match.label
        and any(map(str.strip, inside))
        and not any(map(_HEDGE.search, inside))
    )


def _weight(
    text: str,
    asserted: Sequence[LabelMatch],
    chain: range,
    number: int,
    place: Sentences,
    starts: Sequence[int],
    *,
    several: bool,
    fits: Callable[[str], int],
    sense: Callable[[str], int],
    elsewhere: Callable[[str], bool | None],
) -> float:
    match = asserted[number]
    first, last = asserted[chain[0]].start, asserted[chain[-1]].end
    index = place.of(match.start)
    begin, end = max(place.begins[index], first - 300), min(place.end(place.of(last - 1)), last + 160)
    begin = min(begin, first)
    before, behind = text[begin:first], text[last:end]
    # The part of the clause that belongs to this label, and the text up to the clause of the next label.
    former = asserted[chain[0] - 1].end if chain[0] else 0
    following = asserted[chain[-1] + 1].start if chain[-1] + 1 < len(asserted) else len(text)
    head, tail = _CLAUSE.split(before)[-1], _CLAUSE.split(behind)[0]
    own_head = text[max(former, first - len(head)) : first]
    own_clause = own_head + " | " + text[last : min(following, last + len(tail))]
    clause = head + tail
    latest = _AND.split(own_head)[-1]
    is_claim = _CLAIM.search(before[-60:]) is not None and not _HEDGE.search(head)
    rest = behind
    after = bisect_left(starts, last)
    limit = min(starts[after] if after < len(starts) else end, end)
    if limit < end:
        marks = list(_CLAUSE.finditer(text, last, limit))
        rest = text[last : marks[-1].start()] if marks else text[last:limit]
    verdict = sense(own_clause) or sense(own_head + " | " + rest)
    near = _AND.split(text[last : min(following, last + len(tail))])[0]
    parts = (near, latest, clause) if _KEY_BEHIND.match(near) else (latest, near, clause)
    is_elsewhere = next((there for part in parts if (there := elsewhere(part)) is not None), None)
    if verdict < 0 or is_elsewhere:
        return _IN_PASSING
    if (
        _COMPARED.search(before)
        or (not several and _is_remark(text, asserted, number))
        or SUPPOSED.search(head)
        or _IF_BEHIND.match(tail)
        or _PAST.match(behind)
        or (limit < end and _WAS.search(before) and _NOW.match(behind))
        or (_REASON.search(before) and not is_claim)
    ):
        return _IN_PASSING
    best = _BEST.match(behind) is not None
    weight = 1.0 + _IN_SENSE * (best if several else max(verdict, best, is_elsewhere is False))
    if place.concludes(index, match.start) or _verdict(text, match.start, match.end) > 0:
        weight += _CONCLUDED
    if several:
        spans = [(max(each.start, begin), min(each.end, end)) for each in asserted[max(0, number - 20) : number + 20]]
        gaps = pairwise([begin, *(at for span in spans if span[0] < span[1] for at in span), end])
        return weight + _ASKED_WORD * min(3, fits(" ".join(text[one:other] for one, other in list(gaps)[::2])))
    weight += _ASKED_WORD * min(3, fits(before) + fits(tail))
    if verdict <= 0 and is_elsewhere is None and (_DATUM.match(text, match.end) or _SHARE.search(before)):
        return 1.0 if is_claim else _OF_DATUM
    alone = _ALONE_BEFORE.search(text[max(0, match.start - 60) : match.start]) and _ALONE_BEHIND.match(text, match.end)
    if is_claim or alone:
        weight += _CLAIMED
    return weight
