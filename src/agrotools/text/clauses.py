"""The sentences of a reply, and what a clause is in it: a conclusion, a supposition, of another time or thing."""

import re
from bisect import bisect_right

from agrotools.text.normalise import WORD

CONCLUDES = re.compile(
    rf"(?<!{WORD})(?:so(?! (?:do|does|did|is|are|was|were|has|have|can)(?! not))|therefore|thus|hence|"
    rf"consequently|accordingly|overall|in (?:conclusion|short|summary|"
    rf"other words|all)|"
    rf"to conclude|conclusion|conclude|answer|verdict|diagnosis|result|this means|(?:that|which) means|means that|"
    rf"final(?:ly)?|all in all|after all|"
    rf"putting (?:it|this|these|everything)(?: all)? together|on closer|taken together|to sum up|this leaves|"
    rf"that leaves)(?!{WORD})|"
    r"因此|所以|综上|总之|故(?!障)|由此可见|说明|结论|答案|判断(?=[为是:])|也就是说|由此|最终|实际(?:上|出现|存在)"
)
SUPPOSED = re.compile(
    rf"(?<!{WORD})(?:if|(?<!i )(?<!we )(?<!that )(?<!which )would(?! be (?:wrong|incorrect|mistaken|right|fair|"
    rf"correct))|unless|whether|"
    r"suppose|(?:was|were|am) (?:afraid|worried)|feared|(?:might|could|may) (?:suspect|expect|think|assume|"
    r"believe)|were to|in case|hypothes\w*|assum(?:e|ing)|"
    r"before (?:one|you|it|they|we)|should (?:it|there|the)|to (?:see|check|find out|decide|determine|judge))"
    rf"(?!{WORD})|如果|若|假如|倘若|假设|一旦|要是"
)
OTHER_TIME = re.compile(
    rf"(?<!{WORD})(?:last (?:week|month|year|autumn|spring|summer|winter|season|time)|previous(?:ly)?|earlier|"
    rf"formerly|"
    rf"used to|yesterday|ago|at first|initially|originally|had been|will|going to|expected to|next "
    rf"(?:week|month|year|season)|tomorrow)(?!{WORD})|去年|上周|上月|此前|之前|以前|原(?:来|[为是先本])|曾经?|起初|最初|即将|将要?|"
    rf"预计|明年|下周"
)
ELSEWHERE = re.compile(
    rf"(?<!{WORD})(?:neighbou?ring|neighbou?r's|"
    rf"adjacent|elsewhere|usually|typically|often|normally|generally|in general|"
    rf"as a rule|by definition)(?!{WORD})|邻近|旁边|隔壁|相邻|别处|通常|一般|往往|[常多](?=[为是见因])"
)
EXCEPTED = re.compile(
    rf"(?<!{WORD})(?:(?:apart|aside) from|except(?: for)?|besides|regardless of|despite|in spite of)(?!{WORD})|"
    r"除了?|尽管"
)
_SENTENCE_END = re.compile(r"[!?。\n;]|\.(?!\d|(?:png|jpe?g|tiff?|webp|bmp|gif|npy|csv|json|txt|pdf)(?![a-z]))")
_LONGEST = 600
_HEADING = 60


class Sentences:
    """The sentences of a text: which one holds a place, and what it is in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.begins = [0, *(end.end() for end in _SENTENCE_END.finditer(text))]
        full = [index for index in range(len(self.begins)) if self.sentence(index).strip()]
        self.first, self.last = (full[0], full[-1]) if full else (0, 0)

    def of(self, at: int) -> int:
        """The number of the sentence that holds ``at``."""
        return bisect_right(self.begins, at) - 1

    def end(self, index: int) -> int:
        """Where sentence ``index`` ends, with its mark."""
        return self.begins[index + 1] if index + 1 < len(self.begins) else len(self.text)

    def sentence(self, index: int) -> str:
        """The text of sentence ``index``, of a long one the beginning."""
        return self.text[self.begins[index] : min(self.end(index), self.begins[index] + _LONGEST)]

    def concludes(self, index: int, before: int | None = None) -> bool:
        """Whether a sentence (before place ``before``) draws a conclusion, or stands below a heading that says so."""
        begin = self.begins[index]
        end = min(self.end(index) if before is None else before, begin + _LONGEST)
        if CONCLUDES.search(self.text, begin, end):
            return True
        above = index - 1
        if above > 0 and not self.sentence(above).strip():
            above -= 1
        heading = self.sentence(above) if above >= 0 else ""
        return heading.endswith("\n") and len(heading) < _HEADING and CONCLUDES.search(heading) is not None
