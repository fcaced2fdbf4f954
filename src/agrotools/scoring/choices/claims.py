"""Where a reply says what its answer is: behind a word that announces it, or before one that affirms it."""

import re
from functools import cache
from typing import Literal, NamedTuple

from agrotools.scoring.choices.clauses import clause_start, conditional, contrasted_after, denied_after, supposed_after
from agrotools.scoring.choices.item import Item, truths_said
from agrotools.scoring.choices.listing import Listing, block_at, listing_at
from agrotools.scoring.choices.naming import Text
from agrotools.scoring.choices.prepare import BOXED
from agrotools.scoring.choices.words import any_of, lexicon, pattern_of

Force = Literal["final", "said", "weak"]
FORCES: tuple[Force, ...] = ("weak", "said", "final")
MOST_CLAIMS = 400
"""Announcing words looked at: of more, the first quarter and the rest from the end."""
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
    deny_before: re.Pattern[str]
    deny_between: re.Pattern[str]


_KEYS = r"(?:final_?answer|answer|答案|choice|选项|正确答案|correct_?answer|选择|option|result|结果)"
# Behind a weak word the clause has to end with the answer: 是A。 but not 是A病斑.
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


def beside(strong: list[Claim], more: list[Claim], found: list[Claim]) -> list[Claim]:
    """``found``, and of ``more`` what overlaps none of the ``strong`` ones, in order."""
    kept = [claim for claim in more if not any(one.start < claim.end and claim.start < one.end for one in strong)]
    return sorted([*found, *kept], key=lambda claim: claim.start)


def announced(said: Text, item: Item) -> list[Claim]:
    """What stands behind announcing words. Where two announce the same place, the stronger one counts; what one of
    them denies or only supposes, none claims."""
    found: list[Claim] = []
    refused: set[int] = set()
    cues = list(patterns().cue.finditer(said.low))
    for cue in cues if len(cues) <= MOST_CLAIMS else cues[: MOST_CLAIMS // 4] + cues[-3 * MOST_CLAIMS // 4 :]:
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
    if force == "weak" and not item.truth and not _CAPITAL_NEAR.match(said.text, cue.end()):
        return None
    listing = _first_listing(said, item, cue.end(), small=force != "weak")
    if listing is None:
        return None
    if force == "weak" and ((listing.worded and not item.truth) or not _ends(said, word, listing.end)):
        return None
    return Claim(listing, force, MARKED if marked else f"behind {word}")


def _refused(said: Text, cue: re.Match[str], claim: Claim) -> bool:
    """Whether the words around deny what is announced, ask about it or only suppose it."""
    if denied_after(said, claim.end) or supposed_after(said, claim.end):
        return True
    if claim.rule == MARKED:
        return False
    before = patterns().deny_before.search(said.low, max(0, cue.start() - 12), cue.start())
    return before is not None or conditional(said, cue.start())


def _ends(said: Text, word: str, position: int) -> bool:
    """Whether the clause ends where a weak word's options do, or goes on as it may: 只有C是."""
    if word in ("只有", "仅有", "only") and _ONLY_END.match(said.low, position):
        return True
    return _WEAK_END.match(said.low, position) is not None or contrasted_after(said, position)


def _first_listing(said: Text, item: Item, position: int, *, small: bool) -> Listing | None:
    """The options behind an announcing word, across words that may stand between, on the same line or the next."""
    known = patterns()
    for _ in range(MOST_FILLERS):
        blank = _BLANK.match(said.text, position)
        at = blank.end() if blank else position
        if "\n" in said.text[position:at] and (block := block_at(said, at, item)):
            return block.listing
        if listing := listing_at(said, at, item, small=small):
            among = _AMONG.match(said.low, listing.end)
            if among is None:
                return listing
            position = among.end()
            continue
        if known.deny_between.match(said.low, at):
            return None
        step = known.filler.match(said.low, at)
        if step is None:
            return None
        position = step.end()
    return None


def judgements(said: Text, item: Item) -> list[Claim]:
    """Of a true-or-false question: 这个说法是错误的, in a clause that speaks of the statement."""
    found: list[Claim] = []
    if item.truth is None:
        return found
    for value, start, end in truths_said(said.low)[-MOST_CLAIMS:]:
        clause = clause_start(said, start)
        strong = pattern_of("statement").search(said.low, clause, start)
        before = strong or pattern_of("statement_weak").search(said.low, clause, start)
        if before is None or conditional(said, start):
            continue
        if not pattern_of("open_question").search(said.low, clause, end + 2):
            listing = Listing(start, end, (item.truth[value],), worded=True)
            found.append(Claim(listing, "said" if strong else "weak", f"behind {before[0]}"))
    return found


_AFFIRMING = re.compile(
    r"(?:(?:才|就|即|应)?(?:为|是)(?:本题|此题|该题)?的?(?:(?:正确|最佳|标准)的?(?:选项|选择)|(?:正确|最佳|标准)?的?答案)|"
    r"当选|入选|"
    r"(?:is|are|would be|must be) (?:therefore |clearly )?(?:my (?:final )?(?:answer|choice)|"
    r"the (?:(?:correct |best |right )?answers?|(?:correct|best|right) (?:options?|choices?|ones?))))(?![a-z])"
)
_AFFIRMATION = re.compile(rf"[^\S\n]*+{_AFFIRMING.pattern}")
CAPITALS = re.compile(r"(?<![A-Za-z0-9_°'/-])[A-Z]{1,8}(?![A-Za-z0-9_])")


def affirmed(said: Text, item: Item) -> list[Claim]:
    """A、B当选, C为正确答案, "B is the best answer"."""
    found: list[Claim] = []
    if not _AFFIRMING.search(said.low):
        return found
    at = 0
    for mention in list(CAPITALS.finditer(said.text))[-MOST_CLAIMS:]:
        if mention.start() < at or not (listing := listing_at(said, mention.start(), item, subject=True)):
            continue
        at = listing.end
        if listing.sound and _AFFIRMATION.match(said.low, listing.end) and not conditional(said, listing.start):
            found.append(Claim(listing, "said", "affirmed"))
    return found
