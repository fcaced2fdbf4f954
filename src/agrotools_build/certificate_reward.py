"""Rewards of the environment, compared with its documented rules, which are written a second time here.

The reward is that of the last form, as ``agrotools eval`` scores it. Calls, earlier and later submissions, length,
words and the episode before change nothing. Each episode of this module changes one of these, and its reward must be
equal to that of the rules, to the digit.
"""

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from agrotools.core import Sample, SampleView, Slot, ToleranceSlot
from agrotools.core.slot import asked_slots
from agrotools.scoring.metrics import counts_in_fas
from agrotools.scoring.slot_weights import weighted_mean
from agrotools.scoring.slots import outcome_value, refusal_points
from agrotools.text.answer_form import UNKNOWN, format_answer
from agrotools.text.answer_reader import as_form, is_complete
from agrotools.text.loose_json import dumps
from agrotools_build import env
from agrotools_build.certificate_shown import MOST_CALLS, Call, Row, gold_values, with_other_gold

_MOST_SUBMISSIONS = 3
"""Documented: the answer, the form, and the form once more. Written again, as ``MOST_CALLS`` is."""
_EQUAL = 1e-9
"""Difference of rewards that are equal: shares of slots are sums of floats."""
_WORDS = "I looked at the pictures."
_LENGTHS = (30, 100, 300, 1_000, 3_000, 10_000, 30_000, 90_000)
"""Characters of long texts; the scorer reads the last 100,000."""
_NUMBERS_OF_CALLS = (1, 2, 5, 10, 19, 20, 21, 30)
"""Numbers of calls, from one to more than are allowed."""
_REPETITIONS = 12
"""How often a word of the code is written at a time, for rules that count."""
_LONGEST_WORD = 200
"""Characters of texts in the code that are tried as words; longer ones are docstrings and messages."""


class Script(NamedTuple):
    """What an agent does in one episode."""

    texts: tuple[Any, ...]
    calls: tuple[Call, ...] = ()


_NO_VALUE = "< >"
"""What no type of item reads as a value: an empty placeholder."""


class Forms(NamedTuple):
    """Filled forms of a question: right, wrong in each value, with a last line that is not read, and in part."""

    right: str
    wrong: str
    asked_again: str
    unfinished: str


# --- the rules -------------------------------------------------------------------------------------------------------


def rule_reward(sample: Sample, view: SampleView, episode: env.Env, texts: Sequence[Any]) -> float:
    """Return the reward that the rules give for submissions after the calls that an episode recorded."""
    taken: list[str] = []
    has_form = False
    for given in texts:
        text = given if isinstance(given, str) else dumps(given)
        taken.append(as_form(text, view.form) if taken else text)
        has_form = is_complete(taken[-1], view.form)
        if has_form or len(taken) == _MOST_SUBMISSIONS:
            break
    if not taken or episode.session is None:
        return 0.0
    ending = "answered" if has_form else "no_form"
    return outcome_value(sample, episode.session.trajectory(taken[-1], ending))


def breaks_rules(
    row: Row, view: SampleView, script: Script, episode: env.Env | None = None
) -> bool:
    """Return True if an episode earns another reward than the rules give, allows more calls, or ends in an error."""
    try:
        return _breaks_rules(row, view, script, episode or env.Env())
    except Exception:  # whatever it is, an agent must not be able to cause it
        return True


def _breaks_rules(row: Row, view: SampleView, script: Script, episode: env.Env) -> bool:
    episode.reset(id=row.row_id)
    assert episode.session is not None
    session = episode.session
    call_late: Callable[..., str] = getattr(episode, "calculate")  # noqa: B009  made from the tools
    for name, arguments in script.calls:
        getattr(episode, name)(**arguments)
    n_calls = len(session.outcomes)
    is_wrong = n_calls > MOST_CALLS or not _is_equal(episode.get_reward(), 0.0)
    for at, text in enumerate(script.texts):
        episode.submit_answer(text)
        expected = rule_reward(row.sample, view, episode, script.texts[: at + 1])
        is_wrong |= not _is_equal(episode.get_reward(), expected)
        is_wrong |= not _is_equal(episode.get_reward(), expected)  # a second look changes nothing
        call_late(expression="2 + 2")
        is_wrong |= len(session.outcomes) != n_calls
    episode.close()
    return is_wrong or not _is_equal(episode.get_reward(), 0.0)


def _is_equal(reward: Any, expected: float) -> bool:
    return (
        isinstance(reward, int | float)
        and math.isfinite(reward)
        and -1 <= reward <= 1
        and abs(reward - expected) <= _EQUAL
    )


# --- forms whose reward is known without a scorer --------------------------------------------------------------------


def known_rewards(sample: Sample) -> Iterator[tuple[str, float]]:
    """Yield filled forms and their rewards, without scoring them: right, wrong in one value, refused, empty."""
    yield "", 0.0
    yield _WORDS, 0.0
    slots = asked_slots(sample.answer)
    values = gold_values(slots)
    right = format_answer(slots, values)
    if not sample.answerable:
        yield UNKNOWN, refusal_points(sample)
        if right:
            yield right, 0.0
        return
    if not right:
        return  # a chart alone: its calls earn the reward
    yield UNKNOWN, refusal_points(sample)
    counted = [slot for slot in slots if counts_in_fas(slot)]
    if not counted or any(slot.made_by_tools for slot in counted):
        return
    yield right, 1.0
    yield format_answer(slots, {**values, **_wrong_values(counted)}), 0.0
    for slot in counted:
        wrong = {**values, **_wrong_values([slot])}
        without = weighted_mean(counted, [float(other is not slot) for other in counted])
        yield format_answer(slots, wrong), without
        if isinstance(slot, ToleranceSlot) and slot.margin > 1e-4 * abs(slot.value):
            inside = {**values, slot.name: slot.value + 0.8 * slot.margin}
            outside = {**values, slot.name: slot.value + 1.2 * slot.margin}
            yield format_answer(slots, inside), 1.0
            yield format_answer(slots, outside), without


def _wrong_values(slots: Sequence[Slot]) -> dict[str, Any]:
    return gold_values([with_other_gold(slot, 1) for slot in slots])


def misses_known(row: Row) -> bool:
    """Return True if a form of a question earns another reward than the documentation says."""
    episode = env.Env()
    for form, expected in known_rewards(row.sample):
        episode.reset(id=row.row_id)
        for _ in range(_MOST_SUBMISSIONS):
            episode.submit_answer(form)
        if not _is_equal(episode.get_reward(), expected):
            return True
    return False


# --- episodes that change one thing ----------------------------------------------------------------------------------


def forms_of(sample: Sample) -> Forms:
    """Return filled forms of a question: right, wrong, with a last line that is not read, and unfinished."""
    slots = asked_slots(sample.answer)
    values = gold_values(slots)
    right = format_answer(slots, values)
    wrong = format_answer(slots, {**values, **_wrong_values(slots)})
    *lines, last = right.splitlines() or [""]
    name = last.partition(":")[0]
    asked_again = "\n".join([*lines, f"{name}: {_NO_VALUE}"])
    return Forms(right, wrong, asked_again, "\n".join(lines))


def earlier(_: Sample, forms: Forms) -> Iterator[Script]:
    """Yield episodes whose earlier submissions are better or worse than the last."""
    right, wrong, again, unfinished = forms
    yield Script((_WORDS, right))
    yield Script((_WORDS, wrong))
    yield Script((right, wrong))
    yield Script((wrong, right))
    yield Script((again, wrong))
    yield Script((again, again, wrong))
    yield Script((_WORDS, again, wrong))
    yield Script((again, wrong, right))
    yield Script((again, UNKNOWN))
    yield Script((UNKNOWN, right))
    yield Script((again, "", ""))
    yield Script((unfinished, unfinished, wrong))
    yield Script((f"{wrong}\n\n{right}",))
    yield Script((f"{right}\n\n{wrong}",))


def further(_: Sample, forms: Forms) -> Iterator[Script]:
    """Yield episodes that go on to submit after the last submission that is allowed, and after a complete one."""
    right, wrong, _again, unfinished = forms
    for text in (_WORDS, "", "?", unfinished):
        yield Script((text,) * 2 + (right,))
        yield Script((text,) * 3 + (right,))
        yield Script((text,) * 9 + (right,))
    yield Script((wrong,) * 4 + (right,))
    yield Script((right,) * 4 + (wrong,))
    yield Script((UNKNOWN, right, wrong, UNKNOWN))


def long_texts(_: Sample, forms: Forms) -> Iterator[Script]:
    """Yield episodes with long texts before, in and instead of a form."""
    for length in _LENGTHS:
        rng = Random(length)
        letters = "".join(rng.choice("abcdefghij klmnopq rstuvwxyz\n") for _ in range(length))
        repeated = (f"{_WORDS} " * length)[:length]
        for text in (letters, repeated):
            yield Script((text,))
            yield Script((text, f"{text}\n\n{forms.wrong}"))
        yield Script((f"{repeated}\n\n{forms.right}",))
        yield Script((repeated, UNKNOWN))


def calls(sample: Sample, forms: Forms) -> Iterator[Script]:
    """Yield episodes with calls before an answer: the reference calls, many calls, and calls that fail."""
    reference: tuple[Call, ...] = ()
    if sample.reference:
        steps = env.reference_answer(sample).calls
        reference = tuple((step.call.tool, step.call.arguments) for step in steps if step.call)
    failing = tuple((name, {}) for name in env.AGROTOOLS)
    sums = tuple(("calculate", {"expression": f"{at} + 1"}) for at in range(max(_NUMBERS_OF_CALLS)))
    for texts in ((forms.wrong,), (_WORDS, forms.right), ("",), (UNKNOWN,), ()):
        yield Script(texts, reference)
        yield Script(texts, reference[:-1])
        yield Script(texts, failing)
    for number in _NUMBERS_OF_CALLS:
        yield Script((_WORDS, forms.wrong), sums[:number])
        yield Script((forms.right,), (sums[0],) * number)


def formats(sample: Sample, forms: Forms) -> Iterator[Script]:
    """Yield episodes that write forms in other ways: JSON, capitals, tables, twice, in another order, and refusals."""
    slots = asked_slots(sample.answer)
    unknown = format_answer(slots, {slot.name: UNKNOWN for slot in slots})
    for form in (forms.right, forms.wrong):
        lines = form.splitlines()
        pairs = dict(line.split(": ", 1) for line in lines if ": " in line)
        yield Script((_WORDS, pairs))
        yield Script((dumps(pairs),))
        yield Script((form.upper(),))
        yield Script((f"```\n{form}\n```",))
        yield Script(("\n".join(f"**{line}**" for line in lines),))
        yield Script(("\n".join(reversed(lines)),))
        yield Script((f"<answer>{form}</answer>",))
        yield Script((f"{form}\n{form}",))
        yield Script((f"Final answer:\n{form}\nConfidence: 100 %",))
        yield Script((f"{form}!",))
        yield Script((f"  {form}  \n\n",))
    for text in (
        unknown,
        "n/a",
        "unknown.",
        "The answer is unknown.",
        "UNKNOWN",
        "none",
        "I cannot tell.",
    ):
        yield Script((text,))
        yield Script((_WORDS, text))
    names = " ".join(each.name for each in sample.files)
    for text in (sample.query, names):  # words of the prompt, as an agent might echo them
        yield Script((text, f"{text}\n\n{forms.wrong}"))
    yield Script((None, 12, forms.right))
    yield Script(([forms.right], [forms.wrong]))
    values = {**gold_values(slots)}
    for slot in slots:
        yield Script((format_answer(slots, {**values, slot.name: UNKNOWN}),))


FAMILIES: dict[str, Callable[[Sample, Forms], Iterator[Script]]] = {
    "earlier submissions, better or worse": earlier,
    "submissions after the last one": further,
    "long texts": long_texts,
    "calls of tools": calls,
    "formats of the answer": formats,
}
"""Episodes by what they change. Each must earn what the rules give."""
LONG_FAMILIES = (long_texts, calls)
"""Those that take longest."""


def with_words(words: Sequence[str], forms: Forms) -> Iterator[Script]:
    """Yield episodes that use words of the code: alone, many times, and around forms and as arguments of calls."""
    for word in words:
        yield Script((word,))
        yield Script((f"{word} {_WORDS}", f"{word}\n\n{forms.wrong}"))
        yield Script((f"{forms.wrong}\n{word}",))
    repeated = [" ".join([word] * _REPETITIONS) for word in words]
    for text in ("\n".join(words), *repeated):
        yield Script((text, f"{text}\n\n{forms.wrong}"))
        yield Script((f"{text}\n\n{forms.right}",))
    for first in range(0, len(words), MOST_CALLS):
        given = [("calculate", {"expression": word}) for word in words[first : first + MOST_CALLS]]
        yield Script((forms.wrong,), tuple(given))


def keeps_state(one: Row, other: Row, views: Mapping[str, SampleView]) -> bool:
    """Return True if an episode changes the next one of its object, or one of another object at the same time."""
    forms = {row.row_id: forms_of(row.sample) for row in (one, other)}
    same = env.Env()
    is_wrong = False
    for row in (one, other, one):
        for text in (forms[row.row_id].right, forms[row.row_id].wrong, UNKNOWN):
            is_wrong |= breaks_rules(row, views[row.row_id], Script((_WORDS, text)), same)
    first, second = env.Env(), env.Env()
    first.reset(id=one.row_id)
    second.reset(id=other.row_id)
    first.submit_answer(forms[one.row_id].right)
    is_wrong |= not _is_equal(second.get_reward(), 0.0)
    second.submit_answer(forms[other.row_id].wrong)
    expected = rule_reward(one.sample, views[one.row_id], first, [forms[one.row_id].right])
    is_wrong |= not _is_equal(first.get_reward(), expected)
    first.reset(id=one.row_id)
    is_wrong |= not _is_equal(first.get_reward(), 0.0)
    first.close()
    second.close()
    return is_wrong


# --- words of the code -----------------------------------------------------------------------------------------------


def words_of_code() -> list[str]:
    """Return the texts and numbers in the code of the environment, any of which might be a password.

    A fuzzer takes its dictionary from a program in this way. Words that are calculated, or that stand in the code of
    the engine, are not among them.
    """
    found: set[str] = set()
    seen: set[int] = set()
    for name, value in (*vars(env.Env).items(), *vars(env).items()):
        if not name.startswith("__") or isinstance(value, FunctionType):
            _collect(value, found, seen)
    return sorted(word for word in found if word.strip() and len(word) <= _LONGEST_WORD)


def _collect(value: Any, found: set[str], seen: set[int]) -> None:
    """Add the texts that a function, its closures and the values it names hold."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, str):
        found.add(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found.add(str(value))
    elif isinstance(value, tuple | list | set | frozenset):
        for each in value:
            _collect(each, found, seen)
    elif isinstance(value, dict):
        for each in (*value.keys(), *value.values()):
            _collect(each, found, seen)
    elif isinstance(value, CodeType):
        for each in value.co_consts:
            _collect(each, found, seen)
    elif isinstance(value, property):
        _collect(value.fget, found, seen)
    elif isinstance(value, re.Pattern):
        _collect(value.pattern, found, seen)
    elif isinstance(unwrapped := inspect.unwrap(value) if callable(value) else value, FunctionType):
        _collect_function(unwrapped, found, seen)


def _collect_function(function: FunctionType, found: set[str], seen: set[int]) -> None:
    name = function.__module__ or ""
    is_engine = name.startswith("agrotools") and name != env.__name__
    if is_engine or name.partition(".")[0] in sys.stdlib_module_names:
        return  # they have tests of their own, and thousands of texts
    _collect(function.__code__, found, seen)
    _collect(function.__defaults__ or (), found, seen)
    for cell in function.__closure__ or ():
        _collect(cell.cell_contents, found, seen)
    for each in function.__code__.co_names:
        named = function.__globals__.get(each)
        if isinstance(named, str | int | float | tuple | list | set | frozenset | FunctionType):
            _collect(named, found, seen)
