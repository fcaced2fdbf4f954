"""The usual plan of a question: the calls and the figure of the drawn questions whose words are most like its own.

``data/guess_plans.json`` has the most common calls for each answer form of the question templates and number of files,
and the share of the wordings that hold each word, by figure and language. ``training/fit_guess.py`` writes it.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from agrotools.core import Arguments, Slot
from agrotools.core.slot import asked_slots
from agrotools.text.normalise import TOKEN, late_pattern, normalise

NUMBER = late_pattern(r"\d+(?:[.,]\d+)*")
_LEAST_LIKENESS = 0.25
"""Cosine similarity below which a question is taken for one of another kind."""

Plan = tuple[tuple[str, Arguments], ...]
"""Tool calls in order: name and arguments, which may refer to the results of earlier calls."""


class UsualPlan(NamedTuple):
    """Calls of one answer form with one number of files."""

    calls: Plan
    figures: Sequence[str]
    """Possible meanings of the figure asked for; none if none is."""


class _Question(NamedTuple):
    """Questions of one answer form and figure. ``words`` is a unit vector."""

    words: Mapping[str, float]
    figures: Sequence[str]


class _Form(NamedTuple):
    questions: Sequence[_Question]
    plans: Mapping[int, Plan]


def tokens_of(text: str) -> list[str]:
    """Return the words of a normalised text in order, Chinese ones by character, all numbers as 0."""
    return TOKEN.findall(NUMBER.sub("0", text))


def words_of(text: str) -> set[str]:
    """Return the different :func:`tokens_of` a question."""
    return set(tokens_of(normalise(text)))


def slot_key(slot: Slot) -> str:
    """Return the key of a slot: name, type and unit, all visible in the answer form."""
    return f"{slot.name}{kind_key(slot)}"


def kind_key(slot: Slot) -> str:
    """Return the key of a slot without its name."""
    return f"|{slot.type}|{getattr(slot, 'unit', None) or ''}"


def form_key(slots: Sequence[Slot]) -> str:
    """Return the key of an answer form."""
    return " ".join(map(slot_key, asked_slots(slots)))


def usual_plan(query: str, n_files: int) -> UsualPlan | None:
    """Return the usual plan of a question with this number of files; None if no known question is like it."""
    weights, forms = _shipped_forms()
    words = _unit_vector({word: weights[word] for word in words_of(query) if word in weights})
    best, likeness = None, _LEAST_LIKENESS
    for form in forms.values():
        if n_files not in form.plans:
            continue
        for question in form.questions:
            found = sum(value * question.words.get(word, 0.0) for word, value in words.items())
            if found > likeness:
                best, likeness = UsualPlan(form.plans[n_files], question.figures), found
    return best


def fewest_files(slots: Sequence[Slot]) -> int:
    """Return the smallest number of files on drawn scenes with the same answer form; 0 if the form is unknown."""
    form = _shipped_forms()[1].get(form_key(slots))
    return min(form.plans) if form else 0


@cache
def _shipped_forms() -> tuple[dict[str, float], dict[str, _Form]]:
    """Return the weight of each word (its inverse document frequency over the forms), and the forms by key."""
    shipped = json.loads(files("agrotools.data").joinpath("guess_plans.json").read_text("utf-8"))
    shares = [question["words"] for entry in shipped.values() for question in entry["questions"]]
    n_with_word = Counter(word for words in shares for word in words)
    weights = {word: math.log(len(shares) / n) for word, n in n_with_word.items()}
    return weights, {key: _form(entry, weights) for key, entry in shipped.items()}


def _form(entry: Mapping[str, Any], weights: Mapping[str, float]) -> _Form:
    questions = [
        _Question(_unit_vector({word: share * weights[word] for word, share in each["words"].items()}), each["figures"])
        for each in entry["questions"]
    ]
    plans = {int(n): tuple((tool, arguments) for tool, arguments in calls) for n, calls in entry["plans"].items()}
    return _Form(questions, plans)


def _unit_vector(vector: Mapping[str, float]) -> dict[str, float]:
    length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
    return {word: value / length for word, value in vector.items()}
