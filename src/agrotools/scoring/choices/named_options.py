"""Options named at one place of a reply: by letter, by text or by a word for true or false, alone or as a list."""

import re
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from agrotools.scoring.choices.reply_text import BOXED, END, any_of, lexicon, lowered, plain

Kind = Literal["single", "multiple", "true_false"]
_LETTERS_ONLY = re.compile(r"[a-z]+")


class ChoiceItem(NamedTuple):
    """Options of a question, prepared for reading.

    ``letters`` maps capital letters to keys. ``texts`` holds lower-cased option texts and keys, the longest first,
    without texts that consist of option letters or that two options share. ``begins`` holds the first characters of
    ``texts``, ``names`` the texts of all options in order. ``truth`` holds the keys of true and false if these are the
    two options."""

    kind: Kind
    keys: tuple[str, ...]
    letters: dict[str, str]
    texts: tuple[tuple[str, str], ...]
    begins: frozenset[str]
    names: tuple[str, ...]
    truth: dict[bool, str] | None

    def ordered(self, chosen: frozenset[str]) -> tuple[str, ...]:
        return tuple(key for key in self.keys if key in chosen)

    def text_at(self, low: str, position: int) -> tuple[str, int] | None:
        """Return the key of the option whose text is at ``position`` of a lower-cased text, and the end of its text."""
        if low[position : position + 1] not in self.begins:
            return None
        for text, key in self.texts:
            if low.startswith(text, position) and _whole(low, position, position + len(text)):
                return key, position + len(text)
        return None


def _whole(low: str, start: int, end: int) -> bool:
    """Return True if the span is not part of a longer word or number."""
    before, after = low[start - 1 : start] if start else "", low[end : end + 1]
    pairs = (before, low[start]), (low[end - 1], after)
    if any(one.isascii() and one.isalnum() and other.isascii() and other.isalnum() for one, other in pairs):
        return False
    return not (low[end - 1].isdigit() and after in tuple("%‰.,"))


def read_item(options: Mapping[str, str], kind: Kind) -> ChoiceItem:
    return _item(tuple(options.items()), kind)


@lru_cache(maxsize=512)
def _item(options: tuple[tuple[str, str], ...], kind: Kind) -> ChoiceItem:
    keys = tuple(key for key, _ in options)
    letters = {key.upper(): key for key in keys if len(key) == 1 and key.isascii() and key.isalpha()}
    owners: dict[str, list[str]] = {}
    names: list[str] = []
    for key, text in options:
        name = lowered(plain(text)).strip().strip("。.;, ")
        names.append(name)
        for written in dict.fromkeys((name, name.replace(" ", ""))):
            if written:
                owners.setdefault(written, []).append(key)
    keys_by_text = {name: keys[0] for name, keys in owners.items() if len(keys) == 1}
    texts = [(name, key) for name, key in keys_by_text.items() if not _is_letters(name, letters)]
    texts.sort(key=lambda entry: -len(entry[0]))
    truths = {truth_word(name): key for name, key in keys_by_text.items()} if len(keys) == 2 else {}
    truth = {True: truths[True], False: truths[False]} if True in truths and False in truths else None
    return ChoiceItem(kind, keys, letters, tuple(texts), frozenset(text[0] for text, _ in texts), tuple(names), truth)


def _is_letters(name: str, letters: dict[str, str]) -> bool:
    return _LETTERS_ONLY.fullmatch(name) is not None and all(letter.upper() in letters for letter in name)


@cache
def _alone() -> re.Pattern[str]:
    return re.compile(
        rf"(?:(?P<false>{any_of('false_alone')})|{any_of('true_alone')})(?:的|了|哦|吧|呢)?{END}",
    )


def truth_word(text: str) -> bool | None:
    """Return the truth value that a lower-cased text as a whole states; None if it states none."""
    word_at_start = truth_at(text, 0)
    return word_at_start[0] if word_at_start and word_at_start[1] == len(text) else None


def truth_at(low: str, position: int) -> tuple[bool, int] | None:
    """Return the truth value of the word at ``position`` and the end of that word; None if it is not such a word."""
    words = lexicon("true", "false")
    if match := words.pattern.match(low, position):
        return words.role(match) == "true", match.end()
    match = _alone().match(low, position)
    return (match["false"] is None, match.end()) if match else None


def truth_words(low: str) -> list[tuple[bool, int, int]]:
    """Return the words for true and false in a text, as truth value, start and end."""
    words = lexicon("true", "false")
    return [(words.role(match) == "true", match.start(), match.end()) for match in words.pattern.finditer(low)]


_RUN = re.compile(r"[A-Za-z]+(?![A-Za-z0-9_])")
_OPEN = re.compile(rf"[ \t(\[{{<〔〈【「『《\"'*•{BOXED}]*")
_CLOSE = re.compile(r"[^\S\n]*[)\]}>〕〉】」』》\"'*]+")
_BESIDE = re.compile(r"[^\S\n]*[.、:)(\-\"'\]】=|][^\S\n]*[(\"']?|[^\S\n]+|")
_NOUN = re.compile(r"[^\S\n]*(?:选项|答案|项(?!目)|(?:option|choice|answer)\b)")
_GLOSS = re.compile(r"[^\S\n]*\((?![A-Z]{1,7}\))[^()\n错误应不√×]{1,40}\)")
_STATEMENT = re.compile(r"的?(?:说法|表述|观点|叙述|陈述|描述|命题)")
_CAPITALS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


class NamedOption(NamedTuple):
    """Option denoted by one name, or the options of a run of letters. For the flags see :class:`Listing`."""

    start: int
    end: int
    keys: tuple[str, ...]
    outside: bool = False
    conflict: bool = False
    worded: bool = False


class ReplyText(NamedTuple):
    """Prepared text of a reply, as written and in lower case; positions in the two are the same."""

    text: str
    low: str


def as_reply_text(text: str) -> ReplyText:
    return ReplyText(text, lowered(text))


_GAP = re.compile(r"[\s,;。.、|*-]*[(【]?([A-Za-z])[)】]?[^\S\n]*[.、:)]?[^\S\n]*")


def without_options(reply: ReplyText, item: ChoiceItem) -> ReplyText:
    """Remove the options of the question from a reply that repeats all of them in order and contains more text."""
    begin = end = -1
    for key, name in zip(item.keys, item.names, strict=True):
        at = reply.low.find(name, max(end, 0)) if name else -1
        gap = _GAP.fullmatch(reply.low, max(end, at - 8, 0), at) if at >= 0 else None
        if gap is None or gap[1] != key.lower() or (end >= 0 and at - end > 12):
            return reply
        begin, end = (gap.start(1) if begin < 0 else begin), at + len(name)
    rest = reply.text[:begin] + "\n" + reply.text[end:].lstrip(" ;。.,)】")
    return as_reply_text(rest.strip()) if rest.strip(" \n。.;,*|(【") else reply


@cache
def _after_letter() -> re.Pattern[str]:
    """Return the pattern of texts after a letter that belongs to a name or word: B超, A型, D-葡萄糖, AB两个品种."""
    nouns = any_of("not_letter_nouns")
    return re.compile(
        rf"[^\S\n]?{any_of('not_letter_after')}|[-_][A-Za-z0-9\u4e00-\u9fff]|['°]\w|"
        rf"(?:这?[两三四五几]|[^\S\n]*等)[个种块块家片]?{nouns}|/[A-Za-z]{{2}}|/[H-Z](?![A-Za-z])"
    )


_SPECIES = re.compile(r"\. ?[a-z]{3}")
_STOP = (
    r"\Z|[\n,;、。.!?)\]}】」\"'|:(/&+]|和|与|及|以及|或|还|都|均|全|皆|等|这?[两三四五六七二][个者项]|中的|以外|之外|外|"
    r"(?:and|or|both|because|since)\b"
)
_VERB = r"是|为|对|正确|符合|即|也|不|错|当选|入选|应选|(?:are|is)\b"
_NEXT_LETTER = r"[^\S\n]+[A-Z]{1,3}(?![A-Za-z0-9])"
ITEM_STOP = re.compile(rf"[^\S\n]*(?:选?项)?[^\S\n]*(?:{_STOP})|{_NEXT_LETTER}")
"""Text that may follow an option of a list, without verbs."""
ITEM_END = re.compile(rf"[^\S\n]*(?:选?项)?[^\S\n]*(?:{_STOP}|{_VERB}|选?项)|{_NEXT_LETTER}")
"""Text that may follow an option of a list, including verbs whose subject is the list."""

_RUN_END = re.compile(r"[^\S\n]*(?:\Z|[\n,;、。.!)\]}】」\"'])")


def letters_at(reply: ReplyText, position: int, item: ChoiceItem, *, small: bool) -> NamedOption | None:
    """Return the options of the run of letters at ``position``; with ``small`` lower-case letters count too."""
    run = _RUN.match(reply.text, position)
    if run is None or len(run[0]) > max(len(item.keys), 1) + 1:
        return None
    written, end = run[0], run.end()
    big = written.upper()
    if (written != big and not (small and written.islower())) or len(set(big)) < len(big):
        return None
    if item.truth and big in ("T", "F", "X") and big not in item.letters:
        return None
    known = [item.letters[letter] for letter in big if letter in item.letters]
    outside = len(known) < len(big)
    if written != big and (outside or (len(big) > 1 and not _RUN_END.match(reply.text, end))):
        return None
    if outside and (big not in _CAPITALS if len(big) == 1 else max(big) > "H"):
        return None
    if _after_letter().match(reply.low, end):
        return None
    if _SPECIES.match(reply.text, end):
        return None
    return NamedOption(position, end, tuple(known), outside=outside)


def named_at(reply: ReplyText, position: int, item: ChoiceItem, *, small: bool) -> NamedOption | None:
    """Return the option named at ``position`` by letter (with adjacent text), by text, or as true or false."""
    start = _OPEN.match(reply.low, position)
    at = start.end() if start else position
    if not item.truth and (text := item.text_at(reply.low, at)):
        return _closed(reply, NamedOption(at, text[1], (text[0],), worded=True))
    opened = reply.text[position:at]
    noted = "(" in opened or BOXED in opened or '"' in opened
    letters = letters_at(reply, at, item, small=small or noted)
    if letters is None:
        if item.truth and (truth := truth_at(reply.low, at)):
            statement = _STATEMENT.match(reply.low, truth[1])
            end = statement.end() if statement else truth[1]
            return _closed(reply, NamedOption(at, end, (item.truth[truth[0]],), worded=True))
        return None
    return _with_text(reply, _closed(reply, letters), item)


def _closed(reply: ReplyText, one: NamedOption) -> NamedOption:
    close = _CLOSE.match(reply.text, one.end)
    return one._replace(end=close.end()) if close else one


def _with_text(reply: ReplyText, one: NamedOption, item: ChoiceItem) -> NamedOption:
    """Extend ``one`` over the option text next to its letter; the text of another option sets ``conflict``."""
    noun = _NOUN.match(reply.low, one.end)
    end = noun.end() if noun else one.end
    beside = _BESIDE.match(reply.low, end)
    at = beside.end() if beside else end
    option_text: tuple[str, int] | None
    if item.truth:
        truth = truth_at(reply.low, at)
        option_text = (item.truth[truth[0]], truth[1]) if truth else None
    else:
        option_text = item.text_at(reply.low, at)
    if option_text and len(one.keys) == 1:
        if option_text[0] == one.keys[0]:
            return _closed(reply, one._replace(end=option_text[1]))
        if at > end and ITEM_END.match(reply.text, option_text[1]) and reply.text[end:at].strip() != "、":
            return _closed(reply, one._replace(end=option_text[1], conflict=True))
    gloss = _GLOSS.match(reply.text, end)
    return one._replace(end=gloss.end() if gloss else end)


_SEPARATOR = re.compile(
    r"[^\S\n]*(?:(?P<or>(?:[,、/]\s*)?(?:或者?|还是|亦或|(?:or|nor)\b))|(?P<and>(?:[,;、][^\S\n]*)?(?:和|与|及|以及|"
    r"还有|并且?|同|(?:and|plus)\b))|(?P<close>[、·])|(?P<loose>[,;/&+|])|(?P<to>[-~–至到](?=\s*[A-Za-z](?![A-Za-z])))|"
    r"(?P<adjacent>(?<=[)\]】])(?=[(\[【]))|(?P<space>)(?<=\s)(?!\())"
)


class Listing(NamedTuple):
    """List of options at one place of a reply.

    ``keys`` are in text order. ``outside``: one of the letters is not an option. ``conflict``: a letter is followed by
    the text of another option. ``either``: the options are joined by "or". ``worded``: they are named by text alone."""

    start: int
    end: int
    keys: tuple[str, ...]
    outside: bool = False
    conflict: bool = False
    either: bool = False
    worded: bool = False

    @property
    def sound(self) -> bool:
        return not (self.outside or self.conflict or self.either)


def listing_at(
    reply: ReplyText, position: int, item: ChoiceItem, *, small: bool = False, subject: bool = False
) -> Listing | None:
    """Return the options listed from ``position`` on one line; None if no option is named at ``position``.

    With ``small`` lower-case letters count too. With ``subject`` a verb may follow the list (A,B是对的); otherwise an
    option before a verb belongs to the next clause (选C,A是错的).
    """
    one = named_at(reply, position, item, small=small)
    if one is None:
        return None
    listings, joints = [one], [""]
    while len(listings) <= 2 * len(item.keys):
        joint = _SEPARATOR.match(reply.low, listings[-1].end)
        if joint is None:
            break
        following = named_at(reply, joint.end(), item, small=small or reply.text[listings[0].start].islower())
        loose = joint["loose"] is not None or joint["space"] is not None
        end = ITEM_STOP if loose and not subject else ITEM_END
        bound = joint["and"] is not None or joint["adjacent"] is not None
        if following is None or (not bound and not end.match(reply.text, following.end)):
            break
        if joint["to"] is not None:
            following = _range(listings[-1], following, item)
        listings.append(following)
        joints.append(joint.lastgroup or "")
    count = _one_clause(joints)
    return _joined(listings[:count], either="or" in joints[:count])


def _one_clause(joints: list[str]) -> int:
    """Return the number of options in the first clause: a comma before 、 or after "and" begins another clause."""
    for place, joint in enumerate(joints):
        if joint == "loose" and ("close" in joints[place:] or "and" in joints[:place]):
            return place
    return len(joints)


def _joined(listings: Sequence[NamedOption | Listing], *, either: bool = False) -> Listing:
    keys = tuple(dict.fromkeys(key for each in listings for key in each.keys))
    return Listing(
        listings[0].start,
        listings[-1].end,
        keys,
        outside=any(each.outside for each in listings),
        conflict=any(each.conflict for each in listings),
        either=either and len(keys) > 1,
        worded=all(each.worded for each in listings),
    )


def _range(first: NamedOption, last: NamedOption, item: ChoiceItem) -> NamedOption:
    """Return ``last`` with all options of a range such as ``A-C`` after the first."""
    if first.keys and last.keys and (low := item.keys.index(first.keys[-1])) < (high := item.keys.index(last.keys[0])):
        return last._replace(keys=item.keys[low : high + 1])
    return last


_LINE_BEGIN = re.compile(r"[^\S\n]*(?:[-*•·|]+[^\S\n]*)?(?:\d{1,2}[^\S\n]*[.)、|][^\S\n]*)?")
_LINE_END = re.compile(r"[^\S\n]*(?:这?[两三四五六七]个?(?:选?项)?|吧|哦|呢|等)?[。.;,、|!]*[^\S\n]*(?:\n|\Z)")
_BLANK = re.compile(r"\s*")


class Block(NamedTuple):
    """Consecutive lines that hold only options; ``lines`` is their number."""

    listing: Listing
    lines: int


def block_at(reply: ReplyText, position: int, item: ChoiceItem) -> Block | None:
    """Return the lines from ``position`` on that hold only options, one or several per line."""
    lines: list[Listing] = []
    end = position
    while len(lines) <= len(item.keys):
        begin = _LINE_BEGIN.match(reply.text, end)
        listing = listing_at(reply, begin.end() if begin else end, item, small=True)
        close = _LINE_END.match(reply.text, listing.end) if listing else None
        if listing is None or close is None:
            break
        lines.append(listing._replace(end=close.end()))
        blank = _BLANK.match(reply.text, close.end())
        end = blank.end() if blank else close.end()
    if not lines:
        return None
    return Block(_joined(lines, either=any(each.either for each in lines)), len(lines))
