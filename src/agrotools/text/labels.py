"""Labels in an answer: their occurrences, whether each is asserted, and how strongly it counts as the answer."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from agrotools.text.clauses import Negations, is_alternative, shares_predicate
from agrotools.text.normalise import CJK, WORD, WORD_END, WORD_START, late_pattern, normalise


class LabelMatch(NamedTuple):
    """One occurrence of a label: its position in normalised text, and whether the text asserts it."""

    label: str
    text: str
    start: int
    end: int
    asserted: bool


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
