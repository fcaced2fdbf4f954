"""Plain words for yes and no in a text, in English and Chinese."""

from agrotools.scoring.answer_text import after_correction
from agrotools.text.clauses import Negations
from agrotools.text.normalise import WORD_END, WORD_START, late_pattern

_END = (
    r"(?=[\s\"'*]*(?:[,.;:!?/|)\]-]|$|\n|(?:or|and|because|it|it's|there|this|these|the|i|we|not|yes)"
    rf"{WORD_END}|[,，。;]))"
)
_START = r"(?:(?<=[,.;:!?\n(\"'*| /])|^)"
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
