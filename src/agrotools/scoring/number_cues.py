"""Words and signs around a number that show its meaning, as patterns over normalised text and functions over them."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from agrotools.scoring.answer_text import TABLE_RULE, cells_of
from agrotools.scoring.slot_subject import Subject, speaks_of
from agrotools.text.normalise import CJK, WORD, WORD_END, WORD_START, late_pattern, translated
from agrotools.text.numbers import Quantity, find_quantities
from agrotools.text.units import compatible, convert

FIGURE = late_pattern(r"[-+]?\d[\d.,' ]*%?")
UNIT_IN_HEADER = late_pattern(r" ?[(\[]([^()\[\]\n]{1,16})[)\]]$")
BEFORE_WORDS = frozenset(
    "is of from by in on and or about the shows show makes hence = : ≈ 为 有 约 共 计 到 即".split()
)
LAST_WORD = late_pattern(rf"({WORD}+|[^\s\w]|[{CJK}])\s*$")
NEXT_WORD = late_pattern(rf"\s*({WORD}+|[^\s\w]|[{CJK}])")
BEHIND_WORDS = frozenset("in at is was per or more ( , ;".split())
COUNT = late_pattern(r"number of|count|how many|数量|[株棵头只个]数|多少")
EQUALS_BEFORE = late_pattern(r"[=≈→] ?[(\[$]*$")
COLON_BEFORE = late_pattern(r": ?[(\[$~]*$")
ABOUT = r"(?:about |approximately |around |roughly |some |a total of |only |just |now |therefore |thus |~|约|大约)*"
IS_BEFORE = late_pattern(
    rf"(?:{WORD_START}(?:is|are|was|were|be|has|have|had|at|reach(?:es|ed)) (?:an? )?{ABOUT}|(?:为|是|有|达|约为|"
    rf"等于){ABOUT})$"
)
GIVES_BEFORE = late_pattern(
    rf"(?:{WORD_START}(?:giv(?:es|e|ing)|mak(?:es|e|ing)|yield(?:s|ing)?|comes? to|amounts? to|equals?|leav(?:es|ing)|"
    rf"left|remains?|result(?:s|ing)? in|works out at|corresponds to|that is|or|so|hence|therefore|thus|found|"
    rf"count(?:ed)?|get|arrive at|total(?:s|ling)?|i\.e\.) {ABOUT}|(?:得|得到|共|合计|合|即|折合|剩|余|相当于|总共|"
    rf"共计|总计){ABOUT})$"
)
CONCLUDES = late_pattern(
    r"\b(?:in total|totals?|total(?:ling|ing)|altogether|in all|sum|combined|so|therefore|thus|hence|consequently|"
    r"answer|final|finally|today|nowadays|at present|currently|in (?:short|summary|conclusion)|to sum up|"
    r"result|conclusion|overall|(?:more )?precisely|exactly|to be (?:exact|precise))\b|准确地说|精确|总|共|合计|"
    r"因此|所以|故|答案|结论|现在|目前|综上|最终|由此"
)
CLAUSE = late_pattern(r"[,;。]")
TOTAL_BEHIND = late_pattern(rf"(?: {WORD}+)?,? (?:in all|in total|altogether|overall|combined){WORD_END}")
PRELIMINARY = late_pattern(
    r"\b(?:at first|initial(?:ly)?|first (?:count\w*|pass|impression|glance|guess|estimate|look)|draft|preliminary|raw|"
    r"arrived at|expected|guess(?:ed)?|assum(?:ed|ing)|before|previous(?:ly)?|originally|last (?:year|season|week|"
    r"month)|yesterday|used to|old|former(?:ly)?)\b|初步|最初|起初|原始|粗|原来|去年|上年|之前|原先|一开始|乍"
)
REFERENCE = late_pattern(
    r"\b(?:threshold|limit|literature|typical(?:ly)?|usual(?:ly)?|normal(?:ly)?|target|recommend\w*|guideline|standard|"
    r"table|textbook|breeder|manual|class(?:es)?|category|compar\w+|reference|optimum|optimal|critical|requir\w+|"
    r"capacity|maximum|minimum|allowed|tolera\w+|regional|national|district|neighbou?r\w*|farmer|owner|plan(?:ned)?|"
    r"sheet|according to|said|set ?points?|nominal|advised|brochure|commercial|claim\w*|report\w*|scale|resolution|"
    r"pixel|per pixel|error|uncertainty|confidence|probab\w+)\b|阈值|标准|一般|通常|正常|推荐|参考|往年|指标|上限|下限|"
    r"最大|最小|建议|适宜|临界|据|文献|分辨率|比例尺|误差|置信"
)
HYPOTHETICAL = late_pattern(
    r"\b(?:if|would|should|might|suppose|assuming|unless|when|whenever|once|could|from \d|between)\b|如果|假如|若|"
    r"假设|应该|当|每当|只有"
)
ASIDE = late_pattern(
    r"\W*(?:(?:for|in|by) (?:comparison|reference)|as a reference|if|for example|note|作为对比|相比之下|如果|"
    r"注)(?![a-z])"
)
OF_WHOLE = late_pattern(r"\s?(?:out )?of(?: the| all| a total of| those| these| its| their)* ?")
OF_THEM = late_pattern(r" ?of (?:them|these|those|which|the)(?![a-z])")
BY = late_pattern(
    r"(?:increas|decreas|rose|rise|risen|grew|grown|fell|fall|drop|declin|reduc|chang)\w* by (?:\w+ )?$|"
    r"(?<![a-z])[a-z]{2,}er by (?:\w+ )?$"
)
COMPARED_WITH = late_pattern(
    r"(?:\b(?:against|versus|vs\.?|compared (?:to|with)|than|as opposed to|instead of|not)|比)"
    r"(?: (?:the|an?|only|just|about|some))* ?$"
)
DIFFERENCE = late_pattern(
    rf"{WORD_START}(?:differ\w*|minus|less|fewer|loss|lost|decreas\w*|fell|drop\w*|declin\w*|more than|gap|"
    rf"gain\w*){WORD_END}|\d\s?-\s?\d|差|减|增|缺|欠|缩"
)
EACH_HAS = late_pattern(r"\b(?:each|every)(?: [a-z]+){1,3} (?:has|holds|contains|have) (?:about )?$")
RATE = late_pattern(
    rf" ?/ ?[a-z]|(?: (?!and|or|in|on|with){WORD}+)?,? "
    rf"(?:per|an? (?:day|week|month|year|hour)|each|every|apiece|daily){WORD_END}"
)
SHARE_BEHIND = late_pattern(r" of | ?\((?:as )?(?:a |an )?(?:[a-z]+ )?fraction")
SHARE_BEFORE = late_pattern(
    r"(?:/|÷)[^=≈a-z]{1,20}[=≈] ?$|(?:占比|比例|比率)(?:约|为|是|约为)?$|fraction (?:is|of|=)(?: about)? ?$"
)
PHRASE = late_pattern(rf"[ -]?((?:(?!(?:and|or|but|with)[ -]){WORD}+[ -]?){{1,4}}|[{CJK}]{{1,6}})")
YEAR = late_pattern(r"(?<![\d.])(?:19|20)\d\d(?!\d|\.\d)")
YEAR_BEHIND = late_pattern(
    r"(?:(?! and | but | while |,|;|\. |。)[^\d]){0,40}?(?: in (?:the year )?| for |[(])((?:19|20)\d\d)(?!\d|\.\d)"
)
OWNED = late_pattern(r"\d[^,;。\d]{0,24}(?: in (?:the year )?| for |[(])$")
ARE = late_pattern(r" (?:are|were|is|was) (?:the )?([a-z]+)")
OPERATOR = late_pattern(r"[ )\]]*[-+*/×÷·x:][ (\[]*(?:(?:tan|sin|cos|ln|log|exp|sqrt) ?\(?)?")
WORKED = (" )],°", ("=", "≈", "that is", "i.e.", "which is", "or", "gives", "makes", "is"))
NO = late_pattern(
    rf"(?:n't any|{WORD_START}(?:no|zero|not (?:a single|any)|none of(?: the| these| those)?|without(?: any)?|"
    rf"never any|free of|absence of|lack of)) (?P<of>(?:{WORD}+[ -]?){{1,5}})|{WORD_START}(?P<not>(?:(?:do(?:es)?|did|"
    rf"could) ?(?:not|n't)|can(?:not|'t)) (?:see|find|spot|detect|contain|show|have|count|make out)(?: any|"
    rf" a single)?) (?P<of_2>(?:{WORD}+[ -]?){{1,5}})|(?:没有|未发现|未见|没看到|没发现|未检测到|不存在|"
    rf"无(?!人机))(?P<of_3>[{CJK}]{{1,12}})"
)
PHRASE_END = late_pattern(r"\b(?:to|that|in|on|at|and|but|for|with|way|idea|if|whether|doubt)\b")


def tables_as_lines(text: str) -> str:
    """Rewrite each cell of the Markdown tables in ``text`` as a line ``row header: cell``."""
    if "|" not in text:
        return text
    lines = text.split("\n")
    output_lines: list[str] = []
    header: list[str] = []
    for index, line in enumerate(lines):
        if "|" not in line:
            header = []
            output_lines.append(line)
        elif TABLE_RULE.fullmatch(line):
            continue
        elif index + 1 < len(lines) and TABLE_RULE.fullmatch(lines[index + 1]):
            header = cells_of(line)
        elif not header:
            output_lines.append(line)
        else:
            cells = cells_of(line)
            key = "" if FIGURE.fullmatch(cells[0]) and not YEAR.fullmatch(cells[0]) else cells[0]
            for name, cell in zip(header[bool(key) :], cells[bool(key) :], strict=False):
                unit = UNIT_IN_HEADER.search(name)
                name, cell = (
                    (name[: unit.start()], f"{cell} {unit[1]}") if unit and cell[-1:].isdigit() else (name, cell)
                )
                output_lines.append(f"{key} {name}: {cell}".strip())
    return "\n".join(output_lines)


def word_before(lead: str) -> str | None:
    word = LAST_WORD.search(lead[-24:])
    return word[1] if word and word[1] in BEFORE_WORDS else None


def word_behind(tail: str) -> str | None:
    word = NEXT_WORD.match(tail[:24])
    return word[1] if word and word[1] in BEHIND_WORDS else None


def fits_unit(quantity: Quantity, unit: str | None, *, counts: bool) -> bool:
    if unit is None:
        return quantity.unit is None or not counts
    return quantity.unit is None or compatible(quantity.unit, unit)


def in_unit(quantity: Quantity, unit: str | None) -> tuple[float, float]:
    """Return the ends of ``quantity`` in ``unit``; bare numbers are not converted."""
    if unit is None or quantity.unit is None:
        return quantity.low, quantity.high
    return convert(quantity.low, quantity.unit, unit), convert(quantity.high, quantity.unit, unit)


def is_rate(part: str, quantity: Quantity) -> bool:
    before = max(0, quantity.start - 60)
    return not quantity.bare and bool(RATE.match(part, quantity.end) or EACH_HAS.search(part, before, quantity.start))


_PICTURE = r"(?:images?|pictures?|photos?|photographs?|shots?|frames?|scenes?)"
_SHOWN = late_pattern(
    r"\b(?:these|those|the|both|all) (?P<number>[a-z]+|\d+) (?:(?:aerial|drone|satellite|given|attached) )?"
    rf"{_PICTURE}\b|"
    r"\b(?:these|those) (?P<bare>[a-z]+|\d+) (?:are|were|come)(?: taken)? (?:from|of|at) (?:one|the same) "
    r"(?:place|site|scene|spot|location)\b"
)
_ONE_PLACE = late_pattern(
    rf"\b(?:{_PICTURE}|these|those|two|both) (?:are|were|come|show)(?: taken)?(?: (?:from|of|at))? "
    r"(?P<place>one) (?:place|site|scene|spot|location)\b"
)
_OF_PICTURES = late_pattern(rf"\b(?:{_PICTURE}|places?|sites?)\b")


def shown_starts(part: str, label: str) -> frozenset[int]:
    """Return the positions of the numbers that only count the pictures or their place: "these two are from one place".

    The result is empty if the ``label`` of the slot asks for pictures or places.
    """
    if _OF_PICTURES.search(label.lower()):
        return frozenset()
    return frozenset(
        match.start(name)
        for pattern in (_SHOWN, _ONE_PLACE)
        for match in pattern.finditer(part)
        for name in pattern.groupindex
        if match[name]
    )


_PARTS = late_pattern(rf"[{CJK}]{{0,6}}(?P<open>[,;]? ?\(?) ?(?:(?P<said>其中|包括|包含)|(?<=\())")
_PARTS_END = late_pattern("[。!?\n]|共|总|合计|但|去年")
_NAMED = late_pattern(rf"(?<![{CJK}])(?:其中|包括|包含|有|和|与|及|是|为|的)*([{CJK}]+)")


def part_starts(part: str, quantities: Sequence[Quantity], target: Subject) -> set[int]:
    """Return the positions of the parts of a total that is stated in Chinese: 8 and 4 in 12棵(8棵松树,4棵棕榈).

    The result is empty if a part may be what the label asks for: 松树 for pines, but not for trees.
    """
    if part.isascii():
        return set()
    letters = [word for word in target.words if word > "\u2e80"]
    asked = letters or [each for word in target.label for each in translated(word) or ("",)]
    anywhere = not letters and len(target.label) > 1
    for at, whole in enumerate(quantities):
        said = _PARTS.match(part, whole.end)
        if said is None or whole.denied or not asked:
            continue
        bracketed = said["open"].endswith("(")
        end = part.find(")", said.end()) if bracketed else -1
        if end < 0:
            stop = _PARTS_END.search(part, said.end())
            end = stop.start() if stop else len(part)
        parts = [each for each in quantities[at + 1 :] if each.start < end]
        if not parts or any(each.low >= whole.low or each.unit != whole.unit for each in parts):
            continue
        if not said["said"] and abs(sum(each.low for each in parts) - whole.low) > 1e-9 * whole.low:
            continue
        texts = zip([said.end(), *(each.end for each in parts)], [*(each.start for each in parts), end], strict=True)
        named = [name for begin, stop in texts for name in _NAMED.findall(part[begin:stop])]
        if any(name.startswith(word) or (anywhere and word in name) for name in named for word in asked):
            return set()
        return {each.start for each in parts}
    return set()


def stated_quantities(text: str) -> list[Quantity]:
    return [quantity for quantity in find_quantities(text) if not quantity.denied]


PART_OF_ONE = late_pattern(r"0 (?:to|and|-) 1|accuracy|probability|fraction")


def as_part_of_one(quantity: Quantity) -> Quantity:
    """Convert "92.3 %" to 0.923 for slots that ask for a part of one."""
    if quantity.unit != "%":
        return quantity
    return replace(quantity, low=quantity.low / 100, high=quantity.high / 100, unit=None)


def as_share(text: str, quantity: Quantity) -> Quantity:
    """Mark "6 / 50 = 0.12" and "0.46 of it" as fractions for slots that ask for a percentage."""
    if not quantity.bare or not 0 < quantity.low < 1 or not 0 < quantity.high <= 1:
        return quantity
    if SHARE_BEHIND.match(text, quantity.end) or SHARE_BEFORE.search(text, max(0, quantity.start - 40), quantity.start):
        return replace(quantity, unit="fraction")
    return quantity


def names_subject(text: str, quantity: Quantity, words: frozenset[str]) -> bool:
    """Return True if the slot's label names the counted thing: "14 apple trees" for "number of trees"."""
    if quantity.noun is None:
        return False
    at = max(quantity.start, quantity.end - len(quantity.noun))
    phrase = PHRASE.match(text, at)
    return phrase is not None and speaks_of(phrase[1], words)


def is_counter(text: str, quantity: Quantity) -> bool:
    """Return True if a Chinese measure word without a noun follows the number: 多9个."""
    noun = quantity.noun
    return noun is not None and noun > "\u2e80" and not text[quantity.end : quantity.end + 1] > "\u2e80"


LEAD_LENGTH = 300
"""Number of characters before a number that are searched for the thing it belongs to."""


def year_of(text: str, quantity: Quantity) -> str | None:
    """Return the year that a number belongs to: the one after it in its clause, else the last one before it."""
    behind = YEAR_BEHIND.match(text, quantity.end)
    if behind:
        return behind[1]
    before = [*YEAR.finditer(text, max(0, quantity.start - LEAD_LENGTH), quantity.start)]
    # In "5.42 ha in 2015" the year belongs to the number before it.
    free = [year for year in before if not OWNED.search(text, max(0, year.start() - 40), year.start())]
    return free[-1][0] if free else None


def letter_of(text: str, quantity: Quantity, target: Subject) -> str | None:
    """Return the letter of the thing that a number belongs to ("tree A"): the last one before the number."""
    if target.lettered is None:
        return None
    before = [*target.lettered.finditer(text, max(0, quantity.start - LEAD_LENGTH), quantity.start)]
    return next((each for each in before[-1].groups() if each), None) if before else None


def is_named(behind: str, target: Subject) -> bool:
    """Return True if the words after a number name the counted thing: "of which 46 are greenhouses"."""
    verb = ARE.match(behind)
    return verb is not None and speaks_of(verb[1], target.counted)


def operand_starts(text: str, quantities: Sequence[Quantity]) -> set[int]:
    """Return the positions of the terms of calculations whose result follows: 8 and 6 in "8 + 6 = 14"."""
    starts: set[int] = set()
    terms: list[int] = []
    for before, after in pairwise(quantities):
        between = text[before.end : after.start]
        if OPERATOR.fullmatch(between):
            terms += [before.start, after.start]
            continue
        if terms and between.strip(WORKED[0]) in WORKED[1]:
            starts.update(terms)
        terms = []
    return starts


def zero_quantities(part: str, target: Subject, unit: str | None) -> list[Quantity]:
    """Return "no trees" as 0 trees if the label names the absent thing."""
    zeros: list[Quantity] = []
    for match in NO.finditer(part):
        phrase = PHRASE_END.split(match["of"] or match["of_2"] or match["of_3"])[0].strip()
        if phrase and speaks_of(phrase, target.counted):
            noun = phrase.split()[-1] if unit is None else None
            zeros.append(Quantity(0.0, 0.0, unit, noun, match.start(), match.end(), -1 - match.start(), spelled=True))
    return zeros
