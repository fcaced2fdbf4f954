"""The scorer in AgriEval's own repository, to the letter: how it reads an answer, and the lots it draws.

What it searches for is in ``agrieval.toml``, which names the file it is from. Where it reads no letter at all, it calls
the answer right with a probability: 0.2 of several options, one over the options of one, one half of true or false.
Here that is the credit, so that scoring twice gives the same. An empty reply has none.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from agrotools.benchmarks.agrieval.slots import OptionKind
from agrotools.scoring.predictions import Figure, Scores, published

_CHANCE_OF_SEVERAL = 0.2
_CHANCE_OF_TRUE_FALSE = 0.5
_SUMMING_UP = "综上所述"
KINDS: Mapping[str, OptionKind] = {"单选": "single", "多选": "multiple", "判断": "true_false"}
"""Names of the kinds of questions in its files."""
_RIGHT, _WRONG = "正确", "错误"


NO_REPLIES = "the script reads generated_answer, which no entry has"


def score_choices(entries: Sequence[Mapping[str, Any]]) -> Scores:
    """The accuracy that the scorer prints of a result file, as the mean of its lots: over the entries that have a reply
    and an answer.

    Raises:
        PublishedScorerStops: the original ends with an exception.
    """
    with_reply = [entry for entry in entries if "generated_answer" in entry and "answer" in entry]
    total = 0.0
    for position, entry in enumerate(with_reply):
        with published(f"entry {position} of those with a reply"):
            total += _credit_of(entry)
    if not with_reply:
        return Scores("choices", {}, {}, {"agrieval.accuracy_published": NO_REPLIES})
    return Scores(
        "choices", {"agrieval.accuracy_published": Figure(100 * total / len(with_reply), len(with_reply))}, {}
    )


def _credit_of(entry: Mapping[str, Any]) -> float:
    reply = entry["generated_answer"]
    if not reply:
        return 0.0
    options, answer = entry["options"], entry["answer"]
    # The kind is looked at only where there are not as many capitals as right options.
    capitals = {character for character in reply.replace("\n", "") if character.isupper()}
    kind_value: Any = None if capitals and len(capitals) == len(answer) else entry["question_type"]
    return credit(reply, options, KINDS.get(kind_value) if isinstance(kind_value, str) else None, answer)


def credit(reply: str, options: Mapping[str, str], kind: OptionKind | None, answer: str) -> float:
    """Expected score of ``reply``, 0 to 1. ``answer``: the letters of the right options; ``kind``: None
    of a question of no kind that it knows, which only capitals answer."""
    if not reply:
        return 0.0
    read = "".join(sorted(set(extract(reply, len(options), kind, len(answer)))))
    if not read and not options:
        return 0.0
    if read or kind is None:
        return float(read == "".join(sorted(set(answer))))
    if kind == "multiple":
        return _CHANCE_OF_SEVERAL
    return _CHANCE_OF_TRUE_FALSE if kind == "true_false" else 1 / len(options)


def extract(reply: str, options: int, kind: OptionKind | None, letters: int) -> str:
    """The letters that the scorer reads: all capitals, if they are as many as there are right ones (``letters``);
    else the first of its patterns that is found; else, of several, all capitals. Empty where it reads none."""
    text = reply.replace("\n", "")
    capitals = sorted({character for character in text if character.isupper()})
    if len(capitals) == letters:
        return "".join(capitals)
    last = chr(ord("A") + options - 1)
    if kind is None:
        return ""
    for pattern, group in _patterns(kind, last):
        if match := _search(pattern, text, last, group):
            letter = f"[A-{last}]"
            return "".join(sorted(set(re.findall(letter, match)))) if kind == "multiple" else match.strip()
    if kind == "multiple":
        return "".join(capitals)
    if kind == "true_false" and (word := re.search(f"{_RIGHT}|{_WRONG}", text)):
        return "A" if word[0] == _RIGHT else "B"
    return ""


@cache
def _patterns(kind: OptionKind, last: str) -> tuple[tuple[re.Pattern[str], int], ...]:
    patterns_by_kind = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    rows = (
        patterns_by_kind["several"]
        if kind == "multiple"
        else patterns_by_kind["one"] + (patterns_by_kind["true_false"] if kind == "true_false" else [])
    )
    return tuple((re.compile(pattern.replace("{last}", last), re.DOTALL), group) for pattern, group in rows)


def _search(pattern: re.Pattern[str], text: str, last: str, group: int) -> str | None:
    """The group of the first match. The same as a plain search, in time that grows with the text alone."""
    if pattern.pattern.startswith(_SUMMING_UP):
        # Nested repeats: the match ends at the last letter behind the first such word.
        start = text.find(_SUMMING_UP)
        behind = re.findall(f"[A-{last}]", text[start + len(_SUMMING_UP) :]) if start >= 0 else []
        return behind[-1] if behind else None
    if ".*?" in pattern.pattern:
        # Behind the last place where such a pattern can end nothing is worth a look.
        in_words = pattern.pattern.endswith("正确(答案)?")
        ends = text.rfind(_RIGHT) + len("正确答案") if in_words else _last_letter(text, last)
        text = text[: max(0, ends)]
    match = pattern.search(text)
    return match[group] if match else None


def _last_letter(text: str, last: str) -> int:
    """Just behind the last letter of an option; 0 where there is none."""
    return max((text.rfind(chr(code)) for code in range(ord("A"), ord(last) + 1)), default=-1) + 1
