"""Agent-X's metrics without what misleads in them (docs/reference-scorers.md says what that is).

A judge's score that cannot be read, and a sample that the judge or the model left out, count as 0 and are counted;
generative tasks are told by their query type and id, not by the position of a row; tool sets are compared by code.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from agrotools.benchmarks.agent_x.judge_replies import MISSING, JudgeScore, JudgeTable
from agrotools.benchmarks.agent_x.published_scorer import COLUMNS, GENERATIVE_ROWS, GOAL
from agrotools.core import BenchmarkError
from agrotools.scoring.predictions import Figure, Part, SampleParts, Scores, summed
from agrotools.text.loose_json import is_list, is_object, is_text, zeroes

_TOOLSET = "agent_x.toolset_f1_corrected"
_GOAL_STAR = "agent_x.goal_acc_imggen_corrected"
_NOT_JUDGED = JudgeScore(None, MISSING)
_STAR_PARTS = ("agent_x.tool_p_corrected", "agent_x.tool_acc_corrected", _TOOLSET)


def score(
    table: JudgeTable | None,
    predictions: Sequence[Any] = (),
    data: Mapping[str, Mapping[str, Any]] | None = None,
) -> Scores:
    """Means in percent over all samples that should be there: those of ``data``, else of the predictions and the table.

    ``toolset_f1_corrected`` needs predictions and data, all other metrics the table. Goal counts the samples that are
    not generative, Goal* (``goal_acc_imggen_corrected``) is the mean of tool precision, tool accuracy and the F1 of
    tool sets over those that are.

    ``predictions``: one-key objects by id; anything else in the list is a sample without a prediction. Of two with one
    id the first counts.

    Raises:
        BenchmarkError: the table names no ids and has another number of rows than there are predictions, or most
            samples are not in the data set.
    """
    given: dict[str, Any] = {}
    for item in filter(is_object, predictions):
        for key, value in item.items():
            given.setdefault(key, value)
    judged = _judged(table, [next(iter(item), "") if is_object(item) else "" for item in predictions])
    keys = _keys(data, given, judged)
    generative = generative_ids(data) if data is not None else {str(row) for row in GENERATIVE_ROWS}
    counts = zeroes("samples", "without_prediction", "without_judgement", "generative")
    counts |= zeroes("unreadable_scores", "missing_scores", "without_gold_tools", "not_in_the_data_set")
    counts["samples"] = len(keys)
    counts["not_in_the_data_set"] = len({*given, *judged}.difference(keys))
    counts["generative"] = sum(key in generative for key in keys)
    counts["without_prediction"] = sum(key not in given for key in keys) if predictions else 0
    counts["without_judgement"] = sum(key not in judged for key in keys) if table is not None else 0
    found = [
        SampleParts(key, _parts(key, judged, given, data, key in generative, table, counts, bool(predictions)))
        for key in keys
    ]
    ids = [f"agent_x.{name}_corrected" for name in COLUMNS.values() if name != "toolset_acc"]
    left_out = _left_out(ids, table, bool(predictions), data)
    metrics = summed(found, [*ids, _TOOLSET], left_out)
    _add_goal_star(metrics, found, generative, left_out)
    return Scores("single-shot", metrics, counts, left_out, tuple(found))


def generative_ids(data: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Samples whose query type says that they ask for an image to be made.

    Where none says so, those are meant that the published list names, taken as ids.
    """
    said = {key for key, sample in data.items() if "generat" in str(sample.get("query_type", "")).lower()}
    return said or {str(row) for row in GENERATIVE_ROWS if str(row) in data}


def _judged(table: JudgeTable | None, ids: list[str]) -> dict[str, Mapping[str, JudgeScore]]:
    if table is None:
        return {}
    if table.ids is None and ids and len(ids) != len(table.rows):
        raise BenchmarkError(
            f"the table of scores has {len(table.rows)} rows without ids, but there are {len(ids)} predictions",
            hint="add a column named id",
        )
    positions = [str(position) for position in range(len(table.rows))]
    names = table.ids if table.ids is not None else ids or positions
    pairs = [pair for pair in zip(names, table.scores, strict=True) if pair[0]]
    return dict(reversed(pairs))


def _keys(data: Mapping[str, Any] | None, given: Mapping[str, Any], judged: Mapping[str, Any]) -> list[str]:
    if data is None:
        return list({**given, **judged})
    everything = {**given, **judged}
    strangers = [key for key in everything if key not in data]
    if 2 * len(strangers) > len(everything):
        raise BenchmarkError(
            f'the data set has no sample "{strangers[0]}" ({len(strangers)} such)',
            hint="give the data set that the predictions were made on",
        )
    return list(data)


def _parts(
    key: str,
    judged: Mapping[str, Mapping[str, JudgeScore]],
    given: Mapping[str, Any],
    data: Mapping[str, Mapping[str, Any]] | None,
    generative: bool,
    table: JudgeTable | None,
    counts: dict[str, int],
    has_predictions: bool,
) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    if table is not None:
        for column, name in COLUMNS.items():
            if column not in table.columns or name == "toolset_acc" or (column == GOAL and generative):
                continue
            read = judged.get(key, {}).get(column, _NOT_JUDGED)
            if read.value is None:
                counts["missing_scores" if read.rule == MISSING else "unreadable_scores"] += 1
            parts[f"agent_x.{name}_corrected"] = Part(read.value or 0.0, 1)
    if data is not None and has_predictions:
        wanted = tools_of(data[key])
        if wanted:
            parts[_TOOLSET] = Part(set_f1(tools_of(given.get(key, {})), wanted), 1)
        else:
            counts["without_gold_tools"] += 1
    return parts


def tools_of(entry: Any) -> frozenset[str]:
    """The names of the tools that the steps of a prediction or of a gold sample use."""
    steps: Any = entry.get("reasoning_steps") if is_object(entry) else None
    if is_list(steps) and len(steps) == 1 and is_list(steps[0]):
        steps = steps[0]
    found: set[str] = set()
    listed: Any = steps if is_list(steps) else []
    for step in listed:
        if is_object(step):
            name: Any = step.get("tool_used") or step.get("tool")
            if is_text(name) and name.strip() and name.strip().lower() not in ("null", "none"):
                found.add(name.strip())
    return frozenset(found)


def set_f1(made: Collection[str], wanted: Collection[str]) -> float:
    """F1 of two sets of names, 0 to 1; 0 where they share nothing."""
    both = len(set(made) & set(wanted))
    return 2 * both / (len(set(made)) + len(set(wanted))) if both else 0.0


def _left_out(
    ids: Sequence[str], table: JudgeTable | None, has_predictions: bool, data: Mapping[str, Any] | None
) -> dict[str, str]:
    reasons: dict[str, str] = {}
    if table is None:
        reasons |= dict.fromkeys(ids, "needs what the judge said (--judgements)")
    else:
        absent = [f"agent_x.{name}_corrected" for column, name in COLUMNS.items() if column not in table.columns]
        reasons |= dict.fromkeys([name for name in absent if name in ids], "not in what the judge said")
    if not has_predictions or data is None:
        reasons[_TOOLSET] = "needs the predictions and the data set (--data)"
    if missing := [name for name in _STAR_PARTS if name in reasons]:
        reasons[_GOAL_STAR] = f"needs {', '.join(name.split('.')[1].removesuffix('_corrected') for name in missing)}"
    return reasons


def _add_goal_star(
    metrics: dict[str, Figure], found: Sequence[SampleParts], generative: Collection[str], left_out: Mapping[str, str]
) -> None:
    if _GOAL_STAR in left_out:
        return
    chosen = [sample for sample in found if sample.key in generative]
    means = summed(chosen, _STAR_PARTS)
    values = [figure.value for figure in means.values() if figure.value is not None]
    complete = len(values) == len(_STAR_PARTS)
    metrics[_GOAL_STAR] = Figure(sum(values) / len(values) if complete else None, len(chosen))
