"""Reader of the chosen options in a reply to a multiple-choice or true-or-false question."""

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from agrotools.scoring.choices.announced_answers import (
    FORCES,
    Claim,
    affirmed_claims,
    announced_claims,
    closing_claim,
    filled_blank_claim,
    is_conditional,
    judgement_claims,
    opening_claim,
    sentence_start,
    with_clear_claims,
)
from agrotools.scoring.choices.named_options import (
    ChoiceItem,
    Kind,
    Listing,
    ReplyText,
    as_reply_text,
    listing_at,
    read_item,
    without_options,
)
from agrotools.scoring.choices.reply_text import any_of, lexicon, pattern_of, prepared

LONGEST_CANDIDATE = 200
NEAR = 60
"""Number of characters after an answer within which words can retract it."""
NOTHING = "nothing to read"
EXCLUSIVE = "answers exclude each other"


class ChoiceReading(NamedTuple):
    """Options read from a reply.

    ``letters`` follows the order of the options and is empty if no answer can be read. ``rule`` names the deciding
    rule, ``candidate`` is the prepared text that was read, and ``ambiguous`` is True if the reply gives several
    answers to a question that has one."""

    letters: tuple[str, ...]
    rule: str
    candidate: str = ""
    ambiguous: bool = False


_BARE = re.compile(r"\s*([A-Z]{1,8}(?:(?:[、,，;；.。．]\s*|\s+)[A-Z]{1,8})*)\s*[。.．]?\s*")
_RUN = re.compile(r"[A-Z]+")
_ONE = re.compile(r"\s*(?:(?:正确)?(?:答案|选项)\s*(?:是|为)?\s*[:：]?\s*|Answer\s*:\s*)?([A-Z])\s*[。.．]?\s*")
"""Reply that consists of a single letter. Most replies do, and they are read without parsing the options."""


def read_choices(reply: str, options: Mapping[str, str], kind: Kind) -> ChoiceReading:
    """Return the options that ``reply`` finally chooses.

    ``options`` maps letters to texts, in order; ``kind`` says how many may be chosen. Thinking is ignored; of a reply
    longer than 32,000 characters only the first 8,000 and the last 24,000 are read. The function never raises and
    never guesses: two answers that exclude each other, or a letter that is not an option, give an empty reading.
    """
    if len(reply) <= LONGEST_CANDIDATE and (one := _ONE.fullmatch(reply)) and one[1] in options:
        return ChoiceReading((one[1],), "one letter", one[1])
    item = read_item(options, kind)
    if len(reply) <= LONGEST_CANDIDATE and (bare := _BARE.fullmatch(reply)):
        runs = _RUN.findall(bare[1])
        known = frozenset(item.letters[letter] for run in runs for letter in run if letter in item.letters)
        whole = all(len(set(run)) == len(run) and item.letters.keys() >= set(run) for run in runs)
        if whole and (kind == "multiple" or len(known) == 1):
            return ChoiceReading(item.ordered(known), "bare letters", bare[1])
    text = without_options(as_reply_text(prepared(reply, item.keys)), item)
    return _read(text, item) if text.text else ChoiceReading((), "empty")


def _read(reply: ReplyText, item: ChoiceItem) -> ChoiceReading:
    claims = _before_further_questions(reply, _claims(reply, item))
    strong = [claim for claim in claims if claim.force != "weak"]
    if not strong and (together := exception_claim(reply, item) or all_options_claim(reply, item)):
        claims = with_clear_claims([], [together], claims)
    if reading := _settled(reply, item, claims):
        return reading
    if item.truth is None and (reading := _by_verdicts(reply, item)):
        return reading
    if filled := filled_blank_claim(reply, item):
        return _reading(reply, item, filled.listing.keys, filled.rule, filled.start, filled.end)
    if item.truth is None and (restated := restated_options(reply, item)):
        return _reading(reply, item, restated.keys, restated.rule, restated.start, restated.end)
    return ChoiceReading((), NOTHING)


def _claims(reply: ReplyText, item: ChoiceItem) -> list[Claim]:
    """Return all claims of the reply in text order."""
    claims = announced_claims(reply, item)
    strong = [claim for claim in claims if claim.force != "weak"]
    claims = with_clear_claims(
        strong, judgement_claims(reply, item) if item.truth else affirmed_claims(reply, item), claims
    )
    if first := opening_claim(reply, item):
        claims = [first, *(claim for claim in claims if claim.start >= first.end)]
    if last := closing_claim(reply, item):
        as_strong = FORCES[FORCES.index(last.force) :]
        if not any(claim.end > last.start for claim in claims if claim.force in as_strong):
            claims = [*(claim for claim in claims if claim.end <= last.start), last]
    return claims


def _before_further_questions(reply: ReplyText, claims: list[Claim]) -> list[Claim]:
    """Return the claims before a further question if one of them is not weak, else all claims."""
    for mark in pattern_of("further_question").finditer(reply.low):
        before = [claim for claim in claims if claim.end <= mark.start()]
        if any(claim.force != "weak" for claim in before):
            return before
    return claims


def _settled(reply: ReplyText, item: ChoiceItem, claims: list[Claim]) -> ChoiceReading | None:
    """Return the reading of the final claim or of two conflicting claims; None if nothing is claimed."""
    strong = [claim for claim in claims if claim.force != "weak"]
    counted = [
        claim
        for claim in claims
        if claim.force != "weak"
        or not strong
        or (claim.start >= strong[-1].end and _is_taken_back(reply, strong[-1], claim))
    ]
    current: Claim | None = None
    clash: Claim | None = None
    earlier: set[str] = set()
    for claim in counted:
        if current is None or _replaces(reply, current, claim, earlier):
            current, clash = claim, None
        elif set(current.listing.keys) != set(claim.listing.keys) or not claim.listing.sound:
            current, clash = claim, clash or current
        earlier |= set(claim.listing.keys)
    if current is None or (current.force == "weak" and not current.listing.sound):
        return None
    if clash is not None:
        return ChoiceReading((), EXCLUSIVE, _cut(reply, clash.start, current.end), True)
    listing = current.listing
    candidate = _cut(reply, listing.start, listing.end)
    if listing.outside:
        return ChoiceReading((), "no such option", candidate)
    if listing.conflict:
        return ChoiceReading((), "letter contradicts the option text", candidate, True)
    if listing.either:
        return ChoiceReading((), "undecided between options", candidate, True)
    return _reading(reply, item, listing.keys, current.rule, listing.start, listing.end)


@cache
def _correction() -> re.Pattern[str]:
    return re.compile(rf"{any_of('correction')}|不(?:(?<=[,。.!?;\s]不)|(?<=\A不))对(?!称|应|等|劲)")


def _is_taken_back(reply: ReplyText, current: Claim, claim: Claim) -> bool:
    """Return True if words shortly after ``current``, or contrasting words before ``claim``, retract ``current``."""
    near = min(claim.start, current.end + NEAR)
    return (
        _correction().search(reply.low, current.end, near) is not None
        or pattern_of("contrast").search(reply.low, max(current.end, sentence_start(reply, claim.start)), claim.start)
        is not None
    )


def _replaces(reply: ReplyText, current: Claim, claim: Claim, earlier: set[str]) -> bool:
    """Return True if ``claim`` may replace ``current`` although the two differ.

    It may if words between them retract ``current``, or if it sums up all options that were claimed ``earlier``."""
    if _is_taken_back(reply, current, claim):
        return True
    # 选A…选C…答案AC lists all options that were claimed one by one before.
    return len(claim.listing.keys) > 1 and earlier <= set(claim.listing.keys)


def _by_verdicts(reply: ReplyText, item: ChoiceItem) -> ChoiceReading | None:
    """Return the options that the reply calls right; in single-choice questions also the only one not called wrong."""
    called = option_verdicts(reply, item)
    if called.right:
        whole = len(called.right) + len(called.wrong) == len(item.keys)
        if item.kind == "multiple" and not whole and not _finished(reply, called.end):
            return None
        return _reading(reply, item, called.right, "called right", called.start, called.end)
    if item.kind == "single" and len(called.wrong) == len(item.keys) - 1 > 0:
        open_keys = tuple(key for key in item.keys if key not in called.wrong)
        return _reading(reply, item, open_keys, "the only option left", called.start, called.end)
    return None


_FULL_STOP = re.compile(r"[。.!?;)\]】」\"'|√×]\s*\Z")


def _finished(reply: ReplyText, verdict_end: int) -> bool:
    """Return True if a reply that discusses each option is complete: it ends with a full stop or its last verdict."""
    return len(reply.text) - verdict_end <= 2 or _FULL_STOP.search(reply.text) is not None


def _reading(
    reply: ReplyText, item: ChoiceItem, keys: tuple[str, ...], rule: str, start: int, end: int
) -> ChoiceReading:
    candidate = _cut(reply, start, end)
    if item.kind != "multiple" and len(keys) > 1:
        return ChoiceReading((), "several options in a single-choice answer", candidate, True)
    return ChoiceReading(item.ordered(frozenset(keys)), rule, candidate)


def _cut(reply: ReplyText, start: int, end: int) -> str:
    return reply.text[start : min(end, start + LONGEST_CANDIDATE)].strip()


# --- options chosen without an announcement: all of the above, all but C, called right, restated ---------------------

MOST_MENTIONS = 400
"""Maximum number of mentions of options that are examined, counted from the end."""
_NUMERALS = {"两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7}
_SENTENCE_END = re.compile(r"[。\n;!?]|\.(?=\s|\Z)")
_MENTION = re.compile(r"(?<![A-Za-z0-9_°'/])(?<![A-Za-z0-9]-)[A-Z]{1,8}(?![A-Za-z0-9_])")
_LABEL_MARK = re.compile(r"[^\S\n]*[.:、)\"'][^\S\n]*")
_SHORT = re.compile(r"(?P<right>对|(?<=[:( ])是)(?=[\s,。;!.)的]|\Z)|(?:错|(?<=[:( ])否)(?=[\s,。;!.)]|\Z)")
_BEFORE_BOTH = frozenset("\n ,。;:!?\"'是选为即")


@cache
def _all() -> re.Pattern[str]:
    each = (
        r"[个项者条种](?:选项|说法|措施|因素|途径|方法|做法|方式|都|全部?|均|皆|全都|应|该|应该|可)*"
        r"(?:是|对|正确|应?选|符合|可以)"
    )
    numbers = "|".join(f"{numeral}{each}" for numeral in [*_NUMERALS, *"234567"])
    return re.compile(f"{any_of('all')}|{numbers}")


@cache
def _not_letter() -> re.Pattern[str]:
    return re.compile(rf"{any_of('not_letter_before')}[\s-]?\Z")


class Verdicts(NamedTuple):
    """Options called right and options called wrong, in order. An option that is called both is in neither tuple."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]
    start: int
    end: int


def all_options_claim(reply: ReplyText, item: ChoiceItem) -> Claim | None:
    """Return the claim of 以上都是, 全选 or "all of the above".

    It claims the option with that text, else all options of a multiple-choice question."""
    statements = [
        match
        for match in _all().finditer(reply.low)
        # A、B都对 does not refer to all options.
        if match.start() == 0 or match[0][0] not in "都均" or reply.low[match.start() - 1] in _BEFORE_BOTH
    ]
    if not statements:
        return None
    match = statements[-1]
    number = _NUMERALS.get(match[0][0]) or (int(match[0][0]) if match[0][0].isdigit() else len(item.keys))
    if number != len(item.keys):
        return None
    option_key = next((key for text, key in item.texts if pattern_of("all").fullmatch(text)), None)
    keys = (option_key,) if option_key else item.keys if item.kind == "multiple" else ()
    return Claim(Listing(match.start(), match.end(), keys), "stated", "all of them") if keys else None


def exception_claim(reply: ReplyText, item: ChoiceItem) -> Claim | None:
    """Return the claim of 除了C都对, "all but C" or D错,其余均正确.

    It claims the options that are not excepted, or the excepted ones if the reply calls the rest wrong."""
    for word in list(pattern_of("except").finditer(reply.low))[-MOST_MENTIONS:][::-1]:
        listing = listing_at(reply, word.end(), item)
        if listing is None or not listing.sound:
            continue
        start, end = _sentence(reply, word.start())
        right = _first_verdict(reply, listing.end, end)
        if right is None:
            right = _first_verdict(reply, start, word.start())
        keys = listing.keys if right is False else _without(item, listing.keys)
        if item.kind == "multiple" or len(keys) == 1:
            return Claim(Listing(word.start(), listing.end, keys), "stated", "all but these")
    for word in list(pattern_of("rest").finditer(reply.low))[-MOST_MENTIONS:][::-1]:
        start, end = _sentence(reply, word.start())
        right = _first_verdict(reply, word.end(), min(end, word.end() + 20))
        before = option_verdicts(reply, item, start, word.start())
        if right is True and before.wrong and not before.right:
            return Claim(Listing(start, word.end(), _without(item, before.wrong)), "stated", "the rest")
    return None


def _without(item: ChoiceItem, keys: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(key for key in item.keys if key not in keys)


def _sentence(reply: ReplyText, position: int) -> tuple[int, int]:
    """Return start and end of the sentence at ``position``, at most 200 characters in either direction."""
    first = max(0, position - 200)
    start = max((end.end() for end in _SENTENCE_END.finditer(reply.low, first, position)), default=first)
    after = _SENTENCE_END.search(reply.low, position, position + 200)
    return start, after.start() if after else min(len(reply.low), position + 200)


def _verdicts_in(reply: ReplyText, start: int, end: int) -> list[tuple[int, bool]]:
    """Return the ends of words that call something right (True) or wrong (False), in order."""
    judging = lexicon("wrong", "right")
    verdicts = [(word.end(), judging.role(word) == "right") for word in judging.pattern.finditer(reply.low, start, end)]
    if not verdicts:
        verdicts = [(word.end(), word["right"] is not None) for word in _SHORT.finditer(reply.low, start, end)]
    return verdicts


def _first_verdict(reply: ReplyText, start: int, end: int) -> bool | None:
    verdicts = _verdicts_in(reply, start, end)
    return verdicts[0][1] if verdicts else None


def option_verdicts(reply: ReplyText, item: ChoiceItem, start: int = 0, end: int | None = None) -> Verdicts:
    """Return the options that the reply calls right and wrong.

    Each mention is paired with the last verdict before the next mention."""
    stop = len(reply.low) if end is None else end
    mentions: list[Listing] = []
    at = start
    for mention in list(_MENTION.finditer(reply.text, start, stop))[-MOST_MENTIONS:]:
        if mention.start() < at or _not_letter().search(reply.low, max(0, mention.start() - 16), mention.start()):
            continue
        listing = listing_at(reply, mention.start(), item, subject=True)
        if listing is None:
            continue
        at = listing.end
        if listing.sound:
            mentions.append(listing)
    last = start
    verdicts_by_key: dict[str, set[bool]] = {}
    ends = [*(each.start for each in mentions[1:]), stop] if mentions else []
    for listing, following in zip(mentions, ends, strict=True):
        mark = _LABEL_MARK.match(reply.low, listing.end, following)
        begin = mark.end() if mark else listing.end
        close = _SENTENCE_END.search(reply.low, begin, following)
        judgements = _verdicts_in(reply, begin, close.start() if close else following)
        if judgements and not is_conditional(reply, listing.start):
            last = judgements[-1][0]
            for key in listing.keys:
                verdicts_by_key.setdefault(key, set()).add(judgements[-1][1])
    right = tuple(key for key in item.keys if verdicts_by_key.get(key) == {True})
    wrong = tuple(key for key in item.keys if verdicts_by_key.get(key) == {False})
    return Verdicts(right, wrong, mentions[0].start if mentions else start, last)


MOST_FINDS = 200

_SENTENCE = re.compile(r"[^。\n;!?]+[。\n;!?]*")
_FINISHED = re.compile(r"[。.!?;)\]】」\"'…]\s*\Z")


@cache
def _denied() -> re.Pattern[str]:
    return re.compile(rf"{any_of('deny_text')}[^,。;\n]{{0,8}}\Z")


class TextOccurrence(NamedTuple):
    key: str
    start: int
    end: int
    asserted: bool


class Restatement(NamedTuple):
    keys: tuple[str, ...]
    start: int
    end: int
    rule: str


def restated_options(reply: ReplyText, item: ChoiceItem) -> Restatement | None:
    """Return the options whose texts the reply repeats as its answer.

    These are all asserted option texts if their number fits the question, else those of the last concluding sentence.
    None if no option text is asserted, if the reply is cut off, or if a single-choice question gets two options."""
    occurrences = _texts(reply, item)
    asserted = [each for each in occurrences if each.asserted and not is_conditional(reply, each.start)]
    if not asserted:
        return None
    keys = _keys(item, asserted)
    sentences = list(_SENTENCE.finditer(reply.low))
    finished = len(sentences) < 2 or _FINISHED.search(reply.low) is not None
    concluded = [each for each in sentences if pattern_of("conclusion").search(each[0])]
    if not finished:
        return None
    if item.kind == "multiple" or len(keys) == 1:
        return _result(item, asserted, "option text")
    for sentence in reversed(concluded):
        for word in reversed(list(pattern_of("conclusion").finditer(reply.low, sentence.start(), sentence.end()))):
            behind = [each for each in asserted if word.end() <= each.start < sentence.end()]
            if behind:
                one = len(_keys(item, behind)) == 1
                return _result(item, behind, "option text in the conclusion") if one else None
    return None


def _result(item: ChoiceItem, claims: list[TextOccurrence], rule: str) -> Restatement:
    return Restatement(_keys(item, claims), claims[0].start, claims[-1].end, rule)


def _keys(item: ChoiceItem, claims: list[TextOccurrence]) -> tuple[str, ...]:
    return item.ordered(frozenset(each.key for each in claims))


def _texts(reply: ReplyText, item: ChoiceItem) -> list[TextOccurrence]:
    """Return the occurrences of option texts in order, without those that are part of a longer option text."""
    spans: list[tuple[int, int, str]] = []
    for text, key in item.texts:
        at = reply.low.find(text)
        count = 0
        while at >= 0 and count < MOST_FINDS:
            if item.text_at(reply.low, at) == (key, at + len(text)):
                spans.append((at, at + len(text), key))
            at = reply.low.find(text, at + len(text))
            count += 1
    spans.sort(key=lambda span: (span[0], -span[1]))
    matches: list[TextOccurrence] = []
    for start, end, key in spans:
        denied = _denied().search(reply.low, max(0, start - 24), start)
        matches.append(TextOccurrence(key, start, end, not denied))
    return matches
