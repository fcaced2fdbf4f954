"""Replies that the files do not allow an answer, and tool results that show it."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from agrotools.core import AbstainSlot, UnresolvedRef
from agrotools.core.record import Results
from agrotools.text.answer_form import UNKNOWN
from agrotools.text.expressions import ExpressionError, evaluate_from

_UNABLE = (
    r"(?:cannot|can not|can't|could not|couldn't|not able to|unable to|no way to|not possible to|impossible to) "
    r"(?:be )?(?:\w+ly )?"
)
_FIND = (
    r"(?:determin|tell|say|told|measur|estimat|answer|decid|judg|assess|comput|calculat|quantif|establish|identif|"
    r"deriv|infer|know|state|count|compar|conclud|diagnos|(?:give|provide|report|offer)n? (?:you )?(?:a|an|any|the)\b"
    r"(?! (?:more|exact|precise|better)))\w*"
)
_PHRASE = (
    rf"(?:{_UNABLE}{_FIND}|\b(?:in|un)determina(?:ble|te)\b|\bundetermined\b|\bunanswerable\b|"
    r"\bno (?:reliable )?(?:answer|value|estimate) (?:is possible|can be)|"
    r"\b(?:insufficient|not enough) (?:information|data|evidence)|\b(?:do not|don't) allow (?:an|any) answer|"
    r"(?:无法|不能|没法|难以|不可能)[^,.;。\d]{0,14}?(?:确定|判断|判定|得出|测量|测出|测定|回答|估计|估算|计算|算出|"
    r"给出|知道|得知|推断|识别|数清)|(?:信息|数据|资料)不足|不可判定)"
)
_UNABLE_ELSEWHERE = (
    # German and Dutch; French; Spanish, Portuguese and Italian
    r"\b(?:k[aö]nn?\w*|kun\w*|l[aä](?:ss|ß)\w*)\b[^,.;:!?\n\d]{0,60}\b(?:nicht|niet|kein\w*|geen)\b|"
    r"\b(?:nicht|niet) (?:\w+bar|möglich|mogelijk|(?:zu|te) \w+en)\b|\b(?:unmöglich|onmogelijk)\b|"
    r"\bne (?:l[ae]s? )?(?:peu[tx]|peuvent|pouvons|permet\w*)\b|\bpas (?:été )?possible\b|"
    r"\bn(?:o|ão|on) (?:se |si |l[oae] )?(?:pued[eo]\w*|pod(?:emos|em?|r[íá]a?\w*)|poss(?:o|iamo|ono)|può|consigo|"
    r"consegu\w+|riesco|(?:é|es|è|foi|fue) pos\w+|dá para)\b|\bimposs?[ií](?:ble|vel|bile)\b|"
    # Polish and Russian; Turkish, Indonesian and Vietnamese
    r"\bnie (?:można|mog[ęą]|możemy|da się|jest możliwe|sposób)\b|\bniemożliw\w*|\b(?:невозможно|нельзя)\b|"
    r"\bне (?:мо(?:гу|жем|жет|гут)|удалось|уда[её]тся|представляется)\b|"
    r"\b\w{2,}(?:[ae]maz|[ae]mez|[ae]m[ıiuü]yor\w*)\b|\bmümkün değil|\btidak (?:dapat|bisa|mungkin)\b|"
    r"\bkhông thể\b|"
    # Japanese, Korean, Arabic and Hindi
    r"(?:でき|出来|えられ|[分わ]か[らり])(?:ない|ま?せん)|수 없|불가능|لا (?:يمكن|أستطيع|نستطيع)|غير ممكن|"
    r"नहीं[^,.।\d]{0,30}सक"
)
"""Words for "cannot" in other languages, without what cannot be done."""
_UNKNOWN = re.compile(
    r"(?:\b(?:it|this|that|there)(?: is|'s) )?"
    r"(?P<said>\b(?:do not|don't|does not|doesn't|did not|didn't|cannot|can't) know|\bno idea|"
    r"\bno (?:other )?way (?:of|to)\b|"
    r"\b(?:hard|difficult) to (?:say|tell|judge|know|see)|\b(?:decline|refuse) to \w+|\bimpossible\b|"
    rf"\bnothing (?:\w+ ){{0,2}}?(?:to|(?:can|could) be) (?:\w+ly )?(?:said|{_FIND})|{_UNABLE_ELSEWHERE}|"
    rf"{_UNABLE}(?:see|help|make out|recogni|read|find|provid|giv|convert|distinguish|identif|view|open|access)\w*|"
    r"\b(?:not |un|in|il)(?:known|determina(?:ble|te)|determined|decid(?:able|ed)|certain|clear|measura?ble|available|"
    r"possible|applicable|specified|conclusive|legible|readable|visible|recogni[sz]able|sure|sufficient|enough)\b|"
    r"\bno (?:answer|value|result|estimate|decision|judg\w+|conclusion|figure|number|information|data)\b|"
    r"\bn/a\b|\bn\.\s?a\.|^[^\n:：]{0,40}[:：]\s*[-?–—]\s*$|"
    r"不知道|不清楚|不详|不明|未知|不确定|看不[清出见]|看不到|分不[清出]|说不[清准]|得不出|没有?(?:办法|答案|结果|数据|足够)|"
    r"无法|无从|不够|很?难(?:以)?(?:判断|确定|说)|[:：]\s*无\s*$)"
    r"(?: (?:whether|if|how|what|which|why|where|who)\b[^,.;!?\n]*)?",
    re.MULTILINE,
)
"""Words that say that something is unknown, with the question that they leave open."""
_LACK = re.compile(
    r"\b(?:no (?=[a-z])|not (?!the\b|an?\b)|none|nothing|nobody|cannot|\w+n't|without|lack\w*|missing|too|beyond|"
    r"fail\w*|errors?|null|nan|nodata|invalid|undefined|incomplete|blank|corrupt\w*|damaged|broken|(?:over|under)exposed|"
    r"blurr\w*|useless|out of focus|guess\w*|g[ia]ve up|moot|mystery|made up|need\w*|requir\w*|again|only|"
    r"(?:un|in|im|il)\w+ble|insufficient|inconclusive|unclear)\b|\?\?|没(?:法|有?(?:上传|给|提供|拍|收到|任何|作物|植物|参照))|不(?:能|了|出|到|清|够|符|开|足|是一个)|报错|无|缺|坏|糊|太|请"
)
_EVIDENCE = re.compile(
    r"\b(?:i|we|you|(?:image|picture|photo\w*|file|upload|attachment|raster|map|data|metadata|information|evidence|scale|"
    r"ruler|reference|depth|pixel|camera|view|focus|value|tool|resolution|question|answer|result|measurement|conclusion|"
    r"comparison)s?)\b|我|图|照片|文件|数据|数值|信息|比例尺|参照|大小|工具|问题|结果|答案"
)
_SHORT, _FEW_WORDS = 160, 24
"""Characters of a short reply, and of one of a few words; a Chinese one has a third."""
_BUT = r", ?(?:but|however|though|yet|但)"
_AT_LINE = re.compile(
    rf"[\s>*#•`_-]*+(?:(?:[\w ]{{1,40}}|(?<=[\s_]))[*`_]*[:：]\s*[*`_]*)?(?:it )?{_PHRASE}"
    rf"(?:[*`_\s]*[:：.。]|(?!.*{_BUT}))",
    re.IGNORECASE,
)
_REFUSAL = re.compile(_PHRASE)
_UNKNOWN_VALUE = re.compile(
    rf"[\s>*#•`_-]*(?:[\w ]{{1,40}}[*`_ ]*[:：])?[\s*`_]*(?:{UNKNOWN}|未知)[\s*`_.。]*", re.IGNORECASE
)
"""A line of the answer form that abstains."""
_END = re.compile(rf"[!?。;\n]|\.(?!\d)|{_BUT}|\Z")
_CLAUSE_MARKS = ("!", "?", "。", "\n", ";", ",", "(", ". ")
_KEYED = re.compile(r"[:：]\s*\w")
_ESTIMATE = re.compile(
    r"\b(?:best|rough|own|my) (?:estimate|guess)|\bi(?: would|'d) (?:say|guess|estimate|go)|\bestimated (?:at|to)|"
    r"\b(?:probably|most likely|presumably|i assume|approximately|roughly)\b|大约|大概|约为|估计为|可能是"
)


def ends_in_refusal(text: str) -> bool:
    """True if the last line that is not empty begins with a refusal, after the name of a value at most."""
    return any(_AT_LINE.match(line) or _UNKNOWN_VALUE.fullmatch(line) for line in text.strip().splitlines()[-1:])


class Doubts(NamedTuple):
    """Words by which a text says that there is no answer, and what is left of the text without them."""

    words: str
    rest: str


def refusing_clauses(text: str) -> Doubts | None:
    """Return the clauses of normalised ``text`` that refuse an answer; None if there are none."""
    first, rest, position = "", "", 0
    # Searched from the phrase outwards: a pattern of the whole clause takes quadratic time in a long line.
    while phrase := _REFUSAL.search(text, position):
        marks = ((text.rfind(mark, position, phrase.start()), mark) for mark in _CLAUSE_MARKS)
        begin = max([position, *(at + len(mark) for at, mark in marks if at >= 0)])
        before = text[begin : phrase.start()]
        # A value after a key stands before the doubt: "size: 70 mm, which cannot be determined exactly".
        rest += text[position:begin] + (before if _KEYED.search(before) else "")
        end = _END.search(text, phrase.end())
        position = end.start() if end else len(text)
        first = first or text[begin:position]
    return Doubts(first.strip(), rest + text[position:]) if position else None


def statements_of_no_answer(text: str, labels: Iterable[str] = (), *, in_words: bool = False) -> Doubts | None:
    """Return the words of normalised ``text`` that say that something is missing; None if there are none.

    Such words stand in answers, too; those in one of ``labels`` do not count. Where answers are ``in_words``, the
    sentence must be on the files or on who answers. Words for what is unknown are left out of the rest: "no answer" is
    not a "no".
    """
    known = "\n".join(labels)
    said = [match for match in _UNKNOWN.finditer(text) if match["said"].strip(" :") not in known]
    if not said:
        return _lacking(text, known, in_words=in_words)
    starts, ends = [0, *(match.end() for match in said)], [*(match.start() for match in said), len(text)]
    return Doubts(said[0][0].strip(), " ".join(text[start:end] for start, end in zip(starts, ends, strict=True)))


def _lacking(text: str, known: str, *, in_words: bool) -> Doubts | None:
    """Words of what is missing, in a short reply: long ones describe what is not there, too."""
    length = len(text) + 2 * sum(letter > "⺀" for letter in text)
    for sentence in re.split(r"(?<=[!?。;])|(?<=\.)\s|\n", text) if length <= _SHORT else ():
        lacking = any(match[0] not in known for match in _LACK.finditer(sentence))
        if lacking and (_EVIDENCE.search(sentence) or (length <= _FEW_WORDS and not in_words)):
            return Doubts(sentence.strip(), text)
    return None


def estimates_in(text: str) -> str:
    """Return the sentences of ``text`` that announce an estimate."""
    return "\n".join(part for part in re.split(r"(?<=[.!?。])\s+|\n", text) if _ESTIMATE.search(part))


def shows_no_answer(slot: AbstainSlot, results: Results) -> bool:
    """True if ``results`` show that there is no answer.

    That is if ``from`` of the slot is true or, without one, if no ``from`` of the slots that are asked for has a value.
    """
    if slot.from_ is not None:
        return _value(slot.from_, results) is True
    return all(each.from_ is None or _value(each.from_, results) is None for each in slot.asks)


def _value(expression: str, results: Results) -> object:
    try:
        return evaluate_from(expression, results)
    except (UnresolvedRef, ExpressionError):
        return None
