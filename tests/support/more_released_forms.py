"""More forms that the released questions may have, after public sets of questions with tools."""

import base64
import csv
import io
import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

from support.released_forms import (
    TRUTHS,
    gold_text,
    messages,
    paths,
    picture,
    react_text,
    schemas,
    steps,
    write_lines,
    write_parquet,
    write_pictures,
)


def function_calls(folder: Path) -> None:
    """JSON Lines as of xLAM: tools and calls as JSON, ``answers`` are calls, results beside them."""
    write_pictures(folder / "pics")
    kinds = {
        "exact": "categorical",
        "tolerance": "numeric",
        "open_text": "free-form",
        "plot": "figure",
    }
    rows = [
        {
            "id": number,
            "query": each.question,
            "image": paths(each, "pics"),
            "tools": json.dumps([tool["function"] for tool in schemas()]),
            "answers": json.dumps(
                [{"name": tool, "arguments": given} for tool, given, _ in each.calls]
            ),
            "results": [json.dumps(out) for _, _, out in each.calls],
            "final_answer": f"{each.gold} {each.unit or ''}".strip()
            if each.kind != "plot"
            else each.said,
            "answer_format": kinds[each.kind],
            "tol": "5 percent"
            if each.tolerance in (0.05, "5%")
            else "+/- 3"
            if each.tolerance
            else None,
            "task": each.task,
            "domain": each.family,
        }
        for number, each in enumerate(TRUTHS)
    ]
    write_lines(rows, folder / "agrotools_539.jsonl")


def zipped_pictures(folder: Path) -> None:
    """Pictures in an archive, messages in blocks as of Anthropic, and tolerances as plus and minus."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for each in TRUTHS:
            for name in each.pictures:
                archive.writestr(f"images/{name}", picture(name))
    rows = []
    for each in TRUTHS:
        talk: list[dict[str, Any]] = []
        parts: list[dict[str, Any]] = [
            {"type": "image", "source": {"path": name}} for name in each.pictures
        ]
        talk.append({"role": "user", "content": [*parts, {"type": "text", "text": each.question}]})
        for number, (tool, given, out) in enumerate(each.calls):
            use = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": given}
            talk.append(
                {"role": "assistant", "content": [{"type": "text", "text": "I look."}, use]}
            )
            result = {
                "type": "tool_result",
                "tool_use_id": f"toolu_{number}",
                "content": json.dumps(out),
            }
            talk.append({"role": "user", "content": [result]})
        talk.append({"role": "assistant", "content": [{"type": "text", "text": each.said}]})
        gt = {"kind": each.kind, "val": each.gold}
        if each.margin:
            gt |= {"plus_minus": each.margin, "unit": each.unit}
        rows.append(
            {
                "uid": each.id,
                "images": paths(each, "images"),
                "trajectory": talk,
                "gt": gt,
                "task_name": each.task,
                "task_family": each.family,
            }
        )
    (folder / "data.json").write_text(json.dumps({"train": rows}), "utf-8")


def saved_by_datasets(folder: Path) -> None:
    """Parquet as ``datasets`` writes a list of objects (an object of lists), with pictures without names."""
    rows = [
        {
            "images": [{"bytes": picture(name), "path": None} for name in each.pictures],
            "image_names": list(each.pictures),
            "question": each.question,
            "steps": {
                "tool": [tool for tool, _, _ in each.calls],
                "arguments": [json.dumps(given) for _, given, _ in each.calls],
                "observation": [json.dumps(out) for _, _, out in each.calls],
            },
            "family": {
                "Recognition and Retrieval": "RR",
                "Counting and Measurement": "CM",
                "Segmentation Interpretation": "SI",
            }.get(each.family, "VA"),
            "task_type": each.task,
            "answer_type": each.kind,
            "gold_text": each.gold if isinstance(each.gold, str) else None,
            "gold_number": float(each.gold) if isinstance(each.gold, int | float) else None,
            "gold_plot": json.dumps(each.gold) if each.kind == "plot" else None,
            "tolerance_type": "absolute" if each.margin else None,
            "tolerance_value": each.margin or None,
            "unit": each.unit,
        }
        for each in TRUTHS
    ]
    write_parquet(rows[:4], folder / "data/test-00000-of-00002.parquet")
    write_parquet(rows[4:], folder / "data/test-00001-of-00002.parquet")


def web_dataset(folder: Path) -> None:
    """WebDataset: an archive with a JSON file and pictures of one name for each question."""
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / "agrotools-000000.tar", "w") as archive:
        for number, each in enumerate(TRUTHS):
            suffixes = (
                [f"{at}.png" for at, _ in enumerate(each.pictures)]
                if len(each.pictures) > 1
                else ["png"]
            )
            names = dict(zip(each.pictures, suffixes, strict=True))
            calls = [
                {
                    "tool": tool,
                    "args": {
                        key: f"{number:06d}.{names[v]}" if str(v) in names else v
                        for key, v in given.items()
                    },
                    "result": out,
                }
                for tool, given, out in each.calls
            ]
            content = {
                "question": each.question,
                "task": each.task,
                "family": each.family,
                "calls": calls,
                "answer": {
                    "type": each.kind,
                    "value": each.gold,
                    "unit": each.unit,
                    "tolerance": each.tolerance,
                },
            }
            members = {f"{number:06d}.json": json.dumps(content).encode()}
            members |= {f"{number:06d}.{names[name]}": picture(name) for name in each.pictures}
            for name, data in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def file_for_each_family(folder: Path) -> None:
    """A JSON file for each family and task, whose rows do not state them; the trace in an annotation."""
    write_pictures(folder / "images")
    for each in TRUTHS:
        row = {
            "instance_id": each.id,
            "instruction": each.question,
            "input_images": [
                {"file": f"images/{name}", "width": 16, "height": 12} for name in each.pictures
            ],
            "annotation": {
                "gold_trace": [
                    {"thought": "So.", "tool": tool, "tool_input": given, "tool_output": out}
                    for tool, given, out in each.calls
                ],
                "gold_answer": {
                    "type": each.kind,
                    "content": each.gold,
                    "unit": each.unit,
                    "tolerance": {"mode": "absolute", "value": each.margin}
                    if each.margin
                    else None,
                },
            },
        }
        name = each.task.lower().replace(" & ", "_").replace(" ", "_")
        (folder / f"{name}.json").write_text(json.dumps([row]), "utf-8")


def tagged_text(folder: Path) -> None:
    """JSON Lines with a prompt and one text in the tags of Hermes; how an answer is scored by a metric."""
    write_pictures(folder / "images")
    metrics = {
        "exact": "exact_match",
        "tolerance": "within_tolerance",
        "open_text": "llm_judge",
        "plot": "plot_match",
    }
    rows = []
    for each in TRUTHS:
        text = ""
        for tool, given, out in each.calls:
            call = json.dumps({"name": tool, "arguments": given})
            text += f"<think>I need {tool}.</think>\n<tool_call>\n{call}\n</tool_call>\n"
            text += f"<tool_response>\n{json.dumps(out)}\n</tool_response>\n"
        rows.append(
            {
                "prompt": each.question,
                "completion": f"{text}<answer>{each.said}</answer>",
                "image_path": ";".join(f"images/{name}" for name in each.pictures),
                "label": each.gold,
                "metric": metrics[each.kind],
                "abs_tolerance": each.margin or None,
                "unit": each.unit,
                "task_type": each.task,
                "source": "IP102",
            }
        )
    write_lines(rows, folder / "test.jsonl")


def pictures_in_messages(folder: Path) -> None:
    """Messages for fine-tuning, with the pictures as data URLs in them; the answer and its scoring as text."""
    rows = []
    for each in TRUTHS:
        talk = messages(each)
        parts = [
            {
                "type": "image_url",
                "image_url": {
                    "url": f"data:image/png;base64,{base64.b64encode(picture(name)).decode()}"
                },
            }
            for name in each.pictures
        ]
        talk[1] = {"role": "user", "content": [{"type": "text", "text": each.question}, *parts]}
        for message in talk:
            for call in message.get("tool_calls") or ():
                given = json.loads(call["function"]["arguments"])
                for at, name in enumerate(each.pictures):
                    given = {
                        key: f"image_{at + 1}" if value == name else value
                        for key, value in given.items()
                    }
                call["function"]["arguments"] = json.dumps(given)
        scoring = json.dumps({"type": each.kind, "tolerance": each.tolerance, "unit": each.unit})
        answer = gold_text(each)
        rows.append(
            {
                "messages": talk,
                "tools": schemas(),
                "task": each.task,
                "expected_answer": answer,
                "scoring": scoring,
            }
        )
    write_lines(rows, folder / "train.jsonl")


def joined_files(folder: Path) -> None:
    """Questions, traces and answers in files of their own, with one id."""
    write_pictures(folder / "images")
    questions = [
        {
            "question_id": each.id,
            "question": each.question,
            "images": list(each.pictures),
            "task": each.task,
        }
        for each in TRUTHS
    ]
    traces = {each.id: {"steps": steps(each)} for each in TRUTHS}
    answers = {
        each.id: {
            "answer": each.gold,
            "answer_type": each.kind,
            "tolerance": each.tolerance,
            "unit": each.unit,
        }
        for each in TRUTHS
    }
    for name, content in {
        "questions": questions,
        "gold_traces": traces,
        "answers": answers,
        "tools": schemas(),
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")


def lists_beside_each_other(folder: Path) -> None:
    """A picture folder with ``metadata.csv``: thoughts, tools, inputs and observations in lists of one length."""
    write_pictures(folder)
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "file_names",
                "question",
                "family",
                "task",
                "thoughts",
                "tool_sequence",
                "tool_inputs",
                "observations",
                "answer_type",
                "answer",
                "tolerance",
                "unit",
            ]
        )
        for each in TRUTHS:
            lists = [["so"] * len(each.calls), *zip(*each.calls, strict=True)]
            answer = gold_text(each)
            writer.writerow(
                [
                    json.dumps(list(each.pictures)),
                    each.question,
                    each.family,
                    each.task,
                    *map(json.dumps, lists),
                    each.kind,
                    answer,
                    each.tolerance or "",
                    each.unit or "",
                ]
            )


def turns_with_types(folder: Path) -> None:
    """Nested objects; the trace as turns of thought, action, observation and final answer; pictures by a name."""
    write_pictures(folder / "data/images")
    rows = []
    for each in TRUTHS:
        turns: list[dict[str, Any]] = []
        for tool, given, out in each.calls:
            turns += [
                {"type": "thought", "content": "I use a tool."},
                {"type": "action", "name": tool, "args": given},
                {"type": "observation", "content": out},
            ]
        turns.append({"type": "final_answer", "content": each.said})
        named = {f"t{at}": f"images/{name}" for at, name in enumerate(each.pictures, 1)}
        rows.append(
            {
                "instance": {"question": each.question, "images": named},
                "taxonomy": {"family": each.family, "task_type": each.task},
                "trajectory": {"turns": turns},
                "evaluation": {
                    "type": each.kind,
                    "target": each.gold,
                    "epsilon": each.margin or None,
                    "units": each.unit,
                },
            }
        )
    (folder / "data/agrotools.json").write_text(
        json.dumps({"meta": {"n": 6}, "instances": rows}), "utf-8"
    )


def calls_in_json_text(folder: Path) -> None:
    """Conversations as of LLaVA-Plus: thoughts, actions and value as one JSON text of the model."""
    write_pictures(folder / "images")
    rows = []
    for each in TRUTHS:
        turns = [{"from": "human", "value": f"{each.question}\n<image>"}]
        for tool, given, out in each.calls:
            said = {
                "thoughts": "I use it.",
                "actions": [{"API_name": tool, "API_params": given}],
                "value": "I use a tool.",
            }
            turns.append({"from": "gpt", "value": json.dumps(said)})
            turns.append({"from": "human", "value": f"Observation: {json.dumps(out)}"})
        turns.append(
            {
                "from": "gpt",
                "value": json.dumps({"thoughts": "Done.", "actions": [], "value": each.said}),
            }
        )
        rows.append(
            {
                "unique_id": each.id,
                "image": paths(each, "images"),
                "conversations": turns,
                "task_category": each.task,
                "gt_answer": {
                    "value": each.gold,
                    "type": each.kind,
                    "tolerance": each.tolerance,
                    "unit": each.unit,
                },
            }
        )
    (folder / "agrotools_llava.json").write_text(json.dumps(rows), "utf-8")


def table_with_base64(folder: Path) -> None:
    """Table with tabs, as of VLMEvalKit: pictures in base64, the trace as text of ReAct with numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "AgroTools.tsv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(
            [
                "index",
                "image",
                "image_path",
                "question",
                "category",
                "l2-category",
                "gold_trajectory",
                "answer",
                "answer_type",
                "tolerance",
                "unit",
            ]
        )
        for number, each in enumerate(TRUTHS):
            encoded = [base64.b64encode(picture(name)).decode() for name in each.pictures]
            image = encoded[0] if len(encoded) == 1 else json.dumps(encoded)
            path = each.pictures[0] if len(encoded) == 1 else json.dumps(each.pictures)
            text, at = "", 0
            for line in react_text(each).split("\n")[1:]:
                at += line.startswith("Thought")
                head, _, rest = line.partition(":")
                text += f"{head} {at}:{rest}\n"
            answer = gold_text(each)
            writer.writerow(
                [
                    number,
                    image,
                    path,
                    each.question,
                    each.family,
                    each.task,
                    text,
                    answer,
                    each.kind,
                    each.tolerance or "",
                    each.unit or "",
                ]
            )


def calls_as_python(folder: Path) -> None:
    """Calls as text of Python, with their outputs; right answers as ranges; tools as names with arguments."""
    write_pictures(folder / "images")
    rows = []
    for each in TRUTHS:
        lines = [
            f"{tool}({', '.join(f'{key}={value!r}' for key, value in given.items())})"
            for tool, given, _ in each.calls
        ]
        rows.append(
            {
                "idx": each.id,
                "text": each.question,
                "img_paths": paths(each, "images"),
                "solution": lines,
                "tool_outputs": [out for _, _, out in each.calls],
                "task": each.task,
                "answer_kind": each.kind,
                "ground_truth": each.gold,
                "units": each.unit,
                "acceptable_range": [each.gold - each.margin, each.gold + each.margin]
                if each.margin
                else None,
            }
        )
    write_lines(rows, folder / "questions.jsonl")


def camel_case(folder: Path) -> None:
    """Names in camel case, in a JSON object by id."""
    write_pictures(folder / "images")
    entries = {
        each.id: {
            "userQuery": each.question,
            "taskFamily": each.family,
            "taskType": each.task,
            "imagePaths": [f"./images/{name}" for name in each.pictures],
            "toolChain": [
                {"toolName": tool, "toolInput": given, "toolOutput": out}
                for tool, given, out in each.calls
            ],
            "groundTruth": {
                "answerType": each.kind,
                "answerValue": each.gold,
                "toleranceType": "relative" if each.margin else None,
                "toleranceValue": each.margin / each.gold if each.margin else None,
                "unit": each.unit,
            },
        }
        for each in TRUTHS
    }
    (folder / "agrotools.json").write_text(json.dumps(entries), "utf-8")


def response_items(folder: Path) -> None:
    """Items of OpenAI's Responses interface, tools without schemas, predictions of a model beside."""
    write_pictures(folder / "images")
    rows = []
    for each in TRUTHS:
        items: list[dict[str, Any]] = [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": each.question},
                    *(
                        {"type": "input_image", "image_url": f"images/{name}"}
                        for name in each.pictures
                    ),
                ],
            }
        ]
        for number, (tool, given, out) in enumerate(each.calls):
            items.append(
                {
                    "type": "function_call",
                    "call_id": f"c{number}",
                    "name": tool,
                    "arguments": json.dumps(given),
                }
            )
            items.append(
                {"type": "function_call_output", "call_id": f"c{number}", "output": json.dumps(out)}
            )
        items.append(
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": each.said}],
            }
        )
        rows.append(
            {
                "sample_id": each.id,
                "trace": items,
                "task_type": each.task,
                "answer_type": each.kind,
                "reference_answer": each.gold,
                "gpt4o_prediction": "17",
                "margin_of_error": each.margin or None,
                "unit": each.unit,
                "toolbox": [
                    {"tool_name": tool["function"]["name"], "desc": tool["function"]["description"]}
                    for tool in schemas()
                ],
            }
        )
    (folder / "test.json").write_text("\n".join(map(json.dumps, rows)), "utf-8")


def agent_x_steps(folder: Path) -> None:
    """Steps as of Agent-X, and a final answer that is an object with its type and tolerance."""
    rows = {}
    for each in TRUTHS:
        write_pictures(folder / "files")
        rows[each.id] = {
            "query": each.question,
            "images": [{"name": name, "location": f"files/{name}"} for name in each.pictures],
            "reasoning_steps": [
                {
                    "step": at,
                    "task": "do it",
                    "tool": tool,
                    "input": given,
                    "output": out,
                    "thought": "so",
                }
                for at, (tool, given, out) in enumerate(each.calls, 1)
            ],
            "final_answer": {
                "value": each.gold,
                "justification": "seen",
                "tolerance": each.tolerance,
                "unit": each.unit,
                "eval": each.kind,
            },
            "env": each.family,
            "sub_task": each.task,
        }
    (folder / "agrotools.json").write_text(json.dumps(rows), "utf-8")


OTHERS = (
    function_calls,
    zipped_pictures,
    saved_by_datasets,
    web_dataset,
    file_for_each_family,
    tagged_text,
    pictures_in_messages,
    joined_files,
    lists_beside_each_other,
    turns_with_types,
    calls_in_json_text,
    table_with_base64,
    calls_as_python,
    camel_case,
    response_items,
    agent_x_steps,
)
