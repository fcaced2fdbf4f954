"""Values of the lines of an answer form, read by the type of their item, without the gold.

A value is read as a whole. Around it a line may hold words of the form itself (its labels, names and options), articles
and the like: ``the right half``, ``14.1 % of the leaf area``. Any other word, a second number or a second option may
change what is meant (``190 dead trees``, ``rust (ruled out)``), so that the line has no value and is asked for again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from math import log10
from typing import NamedTuple

from agrotools.core.form_item import FormItem
from agrotools.text.expression_syntax import ExpressionError
from agrotools.text.expressions import evaluate
from agrotools.text.normalise import CJK, WORD_END, WORD_START, late_pattern, normalise, stemmer
from agrotools.text.quantities import (
    APPROXIMATE,
    NUMBER_WORD,
    NUMERAL,
    Quantity,
    in_both,
    numeral_value,
    quantity_head,
)
from agrotools.text.units import UNITS, Unit, fold_case, read_unit, unit_at
from agrotools.text.yes_no import NO, YES, YES_INITIALS

UNKNOWN = "unknown"
"""Value by which an answer abstains in an item; alone on a line, in all items."""


class FormValue(NamedTuple):
    """Value of an item, by its type; ``unknown``: the answer abstains.

    ``readable`` is False if the text is no value of the type, e.g. words for a number. ``listed`` is False for a value
    that is asked for once more, but counts if it is repeated: a label that is none of the options, which may be a name
    of one that only its slot knows, a number in another unit, or two values. ``number``: low and high end in the unit
    of the item, None for another unit. ``names``: options of a closed item, else the text.
    """

    readable: bool = True
    listed: bool = True
    unknown: bool = False
    yes: bool | None = None
    number: tuple[float, float] | None = None
    names: tuple[str, ...] = ()


_UNREADABLE = FormValue(readable=False)
_LONGEST_VALUE = 1_000
"""Characters of a value, except of free text; a longer one is no single value."""
_QUOTES = " \t*`_\"'|,;。.!"
_MARKS = _QUOTES + ">#•+~-"
"""Marks that may stand before a name."""


def read_values(
    items: Sequence[FormItem], form: Mapping[str, Sequence[str]]
) -> dict[str, FormValue]:
    """Return the values of a form by the names of its items; several that differ are no value.

    Options are read first: a number may repeat the chosen one (``8 in the lower half``).
    """
    values: dict[str, FormValue] = {}
    chosen: set[str] = set()
    for item in sorted(items, key=lambda item: item.is_number):
        told = frozenset(chosen) if item.is_number else frozenset[str]()
        first, *others = (_read_value(item, text, told) for text in form[item.name])
        is_one = all(other == first for other in others)
        values[item.name] = first if is_one else FormValue(listed=False)
        if is_one and item.choices:
            chosen |= {word for name in first.names for word in _tokens(normalise(name))}
    return {item.name: values[item.name] for item in items}


def expected_value(item: FormItem) -> str:
    """Return what is asked for in words: ``a number in mm``, ``one of: left, right``."""
    if item.free_text:
        return "a short text"
    if item.type == "boolean":
        return "yes or no"
    if item.is_number:
        return f"one number in {item.unit}" if item.unit else "one number"
    if item.choices:
        which = "those that apply of" if item.takes_several else "one of"
        return f"{which}: {', '.join(item.choices)}"
    return "one name"


@lru_cache(maxsize=4_000)
def _read_value(item: FormItem, text: str, chosen: frozenset[str]) -> FormValue:
    """Read one text; ``chosen``: the words of the options that the other items have."""
    if item.free_text:
        return _free_text(text)
    if len(text) > _LONGEST_VALUE:
        return _UNREADABLE
    plain = _plain(text)
    if _is_refusal(item, plain) or _says_that_none_fits(item, plain):
        return FormValue(unknown=True)
    if "?" in plain:  # no right answer asks
        return _UNREADABLE
    if item.is_number:
        return _number(item, plain, chosen)
    if item.type == "boolean":
        return _yes_or_no(item, plain)
    if item.takes_several:
        return _options(item, plain)
    return _option(item, plain) if option_names(item) else _open_name(item, _bare(text))


def _free_text(text: str) -> FormValue:
    # "Cannot be cured" is advice, so that only the word of the form and its remark refuse here.
    if is_unknown(text) or _UNKNOWN_WITH_REMARK.fullmatch(normalise(text).strip(_MARKS)):
        return FormValue(unknown=True)
    return FormValue(names=(text,)) if text.strip(_QUOTES) else _UNREADABLE


# --- words of the form -----------------------------------------------------------------------------------------------

_TOKEN = late_pattern(rf"\d+(?:[.,]\d+)*|[^\W\d_{CJK}]+|[{CJK}]|\+")
_SHORTEST_STEMMED = 4
"""Letters of a word from which its ending is cut off."""


@lru_cache(maxsize=20_000)
def _stem(word: str) -> str:
    return stemmer().stemWord(word) if len(word) >= _SHORTEST_STEMMED else word


_JOINING = (
    "a an the of in on at for is are was were it its this that these there has have as s",
    "的 是 为 有 在 了 这 该",
    "棵 株 个 颗 片 只 张",  # count trees, leaves and fruit in Chinese
    "common",  # of vernacular names: common bean rust
    "answer value result factor ratio exactly only just",
    "visible counted measured calculated estimated detected",
)
"""Words that change no value: articles and the like, words for a result, and how it was had."""


@cache
def _joining_words() -> frozenset[str]:
    return frozenset(_stem(word) for words in _JOINING for word in words.split())


_BESIDE_OPTIONS = frozenset(
    "imag pictur photo file frame box side class diseas with which one vs".split()
)
"""Stems that change no option, but may change a number: ``14 % of the image``, ``3.5 % with symptoms``."""


@cache
def _turning_words() -> frozenset[str]:
    """Return words that change what a value means, also where a label holds them."""
    words = "or not no nor and but than if per yes other otherwise without least"
    return frozenset(map(_stem, words.split()))


def _tokens(text: str) -> list[str]:
    """Return the words, numbers and Chinese characters of normalised text; words without their endings."""
    return [_stem(token) for token in _TOKEN.findall(text)]


class _OwnWords(NamedTuple):
    words: frozenset[str]
    pairs: frozenset[tuple[str, str]]


@lru_cache(maxsize=1_000)
def _own_words(item: FormItem) -> _OwnWords:
    """Return the words of the item, and the pairs of words that follow each other in it.

    Labels of other items do not count, because they tell of something else: ``71.6 mm (yellow frame)`` where another
    item asks for the apple in the yellow frame. A number may be of an option of another item: ``8 in the lower half``.
    """
    aliases = [name for names in item.aliases.values() for name in names]
    unit = item.unit or ""  # names what is counted: plants/ha
    options = item.other_options if item.is_number else ()
    told = (item.name, item.label, unit, *item.choices, *aliases, *options)
    tokens = [_tokens(normalise(text)) for text in told]
    words = {token for each in tokens for token in each if not token[0].isdigit()}
    # A total is no mean: "39.7 in total" where a mean is asked for.
    words |= {_stem("average")} if "mean" in words else {"total", "sum"}
    pairs = {pair for each in tokens for pair in pairwise(each)}
    return _OwnWords(frozenset(words - _turning_words() - {"+"}), frozenset(pairs))


_SIGNS = frozenset("<>≤≥→+*^?")
"""Signs that change what a value means."""


def _is_own(item: FormItem, text: str, more: frozenset[str] = frozenset()) -> bool:
    """True if ``text`` holds only words of the form and joining words, and numbers only beside words as in the form.

    ``more``: further stems that it may hold.
    """
    if not _SIGNS.isdisjoint(text):
        return False
    own = _own_words(item)
    tokens = _tokens(text)
    for at, token in enumerate(tokens):
        if not token[0].isdigit():
            if token not in own.words | _joining_words() | more:
                return False
        elif not own.pairs & {*pairwise(tokens[max(at - 1, 0) : at + 2])}:
            return False
    return True


@lru_cache(maxsize=1_000)
def _context_options(item: FormItem) -> frozenset[str]:
    """Return the words of the options of other items, but for those that the label of ``item`` holds outside them."""
    options = {word for name in item.other_options for word in _tokens(normalise(name))}
    return frozenset(options - {*_tokens(normalise(item.label))})


# --- refusals --------------------------------------------------------------------------------------------------------

_UNKNOWN = r"unknown|null|nan|n/?a|n\.a\.|unavailable|undetermined|未知|不明"
_REFUSAL = late_pattern(
    rf"(?:(?:the )?(?:value|answer) (?:is )?)?(?:(?:{_UNKNOWN}|(?:i )?(?:do not|don't) know"
    r"|(?:insufficient|not enough) (?:information|data)|(?:it |this )?(?:can ?not|can't|could not|couldn't) be [a-z]+"
    r"|(?:unable|not possible|impossible) to [a-z]+|cannot [a-z]+"
    r"|not (?:known|available|given|determinable|measurable|possible|applicable|determined)"
    r"|无法\w{1,4}|不能\w{1,4}|不确定)(?![^\W\d_]))(?P<rest>.*)",
    re.DOTALL,
)
"""Ways in which models write that there is no value, and what is behind them."""
_UNKNOWN_WITH_REMARK = late_pattern(r"(?:unknown|未知)(?![^\W\d_])\D{0,200}")
_ALONE = late_pattern(
    rf"(?:(?:all|every|both|the values are)\b[a-z ]{{0,30}}[ :] ?)?(?:{_UNKNOWN}|cannot be determined)"
    r"(?: for (?:all|every|both)\b[a-z ]{0,30})?(?: ?\([^()]{0,200}\))?[\s.。]*"
)
_BRACKETED = late_pattern(r"\((?P<reason>[^()]*(?:\([^()]*\)[^()]*)*)\)[\s.]*")
_REASON = late_pattern(
    r"\s*(?:[,;:.-]+|—)?\s*(?P<because>because|since|as|due to|因为|由于)?(?P<reason>.*)"
)
_LEAST_WORDS, _LEAST_WORDS_BARE = 4, 5
"""Words from which a remark with a number or an option is a reason, in brackets and without; shorter ones are values:
``unknown (about 61 trees)``, ``unknown, probably 61``."""


def is_unknown(line: str) -> bool:
    """True if a line without the name of an item abstains in all of them."""
    return _ALONE.fullmatch(normalise(line).strip(_MARKS)) is not None


def _is_refusal(item: FormItem, plain: str) -> bool:
    plain = plain.strip("<>[]{}")
    lead, unknown, _ = plain.rpartition(f" {UNKNOWN}")
    if unknown and plain.endswith(UNKNOWN) and _is_own(item, lead):
        return True  # mean diameter unknown
    refusal = _REFUSAL.fullmatch(plain)
    if refusal is None or any(plain.startswith(name) for name in _names_of_unknown(item)):
        return False
    rest = refusal["rest"]
    if unit := unit_at(rest, 0):
        rest = rest[unit[1] :]
    rest = rest.strip()
    if not _names_a_value(item, rest):
        return True
    if bracketed := _BRACKETED.fullmatch(rest):
        return _words_without_turn(bracketed["reason"]) >= _LEAST_WORDS
    reason = _REASON.fullmatch(rest)
    if reason is None:
        return False
    return bool(reason["because"]) or _words_without_turn(reason["reason"]) >= _LEAST_WORDS_BARE


_NONE_FITS = late_pattern(
    r"(?:(?:none|neither)(?: of (?:them|these|those|the [a-z0-9 ]{1,30}))?"
    r"|(?:none|neither|no) (?:image|picture|photo|photograph|file|option)s?"
    r"|都不是|均不是|都没有)(?: ?\([^()]{0,200}\))?[\s.。]*"
)
"""Ways in which models write that no option holds."""


def _says_that_none_fits(item: FormItem, plain: str) -> bool:
    """True for ``none of them`` where this can be no name of an option: the question has no answer among them."""
    if not item.choices or _NONE_FITS.fullmatch(plain) is None:
        return False
    words = {word for name in option_names(item) for word in _tokens(name)}
    return words.isdisjoint(_words_of_nothing())


@cache
def _words_of_nothing() -> frozenset[str]:
    """Return words of options that "none" may stand for: ``no change``, ``another plant``, ``healthy``."""
    words = "no not none neither nothing other another healthy unchanged without"
    return frozenset(map(_stem, words.split()))


def _names_of_unknown(item: FormItem) -> Iterator[str]:
    return (name for name in option_names(item) if _REFUSAL.match(name))


def _names_a_value(item: FormItem, text: str) -> bool:
    if NUMERAL.search(text) or NUMBER_WORD.search(text):
        return True
    last = _tokens(text)[-1:]
    return any(_mentions(item, _spans(text))) or not _YES_OR_NO.isdisjoint(last)


def names_values(items: Sequence[FormItem], text: str) -> bool:
    """True if a text besides the form names a number or an option, or says yes or no."""
    plain = _plain(text)
    return any(_names_a_value(item, plain) for item in items if not item.free_text)


def _words_without_turn(text: str) -> int:
    """Return the number of words of a remark; 0 if it begins with a word that turns to a value."""
    words = _tokens(text)
    return 0 if not words or words[0] in ("but", "or", "else", "otherwis") else len(words)


# --- yes and no ------------------------------------------------------------------------------------------------------

_YES = frozenset(("yes", "true", "是", "是的", "对"))
_WHOLE_VERDICTS = dict.fromkeys((*YES, *YES_INITIALS), "yes") | dict.fromkeys(NO, "no")
"""Values of nothing but a yes or no, in any language. Within a text, most of these words mean something else."""
_YES_OR_NO = frozenset(("yes", "no", "true", "false", "fals"))
_VERDICT = late_pattern(
    r"(?<![a-z])(?P<verdict>yes|no|true|false|不是|不对|否|是的|是|对)(?![a-z])(?P<rest>.*)",
    re.DOTALL,
)
_BEHIND_VERDICT = late_pattern(
    r"\s*(?:[,;:.(\[-]+|—|→|because\b|since\b|as\b|因为)\s*(?P<reason>.+)", re.DOTALL
)


def _yes_or_no(item: FormItem, plain: str) -> FormValue:
    """Read a yes or no, and a reason behind it that tells of what the form does and does not take it back."""
    found = _VERDICT.search(_WHOLE_VERDICTS.get(plain, plain))
    if found is None or not _is_own(item, plain[: found.start()], _BESIDE_OPTIONS):
        return _UNREADABLE
    value = FormValue(yes=found["verdict"] in _YES)
    rest = found["rest"].strip(_QUOTES)
    if not _TOKEN.search(rest):
        return value
    behind = _BEHIND_VERDICT.fullmatch(found["rest"])
    if behind is None or _YES_OR_NO & {*_tokens(behind["reason"])}:
        return _UNREADABLE
    telling = _own_words(item).words - _joining_words()
    tells = any(word in telling or word[0].isdigit() for word in _tokens(behind["reason"]))
    return value if tells else _UNREADABLE


# --- options ---------------------------------------------------------------------------------------------------------

_FOLDERS = late_pattern(r"(?<![\w./])\.{0,2}/(?:[\w-]+/)*(?=[\w.-]+$)")
_RANGE = late_pattern(r"(?<=\d)\s?(?:to|至|~)\s?(?=\d)")


@lru_cache(maxsize=1_000)
def option_names(item: FormItem) -> dict[str, str]:
    """Return the options of ``item`` by their names as :func:`label_key` writes them."""
    known = {label_key(alias): choice for choice, names in item.aliases.items() for alias in names}
    return known | {label_key(choice): choice for choice in item.choices}


_JOINED = late_pattern(r"(?<=[^\W\d_])[-_](?=[^\W\d_])")


def label_key(text: str) -> str:
    """Return a label without case, widths, marks around it and hyphens between its words."""
    return _JOINED.sub(" ", normalise(text).strip("<>[]{}" + _QUOTES))


Words = tuple[str, ...]


@lru_cache(maxsize=1_000)
def _options_by_words(item: FormItem) -> dict[Words, str]:
    """Return the options by the words of their names, and by those that tell them apart: ``left`` for ``left half``."""
    full = {tuple(_tokens(choice)): choice for choice in item.choices}
    aliases = {tuple(_tokens(name)): choice for name, choice in option_names(item).items()}
    first, last = _shared(full), _shared([words[::-1] for words in full])
    short: dict[Words, str | None] = {}
    for words, choice in full.items():
        behind = len(words) - last
        for part in (words[first:], words[:behind], words[first:behind]):
            short[part] = choice if short.get(part, choice) == choice else None
    unique = {words: choice for words, choice in short.items() if choice}
    known = unique | aliases | full
    return {words: choice for words, choice in known.items() if words}


def _shared(names: Sequence[Words] | dict[Words, str]) -> int:
    """Return the number of words with which all names begin, where each has one more."""
    lists = [*names]
    if len(lists) < 2:
        return 0
    most = min(len(words) for words in lists) - 1
    return next((at for at in range(most) if len({words[at] for words in lists}) > 1), max(most, 0))


class _Span(NamedTuple):
    word: str
    begin: int
    end: int


_ORDINALS = {
    word: str(number)
    for number, word in enumerate("first second third fourth fifth sixth".split(), start=1)
}
"""Words by which models call numbered options: ``the second image`` for image_2.jpg."""


def _spans(text: str) -> list[_Span]:
    """Return the words of a text that may name options; an ordinal is its number."""
    return [
        _Span(_ORDINALS.get(found[0]) or _stem(found[0]), *found.span())
        for found in _TOKEN.finditer(text)
    ]


class _Mention(NamedTuple):
    option: str
    begin: int
    end: int


def _mentions(item: FormItem, spans: Sequence[_Span]) -> list[_Mention]:
    """Return the options that a text names, the longest name at each word."""
    known = _options_by_words(item)
    longest = max(map(len, known), default=0)
    found: list[_Mention] = []
    at = 0
    while at < len(spans):
        for length in range(min(longest, len(spans) - at), 0, -1):
            part = spans[at : at + length]
            words = tuple(span.word for span in part)
            if length == 1 and _is_counted(spans, at):
                continue
            if option := known.get(words):
                found.append(_Mention(option, part[0].begin, part[-1].end))
                at += length
                break
        else:
            at += 1
    return found


def _is_counted(spans: Sequence[_Span], at: int) -> bool:
    """True for a number in digits directly before a word: ``2 sites``, not ``second site``."""
    number, *behind = spans[at : at + 2]
    in_digits = number.word.isdigit() and number.end - number.begin == len(number.word)
    is_next = bool(behind) and behind[0].begin <= number.end + 1
    return in_digits and is_next and not behind[0].word[0].isdigit()


def _option(item: FormItem, plain: str) -> FormValue:
    """Read the only option that is named, beside words of the form and numbers that give a reason."""
    key = label_key(plain)
    if name := option_names(item).get(key):
        return FormValue(names=(name,))
    text = _RANGE.sub("-", _FOLDERS.sub("", key))
    glued = {_glued(_tokens(text)), _glued(_TOKEN.findall(text))}
    for words, choice in _options_by_words(item).items():
        if len(words) > 1 and _glued(words) in glued:
            return FormValue(names=(choice,))
    mentions = _mentions(item, _spans(text))
    if not mentions:
        return FormValue(names=(key,), listed=False) if key else _UNREADABLE
    around = text
    for mention in reversed(mentions):
        around = f"{around[: mention.begin]} , {around[mention.end :]}"
    if len({mention.option for mention in mentions}) > 1:
        return _UNREADABLE
    if not _is_own(item, _without_numbers(around), _BESIDE_OPTIONS):
        return _UNREADABLE
    return FormValue(names=(mentions[0].option,))


def _glued(words: Iterable[str]) -> str:
    """Return words in one, without an and: ``Armyworms & cutworms``."""
    return "".join(word for word in words if word != "and")


def _without_numbers(text: str) -> str:
    """Return normalised text without its numbers and their units."""
    kept, at = "", 0
    while numeral := NUMERAL.search(text, at):
        kept += text[at : numeral.start()] + " "
        at = numeral_value(text, numeral)[1]
        if unit := unit_at(text, at):
            at = unit[1]
    return NUMBER_WORD.sub(" ", kept + text[at:])


_BETWEEN = late_pattern(r"[,;、，；\n]|\s(?:and|和)\s")


def _options(item: FormItem, plain: str) -> FormValue:
    known = option_names(item)
    parts = [part.strip("[]" + _QUOTES) for part in _BETWEEN.split(plain.strip("[]" + _QUOTES))]
    if plain in known:
        return FormValue(names=(known[plain],))
    values = [_option(item, part) for part in parts if part]
    if not values:
        return _UNREADABLE
    if not all(value.readable for value in values):
        return _UNREADABLE
    names = dict.fromkeys(name for value in values for name in value.names)
    return FormValue(names=tuple(names), listed=all(value.listed for value in values))


# --- names without options -------------------------------------------------------------------------------------------

_SCIENTIFIC = late_pattern(r"scientific|latin|species|学名|拉丁")
_BINOMIAL = late_pattern(r"[A-Z][a-z]+ (?:x |× )?[a-z][a-z-]+")
_AUTHOR = late_pattern(r"\s(?:\([A-Z][\w.&' ]*\)\s?)?[A-Z][\w.]*\.?(?:[\w.&' ]*)")
"""Author behind a scientific name: ``(L.) R.M.King & H.Rob.``."""
_NAMES = late_pattern(r"[()\[\],;/]|\s-\s")
_ABBREVIATED = late_pattern(r"[a-z]\. ?[a-z]{3,}")


def _open_name(item: FormItem, written: str) -> FormValue:
    """Read one name; of a name with another one in brackets, the scientific one where that is asked for."""
    is_scientific = _SCIENTIFIC.search(normalise(item.label)) is not None
    written = _without_lead(item, written)
    name = _BINOMIAL.match(written) if is_scientific else None
    if name and _AUTHOR.fullmatch(written, name.end()):
        written = name[0]
    is_one = True
    parts = [part.strip(_QUOTES) for part in _NAMES.split(written) if part.strip(_QUOTES)]
    if len(parts) > 1:
        scientific = [part for part in parts if _is_binomial(item, part)]
        others = [part for part in parts if part not in scientific]
        if is_scientific and len(scientific) == 1 and all(_is_name(item, part) for part in others):
            written = scientific[0]
        elif is_scientific:
            return _UNREADABLE
        else:
            written = parts[0] if "(" in written else written
            is_one = _has_cjk(parts[-1]) and not _has_cjk(written)
    key = label_key(written)
    if not key or _ABBREVIATED.match(key) or _turning_words() & {*_tokens(key)}:
        return _UNREADABLE
    return FormValue(names=(key,), listed=is_one)


def _is_binomial(item: FormItem, name: str) -> bool:
    """True for two words like a scientific name, none of them from the form: not ``Siam weed`` where it says weed."""
    own = _own_words(item).words
    return _BINOMIAL.fullmatch(name) is not None and own.isdisjoint(_tokens(normalise(name)))


def _is_name(item: FormItem, text: str) -> bool:
    """True for ``Siam weed`` and Chinese characters, not for a remark as ``misidentified``."""
    own = _own_words(item).words
    return _has_cjk(text) or text[0].isupper() or not own.isdisjoint(_tokens(normalise(text)))


def _has_cjk(text: str) -> bool:
    return any(char > "\u2e80" for char in text)


_LEAD_OF_NAME = late_pattern(r"(?P<lead>[^()]*?(?:\bis|:|是|为))\s*(?P<name>\S.*)", re.IGNORECASE)


def _without_lead(item: FormItem, written: str) -> str:
    """Return a name without the words of the form before it: ``The scientific name of the weed is ...``."""
    lead = _LEAD_OF_NAME.fullmatch(written)
    return lead["name"] if lead and _is_own(item, normalise(lead["lead"])) else written


# --- numbers ---------------------------------------------------------------------------------------------------------

_EQUALS = late_pattern(r"\s*[=≈]\s*")
_ABOUT = late_pattern(rf"(?:{APPROXIMATE}|[~≈=:])\s*$")
_WIDEST_MARGIN = 0.2
"""Largest margin of a value, as a share of it: ``75 ± 3 mm`` gives an error, ``190 ± 150`` no value."""
_SYMBOL = late_pattern(r"[a-z]")
_BRACKETED_MARGIN = late_pattern(r"\(\s?(?:±|\+/-)\s?([^()]*)\)")
_OPERATED = late_pattern(r"[+*×÷·/]|(?<![a-z])x(?![a-z])|\s-\s")
_SAME = late_pattern(
    r"\s*(?:\((?:(?:or|或|=|≈|i\.e\.,?)\s?)?(?P<inner>[^()]*)\)|[=≈]\s?(?P<other>.*))"
)
_MINUS = late_pattern(r"\d\s?-\s?\d")
_TIMES = late_pattern(r"\s?(?:x|×|times|-?fold|倍)(?![a-z])")
_TO_ONE = late_pattern(r"(?<=\d)\s?(?::|to|比)\s?1(?!\d|[.,]\d)")
"""Second half of a ratio to one, ``9.24 : 1``; no range goes down to 1."""
_THOUSANDS_POINT = late_pattern(r"\d{1,3}\.\d{3}(?![\d.,])")
_MONEY = late_pattern(r"\s?[€$£¥₹]")


def _number(item: FormItem, plain: str, chosen: frozenset[str]) -> FormValue:
    """Read one number. ``others``: words of options that it may be of though it should not, as of the other half."""
    others = _context_options(item) - chosen
    text = _result(item, plain, others)
    for start in _starts(item, text, others):
        if (value := _number_at(item, text[start:], others)) is not None:
            return value
    return _UNREADABLE


def _is_of_item(item: FormItem, text: str, others: frozenset[str]) -> bool:
    return _is_own(item, text) and others.isdisjoint(_tokens(text))


def _result(item: FormItem, plain: str, others: frozenset[str]) -> str:
    """Return a text without what stands before an equals sign and gives no value: words of the form, calculations."""
    if item.unit is None:
        plain = _TO_ONE.sub(" times", plain)
    parts = _EQUALS.split(plain)
    while len(parts) > 1 and (
        _is_of_item(item, parts[0], others)
        or _SYMBOL.fullmatch(parts[0])
        or (_is_calculation(parts[0]) and not _is_wrong(parts[0], parts[1]))
    ):
        parts.pop(0)
    return _BRACKETED_MARGIN.sub(r"± \1", " = ".join(parts))


def _is_calculation(text: str) -> bool:
    """True for a text with signs of calculation: ``(66.2 mm + 68.9 mm) / 2``, ``10 rows x 19 trees``."""
    return bool(_OPERATED.search(text)) and _turning_words().isdisjoint(_tokens(text))


def _is_wrong(calculation: str, result: str) -> bool:
    """True for ``53.3 * 3 = 26.7``; False if the calculation cannot be followed."""
    told = quantity_head(result)
    plain = _NO_ARITHMETIC.sub("", calculation.translate(_ARITHMETIC)).replace(",", "")
    try:
        value = evaluate(plain)
    except ExpressionError:
        return False
    if told is None or isinstance(value, bool) or not isinstance(value, int | float):
        return False
    # Percent are written without their factor, and amounts in another unit than their parts.
    low = told.quantity.low
    return value != low if not low else not _is_power_of_ten(value / low)


_ARITHMETIC = str.maketrans({"×": "*", "x": "*", "·": "*", "÷": "/"})
_NO_ARITHMETIC = late_pattern(r"[^\d.,+*/()\s-]+|\^\S+")


def _is_power_of_ten(ratio: float) -> bool:
    """True if two numbers have the same digits, but for rounding."""
    if ratio <= 0:
        return False
    exponent = log10(ratio)
    return abs(exponent - round(exponent)) < _SAME_DIGITS


_SAME_DIGITS = 0.02
"""Largest difference of two logarithms of numbers with the same digits: 5 %, the rounding of two digits."""


def _starts(item: FormItem, text: str, others: frozenset[str]) -> Iterator[int]:
    """Yield where the value may begin: at once, or behind words of the form (``The diameter is 80.7 mm``)."""
    yield 0
    numbers = [*NUMERAL.finditer(text)] or [*NUMBER_WORD.finditer(text)]
    for number in numbers:
        lead = _ABOUT.sub("", text[: number.start()].rstrip("€$£¥₹ "))
        if lead and _is_of_item(item, lead, others):
            yield number.start()


def _number_at(item: FormItem, text: str, others: frozenset[str]) -> FormValue | None:
    """Return the value of the number with which ``text`` begins; None if the rest may change what is meant."""
    head = quantity_head(text)
    if head is None or head.margin > _WIDEST_MARGIN * abs(head.quantity.low):
        return None
    restated = _restated(item, head.quantity, text[head.end :])
    if restated is None:
        return None
    quantity, rest = restated
    is_money = bool(head.money)
    if quantity.unit is None and head.money is None and (sign := _MONEY.match(rest)):
        is_money = True
        rest = rest[sign.end() :]
    if quantity.unit is not None and not _counts_own(item, text[: head.end]):
        return None
    is_bare = item.unit is None and quantity.unit is None
    times = _TIMES.match(rest) if is_bare else None
    if times:
        rest = rest[times.end() :]
        if not _continues_ratio(item, rest):
            return None
    if quantity.is_share and not _is_of_its_whole(item, rest):
        return None
    # A ratio may name what it is a ratio to: 9.24 times the area of the crop.
    if not _may_follow(item, quantity, rest, frozenset() if times else others):
        return None
    if is_money and not is_bare:
        return FormValue(listed=False)
    ends = _ends(item, quantity)
    is_listed = ends is not None and not _is_ambiguous(item, quantity, text)
    return FormValue(number=ends, listed=is_listed)


def _restated(item: FormItem, quantity: Quantity, rest: str) -> tuple[Quantity, str] | None:
    """Read what repeats a value behind it, in brackets or after an equals sign: the same in another unit, or how it
    was found.

    Returns:
        The value and the text behind its repetition; brackets with another content stay in this text. None if the
        repetition contradicts the value.
    """
    same = _SAME.match(rest)
    if same is None:
        return quantity, rest
    inner = (same["inner"] if same["inner"] is not None else same["other"]).strip(" .")
    behind = rest[same.end() :]
    other = quantity_head(inner)
    if other is not None and not inner[other.end :].strip(" ."):
        both = in_both(quantity, other.quantity)
        return None if both is None else (both, behind)
    if _is_way_to_value(item, inner):
        return quantity, behind
    return None if same["inner"] is None else (quantity, rest)


def _is_way_to_value(item: FormItem, text: str) -> bool:
    """True for a calculation in words of the form; a minus sign between numbers may be a range instead."""
    if not _is_calculation(text) or _MINUS.search(text):
        return False
    return _is_own(item, _OPERATED.sub(" ", _without_numbers(text)))


def _continues_ratio(item: FormItem, rest: str) -> bool:
    """True if a ratio goes on as its label does: not ``9.24 times smaller`` where the larger one is asked for."""
    may_follow = _joining_words() | {_first_telling(item.label)}
    return may_follow.issuperset(_tokens(rest)[:1])


def _is_ambiguous(item: FormItem, quantity: Quantity, text: str) -> bool:
    """True if the written number may stand for another one of the item."""
    # Below 1 without a sign may be a fraction where percent are asked for.
    is_fraction = quantity.unit is None and 0 < abs(quantity.high) < 1
    if item.unit == "%" and is_fraction:
        return True
    # Pixels are counted, so that a point before three digits may stand between thousands.
    return item.unit == "px" and _THOUSANDS_POINT.match(text) is not None


def _is_of_its_whole(item: FormItem, rest: str) -> bool:
    """True unless a share is of another whole: ``27.3 % of the buildings`` for a share of a half."""
    words = _tokens(rest)
    if words[:1] != ["of"]:
        return True
    label = _tokens(normalise(item.label))
    wholes = {_first_telling(part) for part in normalise(item.label).split(" of ")[1:]}
    told = [word for word in words if word in label and word not in _joining_words()]
    return not wholes or not told or told[0] in wholes


def _first_telling(text: str) -> str:
    """Return the first word that is no article or the like: leaf for ``the leaf area``; empty if there is none."""
    return next((w for w in _tokens(normalise(text)) if w not in _joining_words()), "")


def _counts_own(item: FormItem, text: str) -> bool:
    """True unless a density is of what the form does not ask for: ``362 dead trees/ha``."""
    found = _COUNTED.search(text)
    if found is None:
        return True
    nouns = [word for word in found["noun"].split() if unit_at(f" {word}", 0) is None]
    return _is_own(item, " ".join(nouns))


_COUNTED = late_pattern(r"\d\s?(?P<noun>[a-z][a-z -]{3,}?)(?:\s?[/·]| per )")


def _may_follow(item: FormItem, quantity: Quantity, rest: str, others: frozenset[str]) -> bool:
    """True if what stands behind a number does not change what is meant: words of the form, or its unit again."""
    told = rest.strip(" ()[].,;:")
    if not told:
        return True
    if (unit := unit_at(f" {told}", 0)) and unit[1] == len(told) + 1:
        return quantity.unit is None or unit[0].exponents == quantity.unit.exponents
    first = _tokens(told)[:1]
    is_noun = rest[:2].strip()[:1].isalpha() and not {*first} & _joining_words()
    if item.unit is not None and quantity.unit is None and is_noun:
        return False  # 1265 trees where m² are asked for
    in_label = re.compile(rf"{WORD_START}{re.escape(told)}{WORD_END}")  # 1O is not 1 because of "o"
    if in_label.search(normalise(item.label)) and not {*first} & _turning_words():
        return True
    return _is_of_item(item, told, others)


def _ends(item: FormItem, quantity: Quantity) -> tuple[float, float] | None:
    """Return both ends of a quantity in the unit of the item, or in the one that its label names."""
    unit = quantity.unit
    if item.unit is not None:
        in_pixels = unit is not None and unit.symbol == "px^2" and item.unit == "px"
        # An area in pixels is a number of pixels.
        return (quantity.low, quantity.high) if in_pixels else quantity.ends_in(item.unit)
    if quantity.is_share:
        return quantity.ends_in("fraction")
    if unit is None:
        return quantity.low, quantity.high
    named = [each for each in _units_in(item.label) if each.exponents == unit.exponents]
    if any(each.symbol == unit.symbol for each in named):
        return quantity.low, quantity.high
    if len(named) == 1:
        return quantity.ends_in(named[0].symbol)
    # An amount that the question asks for over some time may be given by this time: litres per week.
    amount, _, time = unit.symbol.rpartition("/")
    whole = UNITS.get(amount) or read_unit(amount) if time in _TIMES_OF_USE else None
    return _ends(item, quantity._replace(unit=whole)) if whole else None


_TIMES_OF_USE = ("day", "week", "month", "year")


@lru_cache(maxsize=1_000)
def _units_in(label: str) -> tuple[Unit, ...]:
    """Return the units that a label names: ``litres of water``."""
    plain = normalise(fold_case(label))
    found = (unit_at(plain, word.start()) for word in _UNIT_WORD.finditer(plain))
    return tuple(dict.fromkeys(unit for unit, _ in filter(None, found)))


_UNIT_WORD = late_pattern(r"[^\W\d_]+|%")

# --- TeX and HTML ----------------------------------------------------------------------------------------------------

_ANGLED = late_pattern(r"<([^<>]*\d[^<>]*)>")
_TEX_SPACE = late_pattern(r"\\[,;: !]|\\q?quad|(?<=[\d}])~|(?<=\{)~")
_BOLD = late_pattern(r"\*\*(?![-+]?\d)|`|(?<![*\w])\*(?=[^\W\d])|(?<=[^\W\d])\*(?![*\w])")
_STRUCK = late_pattern(r"~~[^~\n]*~~|<(?P<tag>s|del|strike)>[^<>\n]*</(?P=tag)>")
_TAG = late_pattern(r"</?(?:b|strong|i|em|u|code|mark|span)>", re.IGNORECASE)
_RAISED = late_pattern(r"<sup>([-−+]?\d+)</sup>")
_TEX_TEXT = late_pattern(r"\\(?:text|math)(?:rm|bf|it|sf)?\s?\{([^{}]*)\}")
_FRACTION = late_pattern(r"\\[dt]?frac\s?\{([^{}]*)\}\s?\{([^{}]*)\}")
_TEX = late_pattern(r"\$|\\(?:left|right|boxed|text|mathrm)(?![a-z])|\\[()\[\]]|[{}]")
_TEX_SIGNS = {
    "\\times": "x", "\\cdot": "·", "\\div": "÷", "\\approx": "≈", "\\pm": "±", "\\%": "%", "\\_": "_", "\\#": "#",
    "\\sim": "~", "\\&": "&", "{,}": ",", "^\\circ": "°",
}  # fmt: skip


_MINUS_WORD = late_pattern(r"(?<![^\W_])(?:minus|negative|负)\s?(?=\d)", re.IGNORECASE)
_WIDE_BRACKETS = str.maketrans("（）", "()")


def _as_quotient(fraction: re.Match[str]) -> str:
    parts = (f"({part})" if _OPERATED.search(part) else part for part in fraction.groups())
    return "/".join(parts)


def without_tex(text: str) -> str:
    """Return ``text`` without what is struck out, and without the signs of TeX and HTML.

    ``24,000 m^{2}``, ``$3.2\\text{ ha}$``, ``m<sup>2</sup>``, ``~~8~~ 9``.
    """
    text = _TAG.sub("", _STRUCK.sub(" ", text))
    text = _BOLD.sub("", _RAISED.sub(r"^\1", text))
    for sign, plain in _TEX_SIGNS.items():
        text = text.replace(sign, plain)
    while (shorter := _TEX_TEXT.sub(r"\1", _TEX_SPACE.sub(" ", text))) != text:
        text = shorter
    return _TEX.sub("", _FRACTION.sub(_as_quotient, text))


_INCHES = late_pattern(r"(?<=\d)\s?[\"″]$")


def _bare(text: str) -> str:
    """Return ``text`` without TeX, HTML and the marks around it; the sign of inches is no such mark."""
    text = text.strip()
    if not text.startswith(('"', "``")):
        text = _INCHES.sub(" in", text)
    plain = _MINUS_WORD.sub("-", without_tex(text).translate(_WIDE_BRACKETS))
    return _ANGLED.sub(r"\1", plain).strip(" \t*`\"'|,;。")


def _plain(text: str) -> str:
    return normalise(fold_case(_bare(text))).strip(" \t*`\"'|,;。")
