"""What an agent is shown, compared between worlds: the same questions, files and calls, with other gold.

A world changes what an agent may not see of the samples, and nothing else. Every text of an episode must be the same in
each world: a text that differs was made from the gold, however it is written there.
"""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from agrotools.agents.baselines.simple import random_arguments
from agrotools.calling import get_tool
from agrotools.core import AbstainSlot, Sample, SampleView, Slot, ToleranceSlot
from agrotools.core.slot import asked_slots
from agrotools.formats.benchmark import Benchmark
from agrotools.text.answer_form import UNKNOWN, format_answer
from agrotools_build import env

_SPLITS: tuple[env.Split, ...] = ("train", "test")
GROUPS: tuple[tuple[env.Split, int, int], ...] = tuple(
    (split, 0, group) for split in _SPLITS for group in range(env.FIRST_GROUPS)
)
"""Groups of rows that the certificate plays: the first twelve questions of ``train`` and of ``test``."""
ELSEWHERE: tuple[env.Split, int, int] = ("validation", 7, 3)
"""Group that questions of the package are asked as: another split, seed and number, and nothing is drawn."""
MOST_CALLS = 20
"""Documented number of calls; written again here, as a limit that is read from ``env`` cannot be found changed."""
_NO_TOOLS = ("reset", "get_reward", "submit_answer")
NUMERAL = re.compile(r"\d+(?:\.\d+)?")
"""A number in the text of a question or a tool."""
_WORD = re.compile(r"[^\W\d_]+|\s{2,}|[^\x20-\x7e]")
"""Words, two or more blanks, and characters outside ASCII, some of which cannot be seen."""
_TOOLS_EACH = 5
"""Tools that each question calls on its files: all 14 take minutes, and each has its turn."""
_PER_TYPE = 3
"""Questions of the package that are asked for each type of slot; their files are not there, so that they are quick."""

Call = tuple[str, Mapping[str, Any]]


class World(NamedTuple):
    """A change of all samples that no agent may notice."""

    name: str
    change: Callable[[Sample], Sample]


# --- other gold ------------------------------------------------------------------------------------------------------


def other_gold(number: int) -> Callable[[Sample], Sample]:
    """Return a change to the gold with that number; numbers from 1 differ in size, sign of the change and digits."""

    def change(sample: Sample) -> Sample:
        slots = tuple(with_other_gold(slot, number) for slot in sample.answer)
        return _hidden_fields(sample, slots, f"world {number}")

    return change


def other_answerability(sample: Sample) -> Sample:
    """Return an answerable sample as an unanswerable one with the same form, and the reverse."""
    slots = asked_slots(sample.answer)
    if sample.answerable:
        refusal = AbstainSlot(
            name="refusal", label="the files do not allow an answer", reason="no_scale", asks=slots
        )
        slots = (refusal,)
    return _hidden_fields(sample, slots, "world of answers")


WORLDS = (
    World("other gold", other_gold(1)),
    World("other gold again", other_gold(2)),
    World("no answer for an answer", other_answerability),
)


def with_other_gold(slot: Slot, number: int) -> Slot:
    """Return a slot that asks for the same, with another right value and other tolerances."""
    changes: dict[str, Any] = {"from_": f"{number}", "weight": slot.weight + number}
    if isinstance(slot, AbstainSlot):
        changes["asks"] = tuple(with_other_gold(each, number) for each in slot.asks)
    if isinstance(slot, ToleranceSlot):
        changes["rel_tol"] = slot.rel_tol + number / 100
    options = tuple(getattr(slot, "choices", ()))
    for name in ("value", "values", "facts", "whitelist"):
        if hasattr(slot, name):
            changes[name] = _other_value(getattr(slot, name), options, number)
    return slot.model_copy(update=changes)


def _other_value(value: Any, options: Sequence[str], number: int) -> Any:
    """Return another value of the same type, so that the form that asks for it stays the same."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value + 1 if number == 1 else value + 1
    if isinstance(value, float):
        return 2.37 * value + 11.3 if number == 1 else value / 3.1
    if isinstance(value, str) and value in options:
        at = options.index(value)
        step = number if number % len(options) else 1
        return options[(at + step) % len(options)]
    if isinstance(value, str):
        return f"another text {number}"
    if isinstance(value, dict):
        return {key: _other_value(each, (), number) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_other_value(each, options, number) for each in value)
    if hasattr(value, "phrases"):
        return value.model_copy(update={"phrases": (f"another fact {number}",)})
    return value


def _hidden_fields(sample: Sample, slots: tuple[Slot, ...], text: str) -> Sample:
    """Return a sample with other gold and with another value of each field that is not shown."""
    changes: dict[str, Any] = {
        "answer": slots,
        "template": text,
        "source": text,
        "family": text,
        "task_type": text,
        "cluster": text,
        "canary": text,
        "groups": {"group": text},
        "metadata": {"subject": text},
        "difficulty": {"level": float(len(text))},
        "weight": float(len(text)),
    }
    if sample.reference:
        steps = sample.reference.steps
        changed = [
            step.model_copy(update={"observation": None, "truth": {"text": text}, "thought": text})
            for step in steps
        ]
        changes["reference"] = sample.reference.model_copy(update={"steps": tuple(changed)})
    return sample.model_copy(update=changes)


# --- worlds ----------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A question of the certificate: its row, and its sample as it was drawn."""

    row_id: str
    sample: Sample


def rows() -> list[Row]:
    """Return the questions that are played: those of the groups, and some of the package."""
    found: list[Row] = []
    for split, seed, group in GROUPS:
        samples = {each.id: each for each in env.draw_group(split, seed, group).samples}
        kept = env.questions(split, seed, group)
        found += [Row(f"{split}-{seed}-{group}:{name}", samples[name]) for name in kept]
    split, seed, group = ELSEWHERE
    return found + [Row(f"{split}-{seed}-{group}:{each.id}", each) for each in _of_package()]


@cache
def _of_package() -> list[Sample]:
    """Return questions of the package with each type of slot, whose files need not be there.

    A group need not have, e.g., a question with yes or no for an answer; a fault may concern these alone.
    """
    found: list[Sample] = []
    counts: dict[str, int] = {}
    for sample in env.published().samples:
        types = {slot.type for slot in sample.answer}
        if all(counts.get(each, 0) >= _PER_TYPE for each in types):
            continue
        for each in types:
            counts[each] = counts.get(each, 0) + 1
        found.append(sample.model_copy(update={"twin": None}))
    return found


@contextmanager
def world(change: Callable[[Sample], Sample] | None = None) -> Iterator[None]:
    """Let the environment load changed samples, and the questions of the package as a group; None changes nothing.

    All goes through its own functions, so that a fault in any of them is in the world, too.
    """
    load, write, possible = env.load_folder, env.write_fresh, env.possible_ids
    value, reference = env.outcome_value, env.reference_answer
    seed_of_package = env.fresh_seed(*ELSEWHERE)

    def load_changed(folder: Path) -> Benchmark:
        if f"-fresh-{seed_of_package}-" in folder.name:
            benchmark = replace(env.published(), samples=_of_package())
        else:
            benchmark = load(folder)
        changed = [change(each) if change else each for each in benchmark.samples]
        return replace(benchmark, samples=changed)

    _forget_questions()
    try:
        env.load_folder = load_changed
        env.write_fresh = lambda *_args, **_named: (
            None
        )  # the questions of the package are not drawn
        # The reference calls do not lead to other gold, and no question may be left out for that.
        env.outcome_value = lambda *_: 1.0
        env.reference_answer = lambda _: None
        loaded = {name for group in (*GROUPS, ELSEWHERE) for name in env.questions(*group)}
        # Questions of the package keep their ids, which no drawn group has.
        env.possible_ids = lambda group: possible(group) | loaded
        env.outcome_value, env.reference_answer = value, reference
        yield
    finally:
        env.load_folder, env.write_fresh, env.possible_ids = load, write, possible
        env.outcome_value, env.reference_answer = value, reference
        _forget_questions()


def views_of(asked: Sequence[Row]) -> dict[str, SampleView]:
    """Return what an agent may see of each question in this world, by the row."""
    groups = {
        (split, seed, group): env.questions(split, seed, group)
        for split, seed, group in (*GROUPS, ELSEWHERE)
    }
    views: dict[str, SampleView] = {}
    for (split, seed, group), questions in groups.items():
        views |= {f"{split}-{seed}-{group}:{name}": each.view for name, each in questions.items()}
    return {row.row_id: views[row.row_id] for row in asked}


def _forget_questions() -> None:
    forget = getattr(env.questions, "cache_clear", None)
    if forget:
        forget()


# --- what is shown ---------------------------------------------------------------------------------------------------


def shown_in(
    asked: Sequence[Row],
    change: Callable[[Sample], Sample] | None = None,
    words: Sequence[str] = (),
) -> list[list[str]]:
    """Return the texts that the episodes of each row show in a world; two episodes run at a time.

    Args:
        words: texts that the first row also gives to its tools and as answers.
    """
    with world(change), ThreadPoolExecutor(2) as threads:
        texts = threads.map(
            lambda at: _shown(asked[at], at, change, words if not at else ()), range(len(asked))
        )
        return [*texts]


def count_different(one: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> int:
    """Return the number of rows whose texts differ."""
    return sum(first != second for first, second in zip(one, other, strict=True))


def rows_shown(change: Callable[[Sample], Sample] | None = None) -> list[str]:
    """Return what rows of each group hold in a world, with hashes of their pictures."""
    texts: list[str] = []
    with world(change):
        counts: Counter[tuple[env.Split, int]] = Counter()
        for split, seed, group in GROUPS:
            counts[split, seed] += len(env.questions(split, seed, group))
        for (split, seed), n in counts.items():
            texts += [repr(row) for row in env.env_rows(split, n, seed)]
            for row in env.env_rows(split, n, seed, images=True):
                pictures = row.pop("images")
                texts += [repr(row), *map(_hash_of_picture, pictures)]
    return texts


def _shown(
    row: Row, at: int, change: Callable[[Sample], Sample] | None, words: Sequence[str]
) -> list[str]:
    """Return the texts of the episodes of a row: prompt, files, tools, results, errors, forms, and what comes after."""
    episode = env.Env()
    texts = [_told(lambda: episode.reset(id=row.row_id))]
    session = episode.session
    if session is None:
        return [*texts, "no episode began"]
    columns = {word: True for word in words if word.isidentifier() and word not in ("id", "self")}
    texts.append(_told(lambda: episode.reset(id=row.row_id, **columns)))  # rows may have columns
    session = episode.session or session
    wanted = change(row.sample) if change else row.sample
    if [*session.sample.answer] != [*wanted.answer]:
        # Without this line, an environment that has its questions from elsewhere would be the same in each world.
        texts.append(f"the sample is not that of the world: {wanted.answer}")
    texts += [f"{each.name}: {_hash_of(each.path)}" for each in session.view.files]
    texts += [
        f"{name}{inspect.signature(each)}: {each.__doc__}" for name, each in _methods(episode)
    ]
    calls = [*_calls(row.sample, session.view, at), *_calls_with(words)]
    for first in range(0, len(calls), MOST_CALLS):
        texts.append(_told(lambda: episode.reset(id=row.row_id)))
        texts += [_called(episode, call) for call in calls[first : first + MOST_CALLS]]
    for submissions in (*_submissions(row.sample), *([each] for each in words)):
        texts.append(_told(lambda: episode.reset(id=row.row_id)))
        for text in submissions:
            texts.append(_told(lambda text=text: episode.submit_answer(text)))
            texts.append(_called(episode, ("calculate", {"expression": "1 + 1"})))
        _told(
            episode.get_reward
        )  # as a trainer does, and what is shown next must not follow from it
    texts.append(_told(lambda: episode.reset(id=row.row_id)))
    episode.close()
    for door in DOORS:
        texts += _shown_through(door, row, calls)
    return texts


class Door(NamedTuple):
    """A way to play an episode: its class, and how a tool is called."""

    name: str
    open: Callable[[], env.Env]
    call: Callable[[env.Env, str, Mapping[str, Any]], object]


def _call_method(episode: env.Env, tool: str, arguments: Mapping[str, Any]) -> object:
    return getattr(episode, tool)(**arguments)


# Looked up when they are used, so that a fault in any of them is found.
METHODS = Door("methods", lambda: env.Env(), _call_method)
DOORS = (
    Door("pictures", lambda: env.PictureEnv(), _call_method),
    Door(
        "call_tool",
        lambda: env.Env(),
        lambda episode, tool, arguments: env.call_tool(episode, tool, dict(arguments)),
    ),
)
"""Ways beside the methods of ``Env``, which play calls and a submission: pictures in results, and calls by name."""


def _shown_through(door: Door, row: Row, calls: Sequence[Call]) -> list[str]:
    """Return the texts, and hashes of the pictures, of episodes of a row that are played through a door."""
    episode = door.open()
    texts = [f"{name}: {each.__doc__}" for name, each in _methods(episode)]
    for first in range(0, len(calls), MOST_CALLS):
        texts.append(_told(lambda: episode.reset(id=row.row_id)))
        for tool, arguments in calls[first : first + MOST_CALLS]:
            texts.append(_told_through(door, episode, tool, arguments))
    for submission, outcomes in _after_submissions(door, episode, row):
        texts += [submission, *outcomes.values()]
    episode.close()
    return texts


def answered_after_submission(asked: Sequence[Row]) -> int:
    """Return the number of questions that a tool still answers after a submission, through any door."""
    return sum(any(_answers_late(door, row) for door in (METHODS, *DOORS)) for row in asked)


def _answers_late(door: Door, row: Row) -> bool:
    episode = door.open()
    answers = False
    for _, outcomes in _after_submissions(door, episode, row):
        answers = answers or any(_REFUSAL not in text for text in outcomes.values())
    episode.close()
    return answers


_REFUSAL = "no further tool can be called"
"""Words by which a call after a submission is refused; written again here, as those of ``env`` may be changed."""


def _after_submissions(
    door: Door, episode: env.Env, row: Row
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield what each submission of some episodes returns, and what every tool returns after it."""
    right, wrong, _ = _forms(row.sample)
    words = "I looked at the pictures."
    for submissions in ((words, right), (words, wrong, UNKNOWN), (right,)):
        _told(lambda: episode.reset(id=row.row_id))
        session = episode.session
        calls = [] if session is None else [*_late_calls(row.sample, session.view)]
        for text in submissions:
            submitted = _told_through(door, episode, "submit_answer", {"answer": text})
            returned = {str(call): _told_through(door, episode, call[0], call[1]) for call in calls}
            yield submitted, returned


def _late_calls(sample: Sample, view: SampleView) -> Iterator[Call]:
    """Yield a call of every tool of a class that has arguments, and the reference calls."""
    for name in env.AGROTOOLS:
        yield name, random_arguments(get_tool(name).spec, view, Random(0))
    for name in unknown_methods():
        yield name, {}
    if sample.reference:
        for step in env.reference_answer(sample).calls:
            if step.call:
                yield step.call.tool, step.call.arguments


def _told_through(door: Door, episode: env.Env, tool: str, arguments: Mapping[str, Any]) -> str:
    """Return what a call shows as text: of a list of content blocks the texts, and hashes of the pictures."""

    def call() -> str:
        shown = door.call(episode, tool, arguments)
        if not isinstance(shown, list):
            return str(shown)
        blocks = cast("list[dict[str, Any]]", shown)
        return " ".join(
            _hash_of_picture(each["image"]) if each["type"] == "image" else str(each)
            for each in blocks
        )

    return _told(call)


def _hash_of_picture(picture: Any) -> str:
    """Return a hash of what a picture of Pillow holds: its size, pixels, and the texts that were stored with it."""
    facts = f"{picture.size} {picture.mode} {sorted(map(str, picture.info.items()))}"
    return sha256(facts.encode() + picture.tobytes()).hexdigest()


def _told(function: Callable[[], object]) -> str:
    """Return what a function returns as text; the message of an error, which an agent reads as well."""
    try:
        return str(function())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _called(episode: env.Env, call: Call) -> str:
    name, arguments = call
    return _told(lambda: getattr(episode, name)(**arguments))


def _hash_of(path: str) -> str:
    file = Path(path)
    return sha256(file.read_bytes()).hexdigest() if file.is_file() else "not there"


def _methods(episode: env.Env) -> list[tuple[str, Callable[..., Any]]]:
    """Return the functions that TRL offers as tools: all public ones of the class."""
    functions = inspect.getmembers(type(episode), inspect.isfunction)
    return [(name, each) for name, each in functions if not name.startswith("_")]


def unknown_methods() -> list[str]:
    """Return the names of tools that the class offers and the benchmark does not have."""
    known = {*_NO_TOOLS, *env.AGROTOOLS}
    return [name for name, _ in _methods(env.Env()) if name not in known]


def _calls(sample: Sample, view: SampleView, at: int) -> Iterator[Call]:
    """Yield calls of a question, the same ones in each world: reference calls, other tools, errors, and gold."""
    if sample.reference:
        for step in env.reference_answer(sample).calls:
            if step.call:
                yield step.call.tool, step.call.arguments
    names = [*env.AGROTOOLS]
    without_files = view.model_copy(update={"files": ()})
    for number, name in enumerate(names):
        spec = get_tool(name).spec
        if (number - at) % len(names) < _TOOLS_EACH:
            yield name, random_arguments(spec, view, Random(at))
        yield name, random_arguments(spec, without_files, Random(at))  # a file that is not there
        yield name, {}
        yield name, {"no_such_argument": 1}
    for name in unknown_methods():
        yield name, {}
    for value in _golds(sample):
        yield "calculate", {"expression": value}


def _calls_with(words: Sequence[str]) -> Iterator[Call]:
    """Yield calls that give each word to a tool, which one of them might take for a password."""
    for word in words:
        yield "calculate", {"expression": word}
        yield "count_objects", {"image": word}


def gold_values(slots: Sequence[Slot]) -> dict[str, JsonValue]:
    """Return the right values of slots by name, and some words for free text."""
    values: dict[str, JsonValue] = {}
    for slot in asked_slots(slots):
        value = getattr(slot, "value", None)
        values[slot.name] = [*value] if isinstance(value, tuple) else value
        if slot.free_text:
            values[slot.name] = "as the results show"
    return values


def _forms(sample: Sample) -> list[str]:
    """Return the filled forms that are right in some world."""
    slots = asked_slots(sample.answer)
    forms = [format_answer(slots, gold_values(slots))]
    for number in (1, 2):
        changed = [with_other_gold(slot, number) for slot in slots]
        forms.append(format_answer(changed, gold_values(changed)))
    return forms


def _golds(sample: Sample) -> list[str]:
    """Return the single values that are right in some world, as an agent that tries them out would write them."""
    golds: list[str] = []
    for slot in asked_slots(sample.answer):
        if slot.free_text or slot.made_by_tools:
            continue
        for each in (slot, with_other_gold(slot, 1), with_other_gold(slot, 2)):
            golds.append(str(getattr(each, "value", "")))
    return golds


def _submissions(sample: Sample) -> Iterator[Sequence[Any]]:
    """Yield the submissions of episodes: right in one world, nearly right, refusals, and what cannot be read."""
    right, other, another = _forms(sample)
    words = "I looked at the pictures."
    slots = asked_slots(sample.answer)
    values = gold_values(slots)
    numbers = {name: 1.02 * each for name, each in values.items() if isinstance(each, float)}
    near = format_answer(slots, {**values, **numbers})
    yield words, words, words, right
    for form in (right, other, another, near, UNKNOWN):
        yield (form, form)
        yield words, form, form
        yield f"{form}\nIt may be 3, too.", f"{form}\nOr yes, or no.", right
    yield "", "", "", ""
    yield None, 12, right  # a model may send what is no text


def unlike_twins(asked: Sequence[Row]) -> int:
    """Return the number of pairs whose prompts differ by more than numbers, which would tell them apart."""
    prompts: dict[frozenset[str], set[str]] = {}
    for row in asked:
        if row.sample.twin:
            prompt = env.Env().reset(id=row.row_id)
            pair = frozenset({f"{row.row_id.partition(':')[0]}", row.sample.id, row.sample.twin})
            prompts.setdefault(pair, set()).add(NUMERAL.sub("0", prompt))
    return sum(len(each) > 1 for each in prompts.values())


def unusual_words(asked: Sequence[Row]) -> int:
    """Return the number of questions with a word or a blank that no published question has."""
    usual = {word for sample in env.published().samples for word in _words(sample)}
    return sum(not usual.issuperset(_words(row.sample)) for row in asked)


def _words(sample: Sample) -> list[str]:
    notes = [f"{each.name} {each.note or ''}" for each in sample.files]
    return _WORD.findall(" ".join([sample.query, *notes]))
