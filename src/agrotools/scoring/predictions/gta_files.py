"""Prediction files of GTA and ThinkGeo, and the data sets they answer.

A prediction file is an object keyed "0", "1"... with ``gold`` and ``prediction`` of each sample. In step-by-step mode
each element of ``prediction`` is a message, in end-to-end mode a list of messages: the mode is seen by that. Where
``name.json`` is not there, ``name_0.json``, ``name_1.json``... are its parts, each with keys of its own from "0".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agrotools.core import BenchmarkError
from agrotools.scoring.loose import is_list, is_object, is_text
from agrotools.scoring.predictions.json_files import read_json
from agrotools.scoring.reference.gta_family import Dialogue

Mode = Literal["step-by-step", "end-to-end"]
_FORM = 'a prediction file looks like {"0": {"gold": [...], "prediction": [...]}, "1": ...}'


@dataclass(frozen=True)
class PredictionFile:
    """What was read: the samples in order, their mode, and of which files they are."""

    samples: tuple[Dialogue, ...]
    mode: Mode
    files: tuple[Path, ...] = ()


def read_predictions(path: Path) -> PredictionFile:
    """A prediction file, or its parts.

    Raises:
        BenchmarkError: it cannot be read or is of another form; the message names file and key.
    """
    files = _files(path)
    samples: list[Dialogue] = []
    for file in files:
        samples += parse_predictions(read_json(file), file.name, len(samples))
    return PredictionFile(tuple(samples), _common_mode(samples, path.name), files)


def _files(path: Path) -> tuple[Path, ...]:
    if path.is_file():
        return (path,)
    parts: list[Path] = []
    while (part := path.with_name(f"{path.stem}_{len(parts)}{path.suffix}")).is_file():
        parts.append(part)
    if parts:
        return tuple(parts)
    raise BenchmarkError(
        f"{path}: no such file, and no {path.stem}_0{path.suffix} either", hint="give the path of a prediction file"
    )


def parse_predictions(found: Any, name: str, first: int = 0) -> list[Dialogue]:
    """The samples of one file; their own keys go on from ``first``.

    Raises:
        BenchmarkError: a key is missing, or something under a key is of another form.
    """
    if not is_object(found):
        raise BenchmarkError(f"{name} is no object of samples", hint=_FORM)
    samples: list[Dialogue] = []
    for index in range(len(found)):
        entry = found.get(str(index))
        where = f'{name}, key "{index}"'
        if entry is None:
            others = sorted(map(str, found))[:3]
            raise BenchmarkError(
                f"{where} is missing though the file has {len(found)} samples (keys {', '.join(others)}...)",
                hint="the keys count from 0 without a gap; the evaluation was stopped, or samples were taken out",
            )
        if not is_object(entry):
            raise BenchmarkError(f"{where} is no object", hint=_FORM)
        for field in ("gold", "prediction"):
            if not is_list(entry.get(field)):
                raise BenchmarkError(f"{where}: {field} is no list", hint=_FORM)
        _check(entry["prediction"], f"{where}: prediction")
        samples.append(Dialogue(str(first + index), entry["gold"], entry["prediction"]))
    return samples


def _check(prediction: list[Any], where: str) -> None:
    for index, item in enumerate(prediction):
        if is_object(item):
            _check_message(item, f"{where}[{index}]")
        elif is_list(item):
            for inner, message in enumerate(item):
                _check_message(message, f"{where}[{index}][{inner}]")
        else:
            raise BenchmarkError(f"{where}[{index}] is neither a message nor a list of messages", hint=_FORM)


def _check_message(message: Any, where: str) -> None:
    if not is_object(message):
        raise BenchmarkError(
            f"{where} is no message", hint="a message is an object with role and content or tool_calls"
        )
    if "tool_calls" not in message:
        if "role" not in message or "content" not in message:
            raise BenchmarkError(f"{where} has neither tool_calls nor role and content")
        return
    calls: Any = message["tool_calls"]
    function: Any = calls[0].get("function") if is_list(calls) and calls and is_object(calls[0]) else None
    if not is_object(function) or not is_text(function.get("name")) or "arguments" not in function:
        raise BenchmarkError(
            f"{where}: tool_calls holds no call", hint='a call is {"function": {"name": "OCR", "arguments": {...}}}'
        )


def _mode_of(sample: Dialogue) -> Mode | None:
    if not sample.prediction:
        return None
    return "end-to-end" if is_list(sample.prediction[0]) else "step-by-step"


def _common_mode(samples: Sequence[Dialogue], name: str) -> Mode:
    first: tuple[str, Mode] | None = None
    for sample in samples:
        mode = _mode_of(sample)
        mixed = len({is_list(item) for item in sample.prediction}) > 1
        if mixed or (mode and first and mode != first[1]):
            raise BenchmarkError(
                f'{name}, key "{sample.key}": predictions of both modes in one file',
                hint="step-by-step predictions are messages, end-to-end predictions lists of messages",
            )
        if mode and first is None:
            first = sample.key, mode
    if first is None:
        raise BenchmarkError(f"{name} holds no prediction: its mode cannot be told", hint=_FORM)
    return first[1]


def read_data(path: Path) -> Mapping[str, Any]:
    """The data set (``dataset.json`` of GTA, ``ThinkGeoBench.json``): entries by id, in the order of the file.

    Raises:
        BenchmarkError: it cannot be read, or an entry has no dialogs or no answer.
    """
    found = read_json(path)
    if not is_object(found) or not found:
        raise BenchmarkError(f"{path.name} is no object of entries", hint="give dataset.json or ThinkGeoBench.json")
    for key, entry in found.items():
        if not is_object(entry) or not is_list(entry.get("dialogs")) or "gt_answer" not in entry:
            raise BenchmarkError(f'{path.name}, key "{key}" is no entry with dialogs and gt_answer')
    return found


def with_answers(predictions: PredictionFile, data: Mapping[str, Any]) -> PredictionFile:
    """The samples with the answers of the data set, by their position, after a check that they belong together.

    The data set may have more entries: the published scorers then leave the others out.

    Raises:
        BenchmarkError: fewer entries than samples, or another gold than the data set has.
    """
    entries = list(data.values())
    if len(entries) < len(predictions.samples):
        raise BenchmarkError(
            f"{len(predictions.samples)} predictions, but the data set has only {len(entries)} entries",
            hint="give the data set that the predictions were made on",
        )
    joined: list[Dialogue] = []
    for sample, entry in zip(predictions.samples, entries, strict=False):
        if (theirs := _tools(entry["dialogs"])) != (ours := _tools(_gold(sample, predictions.mode))):
            raise BenchmarkError(
                f'key "{sample.key}": the gold of the predictions calls {_said(ours)}, the data set {_said(theirs)}',
                hint="the files do not belong together, their order differs, or the predictions are on a part of the"
                " data set (a run on a part of it: agrotools score RUN)",
            )
        joined.append(Dialogue(sample.key, sample.gold, sample.prediction, entry["gt_answer"]))
    return PredictionFile(tuple(joined), predictions.mode, predictions.files)


def unanswered(predictions: PredictionFile, data: Mapping[str, Any]) -> tuple[Dialogue, ...]:
    """The entries of the data set behind the last sample, as samples without a prediction."""
    missing = list(data.items())[len(predictions.samples) :]
    found: list[Dialogue] = []
    for key, entry in missing:
        turns = [message for message in entry["dialogs"] if is_object(message)]
        after = next((i for i, message in enumerate(turns) if message.get("role") == "user"), -1) + 1
        said = turns[after:]
        gold: list[Any] = [said] if predictions.mode == "end-to-end" else _of_assistant(said)
        found.append(Dialogue(key, gold, [], entry["gt_answer"]))
    return tuple(found)


def _of_assistant(messages: Sequence[Any]) -> list[Any]:
    return [message for message in messages if message.get("role") == "assistant"]


def _gold(sample: Dialogue, mode: Mode) -> list[Any]:
    if mode == "step-by-step":
        return sample.gold
    return [message for turn in sample.gold if is_list(turn) for message in turn]


def _tools(messages: Sequence[Any]) -> list[str]:
    names: list[str] = []
    for message in messages:
        calls: Any = message.get("tool_calls") if is_object(message) else None
        if is_list(calls) and calls and is_object(calls[0]) and is_object(calls[0].get("function")):
            names.append(str(calls[0]["function"].get("name")))
    return names


def _said(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + ("..." if len(names) > 5 else "") if names else "no tool"
