"""Prediction files as a middling model would write them, on the made-up questions of the other ``made_`` modules.

Most steps are those of the gold, spelt as a model may spell them; others are wrong, fail, are left out or malformed in
ways that end up in published prediction files. The same seed gives the same files.
"""

import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from support.made_agent_x import agent_x_entries
from support.made_gta import Entry, gta_entries
from support.made_thinkgeo import thinkgeo_entries

MODES = ("step-by-step", "end-to-end")
JUDGED = (
    "grounding_accuracy precision_score tool_accuray faithfulness_accuray context_score factual_precision "
    "semantic_accuracy goal_accuray toolset_accuray step_score clarity_penalty reward_score"
).split()
_ODD: tuple[Any, ...] = (
    None,
    3,
    "",
    "{",
    [],
    [1, {"a": None}],
    {"image": None},
    {"": []},
    True,
    1e300,
    "\ud83d\ude00",
)


def made_files(folder: Path, count: int, seed: int = 0) -> dict[str, dict[str, Path]]:
    """Files of ``count`` samples each, by what is in them: their ``format``, ``predictions``, ``data``, and
    ``judgements`` where a judge was asked."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Path]] = {}

    def written(name: str, content: Any) -> Path:
        path = folder / name
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    for family, entries in (("gta", _gta(count)), ("thinkgeo", _thinkgeo(count))):
        data = written(f"{family}_data.json", entries)
        for mode in MODES:
            predictions = written(f"{family}_{mode}.json", dialogues(entries, mode, seed))
            found[f"{family}, {mode}"] = {"predictions": predictions, "data": data}
    judged = thinkgeo_log(found["thinkgeo, end-to-end"]["predictions"], count, seed)
    found["thinkgeo, end-to-end"]["judgements"] = written("thinkgeo_log.json", judged)
    entries = {str(number): [entry] for number, entry in enumerate(_agent_x(count))}
    predictions, replies = agent_x(entries, seed)
    found["agentx, single-shot"] = {
        "predictions": written("agentx.json", predictions),
        "data": written("agentx_data.json", entries),
        "judgements": written("agentx_judged.json", replies),
    }
    return found


def _gta(count: int) -> dict[str, Entry]:
    def endless() -> Iterator[Entry]:
        while True:
            yield from (entry for entry, _ in gta_entries())

    return {str(number): entry for number, entry in enumerate(islice(endless(), count))}


def _thinkgeo(count: int) -> dict[str, Entry]:
    entries = thinkgeo_entries(count, round(count * 1534 / 436), round(count * 68 / 436), "P")
    return {str(number): entry for number, (entry, _) in enumerate(entries)}


def _agent_x(count: int) -> Iterator[Entry]:
    return agent_x_entries(count, round(count * 2807 / 828), round(count * 222 / 828), 0)


def dialogues(entries: dict[str, Entry], mode: str, seed: int) -> dict[str, Entry]:
    """A prediction file of GTA or ThinkGeo in one of the :data:`MODES`."""
    rng = random.Random(f"{seed} {mode}")
    made: dict[str, Entry] = {}
    for key, entry in entries.items():
        said = [message for message in entry["dialogs"] if message["role"] != "user"]
        if mode == "step-by-step":
            gold = [message for message in said if message["role"] == "assistant"]
            prediction: list[Any] = [_step(rng, message, entry["gt_answer"]) for message in gold]
            made[key] = {
                "gold": gold,
                "prediction": prediction[: -1 if rng.random() < 0.04 else None],
            }
        else:
            made[key] = {
                "gold": [said],
                "prediction": [list(_conversation(rng, said, entry["gt_answer"]))],
            }
        made[key] |= {"origin_prompt": [], "steps": []}
    return made


def _call(name: Any, arguments: Any, error: Any = None) -> Entry:
    message: Entry = {
        "role": "assistant",
        "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}],
    }
    return message if error is None else message | {"error": error}


def _failed(kind: str, said: str) -> Entry:
    return {"type": kind, "msg": said}


def _step(rng: random.Random, gold: Entry, answer: Any) -> Entry:
    """What is predicted where ``gold`` was due."""
    if "tool_calls" not in gold:
        late = rng.random() < 0.06
        return (
            _call("OCR", {"image": "image/1.jpg"})
            if late
            else {"role": "assistant", "content": _text(rng, answer)}
        )
    function = gold["tool_calls"][0]["function"]
    name, arguments = function["name"], function["arguments"]
    chosen = rng.random()
    if chosen < 0.45:
        return _call(name, arguments)
    if chosen < 0.65:
        return _call(name, _respelt(arguments))
    if chosen < 0.75:
        return _call(name, {key: f"{value}!" for key, value in arguments.items()})
    if chosen < 0.80:
        return _call(rng.choice(("OCR", "Calculator", "TextToBbox")), arguments)
    if chosen < 0.84:
        return _call(name, arguments, _failed("API_ERROR", "FileNotFoundError"))
    if chosen < 0.88:
        return _call(name, '{"image": ', _failed("ARGS_ERROR", "invalid json format: {"))
    if chosen < 0.91:
        return _call("NoAction", {"text": ""}, _failed("API_ERROR", "Please follow the format"))
    if chosen < 0.93:
        return _call("InvalidAction", {"text": "x"}, _failed("API_ERROR", "x"))
    if chosen < 0.96:
        return _call(name, rng.choice(_ODD), rng.choice(_ODD))
    return {"role": "assistant", "content": _text(rng, answer)}


def _respelt(arguments: Entry) -> Entry:
    """The same call: another folder, boxes without blanks, sums with them, defaults written out."""
    made: Entry = {}
    for key, value in arguments.items():
        if isinstance(value, str) and value.startswith("image/"):
            value = f"/data/{value}"
        elif key == "bbox":
            value = value.replace(" ", "")
        elif key == "expression":
            value = f"({value})"
        made[key] = value
    if {"image", "bbox", "annotation"} <= set(made):
        return made
    return made | ({"color": "red"} if "position" in made else {})


def _text(rng: random.Random, answer: Any) -> str:
    chosen = rng.random()
    if chosen < 0.08:
        return ""
    if chosen < 0.30:
        return f" It is {rng.randrange(1000)} or so."
    if isinstance(answer, dict):
        groups = [rng.choice(group) for group in answer["whitelist"]]
        return rng.choice(
            (" {}", "The answer is {}.", "It comes to {}", "{}kg", "答案是{}")
        ).format(" ".join(groups))
    return rng.choice(answer) if isinstance(answer, list) and answer else "The image is saved."


def _conversation(rng: random.Random, said: Sequence[Entry], answer: Any) -> Iterator[Entry]:
    for gold in said:
        if gold["role"] != "assistant" or "tool_calls" not in gold or rng.random() < 0.06:
            continue
        step = _step(rng, gold, answer)
        for _ in range(2 if rng.random() < 0.05 else 1):
            if "tool_calls" in step:
                yield step
                yield {
                    "role": "tool",
                    "content": [{"type": "text", "content": "ok"}] if "error" not in step else None,
                }
    chosen = rng.random()
    if chosen < 0.90:
        yield {"role": "assistant", "content": _text(rng, answer)}
    elif chosen < 0.95:
        yield _call("Calculator", {"expression": "1 + 1"})
        yield {"role": "tool", "content": None}
    else:
        yield {
            "role": "assistant",
            "content": "[LagentAgentError] out of memory",
            "error": _failed("X", "y"),
        }


def thinkgeo_log(predictions: Path, count: int, seed: int) -> list[Entry]:
    """What ThinkGeo's judge said of a part of the answers."""
    rng = random.Random(seed)
    found = json.loads(predictions.read_text("utf-8"))
    said = ("yes", "yes", "no", "yes.")
    asked = [
        number for number in range(count) if "content" in found[str(number)]["prediction"][0][-1]
    ]
    return [{"id": number, "scores": [rng.choice(said)]} for number in asked if rng.random() < 0.8]


def agent_x(entries: dict[str, list[Entry]], seed: int) -> tuple[list[Entry], dict[str, Any]]:
    """Predictions of most entries, and what a judge replied of them."""
    rng = random.Random(seed)
    predictions: list[Entry] = []
    replies: dict[str, Any] = {}
    for key, (entry,) in entries.items():
        if rng.random() < 0.04:
            continue
        predictions.append({key: _at_once(rng, entry)})
        replies[key] = None if rng.random() < 0.02 else {name: _reply(rng, key) for name in JUDGED}
    return predictions, replies


def _at_once(rng: random.Random, entry: Entry) -> Entry:
    about = {"query": entry["query"], "filename": entry["file_path"]}
    if rng.random() < 0.05:
        return about | {"reasoning_steps": "", "final_answer": {"value": "", "justification": ""}}
    steps: list[Any] = entry["reasoning_steps"]
    steps = steps[0] if len(steps) == 1 and isinstance(steps[0], list) else steps
    made: list[Any] = []
    for step in steps:
        if rng.random() < 0.1:
            continue
        tool: Any = (
            step["tool"] if rng.random() < 0.8 else rng.choice(("OCR", "Finder", "", "null"))
        )
        output: Any = step["output"] if rng.random() < 0.9 else rng.choice(("", "null", 0))
        names = ("tool", "output") if rng.random() < 0.3 else ("tool_used", "tool_output")
        thought = step.get("thought", "I look.")
        made.append(
            {
                "step": len(made) + 1,
                "task": step["task"],
                names[0]: tool,
                names[1]: output,
                "thought": thought,
            }
        )
    answer: Any = dict(entry["final_answer"])
    if rng.random() < 0.3:
        answer = rng.choice(
            ({"value": "nothing", "justification": "no idea"}, {"value": "nothing"}, "nothing")
        )
    return about | {"reasoning_steps": made, "final_answer": answer}


def _reply(rng: random.Random, key: str) -> Any:
    why = f"Step {rng.randrange(9)} of sample {key} is as it ought to be, and so is what follows from it"
    score = rng.choice((0, 0.25, 0.5, 0.75, 1, 1))
    forms: tuple[Callable[[], Any], ...] = (
        lambda: f"{{'Score': {score}, 'Justification': 'it's so: {why}'}}",
        lambda: f"{{'Score': '{score}', 'Justification': \"{why}\"}}",
        lambda: f'```json\n{{"Score": {score}, "Justification": "{why}"}}\n```',
        lambda: f"I cannot tell. {why}.",
    )
    return rng.choices(forms, (50, 30, 15, 5))[0]()
