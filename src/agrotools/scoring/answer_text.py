"""Preparation of free text: the part that counts, normalised and without Markdown and LaTeX."""

import re
from functools import lru_cache
from typing import NamedTuple

from agrotools.scoring.own_words import after_final_answer
from agrotools.text.normalise import normalise
from agrotools.text.units import fold_case


class AnswerText(NamedTuple):
    """Free text that is prepared once: normalised, and also without markup.

    ``unread`` is the number of characters beyond :data:`LONGEST_ANSWER`, which are ignored: those in the middle.
    """

    text: str
    plain: str
    unread: int = 0


# Tokens of chat templates, which are no part of an answer: <|im_end|>, </s>, [/INST], <s> around all of it. A value is
# struck out in "<s>64</s> 63".
_TEMPLATE_TOKEN = re.compile(
    r"<[|｜](?:(?:im_start|start_header_id)\|>(?:assistant|user|system)?|[^<>|｜\n]{1,60}[|｜]>)|\A\s*<s>(?=(?:(?!</s>).)*(?:</s>\s*)?\Z)|"
    r"</s>\s*\Z|<(?:eos|bos|pad|unk|(?:start|end)_of_turn)>|\[/?INST\]|<</?SYS>>",
    re.DOTALL,
)
_THOUGHTS = re.compile(r"<(think(?:ing)?|reasoning)>(?:(?!</\1>).)*+</\1>(?=\s*\S)", re.DOTALL)
_THOUGHT_END = re.compile(r"</(?:think(?:ing)?|reasoning)>(?=\s*\S)")
# Struck out: ~~64~~, <del>64</del>, \sout{64}; but ~~~ is a fence of code.
_STRUCK = re.compile(
    r"(?<!~)~~(?=[^~\s])(?:[^~\n]|\n(?!\s*\n)|~(?!~)){1,2000}~~(?!~)|\\(?:sout|cancel|st)\{[^{}]{0,300}\}|"
    r"<(?P<tag>del|strike|s)(?:\s[^<>]{0,200})?>(?:(?!</?(?P=tag)[\s>]).)*+</(?P=tag)\s*>",
    re.DOTALL | re.IGNORECASE,
)
# Marks of notes behind a number: 354 [1], 354<sup>1</sup>, but not those of powers: m<sup>2</sup>, 10<sup>3</sup>.
_RAISED = re.compile(r"(?i:(?<=m)<sup>([23])</sup>|(?<=10)<sup>([-\d]{1,2})</sup>|(?<=[a-z])<sup>([-−]\d)</sup>)")
_NOTE_MARK = re.compile(
    r"(?i:<sup>[^<>\d]{0,6}\d?[^<>\d]{0,6}</sup>)|"
    r"(?<=\d)(?P<unit>(?: ?[^\W\d_]{1,12}[²³]?| ?%)?)(?: ?\[(?:[1-9]|\^[\w-]{1,12})\])+(?!:)"
)
LONGEST_ANSWER = 65_536
"""Maximum number of characters read after the last ``Final Answer:``: the first and the last half of a longer text."""


@lru_cache(maxsize=256)
def read_answer(answer: str) -> AnswerText:
    """Prepare the text after the last ``Final Answer:`` (rule 1); the whole answer if it has no such marker."""
    answer = _TEMPLATE_TOKEN.sub(" ", answer) if "<" in answer or "[" in answer else answer
    body = after_final_answer(answer)
    if len(body) > LONGEST_ANSWER:
        body = body[max((thought.end() for thought in _THOUGHT_END.finditer(body)), default=0) :]
    unread = max(0, len(body) - LONGEST_ANSWER)
    body = _both_ends(body) if unread else body
    body = _STRUCK.sub(" ", _THOUGHTS.sub("", body))
    body = _RAISED.sub(lambda power: f"^{power[1] or power[2] or power[3]}", body) if "<" in body else body
    body = fold_case(_NOTE_MARK.sub(r"\g<unit>", body))
    text = normalise(body)[:LONGEST_ANSWER]
    return AnswerText(text, without_markup(text), unread)


def _both_ends(text: str) -> str:
    """Return what is read of a long text, half of it from each end, without the words that the cuts shorten."""
    half = LONGEST_ANSWER // 2
    first, last = text[: half - 1], text[-half:]
    line = last.find("\n", 0, 400)
    return f"{first[: first.rfind(' ', -40)]}\n{last[line if line >= 0 else max(0, last.find(' ', 0, 40)) :]}"


_LATEX_WORDS = {r"\times": "×", r"\cdot": "×", r"\approx": "≈", r"\pm": "±", r"\%": "%", r"\_": "_"} | {
    **dict.fromkeys((r"\,", r"\;", r"\ "), " "),
    **dict.fromkeys((r"\(", r"\)", r"\[", r"\]", r"\left", r"\right"), ""),
}
_LATEX_WORD = re.compile("|".join(re.escape(word) for word in sorted(_LATEX_WORDS, key=len, reverse=True)))
_LATEX_GROUP = re.compile(r"\\(?:boxed|text|textbf|mathbf|mathrm|mathit|mathsf|operatorname)\s?\{([^{}]{0,300})\}")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\s?\{([^{}]{1,80})\}\s?\{([^{}]{1,80})\}")
# Powers and products of units: m^{2}, ha^(-1), t*ha^-1.
_BRACED_POWER = re.compile(
    r"\^\s?(?:\{\s?([-+]?\d{1,3})\s?\}|\(\s?([-+]\d{1,3})\s?\))|(?<=[a-z])\*\*(-?[1-4])(?![\d.,*])"
)
_PRODUCT = re.compile(r"(?<=[a-z\d])(?:\s?\*\s?|\.)(?=[a-z]{1,5}\^?-\d)")
_DEGREE = re.compile(r"\s?\^\s?(?:\{\s?\\circ\s?\}|\\circ)")
_LATEX_THOUSANDS = re.compile(r"(?<=\d)(?:\{,\}|\\[,;])(?=\d{3}(?!\d))")
# A dollar sign before a digit is kept: it may be the currency of a label, and does not affect numbers.
_TAG = re.compile(r"</?[A-Za-z_]{1,24}>")
_PLACEHOLDER = re.compile(r"<(\s?[-+]?\d[\d.,]{0,20}[^<>\n]{0,12})>")
"""Value that is still in the angle brackets of the form: ``<78> %``."""
_PLACEHOLDER_OF_WORDS = re.compile(
    r"(?:\A|(?<=[:=,>])|(?<=[:=,>][\s*\"']))([\s*\"']{0,3})<(?!(?:br|hr|p|li)>)([^\W_](?:[^<>|\n]{0,200}[\w)])?)>"
)
"""Words that are still in the angle brackets of the form, ``<magenta>``, or a tag that is closed, ``<b>``."""
_CLOSING_TAG = re.compile(r"</([^<>\n]{1,40})>")
_SPREAD = re.compile(r"(?:\+ ?/ ?-|\+-|\bplus(?: or |/)minus|\bgive or take) ?(?=\d)")
_MARKDOWN = re.compile(
    r"\$(?!\d)|\*\*|__(?=\W|$)|(?<!\w)__|`+|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|\*(?=[^\W\d])|(?<=[^\W\d])\*"
)


def without_markup(text: str) -> str:
    """Remove Markdown emphasis, code marks and LaTeX commands around values."""
    text = _LATEX_THOUSANDS.sub(",", _DEGREE.sub("°", text.replace(r"\mathrm{~", r"\mathrm{ ")))
    text = _BRACED_POWER.sub(lambda power: f"^{power[1] or power[2] or power[3]}", text)
    text = _PRODUCT.sub("·", text)
    if "\\" in text:
        text = _LATEX_WORD.sub(lambda word: _LATEX_WORDS[word[0]], text)
        for _ in range(3):  # groups are nested, as in \boxed{12\text{ m}}
            text, changed = _LATEX_GROUP.subn(r"\1", text)
            if not changed:
                break
        text = _LATEX_FRACTION.sub(_as_division, text)
    text = _PLACEHOLDER.sub(r"\1", _SPREAD.sub("±", text))
    if "<" in text:
        closed = set(_CLOSING_TAG.findall(text))
        text = _PLACEHOLDER_OF_WORDS.sub(lambda each: each[0] if each[2] in closed else each[1] + each[2], text)
    return _MARKDOWN.sub("", _TAG.sub("\n", text))


def _as_division(fraction: re.Match[str]) -> str:
    top, bottom = (part if part.replace("^", "").isalnum() else f"({part})" for part in fraction.groups())
    return f"{top}/{bottom}"


_CORRECTION = re.compile(
    r"(?<![a-z])(?:wait|correction|corrected|correcting|edit(?:ed)?(?= ?:)|actually|sorry|oops|mistake|"
    r"revised|revising|on second thought|let me (?:correct|recount|re-?check|revise)|scratch that|i was wrong|"
    r"but (?:this|that|it) (?:still )?(?:includes?|included|counts?|counted|contains?|contained))(?![a-z])|"
    r"更正|纠正|修正|不对,|重新"
)


def after_correction(text: str, limit: int) -> int:
    """Return the start of the text after the last retraction; 0 if there is no retraction before ``limit``."""
    return max((mark.end() for mark in _CORRECTION.finditer(text, 0, limit)), default=0)
