"""Where a reply says what its answer is: behind a word that announces it, or alone at its beginning or end."""

import re
from functools import cache
from typing import Literal, NamedTuple

from agrotools.scoring.choices.item import Item, truths_said
from agrotools.scoring.choices.listing import Block, Listing, Text, block_at, listing_at
from agrotools.scoring.choices.prepare import BOXED
from agrotools.scoring.choices.words import END, any_of, lexicon, pattern_of

Force = Literal["final", "said", "weak"]
FORCES: tuple[Force, ...] = ("weak", "said", "final")
MOST_CLAIMS = 400
"""Announcing words looked at, the last ones: who uses more of them has no answer."""
MOST_FILLERS = 12
"""Words that may stand between the announcing word and the answer."""


class Claim(NamedTuple):
    """``rule`` says how it was found; ``opening``: the reply begins with it."""

    listing: Listing
    force: Force
    rule: str
    opening: bool = False

    @property
    def start(self) -> int:
        return self.listing.start

    @property
    def end(self) -> int:
        return self.listing.end


class _Patterns(NamedTuple):
    cue: re.Pattern[str]
    filler: re.Pattern[str]
    hedge: re.Pattern[str]
    deny_before: re.Pattern[str]
    deny_between: re.Pattern[str]
    deny_after: re.Pattern[str]
    explanation: re.Pattern[str]
    supposed: re.Pattern[str]


_KEYS = r"(?:final_?answer|answer|答案|choice|选项|正确答案|correct_?answer|选择|option|result|结果)"
# Behind a weak word the clause has to end with the answer: 是A。 but not 是A病斑.
_WEAK_END = re.compile(
    r"[^\S\n]*(?:\Z|[\n,;。.!)\]}】」\"']|才|吧|了|的?选项|项|而不|而非|更|最|因为|由于|这|两|三|四|(?:because|since|rather)\b|\()"
)
_ONLY_END = re.compile(r"[^\S\n]*(?:才?(?:是|为|能|对|属于|符合|正确|满足)|(?:is|are|fits?|matches|remains?)\b)")
_BLANK = re.compile(r"[\s:=>*•·—─–.|-]*")


@cache
def _patterns() -> _Patterns:
    between = any_of("between_and_denial")
    return _Patterns(
        cue=re.compile(
            rf"{any_of('final', 'answer', 'choice', 'weak')}|{BOXED}|\"{_KEYS}\"[^\S\n]*:|'{_KEYS}'[^\S\n]*:"
        ),
        filler=re.compile(rf"\s*(?:[:=>\"'(\[【\]】){{}},]|{any_of('filler')})\s*"),
        hedge=re.compile(rf"\s*{any_of('tentative')}\s*"),
        deny_before=re.compile(rf"{any_of('deny_before')}(?:(?<=[a-z])[^\S\n]+)?\Z"),
        deny_between=re.compile(rf"\s*{any_of('deny_between')}"),
        deny_after=re.compile(
            rf"[^\S\n]*(?:{between}[^\S\n]*){{0,4}}{any_of('deny_after')}|"
            r"\s*,\s*(?:都|均|也|全|但|其实|实际上|却|这|显然|并)*(?:不对|不正确|不符合?|不合适|不成立|不准确|错误?|有误|×)"
            rf"[\u4e00-\u9fff]{{0,4}}{END}"
        ),
        explanation=re.compile(rf"\s*[(【\[]?\s*{any_of('explanation')}"),
        supposed=re.compile(rf"[^\S\n]*{any_of('supposed')}"),
    )


def claims(said: Text, item: Item) -> list[Claim]:
    """All of them, in order."""
    found = _announced(said, item)
    strong = [claim for claim in found if claim.force != "weak"]
    found = beside(strong, _judgements(said, item) if item.truth else _affirmed(said, item), found)
    opening, closing = _opening(said, item), _closing(said, item)
    if opening:
        found = [opening, *(claim for claim in found if claim.start >= opening.end)]
    if closing and not any(claim.end > closing.start for claim in found if claim.force != "weak"):
        found = [*(claim for claim in found if claim.end <= closing.start), closing]
    return found


def beside(strong: list[Claim], more: list[Claim], found: list[Claim]) -> list[Claim]:
    """``found``, and of ``more`` what overlaps none of the ``strong`` ones, in order."""
    kept = [claim for claim in more if not any(one.start < claim.end and claim.start < one.end for one in strong)]
    return sorted([*found, *kept], key=lambda claim: claim.start)


def denied_after(said: Text, position: int) -> bool:
    """Whether what stands before ``position`` is called wrong right behind it."""
    return _patterns().deny_after.match(said.low, position) is not None


_CLAUSE, _SENTENCE = ("。", "\n", ";", "!", "?", ". ", ","), ("。", "\n", ";", "!", "?", ". ")


def clause_start(said: Text, position: int, marks: tuple[str, ...] = _CLAUSE) -> int:
    """Where the clause at ``position`` begins, at most 120 characters before."""
    first = max(0, position - 120)
    return max(first, *(said.low.rfind(mark, first, position) + 1 for mark in marks))


def sentence_start(said: Text, position: int) -> int:
    return clause_start(said, position, _SENTENCE)


_ONE_HAS_TO_CHOOSE = re.compile(r"选|猜|choose|pick|guess|say")
_SO = re.compile(r"\s*(?:所以|因此|故|therefore|thus|hence|so\b)")


def conditional(said: Text, position: int) -> bool:
    """Whether the clause at ``position`` only supposes (如果是A), or an earlier one of its sentence does (若是水田,答案是A).
    如果一定要选 supposes nothing, and what begins with 所以 does not depend on it."""
    condition = pattern_of("condition")
    clause, sentence = clause_start(said, position), sentence_start(said, position)
    if condition.search(said.low, clause, position):
        return True
    if clause == sentence or _SO.match(said.low, clause):
        return False
    earlier = condition.search(said.low, sentence, clause)
    return earlier is not None and _ONE_HAS_TO_CHOOSE.search(said.low, earlier.end(), clause) is None


def _announced(said: Text, item: Item) -> list[Claim]:
    """What stands behind announcing words. Where two announce the same place, the stronger one counts; what one of
    them denies or only supposes, none claims."""
    found: list[Claim] = []
    refused: set[int] = set()
    for cue in list(_patterns().cue.finditer(said.low))[-MOST_CLAIMS:]:
        claim = _behind(said, item, cue)
        if claim is None or claim.start in refused:
            continue
        if _refused(said, cue, claim):
            refused.add(claim.start)
            continue
        if found and claim.start < found[-1].end:
            if FORCES.index(claim.force) <= FORCES.index(found[-1].force):
                continue
            found.pop()
        found.append(claim)
    return found


_OTHER_WORD = re.compile(r"(?<=[首筛挑候优精])选|选[出项拔育种取拨购自]|(?<=[反对适相响效供])应")
_CUES = ("final", "answer", "choice", "weak")
_FORCE_OF: dict[str, Force] = {"final": "final", "answer": "said", "choice": "said", "weak": "weak"}
MARKED = "marked as the answer"


def _behind(said: Text, item: Item, cue: re.Match[str]) -> Claim | None:
    """The options behind an announcing word, or None where it announces none."""
    word = cue[0]
    marked = word[0] in f"{BOXED}\"'"
    force: Force = "final" if marked else _FORCE_OF[lexicon(*_CUES).role(cue)]
    if _OTHER_WORD.match(said.low, cue.start()):
        return None
    listing = _first_listing(said, item, cue.end(), small=force != "weak")
    if listing is None:
        return None
    if force == "weak" and ((listing.worded and not item.truth) or not _ends(said, word, listing.end)):
        return None
    return Claim(listing, force, MARKED if marked else f"behind {word}")


def _refused(said: Text, cue: re.Match[str], claim: Claim) -> bool:
    """Whether the words around deny what is announced, ask about it or only suppose it."""
    if denied_after(said, claim.end) or _patterns().supposed.match(said.low, claim.end):
        return True
    if claim.rule == MARKED:
        return False
    before = _patterns().deny_before.search(said.low, max(0, cue.start() - 12), cue.start())
    return before is not None or conditional(said, cue.start())


def _ends(said: Text, word: str, position: int) -> bool:
    """Whether the clause ends where a weak word's options do, or goes on as it may: 只有C是."""
    if word in ("只有", "仅有", "only") and _ONLY_END.match(said.low, position):
        return True
    return _WEAK_END.match(said.low, position) is not None


def _first_listing(said: Text, item: Item, position: int, *, small: bool) -> Listing | None:
    """The options behind an announcing word, across words that may stand between, on the same line or the next."""
    known = _patterns()
    for _ in range(MOST_FILLERS):
        blank = _BLANK.match(said.text, position)
        at = blank.end() if blank else position
        if "\n" in said.text[position:at] and (block := block_at(said, at, item)):
            return block.listing
        if listing := listing_at(said, at, item, small=small):
            return listing
        if known.deny_between.match(said.low, at):
            return None
        step = known.filler.match(said.low, at)
        if step is None:
            return None
        position = step.end()
    return None


def _judgements(said: Text, item: Item) -> list[Claim]:
    """Of a true-or-false question: 这个说法是错误的, in a clause that speaks of the statement."""
    found: list[Claim] = []
    if item.truth is None:
        return found
    for value, start, end in truths_said(said.low)[-MOST_CLAIMS:]:
        clause = clause_start(said, start)
        before = pattern_of("statement").search(said.low, clause, start)
        if before is None or pattern_of("open_question").search(said.low, clause, end + 2) or conditional(said, start):
            continue
        found.append(Claim(Listing(start, end, (item.truth[value],), worded=True), "said", f"behind {before[0]}"))
    return found


_AFFIRMATION = re.compile(
    r"[^\S\n]*(?:(?:才|就|即|应)?(?:为|是)(?:本题|此题|该题)?的?(?:正确|最佳|标准)(?:答案|选项|的?选择)|当选|入选|"
    r"(?:is|are|would be|must be) (?:the |therefore the |clearly the )?(?:correct|best|right) (?:answers?|options?|choices?|ones?))"
)
_CAPITALS = re.compile(r"(?<![A-Za-z0-9_°'/-])[A-Z]{1,8}(?![A-Za-z0-9_])")


def _affirmed(said: Text, item: Item) -> list[Claim]:
    """A、B当选, C为正确答案, "B is the best answer"."""
    found: list[Claim] = []
    if not _AFFIRMATION.search(said.low):
        return found
    at = 0
    for mention in list(_CAPITALS.finditer(said.text))[-MOST_CLAIMS:]:
        if mention.start() < at or not (listing := listing_at(said, mention.start(), item)):
            continue
        at = listing.end
        if listing.sound and _AFFIRMATION.match(said.low, listing.end) and not conditional(said, listing.start):
            found.append(Claim(listing, "said", "affirmed"))
    return found


_BLANK_TO_FILL = re.compile(r"\([^\S\n]{0,4}([A-Z]{1,7})[^\S\n]{0,4}\)")


def filled_in(said: Text, item: Item) -> Claim | None:
    """The question repeated with the answer in its brackets, where no other letter stands: 适合的是(C)。"""
    blanks = list(_BLANK_TO_FILL.finditer(said.text))
    if len(blanks) != 1 or len(_CAPITALS.findall(said.text)) != 1:
        return None
    listing = listing_at(said, blanks[0].start(1), item)
    beside_text = any(said.low.endswith(text, 0, blanks[0].start()) for text, _ in item.texts)
    if listing is None or listing.worded or beside_text or denied_after(said, blanks[0].end()):
        return None
    return Claim(listing, "said", "filled in")


_BEFORE_OPENING = re.compile(
    r"(?:\s|[.。,!:—]|嗯|呃|答|回答|解|好的|(?<![A-Za-z])(?:assistant|ai)(?=:))*", re.IGNORECASE
)
_STOP = re.compile(r"[^\S\n]*(?:吧|哦|呢)?[^\S\n]*(?:\n|\Z|[。;!])")
_EXPLAINED = re.compile(r"[^\S\n]*(?:[.:,](?!\d)|\()")
_ENUMERATED = re.compile(r"(?:^|[;。])[^\S\n]*(?:[-*•·][^\S\n]*)?(?:选项)?\(?([A-Z])(?:选?项|[).:、])", re.MULTILINE)


def _opening(said: Text, item: Item) -> Claim | None:
    """An answer at the very beginning, alone on its lines or in its clause."""
    begin = _BEFORE_OPENING.match(said.text)
    position = begin.end() if begin else 0
    if block := block_at(said, position, item):
        more = said.text[block.listing.end :].strip()
        if _echo(block, item) and (more or item.kind != "multiple"):
            return None
        return Claim(block.listing, "said", "first line" if more else "whole reply", opening=True)
    listing = listing_at(said, position, item)
    if listing is None:
        return _hedged(said, item, position)
    if denied_after(said, listing.end) or _patterns().supposed.match(said.low, listing.end):
        return None
    if not _STOP.match(said.text, listing.end) and not _patterns().explanation.match(said.low, listing.end):
        enumerated = len(set(_ENUMERATED.findall(said.text))) > 1
        if enumerated or listing.worded or not _EXPLAINED.match(said.text, listing.end):
            return None
    return Claim(listing, "said", "first clause", opening=True)


def _hedged(said: Text, item: Item, position: int) -> Claim | None:
    """大概A, "probably A.": the whole reply behind at most four words."""
    for _ in range(4):
        step = _patterns().filler.match(said.low, position) or _patterns().hedge.match(said.low, position)
        if step is None:
            return None
        position = step.end()
        if (block := block_at(said, position, item)) and block.listing.end == len(said.text):
            return Claim(block.listing, "said", "whole reply", opening=True)
    return None


def _echo(block: Block, item: Item) -> bool:
    """Whether these lines repeat all options of the question, one by one."""
    return block.lines > 1 and len(block.listing.keys) == len(item.keys) and not block.listing.outside


def _closing(said: Text, item: Item) -> Claim | None:
    """An answer alone on the last line."""
    last = said.text.rfind("\n") + 1
    if not last:
        return None
    block = block_at(said, last, item)
    if block is None or said.text[block.listing.end :].strip() or block.listing.worded:
        return None
    above = said.text[:last].rstrip().rfind("\n") + 1
    if (before := block_at(said, above, item)) and before.lines > 1:
        return None  # the last of several: options repeated, or a list read behind its announcing word
    return Claim(block.listing, "said", "last line")
