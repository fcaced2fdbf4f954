"""Statements of a text: its words, and which of them are denied.

Supports English and Chinese. A denial applies to its clause ("do not ..."), a judgement to its whole sentence
("... is useless", "it is a mistake to ..."), and a sentence that only refers back ("none of this helps") to the
statements it refers to. Runs in time linear in the length of the text.
"""

from bisect import bisect_left
from collections.abc import Container, Sequence
from itertools import accumulate, pairwise

from agrotools.text import statement_words as terms
from agrotools.text.statement_words import (
    COLON,
    COMMA,
    CONTRAST,
    LIST,
    NONE,
    SENTENCE,
    Span,
    Trie,
    grammar,
)

_SHORT_REACH = {"无": 2, "不": 4}
_LONGEST_ITEM = 7
"""Maximum number of words in an item of a denied list."""
_REACH = 80
"""Maximum number of words that a denial applies to within its clause."""


class Statements:
    """A text as words, with the boundary before each word and a flag for denied words.

    ``wholes``: fixed phrases ("not filled") whose negative words are not denials. ``denied``, ``worsened`` and
    ``allowed`` hold a flag per word: the word is denied; it is described as harmful (which agrees with advice to avoid
    it); it is described as unimportant (which does not).
    """

    def __init__(self, text: str, wholes: Trie | None = None) -> None:
        self.text = terms.plain_text(text)
        self.words, self.before, questions = terms.split_words(self.text)
        self.stems = [word.stem for word in self.words]
        self._wholes = wholes or {}
        count = len(self.words)
        self._denials = [0] * (count + 1)
        self._worsened = [0] * (count + 1)
        self._allowed = [0] * (count + 1)
        self._reaches: dict[int, list[Span]] = {}
        self._mark = Span(0, 0)
        self._allowing = False
        self._bounds()
        self._deny()
        self._depths = _depths(self._denials)
        self.denied = [depth > 0 for depth in self._depths]
        self.worsened = [depth > 0 for depth in _depths(self._worsened)]
        self.allowed = [depth > 0 for depth in _depths(self._allowed)]
        self.in_question = [False] * count
        for span in (*questions, *terms.keyword_runs(self.text, self.words)):
            self.in_question[span.start : span.end] = [True] * (span.end - span.start)

    def longest(self, trie: Trie, at: int) -> tuple[int, list[str]]:
        """Return end and meanings of the longest phrase of ``trie`` that begins at word ``at``.

        Phrases do not cross boundaries. Within fixed phrases, auxiliaries are skipped: "panicles get clipped off".
        """
        end, meanings, here, linked = at, list[str](), at, trie is self._wholes
        while here < len(self.stems) and (here == at or self.before[here] <= LIST):
            below = trie.get(self.stems[here])
            if below is None and linked and here > at and self.stems[here] in grammar("links"):
                here += 1
                continue
            if below is None:
                break
            trie, here = below, here + 1
            if "" in trie:
                end, meanings = here, trie[""]
        return end, meanings

    def is_denied(self, spans: Sequence[Span]) -> bool:
        """True if a word of ``spans`` is denied from outside them ("do away with" does not deny itself)."""
        reaches = [reach for span in spans for reach in self._reaches.get(span.start, ())]
        return any(
            self._depths[at] > sum(reach.start <= at < reach.end for reach in reaches)
            for span in spans
            for at in range(*span)
            if self.denied[at]
        )

    @property
    def denials(self) -> list[Span]:
        """Spans of the words that deny something."""
        return [span for span, kind in self._marks if kind != "worsens"]

    def clauses(self) -> list[Span]:
        """Return the spans between punctuation marks: clauses and list items."""
        starts = [at for at in range(len(self.stems)) if self.before[at] >= LIST]
        return [Span(start, end) for start, end in pairwise((*starts, len(self.stems)))]

    def other_denials(self, facts: Container[int]) -> list[Span]:
        """Return the clauses whose denials concern neither a word of ``facts`` nor earlier statements."""
        starts = [at for at in range(len(self.stems)) if self.before[at] >= COMMA]
        spans = (Span(start, end) for start, end in pairwise((*starts, len(self.stems))))
        return [span for span in spans if self._denies_other(span) and not any(at in facts for at in range(*span))]

    def _denies_other(self, clause: Span) -> bool:
        marks = [mark for mark in self._within(*clause) if mark[1] != "worsens"]
        if not marks:
            return False
        judging = {at for span, _ in marks for at in range(*span)}
        rest = [at for at in range(*clause) if at not in judging]
        pointing = {self.words[at].written for at in rest} & grammar("pointing")
        if self._has_idea(*clause, marks[0][0]) and all(kind == "deny" for _, kind in marks):
            pointing -= {"it", "它"}  # "it is not drought"
        return not pointing

    def sentence_of(self, at: int) -> int:
        """Return the index of the first word of the sentence that contains word ``at``."""
        return self._starts[SENTENCE][at]

    def excerpt(self, start: int, end: int) -> str:
        """Return the text of the words from ``start`` to ``end``, exclusive."""
        return self.text[self.words[start].start : self.words[end - 1].end]

    def _bounds(self) -> None:
        """Find contrasts and denying words, and for each word the bounds of its segment, zone and sentence."""
        self._marks: list[tuple[Span, str]] = []
        at, table = 0, terms.polarity()
        while at < len(self.stems):
            end, meanings = self.longest(table, at)
            bound, _ = self.longest(self._wholes, at)
            if bound > end:
                at = bound
                continue
            if not meanings:
                at += 1
                continue
            if meanings[0] == "contrast":
                self.before[at] = max(self.before[at], CONTRAST)
            elif meanings[0] != "neutral":
                self._marks.append((Span(at, end), meanings[0]))
            at = end
        count = len(self.words)
        self._starts: dict[int, list[int]] = {}
        self._ends: dict[int, list[int]] = {}
        for least in (COMMA, CONTRAST, SENTENCE):
            starts, ends = list(range(count)), [count] * count
            for here in range(count):
                starts[here] = here if self.before[here] >= least else starts[here - 1]
            for here in reversed(range(count - 1)):
                ends[here] = here + 1 if self.before[here + 1] >= least else ends[here + 1]
            self._starts[least], self._ends[least] = starts, ends
        self._contents = [0]
        for word in self.words:
            bare = (
                word.stem in terms.words_of_kind("function")
                or word.written in terms.words_of_kind("function")
                or word.stem in terms.stems_of_kind("function")
                or word.stem in terms.stems_of_kind("effect")
            )
            self._contents.append(self._contents[-1] + (not bare))

    def _deny(self) -> None:
        bad = [span for span, kind in self._marks if kind == "worsens"]
        for span in bad:
            low, high = self._segment(span)
            self._cover(self._worsened, low, high)
        marks = [mark for mark in self._marks if mark[1] != "worsens"]
        for mark, mark_kind in self._uncancelled(marks):
            self._mark = mark
            span, kind = self._with_effect(mark, mark_kind)
            self._judge_all(mark, kind)
            if kind in ("dismiss", "allow"):
                self._allowing = kind == "allow"
                self._dismiss(span)
            else:
                self._forward(span)
                if kind == "copula" or self._is_needless(span):
                    self._cover(self._denials, self._group_start(span.start), span.start)

    def _judge_all(self, span: Span, kind: str) -> None:
        """Deny the whole sentence, or the preceding ones, if the judgement at ``span`` applies to them."""
        low, high = self._zone(span)
        segment, _ = self._segment(span)
        opening = {word.written for word in self.words[low : min(low + 4, span.start)]}
        after = self.words[span.end].written if span.end < high else ""
        if span.start == low and self.words[low].written in grammar("barely") and after in grammar("none_of"):
            self._deny_over(low, high)  # "Hardly anything that people recommend (a, b) is of use."
        elif kind == "dismiss" and opening & grammar("sayings"):
            self._deny_over(low, span.start)  # "Whoever told you that a, b or c helps was wrong."
        start = self._starts[SENTENCE][span.start]
        begun = self._starts[SENTENCE][start - 1] if start else 0
        elliptic = (
            self.words[segment].written in grammar("pronouns") and self.before[span.end] >= SENTENCE and not after
        )
        if elliptic and self._only_judges(segment, span.end):
            self._deny_over(begun, segment)  # "Growers believe that a or b helps. I tell you: they do not."
        opens = low == self._starts[SENTENCE][low]  # after "though" or "but" the clause has its own subject
        if opens and kind == "dismiss" and not self._has_idea(*self._segment(span), span):
            # The clause names nothing to judge: the judgement applies to the preceding words.
            self._deny_over(low if self._has_idea(low, segment, span) else begun, segment)
        if self._refers_to_everything(span):
            self._deny_over(0, low)  # "In ten years not one of these practices paid off."
        if start > 0 and self._only_judges(start, self._ends[SENTENCE][span.start]):
            words = {word.written for word in self.words[start : start + _REACH]}
            if words & grammar("several"):
                self._deny_over(0, start)
            elif words & grammar("single"):
                self._deny_over(begun, start)

    def _has_idea(self, low: int, high: int, but: Span) -> bool:
        """True if a known phrase begins between ``low`` and ``high``, outside ``but``."""
        if high - low > _REACH:
            return True
        rest = (
            at for at in range(low, high) if not but.start <= at < but.end and self.stems[at] not in grammar("problems")
        )
        return any(self.longest(self._wholes, at)[1] for at in rest)

    def _refers_to_everything(self, span: Span) -> bool:
        """True if a denial applies to everything before it: "not one of these (practices) ...", "none of it ..."."""
        at, last = span.start, min(len(self.words), span.start + _REACH)
        while at < last and self.words[at].written in grammar("counted"):
            at += 1
        if at == span.start or at >= len(self.words) or self.words[at].written not in grammar("pointed"):
            return False
        return at + 1 >= len(self.words) or self.before[at + 1] != NONE or not self._has_content(at + 1, at + 2)

    def _only_judges(self, low: int, high: int) -> bool:
        """True if a sentence only judges something else: "Ignore both: neither has any effect"."""
        if high - low > _REACH:
            return False
        judging = {at for span, kind in self._within(low, high) if kind != "worsens" for at in range(*span)}
        stems = (
            at for at in range(low, high) if at not in judging and self.stems[at] not in terms.stems_of_kind("worth")
        )
        return not any(self._has_content(at, at + 1) for at in stems)

    def _within(self, low: int, high: int) -> list[tuple[Span, str]]:
        first = bisect_left(self._marks, low, key=lambda mark: mark[0].start)
        last = bisect_left(self._marks, high, key=lambda mark: mark[0].start)
        return self._marks[first:last]

    def _begins_advice(self, at: int) -> bool:
        word = self.words[at].written
        return word in terms.words_of_kind("imperatives")

    def _uncancelled(self, marks: list[tuple[Span, str]]) -> list[tuple[Span, str]]:
        """Return the denials without double negations: "not useless", "do not avoid", "not possible without"."""
        uncancelled: list[tuple[Span, str]] = []
        for span, kind in marks:
            last = uncancelled[-1] if uncancelled else None
            # "gadgets for the gullible" and "纯属白费" are two judgements; "not useless" is a double negation.
            both = last is not None and last[1] == kind == "dismiss"
            twice = last is not None and both and (last[0].end == span.start or not self._turns(last[0]))
            if last is not None and not twice and self._cancels(last[0], span):
                if kind != "allow":  # "no part of it is safe" still denies that it is safe
                    uncancelled.pop()
            else:
                uncancelled.append((span, kind))
        return uncancelled

    def _turns(self, span: Span) -> bool:
        first = self.words[span.start].written
        return first in grammar("turning") or self.stems[span.start] in grammar("turning")

    def _cancels(self, first: Span, second: Span) -> bool:
        reach = 8 if self.stems[second.start] == "without" else 2
        if self.words[first.start].written in ("avoid", "none", "without", "避免") and reach == 2:
            reach = 0  # "avoid useless sprays", "none avoid": no double denial
        if self.stems[second.start] in ("nor", "neither"):
            return False
        gap = range(first.end, second.start + 1)
        return (
            second.start - first.end <= reach
            and all(self.before[at] == NONE for at in gap)
            and not any(self.stems[at] in ("and", "or") for at in gap)
        )

    def _with_effect(self, span: Span, kind: str) -> tuple[Span, str]:
        """Return span and kind of a denial; one that judges its subject becomes "dismiss" or "copula".

        Examples: "does not help", "is not an answer", "should be avoided".
        """
        if kind == "deny" and self._lacks_worth(span):
            return span, "dismiss"
        if kind != "deny" or span.start == 0:
            return span, kind
        word, before = self.words[span.start].written, self.words[span.start - 1].written
        if word == "nothing" and self.before[span.start] == NONE:
            return span, "dismiss"  # "... accomplish nothing"
        after = self.stems[span.end : span.end + 2]
        if word.endswith("ed") and before in grammar("copula"):
            return span, "dismiss"
        if word not in grammar("verdicts"):
            return span, kind
        if word in ("fail", "fails", "failed") and after[:1] == ["to"]:
            return span, "dismiss"
        if before == "do" and self.before[span.start - 1] != NONE:
            return span, kind  # "Do not apply ..." has no subject
        if word == "no" or self.before[span.start] != NONE:
            return span, kind
        if before in grammar("copula") or "be" in after[:1]:
            rest = after[1:] if "be" in after[:1] else after[:1]
            return (span, kind) if set(rest) & terms.stems_of_kind("harm") else (span, "copula")
        if after and after[0] in terms.stems_of_kind("effect") and (before in grammar("auxiliary") or word != "not"):
            return Span(span.start, span.end + 1), "dismiss"
        return span, kind

    def _is_needless(self, span: Span) -> bool:
        """True if the denial calls the preceding words unnecessary: "残体不必清除"."""
        phrase = "".join(word.written for word in self.words[span.start : span.end])
        return phrase in grammar("needless") and span.start > 0 and self.words[span.start - 1].written not in "就则便也"

    def _lacks_worth(self, span: Span) -> bool:
        """True if the denial negates a value or benefit: "no measurable benefit", "没有保护的价值"."""
        end = min(self._ends[COMMA][span.start], span.end + _LONGEST_ITEM)
        if self.words[span.start].written == "no":
            return not {*self.stems[span.end : min(end, span.end + 3)]}.isdisjoint(terms.stems_of_kind("worth"))
        phrase = "".join(word.written for word in self.words[span.start : end])
        return phrase[:1] in ("没", "毫", "无") and any(phrase.find(worth) > 0 for worth in terms.WORTH_IN_CHINESE)

    def _segment(self, span: Span) -> tuple[int, int]:
        """Return the bounds of the segment around ``span``: the words between the nearest commas."""
        return self._starts[COMMA][span.start], self._ends[COMMA][span.end - 1]

    def _zone(self, span: Span) -> tuple[int, int]:
        """Return the bounds of the zone around ``span``: the words between the nearest contrasts or sentence ends."""
        return self._starts[CONTRAST][span.start], self._ends[CONTRAST][span.end - 1]

    def _has_content(self, low: int, high: int) -> bool:
        return self._contents[high] > self._contents[low]

    def _group_start(self, at: int) -> int:
        """Return the start of the subject of the predicate at ``at``.

        It is the start of the predicate's segment, or of the list items directly before it.
        """
        low = self._starts[COMMA][at]
        while self.before[low] in (COMMA, COLON):
            start = self._starts[COMMA][low - 1]
            first = self.words[start].written
            words = {word.written for word in self.words[start : min(low, start + _REACH)]}
            if words & grammar("predicates") or self._begins_advice(start) or self._is_marked(start, low):
                break
            if first[:1] > "ÿ" and not {*self.stems[max(low, at - _REACH) : at]} & grammar("plural"):
                break
            low = start
        return low

    def _is_marked(self, low: int, high: int) -> bool:
        return any(low <= span.start < high for span, kind in self._near(low) if kind != "worsens")

    def _near(self, at: int) -> list[tuple[Span, str]]:
        first = bisect_left(self._marks, at, key=lambda mark: mark[0].start)
        return self._marks[first : first + 3]

    def _dismiss(self, span: Span) -> None:
        self._deny_over(*span)
        low, high = self._segment(span)
        zone_low, zone_high = self._zone(span)
        follows = self.words[span.end].written if span.end < len(self.words) else ""
        listed = (
            follows in ("on", "to", "that", "with", "of", "by", "for", "in", "from", "about")
            or self.before[span.end] == COLON
        )
        opening = span.start == zone_low and self.words[span.start].written == "far"  # "Far from helping, a and b ..."
        pointing = (self.before[span.end] == COMMA and not listed and not opening) or (
            low > 0 and follows in grammar("pointers")
        )
        if self._has_content(low, span.start):
            near = {*self.stems[max(low, span.start - _REACH) : span.start]}
            start = zone_low if near & grammar("plural") else self._group_start(span.start)
            self._deny_over(start, span.start)
            end = zone_high if listed and self.before[span.end] < CONTRAST else high
            if not listed:
                stops = (at for at in range(span.end, min(high, span.end + _REACH)) if self.stems[at] == "and")
                end = next(stops, high)
            self._deny_over(span.end, end)
        elif self._has_content(span.end, zone_high) and not pointing:
            aside = self.before[zone_low] == CONTRAST and self.stems[span.start] == "none"
            self._deny_over(span.end, high if aside else zone_high)
        else:
            self._point_back(span, low)

    def _point_back(self, span: Span, low: int) -> None:
        """Deny the words that "none of this helps" or "which is useless" refers to.

        These are the sentence so far or the preceding sentences.
        """
        pointed = {*self.stems[max(low, span.end - _REACH) : span.end]}
        start = self._starts[SENTENCE][low]
        if not self._has_content(start, low) and start > 0:
            start = self._starts[SENTENCE][start - 1]
        if pointed & {"none", "all", "everything", "these", "those", "both", "这", "上", "都"}:
            start = 0
        elif start > 0 and pointed & {"they", "them", "它"}:
            start = self._starts[SENTENCE][start - 1]
        self._deny_over(start, low)

    def _forward(self, span: Span) -> None:
        """Deny the rest of the clause and the list items that continue it."""
        low, high = self._segment(span)
        if span.end >= high and self.before[span.end] != COLON:
            if self._has_content(low, span.start):
                self._cover(self._denials, self._group_start(span.start), span.start)
            elif self.before[low] != SENTENCE:
                self._point_back(span, low)
            return
        _, zone_high = self._zone(span)
        if self.before[span.end] == COLON:
            self._cover(self._denials, span.end, zone_high)
            return
        # "无风的傍晚", "不喷药时": a single character denies only the next few characters.
        single = self.stems[span.start] if span.end == span.start + 1 else ""
        stems, zone_high = self.stems, min(zone_high, span.end + _SHORT_REACH.get(single, _REACH))
        rest = stems[span.end : zone_high]
        chained = span.end + max((at for at, stem in enumerate(rest) if stem in ("or", "nor", "或")), default=-1)
        # In "avoid a, b and c" the denial covers the list; in "a, no b, c and d" it covers only b.
        leads = not self._has_content(self._starts[CONTRAST][span.start], span.start)
        modal = span.start > 0 and self.words[span.start - 1].written in grammar("modal") and span.start - 1 > low
        places = not grammar("places").isdisjoint(word.written for word in self.words[span.start : span.end + 6])
        end = span.end
        while end < zone_high:
            chain = end <= chained
            if end > span.end and self.before[end] in (COMMA, COLON):
                adds = self.before[end] == COLON and self._begins_advice(end)
                stop = adds or not (chain or modal or (leads and self._goes_on(end)))
            elif stems[end] == "and" and end + 1 < zone_high:
                stop = self._begins_advice(end + 1)
            else:
                stop = end > span.end and stems[end] in grammar("clause") and not (places and stems[end] == "where")
            if stop:
                break
            end += 1
        self._cover(self._denials, span.end, end)

    def _goes_on(self, at: int) -> bool:
        """True if the segment that begins at ``at`` is another item of the denied list."""
        begin = at + (self.words[at].written in ("and", "then") and at + 1 < len(self.words))
        if self.words[begin].written[:1] > "ÿ" or self._begins_advice(begin):
            return False
        end = self._ends[COMMA][at]
        words = self.words[at : min(end, at + _LONGEST_ITEM)]
        return end - at <= _LONGEST_ITEM and not any(word.written in grammar("predicates") for word in words)

    def _deny_over(self, low: int, high: int) -> None:
        self._cover(self._denials, low, high)
        if self._allowing:
            self._cover(self._allowed, low, high)

    def _cover(self, into: list[int], low: int, high: int) -> None:
        if low >= high:
            return
        into[low] += 1
        into[high] -= 1
        if into is self._denials:
            self._reaches.setdefault(self._mark.start, []).append(Span(low, high))


def _depths(changes: Sequence[int]) -> list[int]:
    return list(accumulate(changes[:-1]))
