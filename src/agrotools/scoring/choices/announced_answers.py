"""Claims of an answer in a reply: announced or affirmed by a word, or alone at its start or end.

A claim does not count if its clause only supposes, denies or contrasts it.
"""

import re
from functools import cache
from typing import Literal, NamedTuple

from agrotools.scoring.choices.named_options import (
    ChoiceItem,
    Listing,
    ReplyText,
    block_at,
    listing_at,
    truth_words,
)
from agrotools.scoring.choices.reply_text import BOXED, END, any_of, lexicon, pattern_of

_CLAUSE, _SENTENCE = ("。", "\n", ";", "!", "?", ". ", ","), ("。", "\n", ";", "!", "?", ". ")


def clause_start(reply: ReplyText, position: int, marks: tuple[str, ...] = _CLAUSE) -> int:
    """Return the start of the clause at ``position``, at most 120 characters before it."""
    first = max(0, position - 120)
    return max(first, *(reply.low.rfind(mark, first, position) + 1 for mark in marks))


def sentence_start(reply: ReplyText, position: int) -> int:
    return clause_start(reply, position, _SENTENCE)


_ONE_HAS_TO_CHOOSE = re.compile(r"选|猜|choose|pick|guess|say")


def is_conditional(reply: ReplyText, position: int) -> bool:
    """Return True if the clause at ``position``, or an earlier clause of its sentence, is a condition (如果是A).

    A condition about having to choose (如果一定要选) does not count."""
    condition = pattern_of("condition")
    clause, sentence = clause_start(reply, position), sentence_start(reply, position)
    if condition.search(reply.low, clause, position):
        return True
    if clause == sentence:
        return False
    earlier = condition.search(reply.low, sentence, clause)
    return earlier is not None and _ONE_HAS_TO_CHOOSE.search(reply.low, earlier.end(), clause) is None


@cache
def _denial() -> re.Pattern[str]:
    return re.compile(
        rf"[^\S\n]*(?:{any_of('between_and_denial')}[^\S\n]*){{0,4}}{any_of('deny_after')}(?!\s?[a-z](?![a-z0-9]))|"
        r"\s*,\s*(?:都|均|也|全|但|其实|实际上|却|这|显然|并)*(?:不对|不正确|不符合?|不合适|不成立|不准确|错误?|有误|×)"
        rf"[\u4e00-\u9fff]{{0,4}}{END}"
    )


@cache
def _explanation() -> re.Pattern[str]:
    return re.compile(rf"[\s,]*[(【\[]?\s*{any_of('explanation')}")


_CONTRAST = re.compile(
    r"[\s,]*而?(?:不是|并非|非|不选|别选|(?:not|rather than|instead of)\b)[^\S\n]*选?[a-z](?![a-z0-9])"
)


def is_denied_after(reply: ReplyText, position: int) -> bool:
    """Return True if the text directly after ``position`` calls the preceding options wrong: A和B都不对."""
    return _denial().match(reply.low, position) is not None


def is_contrasted_after(reply: ReplyText, position: int) -> bool:
    """Return True if the text directly after ``position`` denies another letter: D不是A, "D, not A"."""
    return _CONTRAST.match(reply.low, position) is not None


Force = Literal["final", "stated", "weak"]
FORCES: tuple[Force, ...] = ("weak", "stated", "final")
MOST_CLAIMS = 400
"""Maximum number of announcing words that are examined: a quarter from the start, the rest from the end."""
MOST_FILLERS = 12
"""Maximum number of filler words between the announcing word and the answer."""


class Claim(NamedTuple):
    """Options that the reply claims as its answer; ``rule`` names the rule that found them."""

    listing: Listing
    force: Force
    rule: str

    @property
    def start(self) -> int:
        return self.listing.start

    @property
    def end(self) -> int:
        return self.listing.end


class _Patterns(NamedTuple):
    cue: re.Pattern[str]
    filler: re.Pattern[str]
    deny_before: re.Pattern[str]
    deny_between: re.Pattern[str]


_KEYS = r"(?:final_?answer|answer|答案|choice|选项|正确答案|correct_?answer|选择|option|result|结果)"
# After a weak word the clause has to end with the answer: 是A。 but not 是A病斑.
_WEAK_END = re.compile(
    r"[^\S\n]*(?:\Z|[\n,;。.!)\]}】」\"']|才|吧|了|的?选项|项|而不|而非|更|最|因为|由于|这|两|三|四|(?:because|since|rather)\b|\()"
)
_ONLY_END = re.compile(r"[^\S\n]*(?:才?(?:是|为|能|对|属于|符合|正确|满足)|(?:is|are|fits?|matches|remains?)\b)")
_AMONG = re.compile(r"[^\S\n]*(?:中,|中的|之中|里面?的|以外的?|之外的?)")
_CAPITAL_NEAR = re.compile(r"[^A-Z]{0,40}[A-Z]")
_BLANK = re.compile(r"[\s:=>*•·—─–.|-]*")


@cache
def patterns() -> _Patterns:
    return _Patterns(
        cue=re.compile(
            rf"{any_of('final', 'answer', 'choice', 'weak')}|{BOXED}|\"{_KEYS}\"[^\S\n]*:|'{_KEYS}'[^\S\n]*:"
        ),
        filler=re.compile(rf"\s*(?:[:=>\"'(\[【\]】){{}},]|{any_of('filler')})\s*"),
        deny_before=re.compile(rf"{any_of('deny_before')}(?:(?<=[a-z])[^\S\n]+)?\Z"),
        deny_between=re.compile(rf"\s*{any_of('deny_between')}"),
    )


def with_clear_claims(strong: list[Claim], more: list[Claim], claims: list[Claim]) -> list[Claim]:
    """Return ``claims`` and the claims of ``more`` that overlap no claim of ``strong``, in text order."""
    clear = [claim for claim in more if not any(one.start < claim.end and claim.start < one.end for one in strong)]
    return sorted([*claims, *clear], key=lambda claim: claim.start)


def announced_claims(reply: ReplyText, item: ChoiceItem) -> list[Claim]:
    """Return the claims after announcing words, in text order.

    If two words announce the same place, the stronger one counts. An option that the reply denies or only supposes is
    not claimed."""
    announced: list[Claim] = []
    refused: set[int] = set()
    cues = list(patterns().cue.finditer(reply.low))
    for cue in cues if len(cues) <= MOST_CLAIMS else cues[: MOST_CLAIMS // 4] + cues[-3 * MOST_CLAIMS // 4 :]:
        claim = _announced_claim(reply, item, cue)
        if claim is None or claim.start in refused:
            continue
        if _is_denied(reply, cue, claim):
            refused.add(claim.start)
            continue
        if announced and claim.start < announced[-1].end:
            if FORCES.index(claim.force) <= FORCES.index(announced[-1].force):
                continue
            announced.pop()
        announced.append(claim)
    return announced


_OTHER_WORD = re.compile(r"(?<=[首筛挑候优精])选|选[出项拔育种取拨购自]|(?<=[反对适相响效供])应")
_CUES = ("final", "answer", "choice", "weak")
_FORCE_OF: dict[str, Force] = {"final": "final", "answer": "stated", "choice": "stated", "weak": "weak"}
MARKED = "marked as the answer"


def _announced_claim(reply: ReplyText, item: ChoiceItem, cue: re.Match[str]) -> Claim | None:
    """Return the claim after an announcing word; None if it announces no option."""
    word = cue[0]
    marked = word[0] in f"{BOXED}\"'"
    force: Force = "final" if marked else _FORCE_OF[lexicon(*_CUES).role(cue)]
    if _OTHER_WORD.match(reply.low, cue.start()):
        return None
    if force == "weak" and not item.truth and not _CAPITAL_NEAR.match(reply.text, cue.end()):
        return None
    listing = _first_listing(reply, item, cue.end(), small=force != "weak")
    if listing is None:
        return None
    if force == "weak" and ((listing.worded and not item.truth) or not _clause_ends(reply, word, listing.end)):
        return None
    return Claim(listing, force, MARKED if marked else f"behind {word}")


def _is_denied(reply: ReplyText, cue: re.Match[str], claim: Claim) -> bool:
    """Return True if the surrounding words deny the announced options or only suppose them."""
    if is_denied_after(reply, claim.end):
        return True
    if claim.rule == MARKED:
        return False
    before = patterns().deny_before.search(reply.low, max(0, cue.start() - 12), cue.start())
    # 如果一定要选,选A: the first 选 is part of the condition, the option is not.
    return before is not None or (is_conditional(reply, cue.start()) and is_conditional(reply, claim.start))


def _clause_ends(reply: ReplyText, word: str, position: int) -> bool:
    """Return True if the clause of a weak word ends with its options or continues in a permitted way: 只有C是."""
    if word in ("只有", "仅有", "only") and _ONLY_END.match(reply.low, position):
        return True
    return _WEAK_END.match(reply.low, position) is not None or is_contrasted_after(reply, position)


def _first_listing(reply: ReplyText, item: ChoiceItem, position: int, *, small: bool) -> Listing | None:
    """Return the options after an announcing word and filler words, on the same line or the next."""
    known = patterns()
    for _ in range(MOST_FILLERS):
        blank = _BLANK.match(reply.text, position)
        at = blank.end() if blank else position
        if "\n" in reply.text[position:at] and (block := block_at(reply, at, item)):
            return block.listing
        if listing := listing_at(reply, at, item, small=small):
            among = _AMONG.match(reply.low, listing.end)
            if among is None:
                return listing
            position = among.end()
            continue
        if known.deny_between.match(reply.low, at):
            return None
        step = known.filler.match(reply.low, at)
        if step is None:
            return None
        position = step.end()
    return None


def judgement_claims(reply: ReplyText, item: ChoiceItem) -> list[Claim]:
    """Return the claims about the statement of a true-or-false question: 这个说法是错误的."""
    judged_options: list[Claim] = []
    if item.truth is None:
        return judged_options
    for value, start, end in truth_words(reply.low)[-MOST_CLAIMS:]:
        clause = clause_start(reply, start)
        strong = pattern_of("statement").search(reply.low, clause, start)
        before = strong or pattern_of("statement_weak").search(reply.low, clause, start)
        if before is None or is_conditional(reply, start):
            continue
        if not pattern_of("open_question").search(reply.low, clause, end + 2):
            listing = Listing(start, end, (item.truth[value],), worded=True)
            judged_options.append(Claim(listing, "stated" if strong else "weak", f"behind {before[0]}"))
    return judged_options


_AFFIRMING = re.compile(
    r"(?:(?:才|就|即|应)?(?:为|是)(?:本题|此题|该题)?的?(?:(?:正确|最佳|标准)的?(?:选项|选择)|(?:正确|最佳|"
    r"标准)?的?答案)|当选|入选|(?:is|are|would be|must be) (?:therefore |clearly )?(?:my (?:final )?(?:answer|choice)|"
    r"the (?:(?:correct |best |right )?answers?|(?:correct|best|right) (?:options?|choices?|ones?))))(?![a-z])"
)
_AFFIRMATION = re.compile(rf"[^\S\n]*+{_AFFIRMING.pattern}")
CAPITALS = re.compile(r"(?<![A-Za-z0-9_°'/-])[A-Z]{1,8}(?![A-Za-z0-9_])")


def affirmed_claims(reply: ReplyText, item: ChoiceItem) -> list[Claim]:
    """Return the claims that affirm options after naming them: A、B当选, C为正确答案, "B is the best answer"."""
    affirmed: list[Claim] = []
    if not _AFFIRMING.search(reply.low):
        return affirmed
    at = 0
    for mention in list(CAPITALS.finditer(reply.text))[-MOST_CLAIMS:]:
        if mention.start() < at or not (listing := listing_at(reply, mention.start(), item, subject=True)):
            continue
        at = listing.end
        if listing.sound and _AFFIRMATION.match(reply.low, listing.end) and not is_conditional(reply, listing.start):
            affirmed.append(Claim(listing, "stated", "affirmed"))
    return affirmed


_BEFORE_OPENING = re.compile(
    r"(?:\s|[.。,!:—]|嗯|呃|答|回答|解|好的|(?<![A-Za-z])(?:assistant|ai)(?=:))*", re.IGNORECASE
)
_STOP = re.compile(r"[^\S\n]*(?:吧|哦|呢)?[^\S\n]*(?:\n|\Z|[。;!])")
_EXPLAINED = re.compile(r"[^\S\n]*(?:[.:,](?!\d)|\(|(?<=\s)[-—–]+\s)\s*")
_ENUMERATED = re.compile(
    r"(?:^|[;。])[^\S\n]*(?:[-*•·][^\S\n]*)?(?:选项)?\(?([A-Z])(?:选?项|[).:、]|[\u4e00-\u9fff])", re.MULTILINE
)


def opening_claim(reply: ReplyText, item: ChoiceItem) -> Claim | None:
    """Return the claim at the very beginning of the reply, alone on its lines or in its clause."""
    begin = _BEFORE_OPENING.match(reply.text)
    position = begin.end() if begin else 0
    if block := block_at(reply, position, item):
        more = reply.text[block.listing.end :].strip()
        return Claim(block.listing, "stated", "first line" if more else "whole reply")
    listing = listing_at(reply, position, item)
    if listing is None:
        return _hedged_claim(reply, item, position)
    apart = reply.low[listing.end : listing.end + 1] in ("。", ";")
    if not apart and listing_at(reply, position, item, subject=True) != listing:
        return None
    if is_denied_after(reply, listing.end):
        return None
    goes_on = (_explanation().match(reply.low, listing.end) is not None) or is_contrasted_after(reply, listing.end)
    if not _STOP.match(reply.text, listing.end) and not goes_on:
        explained = _EXPLAINED.match(reply.text, listing.end)
        if explained is None or (listing.worded and not item.truth) or _goes_through_options(reply, explained.end()):
            return None
    return Claim(listing, "stated", "first clause")


def _goes_through_options(reply: ReplyText, position: int) -> bool:
    """Return True if the reply begins to discuss each option: A:正确,… or A. …\\nB. …"""
    judged = lexicon("wrong", "right").pattern.match(reply.low, position)
    return judged is not None or len(set(_ENUMERATED.findall(reply.text))) > 1


def _hedged_claim(reply: ReplyText, item: ChoiceItem, position: int) -> Claim | None:
    """Return the claim of a reply that holds only options after at most four hedging words: 大概A, "probably A."."""
    hedge = pattern_of("tentative")
    for _ in range(4):
        step = patterns().filler.match(reply.low, position) or hedge.match(reply.low, position)
        if step is None:
            return None
        position = step.end()
        if (block := block_at(reply, position, item)) and block.listing.end == len(reply.text):
            return Claim(block.listing, "stated", "whole reply")
    return None


_BEHIND_A_COLON = re.compile(r"(?<![A-Za-z]):[^\S\n]*([^\n:]{1,40})\Z")
_LAST_CLAUSE = re.compile(r"(?<![A-Za-z])[,。;:!][^\S\n]*([(\[\"']?[A-Z]{1,7}[)\]\"']?)[^\S\n]*[。.!]?\Z")


def closing_claim(reply: ReplyText, item: ChoiceItem) -> Claim | None:
    """Return the claim alone on the last line, or the weak claim alone in the last clause."""
    last = reply.text.rfind("\n") + 1
    block = block_at(reply, last, item) if last else None
    if block is None or reply.text[block.listing.end :].strip() or block.listing.worded:
        clause = _LAST_CLAUSE.search(reply.text, max(0, len(reply.text) - 20))
        listing = listing_at(reply, clause.start(1), item) if clause else None
        if listing is None and (colon := _BEHIND_A_COLON.search(reply.text, max(0, len(reply.text) - 50))):
            listing = listing_at(reply, colon.start(1), item)
            alone = listing and not CAPITALS.search(reply.text, 0, listing.start)
            if listing and (listing.worded or not alone or not _STOP.match(reply.text, listing.end)):
                listing = None
        return Claim(listing, "weak", "last clause") if listing and listing.sound else None
    above = reply.text[:last].rstrip().rfind("\n") + 1
    if (before := block_at(reply, above, item)) and before.lines > 1:
        return None  # last of several lines: repeated options, or a list that is read after its announcing word
    return Claim(block.listing, "stated", "last line")


_BLANK_TO_FILL = re.compile(r"\([^\S\n]{0,4}([A-Z]{1,7}|[√×对错]|正确|错误)[^\S\n]{0,4}\)")


def filled_blank_claim(reply: ReplyText, item: ChoiceItem) -> Claim | None:
    """Return the claim of a repeated question whose brackets hold the only letter of the reply: 适合的是(C)。"""
    blanks = list(_BLANK_TO_FILL.finditer(reply.text))
    letters = len(CAPITALS.findall(reply.text))
    if len(blanks) != 1 or letters != (0 if item.truth and not blanks[0][1].isascii() else 1):
        return None
    listing = listing_at(reply, blanks[0].start(1), item)
    beside_text = any(reply.low.endswith(text, 0, blanks[0].start()) for text, _ in item.texts)
    if listing is None or (listing.worded and not item.truth) or beside_text or is_denied_after(reply, blanks[0].end()):
        return None
    return Claim(listing, "stated", "filled in")
