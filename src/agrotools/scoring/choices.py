"""Reader of the chosen options in replies to multiple-choice and true-or-false questions (Chinese and English).

What is read, in this order: what stands directly after the last answer marker (``答案``, ``选``, ``answer``) or before
one (``C是正确答案``); a first or last line of letters or of texts of options; for true or false, a clause that ends in
a verdict; letters with a verdict behind them (``A、C正确``); letters or texts after a short connecting word at the end
(``所以是B``); letters that begin the reply. Denials, conditions and exceptions ("all but A") are not read.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from agrotools.text.labels import label_key
from agrotools.text.normalise import late_pattern, simplified

Kind = Literal["single", "multiple", "true_false"]

_MOST_CHARACTERS = 100_000
_MOST_MARKERS = 400
_LONGEST_CANDIDATE = 200
_LONGEST_OPTION = 1_000
_TRUE = frozenset("正确 正确的 对 对的 是 是的 √ ✓ ✔ true correct right yes t".split())
_FALSE = frozenset("错误 错误的 错 错的 否 不正确 不对 × ✗ ✘ x false incorrect wrong no f".split())

_MARKUP = late_pattern(
    r"(?P<answer>\\f?boxed\s*\{|<\|?(?:answer|begin_of_box)\|?>)"
    r"|<\|[^<>|\n]{1,40}\|>|</?[a-z][^<>\n]{0,40}>|\\[A-Za-z]+|[*`#$~{}\\「」『』〔〕《》]"
    r"|^[ \t]*\d{1,2}[.、)]\s*(?=[A-Z]\b)"
    r"|(?:(?P<behind>(?<=[A-Z]))|(?<=\w)) ?\((?![正错对√×])(?:[^()A-Z\n]|[A-Z][a-z]){2,60}\)",
    re.MULTILINE,
)
"""Marks of LaTeX, Markdown, HTML and chat templates, numbers of lists, remarks in brackets (``behind``: a letter's);
``answer``: a mark before an answer."""
_NEXT_QUESTION = late_pattern(r"(?<=\S)\s{0,9}\n\W{0,9}(?:问题|题目|下一题|Question\b)")
"""Beginning of a further question, which some models ask and answer themselves."""
_SIGNS = r"[ \t、,;/&+|\"'“”()\[\]【】《》•·>-]"
_MARKER = late_pattern(
    r"(?:(?<![a-z不])(?:正确|[Cc]orrect)(?=:)|(?<![不误未别勿漏错则])(?<!不[能应要该会可宜])"
    r"(?:答案|选(?![项题])择?|正确的?(?:选项|是|有)|正解|选项(?=\"\s*:)|应该?[是为]|答(?=:))"
    r"|(?:说法|表述|判断|(?<![a-z])statement)(?!\W{0,9}[a-z]\b)"
    r"|(?<![a-z])(?:answers?|ans|choices?|(?:correct|right|best) options?|choose|select|pick|should be)(?![a-z]))"
    rf"(?:{_SIGNS}|[\s:=.—是为应该当即就选择项的最终有如下以确定显然]"
    r"|\b(?:is|are|would|should|must|be|the|here|therefore|option|letter)\b){0,16}",
    re.IGNORECASE,
)
"""Announcement of an answer, with the signs and short words up to it."""
_LIST = (
    r"(?:[A-Z]{1,8}|[a-z](?!\s+[a-z]{2}))(?![A-Za-z0-9])"
    rf"(?>(?:(?:{_SIGNS}{{0,4}}(?:(?:[和与及]|或者?|还是|以及|and|or){_SIGNS}{{0,4}})?"
    rf"|(?:[.。)]?\n|[.。]){_SIGNS}{{0,4}}(?=[A-Z]\)?(?:[.。]|$)))"
    r"(?:[A-Z]{1,8}|[a-z])(?=\W|[和与及或]|以及|[一二两三四五]?[个项]|等"
    r"|(?<=[、和与及][A-Z])[都均皆全对正符当这是为可的]|$)){0,40})"
)
_LETTERS = late_pattern(_LIST, re.MULTILINE)
_LINES = late_pattern(
    rf"^[^\w\n]*(?:(?:选项|[Oo]ption|[Cc]hoice)[^\w\n]*)?({_LIST})(?:选?项)?(?:{_SIGNS}|[.:!])*(?:$|。)",
    re.MULTILINE,
)
"""Lines of letters alone; the first may end with a full stop before its end."""
_VERDICT = late_pattern(
    rf"(?<![A-Za-z0-9/若果到至除了、和与及])(?<!if )(?<!or )(?<!ether )({_LIST})"
    r"(?:(?:[^\n。;\"A-Za-z不错误非未或]|[A-Z][a-z]){2,40}?[,:])?"  # a remark on the option
    r"(?>(?:[ \t:.\"'“”()|•>-]|[是为都均皆也才最更就全的个这种者项一二两三四五六七]|选项|说法|表述"
    r"|\b(?:is|are|the|my|all|both|most|likely)\b){0,12})"
    r"(?:(?P<answer>(?:(?:正确|最佳|最终)?(?:答案|选项)|当选"
    r"|(?i:(?:(?:best|correct|right|final) )*(?:answer|choice|option)))(?!\s*(?:[:是为应选]|is\b|[A-Z]\b)))"
    r"|正确(?!的?(?:是|做法|方法|答案|选项))|符合(?=[题要条])|(?<!反)对(?=的?(?:\W|$))|[√✓✔✅]|可以?(?=[,。;]|$)"
    r"|合[适理]|恰当|准确|(?i:correct|right|true|yes|best|fits)\b(?! answer| option| choice))(?!的?\W?[但吗])"
)
"""Letters with a word behind them that calls them right; ``answer``: that calls them the answer."""
_CONNECTION = late_pattern(
    r"(?:(?<![不非未没否若果以])(?<!不[能会可])(?<![也只还]可能)(?:是|[即为故填有]|属于?|对应|因此|所以|结论|判断|包括|倾向|选?项)"
    r"|(?<![A-Z \t]),|→|[=-]>|\b(?i:is|are|it's|that's|hence|so|thus|therefore|with|say|on|likely)\b)"
    rf"(?:{_SIGNS}|[:是为就])*"
)
"""Short words before letters or the text of an option at the end of a reply."""
_JUDGEMENT = late_pattern(
    r"(?P<no>(?:不|没有?|并非|未必|\bnot|n't)\s*(?:是|完全|太|能算|entirely )?\s*)?"
    r"(?:(?P<true>正确|准确|(?<![反相针面绝成配应])对|成立|无误|[√✓✔]|\b(?:true|correct|right|accurate)\b)"
    r"|错误?|有误|问题|[×✗✘]|\b(?:false|incorrect|wrong|inaccurate)\b)"
    r"(?:[\s的√✓✔×!)\"”]|说法|\b(?:statement|because|that|since)\b.*)*$",
    re.IGNORECASE,
)
"""Verdict on a statement at the end of a clause."""
_DOUBTS = tuple(
    "是否 是不是 难以 还是 也不 确定 知道 无法 可能 对错 对不 neither partly sure whether".split()
)
"""Words of a clause that is no verdict."""
_AFTER_FIRST = (*"( ) , : ; 。 — 解 理由 因 三个 等 because since as not".split(), "- ")
"""Marks and words behind letters that begin a reply."""


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
    plain_options, texts = _known_texts(tuple(options.items()), kind)

    def letter_only(named: re.Match[str]) -> str:
        """Return the letter of an option that is named by letter and text; a text alone stays."""
        return named[0] if _key(named[0]) in texts else f"{named.lastgroup})"

    plain = _without_markup(reply)
    text = _naming(plain_options, plain).sub(letter_only, plain).strip()
    if not text:
        return ChoiceReading((), "empty")
    named = _naming(plain_options, text)
    before_next_question = _NEXT_QUESTION.split(text, 1)[0]
    for part in (before_next_question, text):
        for rule, candidate in _candidates(part, texts, named, kind):
            reading = _reading_of(rule, candidate, options, texts, kind)
            if reading is not None:
                return reading
    return ChoiceReading((), "nothing to read")


def _reading_of(
    rule: str, candidate: str, options: Mapping[str, str], texts: Mapping[str, str], kind: Kind
) -> ChoiceReading | None:
    """Return the reading of a part of a reply; None if it names no option, so that the next one is read.

    ``texts``: the letters of the options by their texts.
    """
    cut = candidate[:_LONGEST_CANDIDATE]
    letter = texts.get(_key(candidate))
    if letter:
        return ChoiceReading((letter,), rule, cut)
    words = candidate.replace("and", "").replace("or", "或").replace("还是", "或")
    letters = {each for each in words.upper() if each.isascii() and each.isalpha()}
    if "\n" in candidate and letters == set(options):
        return None  # the options of the question, repeated line by line
    if letters <= options.keys():
        if len(letters) > 1 and (kind != "multiple" or "或" in words):
            return ChoiceReading((), "several options", cut, ambiguous=True)
        chosen = tuple(each for each in options if each in letters)
        return ChoiceReading(chosen, rule, cut)
    if len(letters) == 1 or letters & options.keys():
        return ChoiceReading((), "no such option", cut)
    return None


def _candidates(
    text: str, texts: Mapping[str, str], named: re.Pattern[str], kind: Kind
) -> Iterator[tuple[str, str]]:
    """Yield the parts of a reply that may be its answer, each with the rule that found it, the first by rank first."""
    verdicts = [*_VERDICT.finditer(text)][-_MOST_MARKERS:]
    yield from _announced(text, verdicts, texts, named)
    yield from _letters_alone(text)
    yield from _option_lines(text, texts, named)
    if kind == "true_false" and not _LETTERS.match(text):
        yield from _judgements(text)
    if verdicts:
        yield "called right", "、".join(verdict[1] for verdict in verdicts)
    yield from _connected_ends(text, texts, named)
    yield from _first_letters(text)


def _announced(
    text: str, verdicts: Sequence[re.Match[str]], texts: Mapping[str, str], named: re.Pattern[str]
) -> Iterator[tuple[str, str]]:
    """Yield what stands behind a marker of an answer, or before a verdict that calls it the answer; the last first."""
    called = [verdict for verdict in verdicts if verdict["answer"]]
    markers = [*_MARKER.finditer(text)][-_MOST_MARKERS:]
    for found in sorted([*markers, *called], key=lambda found: found.start(), reverse=True):
        if found in called:
            yield "called the answer", found[1]
            continue
        end = found.end() + _LONGEST_CANDIDATE
        letters = _LETTERS.match(text, found.end(), end)
        line = text[found.end() : end].partition("\n")[0]
        known = _known_part(line, texts, named)
        # Letters count, unless the line is the text of an option.
        if letters and _key(known) not in texts:
            yield "answer marker", letters[0]
        elif known:
            yield "answer marker", known


def _letters_alone(text: str) -> Iterator[tuple[str, str]]:
    """Yield the letters of lines of letters at the end of a reply or at its beginning."""
    for block in reversed([*_LINES.finditer(text)]):
        if block.start() == 0 or block.end() == len(text):
            yield "letters alone", block[1]


def _option_lines(
    text: str, texts: Mapping[str, str], named: re.Pattern[str]
) -> Iterator[tuple[str, str]]:
    """Yield the texts of options that are the whole reply, its last or its first line."""
    lines = text.splitlines()
    for line in (text, lines[-1], lines[0]):
        if _LINES.fullmatch(line):
            continue  # letters alone, which have their own rule
        known = _known_part(line, texts, named)
        if known:
            yield "text of an option", known


def _connected_ends(
    text: str, texts: Mapping[str, str], named: re.Pattern[str]
) -> Iterator[tuple[str, str]]:
    """Yield what stands between a short connecting word of the last sentence and the end of a reply."""
    end = text[-_LONGEST_CANDIDATE:].rstrip(" \n.。!)")
    last_sentence = end.rfind("。") + 1
    for connection in _CONNECTION.finditer(end, last_sentence):
        known = _known_part(end[connection.end() :], texts, named)
        if known:
            yield "at the end", known


def _first_letters(text: str) -> Iterator[tuple[str, str]]:
    """Yield the letters that begin a reply, if what follows does not make them part of a sentence or of a list."""
    start = text.lstrip(' ([【"“')
    for word in ("选项", "Option ", "Both "):
        start = start.removeprefix(word)
    first = _LETTERS.match(start)
    if first is None or not first[0][0].isupper():
        return
    letters = first[0]
    after = start[first.end() :].lstrip(' 】]"”选项')
    if not after:
        yield "at the beginning", letters
    elif after.startswith(_AFTER_FIRST):
        # Where each option is discussed in turn, the next letter comes with the same sign: "A) ... B) ...".
        next_option = chr(ord(letters[-1]) + 1) + after[0]
        if next_option not in text:
            yield "at the beginning", letters


def _judgements(text: str) -> Iterator[tuple[str, str]]:
    """Yield whether a statement is called true or false: by a first clause that says no more, the last, the first."""
    lines = (
        text.translate(str.maketrans(dict.fromkeys(",。;:?!", "\n")))
        .replace(". ", "\n")
        .splitlines()
    )
    clauses = [clause.strip(" .") for clause in lines if clause.strip(" .")]
    for clause in clauses[-1:] + clauses[:1]:
        doubtful = any(word in clause.lower() for word in _DOUBTS)
        if not doubtful and (verdict := _JUDGEMENT.search(clause[-_LONGEST_CANDIDATE:])):
            yield (
                "true or false",
                "正确" if bool(verdict["true"]) != bool(verdict["no"]) else "错误",
            )


def _known_part(line: str, texts: Mapping[str, str], named: re.Pattern[str]) -> str:
    """Return ``line``, or its first sentence, if it is the text of an option or a list of texts and letters."""
    line = line[:_LONGEST_OPTION]
    for part in (line, line.partition("。")[0]):
        if letters := _LINES.fullmatch(named.sub(lambda found: f"{found.lastgroup})", part)):
            return part if _key(part) in texts else letters[1]
    part = line.partition(". ")[0]
    return part if _key(part) in texts else ""


def _without_markup(reply: str) -> str:
    """Return the reply after its thinking, without markup, in simplified characters of normal width."""
    text = reply[-_MOST_CHARACTERS:].rpartition("</think>")[2].partition("<think>")[0]
    text = unicodedata.normalize("NFKC", text).translate(simplified())
    return _MARKUP.sub(
        lambda mark: " answer: " if mark["answer"] else "" if mark["behind"] is None else ")", text
    )


_PlainOptions = tuple[tuple[str, str], ...]
"""Letters of the options of a question, each with its text without markup, the longest text first."""


@lru_cache(maxsize=1_000)
def _known_texts(
    options: tuple[tuple[str, str], ...], kind: Kind
) -> tuple[_PlainOptions, dict[str, str]]:
    """Return the options without markup, and their letters by their texts."""
    plain = {letter: _without_markup(text) for letter, text in options}
    texts = {key: letter for letter, text in plain.items() if (key := _key(text))}
    if kind == "true_false":
        for words in (_TRUE, _FALSE):
            letter = next((letter for text, letter in texts.items() if text in words), None)
            texts |= dict.fromkeys(words, letter) if letter else {}
    return tuple(sorted(plain.items(), key=lambda item: -len(item[1]))), texts


def _naming(options: _PlainOptions, reply: str) -> re.Pattern[str]:
    """Return the pattern of the text of an option in a reply, with or without its letter.

    It holds only the options whose text is in the reply. The others cannot match, and to compile them takes longer
    than all the rest of reading a reply.
    """
    folded = _folded(reply)
    return _pattern_of(
        tuple((letter, text) for letter, text in options if text and _folded(text) in folded)
    )


def _folded(text: str) -> str:
    """Return the same text for all texts that are equal to a pattern that ignores case."""
    return text.translate(_DOTTED_AND_DOTLESS).casefold()


_DOTTED_AND_DOTLESS = str.maketrans("\u0130\u0131", "ii")
"""The letters I with and without a dot of Turkish, which equal an i in patterns but not in ``casefold``."""


@lru_cache(maxsize=1_000)
def _pattern_of(options: _PlainOptions) -> re.Pattern[str]:
    """Return the pattern of the text of any of these options, with or without its letter."""
    pairs = [
        rf"(?P<{key}>(?:(?-i:{key}|{key.lower()}(?! ))(?:选?项)?[\s.、:;,()【】的\"“”-]{{0,4}})?{re.escape(text)}"
        rf"[\"”]?(?:\s?\((?:选项|option )?{key}(?:选?项)?\)|\))?)"
        for key, text in options
    ] or ["(?!)"]
    return re.compile(rf"(?<![A-Za-z])(?:{'|'.join(pairs)})(?![A-Za-z0-9])", re.IGNORECASE)


def _key(text: str) -> str:
    return label_key(text.strip("()!? "))
