"""Corrected versions of the metrics of GTA and ThinkGeo (docs/reference-scorers.md describes the corrections).

All values are in 0 to 100; the gold scored against itself has 100. Each metric keeps the contribution of every sample,
so that an interval over samples can be computed (:meth:`PredictionScores.estimate`). Output that a model omits, or that
is neither a call nor an answer, is wrong but never an error; a malformed gold raises :class:`BenchmarkError`.

The published rule compares arguments by equality of the Python objects: an explicit default differs from an omitted
one, ``true`` equals 1, paths depend on where the data are stored, and the box ``(1,2,3,4)`` differs from ``(1, 2, 3,
4)``.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, cast

from pydantic import JsonValue

from agrotools.calling import TOOLS, get_tool
from agrotools.core import AgreementKind, BenchmarkError, ToolSpec
from agrotools.scoring.keywords import held_keywords, unwanted_keyword
from agrotools.scoring.predictions import (
    PredictionScores,
    SampleParts,
    ScoreSum,
    Similarity,
    summed,
)
from agrotools.text.agreement import compare_arguments
from agrotools.text.agreement_values import same_json
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks._dialogs.prediction_files import (
    Message,
    gold_messages,
    read_message,
    read_messages,
)
from agrotools_benchmarks._dialogs.published_scorer import Dialogue, Rules

_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d++)?|\.\d++)")
_EDGE = r"\s*+-?(?:\d++(?:\.\d++)?|\.\d++)\s*+"
_BOX = re.compile(rf"\s*+[(\[]?{_EDGE}(?:,{_EDGE}){{3}}[)\]]?\s*+")
_FILE = re.compile(r"\.(?:jpe?g|png|tiff?|bmp|webp|gif|mp4)$", re.IGNORECASE)
_DEEPEST = 50


def canonical(name: str, arguments: Any) -> dict[str, JsonValue] | None:
    """Return the arguments with defaults added, base names of files and boxes as numbers; None if they are not an
    object."""
    if not is_object(arguments) or not _is_flat_enough(arguments):
        return None
    spec = _published_spec(name)
    defaults: dict[str, JsonValue] = dict(spec.defaults) if spec else {}
    kinds: Mapping[str, str] = spec.agreement if spec else {}
    non_default = {
        key: value for key, value in arguments.items() if value is not None or key not in defaults
    }
    return {
        key: _plain(value, kinds.get(key)) for key, value in {**defaults, **non_default}.items()
    }


def _plain(value: Any, kind: str | None) -> JsonValue:
    if is_text(value):
        if kind == "file" or (
            kind is None and ("/" in value or "\\" in value) and _FILE.search(value)
        ):
            return value.strip().replace("\\", "/").rstrip("/").rpartition("/")[2]
        if kind == "box" and _BOX.fullmatch(value):
            return [float(number) for number in _NUMBER.findall(value)]
    return value


def _is_flat_enough(value: Any, levels: int = _DEEPEST) -> bool:
    if is_object(value):
        return levels > 0 and all(_is_flat_enough(item, levels - 1) for item in value.values())
    return (
        levels > 0 and all(_is_flat_enough(item, levels - 1) for item in value)
        if is_list(value)
        else True
    )


def is_scorable(reference: Any) -> bool:
    """Return True if the keyword lists of an objective task contain a keyword."""
    return any(_groups(reference, "whitelist")) or any(_groups(reference, "blacklist"))


def check_keywords(reference: Any, where: str) -> None:
    """Check the form of ``reference``, two lists of lists of texts; BenchmarkError if it has another one."""
    for name in ("whitelist", "blacklist"):
        groups: Any = reference.get(name) if is_object(reference) else 0
        if groups is None and name == "blacklist":
            continue
        lists: Any = groups if is_list(groups) else [None]
        if not all(is_list(group) and all(map(is_text, group)) for group in lists):
            raise BenchmarkError(
                f"{where}: the {name} of the answer is no list of lists of texts",
                hint='it looks like {"whitelist": [["2", "two"]], "blacklist": null}',
            )


def matches_keywords(answer: str, reference: Any) -> bool:
    r"""Return True if ``answer`` holds an alias of each group of the whitelist and none of the blacklist.

    Aliases are found as whole words (:mod:`agrotools.scoring.keywords`). ``\b`` of the published rule matches only
    between a word character and another one: it cannot find ``-3`` or ``50%`` in most contexts, and finds ``2`` in
    ``2.5``.

    ``reference`` must have passed :func:`check_keywords`. Empty groups and empty aliases are ignored.
    """
    whitelist, blacklist = _groups(reference, "whitelist"), _groups(reference, "blacklist")
    return all(held_keywords(answer, whitelist)) and not unwanted_keyword(
        answer, blacklist, whitelist
    )


def _groups(reference: Any, name: str) -> list[list[str]]:
    groups: list[list[str]] = reference.get(name) or []
    named_groups = [[alias for alias in group if alias.strip()] for group in groups]
    return [group for group in named_groups if group]


def compare(name: str, predicted: Any, reference: Any) -> tuple[bool, bool]:
    """Compare the arguments of two calls of the tool ``name``; arguments that are not an object never agree.

    Returns two flags. They are equal if they differ at most in explicit defaults, folders, and spaces in boxes. They
    agree by the rules of agrotools, which compare sums by value, boxes by overlap and texts by words.
    """
    first, second = canonical(name, predicted), canonical(name, reference)
    if first is None or second is None:
        return False, False
    spec = _published_spec(name)
    equal = same_json(first, second)
    return equal, equal or (
        spec is not None and all(row.agrees for row in compare_arguments(spec, first, second))
    )


def as_text(name: str, arguments: Any) -> str:
    """Return the arguments as canonical text, for embedding."""
    plain = canonical(name, arguments)
    return json.dumps(
        str(arguments) if plain is None else plain, sort_keys=True, ensure_ascii=False
    )


_AGREEMENT: Mapping[str, AgreementKind] = {
    "bbox": "box",
    **dict.fromkeys(("position", "color"), "choice"),
    **dict.fromkeys(("pre_image", "post_image"), "file"),
}
"""Arguments that the published tools declare as text, with the kind of their values."""


@cache
def _published_spec(name: str) -> ToolSpec | None:
    """Return the specification of a published tool with the kinds of all arguments; None for any other tool."""
    spec = get_tool(name).spec if name in TOOLS else None
    if spec is None or spec.category != "published":
        return None
    kinds = {argument: _AGREEMENT.get(argument, kind) for argument, kind in spec.agreement.items()}
    return spec.model_copy(update={"agreement": kinds})


_LEAST = 1e-9
"""Lower bound of similarities in the matching, because the logarithm of 0 is not finite."""
_STEP_METRICS = (
    "inst_acc",
    "tool_acc",
    "arg_acc",
    "arg_acc_agreement",
    "summ_acc",
    "summ_acc_objective",
)


def score_steps(
    samples: Sequence[Dialogue],
    rules: Rules,
    similarity: Similarity | None = None,
    embedder: str | None = None,
) -> PredictionScores:
    """Compute the step-by-step metrics over all gold steps, including those without a prediction.

    ``summ_acc_objective`` excludes subjective answers. If there are any, ``summ_acc`` needs a ``similarity``.

    Raises:
        BenchmarkError: the gold of a sample is malformed.
    """
    counts: dict[str, int] = dict.fromkeys(
        (
            "steps",
            "gold_calls",
            "objective",
            "subjective",
            "no_text_answer",
            "tool_call",
            "tool_call_error",
        ),
        0,
    )
    ids = {name: f"{rules.name}.{name}_corrected" for name in _STEP_METRICS}
    sample_parts: list[SampleParts] = []
    missing = 0
    for sample in samples:
        where = f"sample {sample.key}"
        gold = gold_messages(sample.gold, where, returns=False)
        steps = read_messages(sample.prediction)[: len(gold)]
        steps += [Message("other")] * (len(gold) - len(steps))
        parts = _step_parts(steps, gold)
        counts["steps"] += len(gold)
        counts["gold_calls"] += sum(step.kind == "call" for step in gold)
        _count_calls(steps, counts)
        text_reference = _text_reference(sample.answer, where)
        last = next((i for i in reversed(range(len(gold))) if gold[i].kind == "answer"), None)
        last_message = (
            steps[last] if last is not None and steps[last].kind == "answer" else Message("other")
        )
        kind = _answer_parts(
            last_message, text_reference, similarity, parts, ("summ_acc", "summ_acc_objective")
        )
        counts[kind] += 1
        missing += kind == "subjective" and similarity is None
        sample_parts.append(
            SampleParts(sample.key, {ids[name]: part for name, part in parts.items()})
        )
    left_out = (
        {ids["summ_acc"]: f"{missing} subjective answers need an embedder"} if missing else {}
    )
    metrics = summed(sample_parts, ids.values(), left_out)
    return PredictionScores(
        "step-by-step", metrics, counts, left_out, tuple(sample_parts), embedder
    )


def _step_parts(steps: Sequence[Message], gold: Sequence[Message]) -> dict[str, ScoreSum]:
    parts: dict[str, ScoreSum] = {}
    if gold:
        right = sum(
            mine.kind == theirs.kind and not mine.failed
            for mine, theirs in zip(steps, gold, strict=True)
        )
        parts["inst_acc"] = ScoreSum(right, len(gold))
    calls = [
        (mine, theirs) for mine, theirs in zip(steps, gold, strict=True) if theirs.kind == "call"
    ]
    if calls:
        same_tool_calls = [
            (mine, theirs)
            for mine, theirs in calls
            if mine.kind == "call" and mine.name == theirs.name
        ]
        compared = [
            compare(mine.name, mine.arguments, theirs.arguments) for mine, theirs in same_tool_calls
        ]
        parts["tool_acc"] = ScoreSum(len(same_tool_calls), len(calls))
        parts["arg_acc"] = ScoreSum(sum(equal for equal, _ in compared), len(calls))
        parts["arg_acc_agreement"] = ScoreSum(sum(agree for _, agree in compared), len(calls))
    return parts


def _count_calls(steps: Sequence[Message], counts: dict[str, int]) -> None:
    counts["tool_call"] += sum(step.kind == "call" for step in steps)
    counts["tool_call_error"] += sum(step.kind == "call" and step.failed for step in steps)


def _text_reference(reference: Any, where: str) -> Any:
    """Return the reference of a text answer: keyword lists, texts, or None if the text is not scored."""
    if reference is None or (is_object(reference) and not reference):
        return None
    if is_object(reference):
        check_keywords(reference, where)
        return reference if is_scorable(reference) else None
    if is_list(reference) and all(map(is_text, reference)):
        return [text for text in reference if text.strip()] or None
    raise BenchmarkError(
        f"{where}: the answer of the data set is neither keyword lists, a list of texts, nor null",
        hint="give the data set of these predictions",
    )


def _answer_parts(
    message: Message,
    text_reference: Any,
    similarity: Similarity | None,
    parts: dict[str, ScoreSum],
    names: tuple[str, ...],
) -> str:
    """Add the score of a text answer to the metrics ``names`` (the last of them for objective tasks only)."""
    if text_reference is None:
        return "no_text_answer"
    text = message.text if message.kind == "answer" and not message.failed else ""
    if is_object(text_reference):
        score = float(bool(text.strip()) and matches_keywords(text, text_reference))
        parts.update(dict.fromkeys(names, ScoreSum(score, 1)))
        return "objective"
    if similarity is not None:
        score = (
            max((_cosine(text, one, similarity) for one in text_reference), default=0.0)
            if text.strip()
            else 0.0
        )
        parts.update(dict.fromkeys(names[:-1], ScoreSum(score, 1)))
    return "subjective"


def _cosine(first: str, second: str, similarity: Similarity) -> float:
    return (
        1.0
        if first.strip() == second.strip()
        else min(1.0, max(0.0, float(similarity(first, second))))
    )


def score_end(
    samples: Sequence[Dialogue],
    rules: Rules,
    similarity: Similarity | None = None,
    embedder: str | None = None,
) -> PredictionScores:
    """Compute the end-to-end metrics. A task that requests neither a text nor an image is counted as unscorable.

    Raises:
        BenchmarkError: the gold of a sample is malformed.
    """
    names = ("ans_acc", rules.image_metric, "ans_acc_objective")
    ids = {name: f"{rules.name}.{name}_corrected" for name in (*names, *rules.categories)}
    counts: dict[str, int] = dict.fromkeys(
        ("samples", "objective", "subjective", "image_tasks", "unscorable", "no_text_answer"), 0
    )
    counts |= dict.fromkeys(("tool_call", "tool_call_error", "uncategorised_gold_calls"), 0)
    sample_parts: list[SampleParts] = []
    unknown: dict[str, int] = dict.fromkeys(("subjective", "image_tasks"), 0)
    for sample in samples:
        where = f"sample {sample.key}"
        gold = gold_messages(_first(sample.gold), where, returns=True)
        raw = _first(sample.prediction)
        steps = read_messages(raw)
        counts["samples"] += 1
        _count_calls(steps, counts)
        parts = _f1_parts(steps, gold, rules, counts)
        last = read_message(raw[-1]) if is_list(raw) and raw else Message("other")
        kind = _answer_parts(last, _text_reference(sample.answer, where), similarity, parts, names)
        if kind == "no_text_answer":
            score = image_score(steps, gold, rules.image_tools, similarity)
            kind = "unscorable" if score is None else "image_tasks"
            if score is not None and not math.isnan(score):
                parts[rules.image_metric] = ScoreSum(score, 1)
        if kind in unknown:
            unknown[kind] += rules.image_metric not in parts
        counts[kind] += 1
        sample_parts.append(
            SampleParts(sample.key, {ids[name]: part for name, part in parts.items()})
        )
    left_out = _left_out(unknown, ids["ans_acc"], ids[rules.image_metric])
    metrics = summed(sample_parts, ids.values(), left_out)
    return PredictionScores("end-to-end", metrics, counts, left_out, tuple(sample_parts), embedder)


def _first(turns: Any) -> Any:
    return turns[0] if is_list(turns) and turns else []


def _f1_parts(
    steps: Sequence[Message], gold: Sequence[Message], rules: Rules, counts: dict[str, int]
) -> dict[str, ScoreSum]:
    """Return for each category ``2 TP`` out of the number of predicted and gold calls; the ratio over samples is F1.

    A gold call matches at most one successful call of the same tool; failed calls are ignored.
    """
    call_counts = Counter(step.name for step in steps if step.kind == "call" and not step.failed)
    gold_counts = Counter(step.name for step in gold if step.kind == "call")
    both = call_counts & gold_counts
    parts: dict[str, ScoreSum] = {}
    for category, tools in rules.categories.items():
        of_tools = sum(call_counts[tool] + gold_counts[tool] for tool in tools)
        if of_tools:
            parts[category] = ScoreSum(2 * sum(both[tool] for tool in tools), of_tools)
    known = {tool for tools in rules.categories.values() for tool in tools}
    counts["uncategorised_gold_calls"] += sum(
        n for tool, n in gold_counts.items() if tool not in known
    )
    return parts


def _left_out(unknown: Mapping[str, int], accuracy: str, with_images: str) -> dict[str, str]:
    words = {"subjective": "subjective answers", "image_tasks": "image tasks"}
    needed = [f"{n} {words[kind]}" for kind, n in unknown.items() if n]
    reasons = {accuracy: f"{needed[0]} need an embedder"} if unknown["subjective"] else {}
    return reasons | ({with_images: f"{' and '.join(needed)} need an embedder"} if needed else {})


def image_score(
    steps: Sequence[Message],
    gold: Sequence[Message],
    image_tools: Collection[str],
    similarity: Similarity | None,
) -> float | None:
    """Return the score of a task whose answer is an image, 0 to 1; None if the gold has no call that creates one.

    The published rule keeps only the last call of each tool, so that a gold with two boxes scores below 1 against
    itself. Here the last successful calls of each tool, as many as the gold has, are matched one-to-one by greatest
    similarity (arguments as text), and the score is the product of the similarities. Earlier calls count as abandoned
    attempts. It is NaN if the calls differ and there is no ``similarity``.
    """
    gold_calls = _texts_by_tool(gold, image_tools)
    image_calls = _texts_by_tool([step for step in steps if not step.failed], image_tools)
    if not gold_calls:
        return None
    if any(len(image_calls.get(name, [])) < len(calls) for name, calls in gold_calls.items()):
        return 0.0
    return math.prod(
        _matched(calls, image_calls[name][-len(calls) :], similarity)
        for name, calls in gold_calls.items()
    )


def _texts_by_tool(steps: Sequence[Message], tools: Collection[str]) -> Mapping[str, list[str]]:
    """Return the arguments of the calls of each of ``tools`` as texts."""
    texts: dict[str, list[str]] = {}
    for step in steps:
        if step.kind == "call" and step.name in tools:
            texts.setdefault(step.name, []).append(as_text(step.name, step.arguments))
    return texts


def _matched(gold: list[str], predicted: list[str], similarity: Similarity | None) -> float:
    """Return the largest product of similarities over all one-to-one matchings of two lists of equal length."""
    if sorted(gold) == sorted(predicted):
        return 1.0
    if similarity is None:
        return math.nan
    likeness = [[_cosine(one, other, similarity) for other in predicted] for one in gold]
    if len(gold) == 1:
        return likeness[0][0]
    from scipy.optimize import linear_sum_assignment  # pyright: ignore[reportUnknownVariableType]

    costs = [[-math.log(max(value, _LEAST)) for value in row] for row in likeness]
    rows, columns = cast("tuple[list[int], list[int]]", linear_sum_assignment(costs))
    return math.prod(likeness[row][column] for row, column in zip(rows, columns, strict=True))


SCORERS = {"step-by-step": score_steps, "end-to-end": score_end}
"""Scorers by mode."""
