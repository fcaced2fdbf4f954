"""Prediction files of GTA and ThinkGeo, their messages, and the data sets that they belong to.

A prediction file is an object with the keys "0", "1"... and ``gold`` and ``prediction`` for each sample. An element of
``prediction`` is a message in step-by-step mode and a list of messages in end-to-end mode, which determines the mode of
the file. If ``name.json`` does not exist, ``name_0.json``, ``name_1.json``... are read as its parts; the keys of each
part start from "0".

Two forms of trajectories from other programs are read, too. An object of entries of the data set in which ``dialogs``
is the agent's own dialogue, with ``pred_answer`` and the entry's ``gt_answer`` (as TRACE writes them), has answers, but
no gold calls. A list of single steps with ``tool_name`` and ``gold_tool`` has no gold arguments.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agrotools.core import BenchmarkError
from agrotools.core.errors import NoFileError
from agrotools.scoring.predictions import read_json
from agrotools.text.json_kinds import is_list, is_object, is_text
from agrotools_benchmarks._dialogs.published_scorer import Dialogue

NO_GOLD = "needs gold dialogues, which these trajectories do not have (--data)"


class Trajectories(NamedTuple):
    """Trajectories of one file."""

    samples: tuple[Dialogue, ...]
    mode: Literal["step-by-step", "end-to-end"]
    has_answers: bool
    metrics: tuple[str, ...]
    """Names of the metrics that can be computed without gold dialogues."""
    score_name: str
    scores: Mapping[str, float]
    """Score of the first metric that the file has in its field ``score_name``, by sample."""


def read_trajectories(content: Any) -> Trajectories | None:
    """Return the trajectories in the JSON value of a file; None if it is of another form."""
    parts = list(content.values()) if is_object(content) else content if is_list(content) else []
    if not parts or not all(map(is_object, parts)):
        return None
    if is_object(content) and all(
        "pred_answer" in entry and is_list(entry.get("dialogs")) for entry in parts
    ):
        entries = sorted(content.items(), key=lambda item: (len(item[0]), item[0]))
        samples = tuple(_of_entry(key, entry) for key, entry in entries)
        scores = {key: entry.get("answer_match_score_gta") for key, entry in entries}
        known = {
            key: float(score) for key, score in scores.items() if isinstance(score, int | float)
        }
        metrics = ("ans_acc", "ans_acc_objective")
        return Trajectories(samples, "end-to-end", True, metrics, "answer_match_score_gta", known)
    if is_list(content) and all({"tool_name", "gold_tool"} <= set(step) for step in parts):
        steps = tuple(
            Dialogue(
                str(at),
                [_as_call(step["gold_tool"], {})],
                [_as_call(step["tool_name"], step.get("tool_arguments"))],
            )
            for at, step in enumerate(parts)
        )
        labels = {
            str(at): float(step["label"])
            for at, step in enumerate(parts)
            if isinstance(step.get("label"), int)
        }
        return Trajectories(steps, "step-by-step", False, ("tool_acc",), "label", labels)
    return None


def _of_entry(key: str, entry: Mapping[str, Any]) -> Dialogue:
    messages = [
        message
        for message in entry["dialogs"]
        if not (is_object(message) and message.get("role") == "user")
    ]
    return Dialogue(
        key, [[]], [messages or [{"role": "assistant", "content": ""}]], entry.get("gt_answer")
    )


def _as_call(name: Any, arguments: Any) -> dict[str, Any]:
    function = {
        "name": name,
        "arguments": arguments if is_object(arguments) or is_text(arguments) else {},
    }
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}


_NO_TOOL = re.compile(
    r"^\W*(?:failed to load tool|(?:there is )?no (?:such )?tool\b|unknown tool|"
    r"tool\b.{0,80}\b(?:does not exist|not found))|\bis not a (?:valid|known|registered) tool",
    re.IGNORECASE,
)
_LISTED = re.compile(
    r"failed to load tool (\S+) because it's not in \[(.*?)\]", re.IGNORECASE | re.DOTALL
)
_ARGUMENTS = re.compile(
    r"missing \d+ required (?:positional|keyword-only) argument|got an unexpected keyword argument|"
    r"got multiple values for (?:keyword )?argument|takes (?:from )?\d+ .{0,20}positional arguments? but|"
    r"^\W*(?:(?:unknown|invalid|missing required) (?:tool )?arguments?\b|(?:input )?validation error|"
    r"\d+ validation errors? for)",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"^\W*(?:tool \S+ execution error|this tool is not available|error\b\s*[:(]|error (?:in|while|executing)|"
    r"traceback \(most|an error (?:has )?occurred|(?:[\w.]*[a-z])?(?:Error|Exception)\b\]?\s*[:(])",
    re.IGNORECASE,
)
_LONGEST = 2000


def failure_of(text: str) -> str | None:
    """Return the error class of a tool's result that tells a failure in words; None for any other result.

    A tool that a "Failed to load tool" message itself lists exists and is not available: that is an error of the tool.
    """
    text = text[:_LONGEST]
    if _NO_TOOL.search(text):
        listed = _LISTED.search(text)
        exists = listed is not None and listed[1] in [name.strip() for name in listed[2].split(",")]
        return "valid_call_failed" if exists else "wrong_tool_name"
    if _ARGUMENTS.search(text):
        return "invalid_arguments"
    return "valid_call_failed" if _FAILURE.search(text) else None


def failure_after(messages: Sequence[Any], index: int) -> str | None:
    """Return the error class of the call at ``index`` if the result after it is the text of a failure."""
    following: Any = messages[index + 1] if index + 1 < len(messages) else None
    if not is_object(following) or following.get("role") != "tool":
        return None
    content: Any = following.get("content")
    text: Any = content.get("content") if is_object(content) else content
    return failure_of(text) if is_text(text) else None


Mode = Literal["step-by-step", "end-to-end"]
_FORM = 'a prediction file looks like {"0": {"gold": [...], "prediction": [...]}, "1": ...}'


@dataclass(frozen=True)
class PredictionFile:
    """Samples of prediction files in order, with their mode and the files.

    ``malformed``: descriptions of malformed parts with their place; they count as wrong, but the file is still scored.
    """

    samples: tuple[Dialogue, ...]
    mode: Mode
    files: tuple[Path, ...] = ()
    malformed: tuple[str, ...] = ()
    trajectories: Trajectories | None = None
    """Set if these are trajectories from another program, which have no gold dialogues."""


def read_predictions(path: Path) -> PredictionFile:
    """Read a prediction file, or its parts.

    Raises:
        BenchmarkError: it cannot be read or has another form; the message names file and key.
    """
    files = _files(path)
    samples: list[Dialogue] = []
    malformed: list[str] = []
    for file in files:
        content = read_json(file)
        if trajectories := read_trajectories(content):
            return PredictionFile(
                trajectories.samples, trajectories.mode, (file,), (), trajectories
            )
        more, wrong = parse_predictions(content, file.name, len(samples))
        samples += more
        malformed += wrong
    return PredictionFile(tuple(samples), _common_mode(samples, path.name), files, tuple(malformed))


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    parts: list[Path] = []
    while (
        path.name and (part := path.with_name(f"{path.stem}_{len(parts)}{path.suffix}")).is_file()
    ):
        parts.append(part)
    if parts:
        return tuple(parts)
    fault = f"{path}: no such file, and no {path.stem}_0{path.suffix} either"
    raise NoFileError(fault, hint="give the path of a prediction file")


def parse_predictions(data: Any, name: str, first: int = 0) -> tuple[list[Dialogue], list[str]]:
    """Return the samples of one file unchanged, with keys from ``first``, and descriptions of malformed parts.

    A sample that is missing between others or is not an object has None as gold and prediction.

    Raises:
        BenchmarkError: the content is not an object, or more samples are missing than present.
    """
    if not is_object(data):
        raise BenchmarkError(f"{name} is no object of samples", hint=_FORM)
    numbers = [int(key) for key in data if _NUMBER.fullmatch(key)]
    count = max(numbers, default=-1) + 1
    if count > 2 * len(data) or (data and not count):
        others = ", ".join(sorted(map(str, data))[:3])
        missing = next(number for number in range(count + 1) if str(number) not in data)
        raise BenchmarkError(
            f'{name}, key "{missing}" is missing though the file has {len(data)} samples (keys {others}...)',
            hint="the keys count from 0; samples were taken out, or this is no prediction file",
        )
    malformed = [
        f'{name}, key "{key}" is no number of a sample'
        for key in data
        if not _NUMBER.fullmatch(key)
    ]
    samples: list[Dialogue] = []
    for index in range(count):
        entry: Any = data.get(str(index), _MISSING)
        where = f'{name}, key "{index}"'
        fields: Any = entry if is_object(entry) else {}
        if entry is _MISSING:
            malformed.append(f"{where} is missing")
        elif not is_object(entry):
            malformed.append(f"{where} is no object")
        else:
            malformed += [
                f"{where}: {field} is no list"
                for field in _FIELDS
                if not is_list(fields.get(field))
            ]
            malformed += _faults(fields.get("prediction"), f"{where}: prediction")
        samples.append(Dialogue(str(first + index), fields.get("gold"), fields.get("prediction")))
    return samples, malformed


_FIELDS = ("gold", "prediction")
_MISSING = object()
_NUMBER = re.compile("0|[1-9][0-9]{0,11}")


def _faults(messages: Any, where: str, *, takes_lists: bool = True) -> Iterator[str]:
    """Yield the faults of messages and of lists of messages, with their places."""
    for index, message in enumerate(messages if is_list(messages) else []):
        place = f"{where}[{index}]"
        if is_list(message) and takes_lists:
            yield from _faults(message, place, takes_lists=False)
        elif not is_object(message):
            yield f"{place} is no message"
        elif "tool_calls" in message:
            if read_message(message).kind == "other":
                yield f"{place}: tool_calls contains no call with a name and arguments"
        elif not is_text(message.get("role")) or "content" not in message:
            yield f"{place} has neither tool_calls nor role and content"
        elif message["role"] == "assistant" and not is_text(message["content"]):
            yield f"{place}: the answer is no text"


def _mode_of(messages: Any) -> Mode | None:
    """Return the mode of the majority of elements (messages, or lists of messages); None if it is undecided."""
    if not is_list(messages):
        return None
    lists, objects = sum(map(is_list, messages)), sum(map(is_object, messages))
    return None if lists == objects else "end-to-end" if lists > objects else "step-by-step"


def _common_mode(samples: Sequence[Dialogue], name: str) -> Mode:
    """Return the mode of the majority of samples, with gold and prediction counted separately."""
    sides = [(sample.key, side) for sample in samples for side in (sample.gold, sample.prediction)]
    modes = [(key, mode) for key, side in sides if (mode := _mode_of(side))]
    by_step = sum(mode == "step-by-step" for _, mode in modes)
    if modes and 2 * by_step == len(modes):
        other = next(key for key, mode in modes if mode != modes[0][1])
        raise BenchmarkError(
            f'{name}, key "{other}": predictions of both modes in one file',
            hint="step-by-step predictions are messages, end-to-end predictions lists of messages",
        )
    if not modes:
        raise BenchmarkError(
            f"{name} contains no prediction: its mode cannot be determined", hint=_FORM
        )
    return "step-by-step" if 2 * by_step > len(modes) else "end-to-end"


def read_data(path: Path) -> Mapping[str, Any]:
    """Read the data set (``dataset.json`` of GTA, ``ThinkGeoBench.json``): entries by id in file order.

    Raises:
        BenchmarkError: it cannot be read, or an entry has no dialogs or no answer.
    """
    data = read_json(path)
    if not is_object(data) or not data:
        raise BenchmarkError(
            f"{path.name} is no object of entries", hint="give dataset.json or ThinkGeoBench.json"
        )
    for key, entry in data.items():
        if not is_object(entry) or not is_list(entry.get("dialogs")) or "gt_answer" not in entry:
            raise BenchmarkError(f'{path.name}, key "{key}" is no entry with dialogs and gt_answer')
    return data


@dataclass(frozen=True)
class JoinedPredictions:
    """Predictions joined with their data set.

    ``samples``: samples of the file with the answers of the data set. ``scored``: samples for the corrected scores, in
    which the gold of the data set replaces malformed or different gold, followed by the entries without a prediction.
    """

    samples: tuple[Dialogue, ...]
    scored: tuple[Dialogue, ...]
    malformed: tuple[str, ...]


def join_data(predictions: PredictionFile, data: Mapping[str, Any] | None) -> JoinedPredictions:
    """Join predictions by position with the answers and the gold of the data set, and check that they belong together.

    The data set may have more entries than there are predictions; the published scorers ignore these.

    Raises:
        BenchmarkError: there are fewer entries than samples, or most samples have another gold than the data set.
    """
    if predictions.trajectories is not None:
        return _join_trajectories(predictions, data)
    mode, entries = predictions.mode, list(data.items()) if data is not None else []
    if data is not None and len(entries) < len(predictions.samples):
        raise BenchmarkError(
            f"{len(predictions.samples)} predictions, but the data set has only {len(entries)} entries",
            hint="give the data set that the predictions were made on",
        )
    samples: list[Dialogue] = []
    scored: list[Dialogue] = []
    without: list[str] = []
    strange: list[str] = []
    for place, sample in enumerate(predictions.samples):
        entry: Any = entries[place][1] if entries else None
        one = replace(sample, answer=entry["gt_answer"]) if entries else sample
        samples.append(one)
        if not _has_gold(sample, mode):
            without.append(f'key "{sample.key}": the gold is malformed')
        elif entries and (theirs := _tools(entry["dialogs"])) != (
            ours := _tools(_gold(sample, mode))
        ):
            both = f"the gold of the predictions calls {_call_list(ours)}, the data set {_call_list(theirs)}"
            strange.append(f'key "{sample.key}": {both}')
        else:
            scored.append(one)
            continue
        if entries:
            scored.append(replace(one, gold=_gold_of_entry(entry, mode)))
    if 2 * len(strange) > len(samples) - len(without):
        raise BenchmarkError(
            strange[0],
            hint="the files do not belong together, their order differs, or the predictions are on a part of the"
            " data set (a run on a part of it: agrotools score RUN)",
        )
    behind = entries[len(samples) :]
    scored += [
        Dialogue(key, _gold_of_entry(entry, mode), [], entry["gt_answer"]) for key, entry in behind
    ]
    return JoinedPredictions(
        tuple(samples), tuple(scored), (*predictions.malformed, *without, *strange)
    )


def _join_trajectories(
    predictions: PredictionFile, data: Mapping[str, Any] | None
) -> JoinedPredictions:
    """Join trajectories by key with the gold of the data set, if it is given."""
    samples = list(predictions.samples)
    for at, sample in enumerate(
        samples if data is not None and predictions.mode == "end-to-end" else ()
    ):
        if data is None or sample.key not in data:
            hint = "give the data set that the trajectories were made on"
            raise BenchmarkError(f"the data set has no entry {sample.key}", hint=hint)
        entry = data[sample.key]
        samples[at] = replace(
            sample, gold=_gold_of_entry(entry, predictions.mode), answer=entry["gt_answer"]
        )
    return JoinedPredictions(tuple(samples), tuple(samples), predictions.malformed)


def _has_gold(sample: Dialogue, mode: Mode) -> bool:
    """Return True if a prediction can be scored against the gold in the same file."""
    ends = mode == "end-to-end"
    gold: Any = sample.gold[0] if ends and is_list(sample.gold) and sample.gold else sample.gold
    try:
        return bool(gold_messages(gold, "", returns=ends))
    except BenchmarkError:
        return False


def _gold_of_entry(entry: Any, mode: Mode) -> list[Any]:
    turns = [message for message in entry["dialogs"] if is_object(message)]
    after = next((i for i, message in enumerate(turns) if message.get("role") == "user"), -1) + 1
    following = turns[after:]
    if mode == "end-to-end":
        return [following]
    return [message for message in following if message.get("role") == "assistant"]


def _gold(sample: Dialogue, mode: Mode) -> list[Any]:
    if mode == "step-by-step":
        return sample.gold
    return [message for turn in sample.gold if is_list(turn) for message in turn]


def _tools(messages: Sequence[Any]) -> list[str]:
    return [message.name for message in map(read_message, messages) if message.kind == "call"]


def _call_list(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + ("..." if len(names) > 5 else "") if names else "no tool"


_OF_AGENT = re.compile(r"\s*\[\w*(?:Error|Exception)\]")
"""Beginning of the text that the published evaluation writes in place of an answer after an error of its agent."""


class Message(NamedTuple):
    """Message of a prediction file.

    ``failed``: the call or the agent ended with an error, given in ``error`` or in place of an answer. ``text``: text
    of an answer.
    """

    kind: Literal["call", "answer", "other"]
    failed: bool = False
    name: str = ""
    arguments: Any = None
    text: str = ""


def read_message(message: Any) -> Message:
    """Parse a message of any form.

    A thought that an agent wrote next to its calls is not an answer. A call has a name and arguments, which are an
    object, or text if they could not be parsed.
    """
    if not is_object(message):
        return Message("other")
    failed = message.get("error") is not None
    if "tool_calls" in message:
        return _call(message["tool_calls"], failed)
    if message.get("role") != "assistant" or not is_text(message.get("content")):
        return Message("other", failed)
    meta = message.get("meta")
    if is_object(meta) and meta.get("type") == "thought":
        return Message("other", failed)
    return Message(
        "answer", failed or _OF_AGENT.match(message["content"]) is not None, text=message["content"]
    )


def _call(calls: Any, failed: bool) -> Message:
    if (
        not is_list(calls)
        or not calls
        or not is_object(calls[0])
        or not is_object(calls[0].get("function"))
    ):
        return Message("other", failed)
    function = calls[0]["function"]
    name, arguments = function.get("name"), function.get("arguments")
    if not is_text(name) or not (is_object(arguments) or is_text(arguments)):
        return Message("other", failed)
    return Message("call", failed, name, arguments)


def read_messages(messages: Any) -> list[Message]:
    """Parse all messages of a list; any other value gives an empty list. A call whose result is the text of a failure
    has failed."""
    if not is_list(messages):
        return []
    read = [read_message(message) for message in messages]
    return [
        message._replace(failed=True)
        if message.kind == "call" and failure_after(messages, index)
        else message
        for index, message in enumerate(read)
    ]


def gold_messages(messages: Any, where: str, *, returns: bool) -> list[Message]:
    """Parse the gold, whose messages must be calls with arguments, or answers.

    ``returns``: True if the gold also contains tool results (end-to-end); they are skipped.

    Raises:
        BenchmarkError: there is any other message.
    """
    if not is_list(messages):
        raise BenchmarkError(
            f"{where}: the gold is no list of messages", hint="give a prediction file of GTA's form"
        )
    gold: list[Message] = []
    for index, message in enumerate(messages):
        read = read_message(message)
        is_return = (
            returns and is_object(message) and message.get("role") in ("tool", "user", "system")
        )
        if is_return and read.kind == "other":
            continue
        if read.kind == "other" or (read.kind == "call" and not is_object(read.arguments)):
            raise BenchmarkError(
                f"{where}: gold message {index} is neither a call nor an answer",
                hint="a gold message is a call with an object of arguments, or an answer with a text",
            )
        gold.append(read)
    return gold
