"""Reader of the chosen options in replies to multiple-choice and true-or-false questions (Chinese and English).

An answer stands after the last answer marker (``答案``, ``选``, ``answer``, ``\\boxed``), or is the whole reply or its
first or last line. It consists of option letters, the text of one option, or a word for true or false. Nothing else in
a reply is read: no denial, no condition, no remark on an option.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple

from agrotools.text.normalise import late_pattern, simplified
from agrotools.text.submission import label_key

Kind = Literal["single", "multiple", "true_false"]

_MOST_CHARACTERS = 100_000
_MOST_MARKERS = 400
_LONGEST_CANDIDATE = 200
_LONGEST_OPTION = 1_000
_TRUE = frozenset("正确 正确的 对 对的 是 是的 √ ✓ ✔ true correct right yes t".split())
_FALSE = frozenset("错误 错误的 错 错的 否 不正确 不对 × ✗ ✘ x false incorrect wrong no f".split())

_MARKUP = late_pattern(
    r"(?P<answer>\\f?boxed\s*\{|<\|?(?:answer|begin_of_box)\|?>)"
    r"|<\|[^<>|\n]{1,40}\|>|</?[a-z][^<>\n]{0,40}>|\\[A-Za-z]+|[*`#$~{}\\]"
    r"|(?<=\w) ?\((?:[^()A-Z\n]|[A-Z][a-z]){2,60}\)"
)
"""Marks of LaTeX, Markdown, HTML and chat templates, and remarks in brackets; ``answer``: a mark before an answer."""
_NEXT_QUESTION = late_pattern(r"(?<=\S)\s{0,9}\n\W{0,9}(?:问题|题目|下一题|Question\b)")
"""Beginning of a further question, which some models ask and answer themselves."""
_SIGNS = r"[ \t、,;/&+|\"'“”()\[\]【】《》•·>-]"
_MARKER = late_pattern(
    r"(?:(?<![不误未别勿漏错则])(?<!不[能应要该会可宜])"
    r"(?:答案|选(?![项题])择?|正确的?(?:选项|是)|正解|应该?[是为]|答(?=:))"
    r"|(?:说法|表述|判断|(?<![a-z])statement)(?!\W{0,9}[a-z]\b)"
    r"|(?<![a-z])(?:answers?|ans|choice|(?:correct|right|best) options?|choose|select|pick|should be)(?![a-z]))"
    rf"(?:{_SIGNS}|[\s:=.—是为应该当即就选择项的最终有如下以确定显然]"
    r"|\b(?:is|are|would|should|must|be|the|here|therefore|option|letter)\b){0,16}",
    re.IGNORECASE,
)
"""Announcement of an answer, with the signs and short words up to it."""
_LIST = (
    r"(?:[A-Z]{1,8}|[a-z](?!\s+[a-z]{2}))(?![A-Za-z0-9])"
    rf"(?:(?:{_SIGNS}{{0,4}}(?:(?:[和与及或]|以及|and|or){_SIGNS}{{0,4}})?|[.。]?\n{_SIGNS}{{0,4}}(?=[A-Z][.。]?$))"
    r"(?:[A-Z]{1,8}|[a-z])(?=\W|[和与及或]|以及|[一二两三四五]?[个项]|$))*+"
)
_LETTERS = late_pattern(_LIST, re.MULTILINE)
_LINES = late_pattern(
    rf"^[^\w\n]*(?:(?:选项|[Oo]ption|[Cc]hoice)[^\w\n]*)?({_LIST})(?:选?项)?(?:{_SIGNS}|[.:!])*(?:$|。)", re.MULTILINE
)
"""Lines of letters alone; the first may end with a full stop before its end."""


class ChoiceReading(NamedTuple):
    """Options read from a reply.

    ``letters`` follows the order of the options and is empty if no answer can be read. ``rule`` names the deciding
    rule, ``candidate`` is the prepared text that was read, and ``ambiguous`` is True if the reply gives several
    answers to a question that has one."""

    letters: tuple[str, ...]
    rule: str
    candidate: str = ""
    ambiguous: bool = False


def read_choices(reply: str, options: Mapping[str, str], kind: Kind) -> ChoiceReading:
    """Return the options that ``reply`` chooses; the last of several announced answers counts.

    ``options`` maps letters to texts, in order; ``kind`` says how many may be chosen. A letter that is not an option,
    and several letters for a question with one answer, give an empty reading.
    """
    texts, letter_and_text = _known_texts(tuple(options.items()), kind)
    text = letter_and_text.sub(lambda pair: pair[0][0], _without_markup(reply)).strip()
    if not text:
        return ChoiceReading((), "empty")
    before = _NEXT_QUESTION.split(text, 1)[0]
    for rule, candidate in chain(_candidates(before, texts), _candidates(text, texts)):
        cut = candidate[:_LONGEST_CANDIDATE]
        words = candidate.replace("and", "").replace("or", "或")
        letters = {each for each in words.upper() if each.isascii() and each.isalpha()}
        if key := texts.get(_key(candidate)):
            return ChoiceReading((key,), rule, cut)
        if "\n" in candidate and letters == set(options):
            continue  # the options of the question, repeated line by line
        if letters <= options.keys():
            if len(letters) > 1 and (kind != "multiple" or "或" in words):
                return ChoiceReading((), "several options", cut, ambiguous=True)
            return ChoiceReading(tuple(each for each in options if each in letters), rule, cut)
        if len(letters) == 1 or letters & options.keys():
            return ChoiceReading((), "no such option", cut)
    return ChoiceReading((), "nothing to read")


def _candidates(text: str, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the parts of a reply that may be its answer, each with the rule that found it, the first by rank first."""
    for marker in reversed([*_MARKER.finditer(text)][-_MOST_MARKERS:]):
        after = text[marker.end() : marker.end() + _LONGEST_CANDIDATE]
        if known := _known_part(after.partition("\n")[0], texts):
            yield "answer marker", known
        elif letters := _LETTERS.match(text, marker.end(), marker.end() + _LONGEST_CANDIDATE):
            yield "answer marker", letters[0]
    for block in reversed([*_LINES.finditer(text)]):
        if block.start() == 0 or block.end() == len(text):
            yield "letters alone", block[1]
    lines = text.splitlines()
    for line in (text, lines[-1], lines[0]):
        if known := _known_part(line, texts):
            yield "text of an option", known


def _known_part(line: str, texts: Mapping[str, str]) -> str:
    """Return ``line``, or its first sentence, if it is the text of an option; else an empty text."""
    line = line[:_LONGEST_OPTION]
    return next((part for part in (line, line.partition("。")[0], line.partition(". ")[0]) if _key(part) in texts), "")


def _without_markup(reply: str) -> str:
    """Return the reply after its thinking, without markup, in simplified characters of normal width."""
    text = reply[-_MOST_CHARACTERS:].rpartition("</think>")[2].partition("<think>")[0]
    text = unicodedata.normalize("NFKC", text).translate(simplified())
    return _MARKUP.sub(lambda mark: " answer: " if mark["answer"] else "", text)


@lru_cache(maxsize=1_000)
def _known_texts(options: tuple[tuple[str, str], ...], kind: Kind) -> tuple[dict[str, str], re.Pattern[str]]:
    """Return the letters of the options by their texts, and the pattern of a letter before its text."""
    plain = {letter: _without_markup(text) for letter, text in options}
    texts = {_key(text): letter for letter, text in plain.items() if _key(text)}
    if kind == "true_false":
        for words in (_TRUE, _FALSE):
            letter = next((letter for text, letter in texts.items() if text in words), None)
            texts |= dict.fromkeys(words, letter) if letter else {}
    pairs = (rf"[{key}{key.lower()}][\s.、:;)(-]{{0,4}}{re.escape(text)}\)?" for key, text in plain.items())
    return texts, re.compile(rf"(?<![A-Za-z])(?:{'|'.join(pairs)})(?![A-Za-z0-9])")


def _key(text: str) -> str:
    return label_key(text.strip("()!? "))
