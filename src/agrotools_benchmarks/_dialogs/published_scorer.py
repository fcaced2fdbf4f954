"""Published scorer of GTA and ThinkGeo, for the prediction files that their evaluation writes.

Reimplemented from the behaviour of opencompass/datasets/gta_bench.py (github.com/open-compass/GTA) and
ThinkGeo_bench.py (github.com/mbzuai-oryx/ThinkGeo, commit 95086de5bcb6f008851615f4651ae85ee6a8ed1a), both Apache-2.0.
Their unexpected behaviour is kept; docs/reference-scorers.md lists it. Messages are read from the file without
validation: if the originals raise an exception, :class:`PublishedScorerStops` is raised. The originals use float32
similarities, this module those of the caller, so that metrics with cosines agree to about six digits.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agrotools.scoring.predictions import Figure, PredictionScores, Similarity, published
from agrotools.text.json_kinds import is_list, is_object

_SMALL = 1e-5


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Sample of a prediction file.

    ``gold`` and ``prediction`` are unchanged; ``answer`` is the ``gt_answer`` of the data set (an object of keyword
    lists, a list of texts, or None).
    """

    key: str
    gold: Any
    prediction: Any
    answer: Any = None


@dataclass(frozen=True)
class Rules:
    """Differences between the two scorers. ``categories``: tools counted by each F1, by its id."""

    name: str
    categories: Mapping[str, tuple[str, ...]]
    image_tools: tuple[str, ...]
    image_metric: str
    recall: Callable[[int, int], float]
    lowers: bool = False
    guards_answers: bool = False


class _Cosines:
    """Similarity given by the caller; without one, counts the answers and calls that would need it."""

    def __init__(self, similarity: Similarity | None) -> None:
        self._similarity = similarity
        self.texts = 0
        self.images = 0

    def of(self, first: Any, second: Any) -> float:
        if self._similarity is None:
            return 0.0
        if not isinstance(first, str) or not isinstance(second, str):
            raise TypeError("only texts have an embedding")
        return max(0.0, float(self._similarity(first, second)))

    def best(self, answer: Any, references: list[Any]) -> float:
        self.texts += self._similarity is None and bool(references)
        return max((self.of(answer, reference) for reference in references), default=0.0)

    def arguments(self, gold: Any, predicted: Any) -> float:
        self.images += self._similarity is None
        return self.of(json.dumps(gold), json.dumps(predicted))

    def missing(self, *, images: bool) -> str | None:
        """Return the reason why a metric cannot be computed; None if it can."""
        needed = [f"{self.texts} subjective answers"] if self.texts else []
        if images and self.images:
            needed.append(f"{self.images} calls that make images")
        return f"{' and '.join(needed)} need an embedder" if needed else None


def response_type(message: Any) -> tuple[str, Any]:
    """Return ``tool``, ``answer`` or ``tool_return`` with the call or the text."""
    if "tool_calls" in message:
        return "tool", message["tool_calls"][0]["function"]
    return ("answer" if message["role"] == "assistant" else "tool_return"), message["content"]


def is_correct(answer: Any, reference: Any, *, lowers: bool = False) -> bool:
    """Return True if ``answer`` contains an alias of each whitelist group as whole words, and none of the blacklist.

    ``lowers``: True to search the answer in lower case as ThinkGeo does (the search ignores case anyway).
    """

    def found(aliases: Any) -> bool:
        pattern = r"\b(?:" + "|".join(re.escape(alias) for alias in aliases) + r")\b"
        return bool(re.search(pattern, answer.lower() if lowers else answer, re.IGNORECASE))

    hits = sum(found(group) for group in reference["whitelist"])
    right = hits == len(reference["whitelist"])
    if not reference["blacklist"]:
        return right
    unwanted = [alias for group in reference["blacklist"] for alias in group]
    "|".join(
        map(re.escape, unwanted)
    )  # raises an exception whenever the original does, even without a match
    return right and not found(unwanted)


def score_steps(
    samples: Sequence[Dialogue], rules: Rules, similarity: Similarity | None = None
) -> PredictionScores:
    """Compute InstAcc, ToolAcc, ArgAcc and SummAcc of a step-by-step file (``every_with_gt``).

    Raises:
        PublishedScorerStops: the original raises an exception, e.g. if no gold step is a call.
    """
    counts: dict[str, int] = dict.fromkeys(
        ("inst", "tool", "arg", "gold_calls", "text_answers", "tool_call", "tool_call_error"), 0
    )
    cosines = _Cosines(similarity)
    answers = 0.0
    for sample in samples:
        with published(f"sample {sample.key}"):
            counts["text_answers"] += bool(sample.answer)
            for predicted, gold in zip(sample.prediction, sample.gold, strict=False):
                answers += _step(predicted, gold, sample.answer, counts, cosines, rules)
    name = rules.name
    with published("the end"):
        steps = counts["gold_calls"] + counts["text_answers"]
        metrics = {
            f"{name}.inst_acc": Figure(counts["inst"] / steps * 100, steps),
            f"{name}.tool_acc": Figure(
                counts["tool"] / counts["gold_calls"] * 100, counts["gold_calls"]
            ),
            f"{name}.arg_acc": Figure(
                counts["arg"] / counts["gold_calls"] * 100, counts["gold_calls"]
            ),
            f"{name}.summ_acc": Figure(
                answers / counts["text_answers"] * 100, counts["text_answers"]
            ),
        }
    left_out: dict[str, str] = {}
    if reason := cosines.missing(images=False):
        del metrics[f"{name}.summ_acc"]
        left_out[f"{name}.summ_acc"] = reason
    return PredictionScores("step-by-step", metrics, counts, left_out)


def _step(
    predicted: Any,
    gold: Any,
    reference: Any,
    counts: dict[str, int],
    cosines: _Cosines,
    rules: Rules,
) -> float:
    """Count one step and return its contribution to SummAcc."""
    predicted_type, predicted_value = response_type(predicted)
    gold_type, gold_value = response_type(gold)
    failed = "error" in predicted
    counts["inst"] += predicted_type == gold_type and not failed
    counts["gold_calls"] += gold_type == "tool"
    counts["tool_call"] += predicted_type == "tool"
    counts["tool_call_error"] += predicted_type == "tool" and failed
    if predicted_type == gold_type == "tool" and predicted_value["name"] == gold_value["name"]:
        counts["tool"] += 1
        counts["arg"] += bool(predicted_value["arguments"] == gold_value["arguments"])
    elif predicted_type == gold_type == "answer":
        return _answer_score(predicted_value, reference, cosines, rules)
    return 0.0


def score_end(
    samples: Sequence[Dialogue], rules: Rules, similarity: Similarity | None = None
) -> PredictionScores:
    """Compute answer accuracies and F1 by tool category of an end-to-end file (``every``). Only the first turn counts.

    Raises:
        PublishedScorerStops: the original raises an exception, e.g. if a gold call names an unknown tool.
    """
    counts: dict[str, int] = dict.fromkeys(
        ("all", "text_answers", "tool_call", "tool_call_error"), 0
    )
    hits, predicted_calls, gold_calls = (dict.fromkeys(rules.categories, 0) for _ in range(3))
    cosines = _Cosines(similarity)
    answers = images = 0.0
    for sample in samples:
        with published(f"sample {sample.key}"):
            steps, reference = sample.prediction[0], sample.answer
            counts["all"] += 1
            counts["text_answers"] += bool(reference)
            kind, answer = response_type(steps[-1])
            if reference and kind == "answer" and answer:
                answers += _answer_score(answer, reference, cosines, rules)
            if not reference:
                images += _image_calls(steps, sample.gold, cosines, rules)
            called = [step for step in steps if "tool_calls" in step]
            counts["tool_call"] += len(called)
            counts["tool_call_error"] += sum("error" in step for step in called)
            names = [step["tool_calls"][0]["function"]["name"] for step in called]
            for name in names:
                if (category := _category(name, rules)) is not None:
                    predicted_calls[category] += 1
            for step in sample.gold[0]:
                if "tool_calls" in step:
                    name = step["tool_calls"][0]["function"]["name"]
                    category = _category(name, rules)
                    if category is None:
                        raise KeyError(
                            f"none: the gold calls {name}, which is in no category of {rules.name}"
                        )
                    gold_calls[category] += 1
                    hits[category] += name in names
    texts, everything = counts["text_answers"], counts["all"]
    with published("the end"):
        accuracy = 0.0 if rules.guards_answers and not texts else answers / texts * 100
        metrics = {
            f"{rules.name}.ans_acc": Figure(accuracy, texts),
            f"{rules.name}.{rules.image_metric}": Figure(
                (answers + images) / everything * 100, everything
            ),
        }
    for category in rules.categories:
        precision = hits[category] / (predicted_calls[category] + _SMALL)
        recall = rules.recall(hits[category], gold_calls[category])
        f1 = 2 * precision * recall / (precision + recall + _SMALL)
        metrics[f"{rules.name}.{category}"] = Figure(f1 * 100, gold_calls[category])
    left_out: dict[str, str] = {}
    for metric, with_images in (("ans_acc", False), (rules.image_metric, True)):
        if reason := cosines.missing(images=with_images):
            del metrics[f"{rules.name}.{metric}"]
            left_out[f"{rules.name}.{metric}"] = reason
    return PredictionScores("end-to-end", metrics, counts, left_out)


def _answer_score(answer: Any, reference: Any, cosines: _Cosines, rules: Rules) -> float:
    if is_object(reference):
        return is_correct(answer, reference, lowers=rules.lowers)
    return cosines.best(answer, reference) if is_list(reference) else 0.0


def _image_calls(steps: Any, gold: Any, cosines: _Cosines, rules: Rules) -> float:
    """Return the product of similarities between each gold call's arguments and those of the last successful call."""
    last = dict(_calls_of((step for step in steps if "error" not in step), rules.image_tools))
    score = 1.0
    for name, arguments in _calls_of(gold[0], rules.image_tools):
        if name not in last:
            return 0.0
        score *= cosines.arguments(arguments, last[name])
    return score


def _calls_of(steps: Any, tools: Sequence[str]) -> Iterator[tuple[Any, Any]]:
    """Yield the name and the arguments of each call of one of ``tools``."""
    for step in steps:
        if "tool_calls" in step:
            call = step["tool_calls"][0]["function"]
            name, arguments = call["name"], call["arguments"]
            if name in tools:
                yield name, arguments


def _category(name: Any, rules: Rules) -> str | None:
    return next((category for category, tools in rules.categories.items() if name in tools), None)


SCORERS = {"step-by-step": score_steps, "end-to-end": score_end}
"""Scorers by mode."""
