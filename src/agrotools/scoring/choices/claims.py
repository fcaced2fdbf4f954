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
_BLANK = re.compile(r"[\s:=>*•·-]*")


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
            rf"\s*,\s*(?:都|均|也|全)?(?:不对|不正确|错误?|有误|不选|不是|×){END}"
        ),
        explanation=re.compile(rf"\s*[(【\[]?\s*{any_of('explanation')}"),
        supposed=re.compile(rf"[^\S\n]*{any_of('supposed')}"),
    )


def claims(said: Text, item: Item) -> list[Claim]:
    """All of them, in order."""
    found = _announced(said, item)
    if item.truth:
        found = beside([claim for claim in found if claim.force != "weak"], _judgements(said, item), found)
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


def clause_start(said: Text, position: int, marks: str = "。\n;!?,") -> int:
    """Where the clause at ``position`` begins, at most 120 characters before."""
    first = max(0, position - 120)
    return max(first, *(said.low.rfind(mark, first, position) + 1 for mark in marks))


def conditional(said: Text, position: int) -> bool:
    """Whether the clause at ``position`` only supposes (如果是A), or follows from a clause that does (…,那就是A)."""
    condition = pattern_of("condition")
    clause = clause_start(said, position)
    if condition.search(said.low, clause, position):
        return True
    sentence = clause_start(said, position, "。\n;!?")
    begins = clause + (said.low[clause : clause + 1] == " ")
    follows = clause > sentence and pattern_of("consequence").match(said.low, begins) is not None
    return follows and condition.search(said.low, sentence, clause) is not None


def _announced(said: Text, item: Item) -> list[Claim]:
    """What stands behind announcing words. Where two announce the same place, the stronger one counts."""
    found: list[Claim] = []
    for cue in list(_patterns().cue.finditer(said.low))[-MOST_CLAIMS:]:
        if (claim := _behind(said, item, cue)) is None:
            continue
        if found and claim.start < found[-1].end:
            if FORCES.index(claim.force) <= FORCES.index(found[-1].force):
                continue
            found.pop()
        found.append(claim)
    return found


_OTHER_SELECTION = re.compile(r"(?<=[首筛挑候优精])选|选[出项拔育种取拨购自]")
_CUES = ("final", "answer", "choice", "weak")
_FORCE_OF: dict[str, Force] = {"final": "final", "answer": "said", "choice": "said", "weak": "weak"}


def _behind(said: Text, item: Item, cue: re.Match[str]) -> Claim | None:
    """The claim behind an announcing word, or None where nothing is claimed there."""
    word = cue[0]
    marked = word[0] in f"{BOXED}\"'"
    force: Force = "final" if marked else _FORCE_OF[lexicon(*_CUES).role(cue)]
    if word == "选" and _OTHER_SELECTION.match(said.low, cue.start()):
        return None
    listing = _first_listing(said, item, cue.end(), small=force != "weak")
    if listing is None or denied_after(said, listing.end) or _patterns().supposed.match(said.low, listing.end):
        return None
    if force == "weak" and ((listing.worded and not item.truth) or not _ends(said, word, listing.end)):
        return None
    if not marked and _patterns().deny_before.search(said.low, max(0, cue.start() - 12), cue.start()):
        return None
    if conditional(said, cue.start()):
        return None
    return Claim(listing, force, "marked as the answer" if marked else f"behind {word}")


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


_BEFORE_OPENING = re.compile(r"\s*(?:(?:答|回答|解|好的)\s*[:,。!.]\s*)?")
_STOP = re.compile(r"[^\S\n]*(?:\n|\Z|[。;!,])")
_EXPLAINED = re.compile(r"[^\S\n]*(?:[.:](?!\d)|\()")
_ENUMERATED = re.compile(r"^[^\S\n]*(?:[-*•·][^\S\n]*)?\(?([A-Z])[).:、][^\n]", re.MULTILINE)


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
