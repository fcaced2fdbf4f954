"""The certificate of the training environment finds planted faults, and names no line without one.

Faults are put into the functions of ``env``, as somebody who changes it might, on a few questions of the package. Their
files are not there: what tools say of that is compared as well.
"""

import base64
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from PIL import Image

from agrotools.core import ExactSlot, Sample, Step, ToleranceSlot, Trajectory
from agrotools.core.slot import asked_slots
from agrotools.scoring import slot_weights
from agrotools.scoring.slots import outcome_value
from agrotools_build import certificate, certificate_reward, certificate_shown, env
from support.plain_sample import plain_sample

pytestmark = pytest.mark.process
Patch = pytest.MonkeyPatch
SAMPLES = env.published().samples


def _first(type_of_slot: str) -> Sample:
    """Return a question without a chart that has a slot of that type."""
    for sample in SAMPLES:
        types = {slot.type for slot in sample.answer}
        if type_of_slot in types and "plot" not in types and not sample.twin:
            return sample
    raise LookupError(type_of_slot)


def _twins() -> list[Sample]:
    """Return a question and its unanswerable twin."""
    answerable = next(each for each in SAMPLES if each.twin and each.answerable)
    return [answerable, next(each for each in SAMPLES if each.id == answerable.twin)]


def _choice() -> Sample:
    """Return a question that is answered by one of its options."""
    return next(
        each
        for each in SAMPLES
        if each.answerable and not each.twin and getattr(each.answer[0], "choices", ())
    )


OWN_WORDS = {*certificate_reward.words_of_code()}
ASKED = [_first("tolerance"), _first("boolean"), _choice(), *_twins()]


@pytest.fixture(autouse=True)
def _few_questions(monkeypatch: Patch) -> Iterator[None]:
    """Let one group have a few questions of the package; no scene is drawn."""
    few = replace(env.published(), samples=ASKED)
    monkeypatch.setattr(env, "load_folder", lambda _: few)
    monkeypatch.setattr(env, "write_fresh", lambda *_args, **_named: None)
    monkeypatch.setattr(env, "possible_ids", lambda _: {each.id for each in ASKED})
    monkeypatch.setattr(certificate_shown, "GROUPS", (("train", 0, 0),))
    monkeypatch.setattr(env, "FIRST_GROUPS", 1)
    monkeypatch.setattr(certificate_shown, "_of_package", lambda: ASKED[:2])
    monkeypatch.setattr(certificate_reward, "_LENGTHS", (1_000, 10_000))
    monkeypatch.setattr(certificate, "words_of_code", _new_words)
    env.questions.cache_clear()
    yield
    env.questions.cache_clear()


def _new_words() -> list[str]:
    """Return the words of the code that a fault brought; `doctor --env` tries the others as well."""
    return [word for word in certificate_reward.words_of_code() if word not in OWN_WORDS]


def failed(part: Callable[[Any], Iterator[certificate.Line]]) -> Iterator[str]:
    """Yield the lines of a part of the certificate that fail; what nobody asks for is not played."""
    return (line.check for line in part(certificate_shown.rows()) if not line.passed)


# --- faults ----------------------------------------------------------------------------------------------------------


def gold_of(sample: Sample) -> str:
    """Return the first value of the gold, also of what an unanswerable question asks for."""
    return str(getattr(asked_slots(sample.answer)[0], "value", ""))


def prompts(told: Callable[[Sample], str]) -> Callable[[Patch], None]:
    """Return a fault that writes something of the sample behind its prompt."""

    def plant(patch: Patch) -> None:
        asked = env.question_of

        def question_of(benchmark: Any, sample: Sample, row_id: str = "") -> env.Question:
            question = asked(benchmark, sample, row_id)
            return question._replace(prompt=f"{question.prompt}{told(sample)}")

        patch.setattr(env, "question_of", question_of)

    return plant


def results(told: Callable[[env.Env, str, str], str]) -> Callable[[Patch], None]:
    """Return a fault that writes something behind results of tools."""

    def plant(patch: Patch) -> None:
        call = env.Env._call

        def changed(self: env.Env, tool: str, arguments: dict[str, Any]) -> str:
            text = str(call(self, tool, arguments))
            return text + (told(self, tool, text) if self.session else "")

        patch.setattr(env.Env, "_call", changed)

    return plant


def rewards(added: Callable[[env.Env], float]) -> Callable[[Patch], None]:
    """Return a fault that adds something to each reward of a submitted answer."""

    def plant(patch: Patch) -> None:
        reward = env.Env.get_reward

        def get_reward(self: env.Env) -> float:
            return reward(self) + (added(self) if self._submitted else 0.0)

        patch.setattr(env.Env, "get_reward", get_reward)

    return plant


def after_a_low_reward(patch: Patch) -> None:
    """Write the gold into the prompt of a row whose last episode earned less than everything."""
    reset, reward, low = env.Env.reset, env.Env.get_reward, set[str]()

    def get_reward(self: env.Env) -> float:
        earned = reward(self)
        if self.session and earned < 1:
            low.add(self.session.sample.id)
        return earned

    def reset_again(self: env.Env, **row: Any) -> str:
        prompt = reset(self, **row)
        sample = self.session.sample if self.session else None
        return f"{prompt} {gold_of(sample)}" if sample and sample.id in low else prompt

    patch.setattr(env.Env, "get_reward", get_reward)
    patch.setattr(env.Env, "reset", reset_again)


def forms(patch: Patch) -> None:
    """Write the gold below the form."""
    submit = env.Env.submit_answer

    def submit_answer(self: env.Env, answer: str) -> str:
        text = submit(self, answer)
        return f"{text} {gold_of(self.session.sample)}" if self.session else text

    patch.setattr(env.Env, "submit_answer", submit_answer)


def best_of_several(patch: Patch) -> None:
    """Reward the best submission."""

    def get_reward(self: env.Env) -> float:
        if self.session is None or not self._submitted:
            return 0.0
        tried = [self.session.trajectory(text) for text in self._submitted]
        return max(outcome_value(self.session.sample, each) for each in tried)

    patch.setattr(env.Env, "get_reward", get_reward)


def option_index(sample: Sample) -> str:
    """Return the place of the right option; of the longest value for other questions."""
    choices = getattr(asked_slots(sample.answer)[0], "choices", ())
    return f" ({choices.index(gold_of(sample))})" if choices else ""


def only_boolean(sample: Sample) -> str:
    """Return a dot for each yes."""
    slots = asked_slots(sample.answer)
    return "".join("." for slot in slots if getattr(slot, "value", None) is True)


def rounded(sample: Sample) -> str:
    """Return the numbers of the gold with one digit."""
    values = [getattr(slot, "value", None) for slot in asked_slots(sample.answer)]
    return " ".join(f"about {value:.1g}" for value in values if isinstance(value, float))


@cache
def reference_tools(name: str) -> tuple[str, ...]:
    """Return the tools that the reference of a sample calls."""
    sample = next(each for each in SAMPLES if each.id == name)
    return sample.reference.tools if sample.reference else ()


def gold_if(told: bool, episode: env.Env) -> str:
    """Return the gold of an episode, if it is to be told."""
    return gold_of(episode.session.sample) if told and episode.session else ""


def is_reference(episode: env.Env, tool: str) -> bool:
    """Return True if the reference of the episode's question calls a tool."""
    return episode.session is not None and tool in reference_tools(episode.session.sample.id)


def replaced(name: str, leaking: type[env.Env]) -> Callable[[Patch], None]:
    """Return a fault that puts a leaking subclass in the place of a class of ``env``."""
    return lambda patch: patch.setattr(env, name, leaking)


def picture_of(text: str) -> Image.Image:
    """Return a picture of one pixel, whose colour tells a text."""
    return Image.new("RGB", (1, 1), f"#{zlib.crc32(text.encode()) & 0xFFFFFF:06x}")


class DrawsGold(env.PictureEnv):
    """Shows the gold in the pictures of results; their texts tell nothing."""

    def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        text = super()._call(tool, arguments)
        if self.session is None or not isinstance(text, str):
            return text
        picture = {"type": "image", "image": picture_of(gold_of(self.session.sample))}
        return [picture, {"type": "text", "text": text}]


class WritesGoldBesidePictures(env.PictureEnv):
    """Tells the gold in the form, and only to models that see."""

    def submit_answer(self, *texts: str, **arguments: Any) -> str:
        told = super().submit_answer(*texts, **arguments)
        return f"{told} {gold_if(True, self)}"


class TellsGoldAtTheEnd(env.Env):
    """Tells the gold in what one tool refuses after a submission."""

    def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        text = super()._call(tool, arguments)
        is_told = tool == "plot" and bool(self._submitted)
        return f"{text}{gold_if(is_told, self)}"


class AnswersAtTheEnd(env.Env):
    """Lets one tool be called after a submission, when the form has given away the plan."""

    def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        if tool != "lookup_agronomy":
            return super()._call(tool, arguments)
        submitted, self._submitted = self._submitted, []
        is_over, self._is_over = self._is_over, False
        text = super()._call(tool, arguments)
        self._submitted, self._is_over = submitted, is_over
        return text


def call_by_name(patch: Patch) -> None:
    """Write the gold behind the results of calls by name, as servers make them."""
    call = env.call_tool

    def changed(episode: env.Env, tool: str, arguments: dict[str, Any]) -> str:
        return call(episode, tool, arguments) + gold_if(tool == "calculate", episode)

    patch.setattr(env, "call_tool", changed)


def picture_of_a_later_row(patch: Patch) -> None:
    """Put the gold into the picture of one row that is not the first."""
    last = ASKED[-1].query

    def pictures(view: Any) -> list[Any]:
        questions = env.questions("train", 0, 0).values()
        sample = next(each.sample for each in questions if each.view.query == view.query)
        return [picture_of(gold_of(sample) if view.query == last else "")]

    patch.setattr(env, "_pictures", pictures)


LEAKS: dict[str, Callable[[Patch], None]] = {
    "gold in the prompt": prompts(gold_of),
    "gold as base64": prompts(lambda each: base64.b64encode(gold_of(each).encode()).decode()),
    "gold reversed": prompts(lambda each: gold_of(each)[::-1]),
    "gold rounded": prompts(rounded),
    "yes or no": prompts(only_boolean),
    "place of the option": prompts(option_index),
    "two blanks if there is no answer": prompts(lambda each: "  " if not each.answerable else " "),
    "gold in results of reference calls": results(
        lambda self, tool, _: gold_if(is_reference(self, tool), self)
    ),
    "gold in results of other tools": results(
        lambda self, tool, _: gold_if(not is_reference(self, tool), self)
    ),
    "gold in error texts": results(lambda self, _, text: gold_if('"error"' in text, self)),
    "gold below the form": forms,
    "gold after a low reward": after_a_low_reward,
    "gold in pictures of results": replaced("PictureEnv", DrawsGold),
    "gold in the form for models that see": replaced("PictureEnv", WritesGoldBesidePictures),
    "gold after a submission": replaced("Env", TellsGoldAtTheEnd),
    "gold in calls by name": call_by_name,
}
REWARDS: dict[str, tuple[Callable[[Patch], None], str]] = {
    "the best of several": (best_of_several, "earlier submissions"),
    "submissions without limit": (
        lambda patch: patch.setattr(env, "FORM_REQUESTS", 10**6),
        "submissions after",
    ),
    "0.2 for long texts": (
        rewards(lambda self: 0.2 * (len(self._submitted[-1]) > 2_000)),
        "long texts",
    ),
    "0.05 for each call": (
        rewards(lambda self: 0.05 * len(self.session.outcomes) if self.session else 0.0),
        "calls of tools",
    ),
    "a magic word": (
        rewards(lambda self: 0.5 * ("xyzzy" in self._submitted[-1])),
        "words of the code",
    ),
}


def test_without_a_fault_all_lines_pass():
    assert not list(failed(certificate.shown_lines))
    assert not list(failed(certificate.reward_lines))


@pytest.mark.parametrize("fault", LEAKS)
def test_gold_that_is_shown_is_found(fault: str, monkeypatch: Patch):
    LEAKS[fault](monkeypatch)
    assert any(
        check.startswith("leak: questions that show") for check in failed(certificate.shown_lines)
    )


def test_gold_in_the_picture_of_any_row_is_found(monkeypatch: Patch):
    picture_of_a_later_row(monkeypatch)
    assert any(
        check.startswith("leak: rows that show") for check in failed(certificate.shown_lines)
    )


def test_a_tool_that_answers_after_a_submission_is_found(monkeypatch: Patch):
    monkeypatch.setattr(env, "Env", AnswersAtTheEnd)
    late = "tools: questions with a tool that still answers after a submission"
    assert late in failed(certificate.shown_lines)


@pytest.mark.parametrize("fault", REWARDS)
def test_rewards_against_the_rules_are_found(fault: str, monkeypatch: Patch):
    plant, line = REWARDS[fault]
    plant(monkeypatch)
    assert any(line in check for check in failed(certificate.reward_lines))


def test_the_rewards_that_the_certificate_expects_follow_the_weights_of_slots(monkeypatch: Patch):
    """With the weights changed in one place, rewards of ``Env`` and what the certificate expects stay equal."""
    trees = ToleranceSlot(name="trees", label="trees", value=10.0, abs_tol=1.0)
    crop = ExactSlot(name="crop", label="crop", value="maize", choices=("maize", "wheat"))
    sample = plain_sample(answer=(trees, crop))
    monkeypatch.setattr(
        slot_weights, "slot_weight", lambda slot: 2.0 if slot.type == "tolerance" else 1.0
    )
    expected = [reward for _, reward in certificate_reward.known_rewards(sample)]
    assert pytest.approx(1 / 3) in expected  # wrong number
    assert pytest.approx(2 / 3) in expected  # wrong crop
    for text, reward in certificate_reward.known_rewards(sample):
        answer = Step(turn=0, kind="answer", text=text)
        trajectory = Trajectory(steps=(answer,), termination="answered")
        assert outcome_value(sample, trajectory) == pytest.approx(reward)
