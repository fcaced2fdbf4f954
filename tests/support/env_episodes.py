"""Scripted episodes of ``agrotools_build.Env``, and what they return and earn as TRL plays them."""

import inspect
from typing import Any, NamedTuple

from agrotools.agents.modes import reference_history
from agrotools.core import Sample
from agrotools.formats.reference_results import derived_values
from agrotools.text.answer_form import format_answer
from agrotools_build import Env, env_rows
from agrotools_build.env import draw_group

Call = tuple[str, dict[str, Any]]
N_ROWS = 15
"""Rows of the small groups of ``train``, with one whose answer has several parts."""


class Episode(NamedTuple):
    """A row and the calls that are made in its episode, submissions included."""

    row: dict[str, Any]
    calls: list[Call]


class Played(NamedTuple):
    """What the calls of an episode returned, and its reward."""

    texts: list[str]
    reward: float


def scripted_episodes() -> dict[str, Episode]:
    """Episodes by what happens in them: of two rows with an answer, and of one whose answer has several parts."""
    rows = [row for row in env_rows("train", N_ROWS) if n_scored_parts(row)]
    first, second = rows[:2]
    of_parts = next(row for row in rows if n_scored_parts(row) > 1)
    one_right, *others = right_answer(of_parts).splitlines()
    half_right = "\n".join([one_right, *(f"{each.partition(':')[0]}: 0" for each in others)])
    words = submit("I looked at the picture.")
    return {
        "right": Episode(
            first, [*reference_calls(first), *odd_calls(), words, submit(right_answer(first))]
        ),
        "right at the third submission": Episode(
            second, [words, submit("I forgot the form."), submit(right_answer(second))]
        ),
        "half right": Episode(of_parts, [words, submit(half_right)]),
        "a line is missing": Episode(of_parts, [words, submit(one_right)]),
        "refused": Episode(second, [submit("unknown"), submit("unknown")]),
        "not submitted": Episode(second, reference_calls(second)),
        "no form": Episode(first, [words]),
        "a call too late": Episode(first, [words, submit(right_answer(first)), *odd_calls()]),
    }


def submit(answer: str) -> Call:
    return "submit_answer", {"answer": answer}


def odd_calls() -> list[Call]:
    """Calls without a picture: one that works, and some that tools refuse."""
    return [
        ("calculate", {"expression": "6 * 7"}),
        ("calculate", {"expression": "(6 * "}),
        ("calculate", {"no_such_argument": 1}),
        ("count_objects", {"image": "nowhere.jpg", "target": "apple"}),
        ("count_objects", {"image": 3, "target": ["apple"]}),
    ]


def reference_calls(row: dict[str, Any]) -> list[Call]:
    reference = _sample(row).reference
    assert reference is not None
    return [(step.tool, step.model_dump(mode="json")["arguments"]) for step in reference.steps]


def right_answer(row: dict[str, Any]) -> str:
    """Return the filled form of a row; empty where it needs a chart or there is no answer."""
    sample = _sample(row)
    if not sample.answerable or sample.answer_type == "plot":
        return ""
    assert sample.reference is not None
    results = [step.observation.result for step in reference_history(sample.reference)]
    return format_answer(sample.answer, derived_values(sample.answer, results))


def n_scored_parts(row: dict[str, Any]) -> int:
    """Return how many values of an answer are scored without a judge; 0 where it needs a chart or there is none."""
    sample = _sample(row)
    if not sample.answerable or sample.answer_type == "plot":
        return 0
    return sum(slot.type != "open_text" for slot in sample.answer)


def _sample(row: dict[str, Any]) -> Sample:
    group, _, sample_id = row["id"].partition(":")
    split, seed, number = group.split("-")
    return draw_group(split, int(seed), int(number)).sample(sample_id)


def played(episode: Episode) -> Played:
    """Play an episode as TRL does: public functions of the class are the tools."""
    tools = {name for name, _ in inspect.getmembers(Env, inspect.isfunction) if name[0] != "_"}
    env = Env()
    env.reset(**episode.row)
    texts = []
    for name, arguments in episode.calls:
        assert name in tools
        texts.append(getattr(env, name)(**arguments))
    reward = env.get_reward()
    env.close()
    return Played(texts, reward)
