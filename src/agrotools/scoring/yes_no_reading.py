"""Reader of yes-or-no answers: a plain yes or no, or a verdict on the statement in the label.

Every place that supports yes or no is a weighted vote. A plain yes or no weighs most, then a clause that asserts or
denies the label's statement; it weighs more with more of the label's words and in a conclusion. Hypotheses, other times
and other things weigh little. The heavier side is the answer; two sides of similar weight give no answer.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from agrotools.core.form_item import FormItem
from agrotools.scoring.answer_text import after_correction
from agrotools.scoring.slot_subject import named_entities
from agrotools.scoring.word_forms import Family, comparatives, families, presence, word_pattern
from agrotools.text.clauses import EXCEPTED, OTHER_TIME, SUPPOSED, Negations, Sentences
from agrotools.text.normalise import CJK, WORD, WORD_END, WORD_START, late_pattern, normalise, reading_words


class Statement(NamedTuple):
    """Statement of a label: the words of its subject and the words or families of its predicate."""

    subject: tuple[re.Pattern[str], ...]
    predicate: tuple[re.Pattern[str], ...]
    words: tuple[re.Pattern[str], ...]
    heads: tuple[re.Pattern[str], ...]
    families: tuple[tuple[Family, bool], ...]
    compared: tuple[bool, tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...], Family] | None
    entities: dict[str, set[str]]
    partial: bool
    chinese: bool


_COPULA = late_pattern(
    rf"{WORD_START}(?:is|are|was|were|has been|have been|has|have|had|does|do|will be|should be|must be|can be|"
    rf"remains?|looks?|appears?|seems?){WORD_END}|已经?|正在|处于|属于|位于|为|是|有"
)
_THERE_IS = late_pattern(r"^\W*(?:whether )?there (?:is|are|was|were|has been|have been)(?= )")


def _words(text: str) -> list[str]:
    """Return the content words of a label; for Chinese, pairs of characters."""
    words: list[str] = []
    for run in re.findall(rf"{WORD}{{2,}}|[{CJK}]+", text):
        if run > "\u2e80":
            for part in re.split("[的了在中里是有为和与及被已经正并都均所于上]+", run):
                words += (
                    [part[at : at + 2] for at in range(0, max(1, len(part) - 1), 1 if len(part) < 4 else 2)]
                    if part
                    else []
                )
        elif run not in reading_words("statement_label") and (len(run) > 2 or run == "ph"):
            words.append(run)
    return list(dict.fromkeys(words))


@lru_cache(maxsize=1_000)
def label_statement(label: str) -> Statement:
    """Return the statement that a label makes."""
    text = re.sub(r"^\W*(?:whether|if) |是否", "", normalise(label))
    there = _THERE_IS.search(text)
    bare = text[there.end() :] if there else text
    copula = None if there else _COPULA.search(bare)
    offset = copula.end() if copula and bare[copula.end() :].strip() else 0
    compared = _comparison(bare)
    chosen = [] if compared else _label_families(bare, offset, everywhere=copula is None)
    covered = [(start, end) for start, end, _, _ in chosen]
    subject = _words_outside(bare, covered, 0)
    head: list[str] = []
    if any(family is presence() for _, _, family, _ in chosen):
        head = subject
    elif not chosen and not compared:
        head = _words_outside(bare, covered, offset) or subject
    patterns = _patterns(subject)
    words = dict(zip(_words(bare), _patterns(_words(bare)), strict=True))
    return Statement(
        patterns,
        tuple(pattern for word, pattern in zip(subject, patterns, strict=True) if word in head),
        tuple(words.values()),
        tuple(pattern for word, pattern in words.items() if word not in subject),
        tuple((family, asserts) for _, _, family, asserts in chosen),
        compared,
        named_entities(text),
        there is not None,
        max(text) > "\u2e80",
    )


def _patterns(words: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    """Return a pattern for each word; Chinese words also match as abbreviation with a neighbour: 残膜 for 残留地膜."""
    patterns: list[re.Pattern[str]] = []
    for before, word, behind in zip(["", *words], words, [*words[1:], ""], strict=False):
        pairs = [
            pair for pair in ((before, word), (word, behind)) if min(pair) > "\u2e80" and pair[0][-1] != pair[1][0]
        ]
        short = "".join(f"|[{one}][{other}]" for one, other in pairs)
        patterns.append(re.compile(re.escape(word) + short) if short else word_pattern(word))
    return tuple(patterns)


def _label_families(label: str, offset: int, *, everywhere: bool) -> list[tuple[int, int, Family, bool]]:
    """Return the words of families in a label from ``offset`` on, with their spans and senses, in order.

    With ``everywhere``, locative words ("between the rows") are left out."""
    in_label = [
        (*hits[-1][:2], family, hits[-1][2]) for family in families() if (hits := family.find(label, in_label=True))
    ]
    if everywhere:
        in_label = [each for each in in_label if not _LOCATIVE.match(label[each[0] :])]
    families_in_label = sorted((each for each in in_label if each[0] >= offset), key=lambda each: each[0])
    return families_in_label


def _words_outside(label: str, covered: Sequence[tuple[int, int]], offset: int) -> list[str]:
    places = [(label.find(word, offset), word) for word in _words(label[offset:])]
    return [word for at, word in places if not any(start < at + len(word) and at < end for start, end in covered)]


_LOCATIVE = late_pattern(rf"(?:between|within|inside){WORD_END}(?! (?:the )?(?:\d|limit|range|bound|recommended))")
THAN = late_pattern(rf"{WORD_START}(?:than|compared (?:to|with)|versus){WORD_END}")


def _comparison(
    label: str,
) -> tuple[bool, tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...], Family] | None:
    """Return True for more or False for less, the words of both things, and the comparatives; None for other labels."""
    than = THAN.search(label)
    if than is None:
        return None
    compared = comparatives(label)
    more = compared.find(label)
    if not more:
        return None
    one, other = label[: more[-1][0]], label[than.end() :]
    if not _words(one):
        one = label[: than.start()]
    if re.search(r"\d", other):
        return None  # "more than 30 trees"
    mine, theirs = _words(one), _words(other)
    return more[-1][2], tuple(map(word_pattern, mine)), tuple(map(word_pattern, theirs)), compared


class YesNo(NamedTuple):
    """Answer of a text (None for neither or both), the words that state it, and the rule."""

    value: bool | None
    words: tuple[str, ...]
    rule: str


class _Vote(NamedTuple):
    """Place in a text that supports yes or no, or leaves the answer open (None)."""

    at: int
    value: bool | None
    weight: float
    words: str


_END = (
    r"(?=[\s\"'*]*(?:[,.;:!?/|)\]-]|$|\n|(?:or|and|because|it|it's|there|this|these|the|i|we|not|yes)"
    rf"{WORD_END}|[,，。;]))"
)
_START = r"(?:(?<=[,.;:!?\n(\"'*| /])|^)"
# "whether" and the copula before the answer itself (答案是否, 答案是:没有) are not answers.
_NO_ANSWER = late_pattern(
    rf"是否(?!定)(?=[{CJK}])|有没有|有无|是(?=[ :\"']{{0,3}}(?:否|没有|不是|是|yes|no|true|false))|"
    r"(?:yes or no|yes/no|true or false|true/false)(?=\s?(?:\?|question|answer)|\W*$)|"
    r"\b(?:true|false)(?: |-)(?:colou?r|positives?|negatives?)|否则|是非题?"
)
_YES = late_pattern(
    rf"{WORD_START}(?:yes|yep|yeah|true|affirmative|(?<=statement is )(?:correct|right)){WORD_END}|"
    rf"{_START}(?:是的|对的|正确|(?:是|有|对)(?=[\s\"'*]*(?:[,.;:!?()]|$|,|。|yes|no))|"
    r"(?:(?:确实|的确|正是)如此|(?:的确|确实|一点[儿都也]?|完全|说得|当然)?(?:没有?错儿?|无误|不假))"
    r"(?=[\s\"'*]*(?:[,.;:!?()]|$|。)))|^不错(?=[\s\"'*]*(?:[,.;:!?()]|$|。))"
)
_NO = late_pattern(
    rf"{WORD_START}(?:false|nope|(?<=statement is )(?:incorrect|wrong|untrue|not true)|negative(?= *[.,;\n]| *$)|"
    rf"(?:no|(?<!or )not){_END}|(?<=yes )no|not at all|(?<![^,;:/\n.-] )no(?= ?\(| (?:in|for|if|by|at|on|under|with|"
    rf"when|from|according){WORD_END}(?!-))){WORD_END}|"
    rf"{_START}(?:也?不是|不对|没有|不|错|非)(?=[\s\"'*]*(?:[,.;:!?)]|$|,|。|yes))|否(?![认则])|不正确"
)
# "Indeed it does", "so it is not": elliptic answers to the question.
_ELLIPTIC = late_pattern(
    rf"(?:{WORD_START}(?:indeed,?|(?<=[,.;:?!] )so,?) |^\W*|(?<=\? ))(?:it|they|this|that|there) (?:is|are|was|were|"
    rf"does|do|did|has|have|had|can|should|must|will)(?P<no> not|n't)?(?: indeed)?(?=\s*(?:[.,;:!]|$))"
)

# Weights of votes.
_PLAIN = 4.0
_CONCLUDING = 1.2
_AT_END = 0.3
_ALIKE = 0.3
_SUBJECT = 1.0
_UNLIKELY = 0.4
_IF = 0.1
_MOST = 300
"""Maximum number of places of one kind that are examined, counted from the end."""

_HEDGED = late_pattern(rf"{WORD_START}(?:might|may|could|possibly|perhaps|maybe){WORD_END}|可能|也许|或许")
_OPEN = late_pattern(
    rf"{WORD_START}(?:unclear|uncertain|unsure|unknown|undecided|inconclusive|open question|(?:cannot|can't|could not|"
    rf"couldn't|unable to|impossible to|hard to|difficult to|not possible to|not sure) "
    r"(?:\w+ ){0,2}?(?:tell|say|determine|judge|decide\w*|know|whether|if|answer|establish|confirm|assess)|(?:cannot|"
    r"can't) be (?:\w+ )?(?:decided|determined|judged|told|answered|established|confirmed|assessed)|"
    rf"(?:do not|don't) know|leave (?:it|this|that) open|remains open|may or may not|might or might not){WORD_END}|"
    rf"无法(?:判断|确定|得知|回答|确认|判定)|不能(?:判断|确定|确认)|难以(?:判断|确定|断定)|不确定|不好(?:说|判断)|"
    rf"说不[准清]|尚不清楚|(?:看|判断|分辨|辨认)不(?:出|了|清)来?(?=[,。;是]|$)|"
    r"可能[^。;\n]{1,30}也(?:有)?可能"
)
_BARE = late_pattern(
    rf"\W*(?:(?P<no>(?:no|none|not){WORD_END}|没(?!有?(?:错(?!误)|问题))|未|不(?![错假])|无(?!误)|并非)|有|已)"
)
_LETTER = late_pattern(r"\W*(?:(y)|n)\W*|[\s\"'*.]*(?:([✅✓✔])|[❌✗✘✖])[\s\"'*.]*")
YES_OR_NO_LINE = late_pattern(r"[\W_]{0,6}(?:yes|no|true|false|y|n|是|否)[\W_]{0,6}")
"""Line that holds a yes or no and nothing else."""
_FORM = late_pattern(r"\W*(?:(?P<yes>yes|true|是)|(?P<no>no|false|否))(?![a-z])(?P<rest>[^\n]{0,300})$")
_FORM_UNDECIDED = late_pattern(r"\b(?:yes|no|not|true|false|or|but|maybe|perhaps|un\w+|wait|actually)\b|是|否|但|不|/")


def read_form_answer(value: str) -> YesNo | None:
    """Read a plain yes or no, with an optional remark, from a value of the form; None if the remark is undecided."""
    form = _FORM.match(value)
    if form is None or _FORM_UNDECIDED.search(form["rest"]):
        return None
    return YesNo(form["yes"] is not None, (form["yes"] or form["no"],), "yes or no")


def read_yes_no(item: FormItem, text: str) -> YesNo:
    """Read the answer of ``text`` to ``item``; yes and no of similar weight give no answer."""
    if letter := _LETTER.fullmatch(text):
        return YesNo((letter[1] or letter[2]) is not None, (text.strip(),), "yes or no")
    text = _NO_ANSWER.sub(lambda match: " " * len(match[0]), text)
    statement = label_statement(item.label)
    place = Sentences(text)
    votes = [*_plain_votes(statement, text, place), *_votes(statement, text, place)]
    if not votes:
        weak = _BARE.match(text)
        return YesNo(weak["no"] is None, (weak[0],), "yes or no") if weak else YesNo(None, (), "no yes or no")
    begin = after_correction(text, max(vote.at for vote in votes))
    votes = [vote for vote in votes if vote.at >= begin] or votes
    return _decided(votes)


def _decided(votes: Sequence[_Vote]) -> YesNo:
    most = {
        side: max((vote.weight for vote in votes if vote.value is side), default=0.0) for side in (True, False, None)
    }
    side = most[True] > most[False]
    best, other = most[side], most[not side]
    words = tuple(dict.fromkeys(vote.words for vote in sorted(votes, key=lambda vote: -vote.weight)))[:20]
    if most[None] > best - _ALIKE:
        return YesNo(None, words, "undecided")
    if best - other < _ALIKE:
        return YesNo(None, words, "both yes and no")
    return YesNo(side, words, "yes or no" if best >= _PLAIN - 1 else "statement about the subject")


def plain_answers(text: str) -> list[tuple[bool, str]]:
    """Return each plain yes and no of normalised ``text`` that is not denied or retracted, with its word."""
    answers = _plain(text)
    begin = after_correction(text, answers[-1][0]) if answers else 0
    return [(verdict, word) for start, verdict, word in answers if start >= begin]


def _plain(text: str) -> list[tuple[int, bool, str]]:
    matches = sorted(
        [(match.start(), match.end(), True, match[0]) for match in _YES.finditer(text)]
        + [(match.start(), match.end(), False, match[0]) for match in _NO.finditer(text)]
        + [(match.start(), match.end(), match["no"] is None, match[0]) for match in _ELLIPTIC.finditer(text)]
    )
    if not matches:
        return []
    negations = Negations(text, [(start, end) for start, end, _, _ in matches])
    return [(start, verdict, word) for start, _, verdict, word in matches if not negations.before(start)]


def _position(place: Sentences, index: int) -> float:
    """Return the weight of a sentence's position: much for a conclusion, a little for the first and last sentence."""
    return _CONCLUDING * place.concludes(index) + _AT_END * (index in (place.first, place.last))


_LAST_CLAUSE = late_pattern(r"[.;:!?。,\n]")
_TEMPTED = late_pattern(
    rf"{WORD_START}(?:(?:going|tempted|inclined|about|ready|wanted|easy) to (?:say|answer|think)|"
    rf"(?:would|might|could|almost|nearly) (?:have )?(?:say|said|answer\w*|thought|think)|at first|initially|if)"
    rf"{WORD_END}|本想|差点|原以为|起初|乍看"
)


def _plain_votes(statement: Statement, text: str, place: Sentences) -> Iterator[_Vote]:
    for at, verdict, word in _plain(text)[-_MOST:]:
        sentence = place.of(at)
        weight = _PLAIN + _position(place, sentence)
        before = text[max(0, at - 120) : at]
        if _TEMPTED.search(_LAST_CLAUSE.split(before)[-1]):
            continue
        if before.rstrip(" \n\"'*").endswith("?"):  # "Is it cloudy? No" answers the question before it.
            about = place.sentence(sentence - 1).rstrip("? \n")
            votes = [*_votes(statement, about, Sentences(about))]
            verdict = verdict != (bool(votes) and votes[-1].value is False)
        yield _Vote(at, verdict, weight, word)


_BEHIND = late_pattern(
    rf",? (?:is|are|was|were|has|have|had|does|do|did|can|could|will|would|should|may|must|need) (?:not|"
    rf"never){WORD_END}|n't{WORD_END}|-free{WORD_END}| (?:not|never|cannot|[a-z]+n't|no(?! (?:doubt|longer than|"
    rf"more than))|none|nothing|nowhere|neither){WORD_END}|不(?![仅但断过错假])|未|没有(?!错(?!误))"
)


def _votes(statement: Statement, text: str, place: Sentences) -> Iterator[_Vote]:
    """Yield the votes of the clauses of ``text`` on the statement."""
    hits: list[tuple[int, int, bool]] = []
    rank: dict[int, int] = {}
    if statement.compared:
        hits = statement.compared[3].find(text)
    elif statement.families:
        for number, (family, affirms) in enumerate(statement.families):
            family_hits = family.find(text)
            hits += [(start, end, asserts == affirms) for start, end, asserts in family_hits]
            for start, *_ in family_hits:
                rank.setdefault(start, number)
    if not hits and not statement.compared:
        hits = _word_hits(statement, text, place)
    yield from (
        _Vote(match.start(), None, 1.2 + _position(place, place.of(match.start())), match[0])
        for match in islice(_OPEN.finditer(text), _MOST)
    )
    if not hits:
        return
    hits = sorted(hits)[-_MOST:]
    negations = Negations(text, [(start, end) for start, end, _ in hits] if not statement.compared else ())
    governing: dict[int, int] = {}
    for start, *_ in hits:
        clause_start = negations.clause(start)[0]
        governing[clause_start] = min(rank.get(start, 0), governing.get(clause_start, 9))
    for start, end, asserts in hits:
        if rank.get(start, 0) > governing[negations.clause(start)[0]]:
            continue  # In "unfit for sowing" only the first word answers whether it is fit for sowing.
        index = place.of(start)
        sentence = place.sentence(index)
        begin = place.begins[index]
        clause_start, clause_end = negations.clause(start)
        clause_start = max(clause_start, begin, start - 200)
        clause = text[clause_start : min(clause_end, end + 200)]
        before = clause[: start - clause_start]
        if sentence.rstrip().endswith("?") or EXCEPTED.search(before) or _OPEN.search(clause):
            continue
        verdict = asserts
        if statement.compared:
            verdict = (asserts == statement.compared[0]) != _turned(statement, clause, start - clause_start)
        denials = negations.count_before(start) + negations.after(end) + (_BEHIND.match(text, end) is not None)
        verdict = verdict != (denials % 2 == 1)
        yield _Vote(
            start,
            verdict,
            _weight(statement, place, index, sentence, clause),
            text[max(clause_start, start - 30) : end],
        )


def _weight(statement: Statement, place: Sentences, index: int, sentence: str, clause: str) -> float:
    n_subjects = sum(pattern.search(sentence) is not None for pattern in statement.subject)
    fraction = n_subjects / len(statement.subject) if statement.subject else 1.0
    weight = 1.0 + _SUBJECT * fraction + _position(place, index)
    if _HEDGED.search(clause):
        weight -= 0.4
    if SUPPOSED.search(clause):
        weight *= _IF
    if OTHER_TIME.search(clause):
        weight *= _UNLIKELY
    if not statement.compared and _of_another(statement, clause):
        weight *= _UNLIKELY
    return weight


def _of_another(statement: Statement, clause: str) -> bool:
    """Return True if a clause is about another place, year or numbered thing than the label."""
    here = named_entities(clause)
    return any(kind in here and not here[kind] & names for kind, names in statement.entities.items() if kind != "time")


def _turned(statement: Statement, clause: str, at: int) -> bool:
    """Return True if a comparison mentions the two things of the label in reverse order."""
    assert statement.compared
    _, mine, theirs, _ = statement.compared
    than = THAN.search(clause, at)
    if than:
        first, second = clause[: than.start()], clause[than.end() :]
    else:
        first, second = clause, ""

    def score(part: str, patterns: Sequence[re.Pattern[str]]) -> int:
        n_matches = sum(pattern.search(part) is not None for pattern in patterns)
        return n_matches if than else min(n_matches, 1)

    straight = score(first, mine) + score(second, theirs)
    crossed = score(first, theirs) + score(second, mine)
    if straight == crossed:
        places = [
            min((match.start() for pattern in patterns if (match := pattern.search(clause))), default=10**6)
            for patterns in (mine, theirs)
        ]
        return places[1] < places[0]
    return crossed > straight


def _word_hits(statement: Statement, text: str, place: Sentences) -> list[tuple[int, int, bool]]:
    """Return the span of the last word of the label in each sentence that has enough of its words."""
    words, heads = statement.subject, statement.predicate
    if not heads:  # the predicate has a known opposite, but the text has no word of its family
        words, heads = statement.words, statement.words if statement.partial else statement.heads
    by_sentence: dict[int, dict[re.Pattern[str], tuple[int, int]]] = {}
    for pattern in words:
        for match in pattern.finditer(text):
            by_sentence.setdefault(place.of(match.start()), {})[pattern] = match.span()
    hits: list[tuple[int, int, bool]] = []
    for spans in by_sentence.values():
        matched = [pattern for pattern in heads if pattern in spans]
        enough = 0.3 if statement.chinese else 0.6
        if matched and (
            len(spans) >= 0.5 * len(words) or (len(matched) >= enough * len(heads) and statement.predicate)
        ):
            start, end = max(spans[pattern] for pattern in matched)
            hits.append((start, end, True))
    return hits
