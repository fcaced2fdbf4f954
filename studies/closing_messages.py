"""Replies of a model to the closing message: whether it copies the values of its own prose into the answer form.

Its replies are tests/real_models/closing_replies.jsonl.gz.

    python studies/closing_messages.py CASES --model FILE.gguf --serve llama --replies FILE [--wording today]
    python studies/closing_messages.py CASES --model NAME --base-url http://127.0.0.1:8080/v1 --replies FILE

CASES is JSON Lines, one case a line: ``id``, ``question``, ``slots`` of the answer form, and ``answer``, the prose that
the model is told it wrote. The request is the end of a run with native tool calls: system message, question, answer,
closing message; no tools, no pictures, temperature 0. FILE gets a line of JSON for each reply, as it came. A case that
has a reply of this model and wording is not asked again, so that an interrupted command goes on.

* ``today``: the closing message of a run.
* ``option``: each line of the form offers the word (``<number, or unknown> %``) in place of the sentence about it.

``tests/real_models/closing.py`` keeps the replies, with what they are read as.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agrotools.agents.llm import closing_message, raw_reply, render
from agrotools.core import SampleView, Slot
from agrotools.core.slot import slot_types
from agrotools.models import Endpoint, Message, Model, ModelSettings, WireSettings, make_model
from agrotools.models.local_server import LocalServer
from agrotools.text.answer_form import answer_form, form_lines

WORDINGS = ("today", "option")
_SETTINGS = ModelSettings(temperature=0, max_output_tokens=160)
"""A form takes some 10 tokens an item, a sentence 60; a model that repeats itself is cut off soon."""
_OPTION = "Now copy the values of your answer into this form, one line per item, and write nothing else:\n"


def slots_of(case: dict[str, Any]) -> tuple[Slot, ...]:
    """Return the slots of a case."""
    types = slot_types()
    return tuple(types[fields["type"]].model_validate(fields) for fields in case["slots"])


def message_of(slots: Sequence[Slot], wording: str) -> str:
    """Return the closing message for ``slots``."""
    form = answer_form(slots)
    if wording == "today":
        return closing_message(SampleView(id="", query="", files=(), toolset=(), answer_form=form))
    lines = form_lines(slots)
    meanings = form.removeprefix("\n".join(lines))
    # The placeholder ends with the last > of its line; an option may hold one, too.
    offered = [", or unknown>".join(line.rsplit(">", 1)) for line in lines]
    return _OPTION + "\n".join(offered) + meanings


def conversation(case: dict[str, Any], wording: str) -> list[Message]:
    """Return the messages that a case is asked with."""
    return [
        Message.of("system", render("tool_calling_system")),
        Message.of("user", render("question", query=case["question"])),
        Message.of("assistant", case["answer"]),
        Message.of("user", message_of(slots_of(case), wording)),
    ]


def read_lines(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file; none if it does not exist."""
    lines = file.read_text(encoding="utf-8").split("\n") if file.exists() else []
    return [json.loads(line) for line in lines if line]


async def ask(model: Model, given: argparse.Namespace) -> None:
    """Ask the cases of which a reply is missing, and append each reply to the file."""
    name = Path(given.model).name.removesuffix(".gguf")
    asked = {(row["case"], row["model"], row["wording"]) for row in read_lines(given.replies)}
    at_once = asyncio.Semaphore(given.concurrency)

    async def ask_case(case: dict[str, Any]) -> None:
        """Ask the wordings one after another: the server reads the beginning of the conversation once."""
        async with at_once:
            for wording in given.wording:
                if (case["id"], name, wording) not in asked:
                    await ask_wording(case, wording)

    async def ask_wording(case: dict[str, Any], wording: str) -> None:
        completion = await model.generate(conversation(case, wording), (), _SETTINGS)
        row = {
            "case": case["id"],
            "model": name,
            "wording": wording,
            "reply": raw_reply(completion).text,
            "finish_reason": completion.finish_reason,
        }
        with given.replies.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(f"{name}, {wording}: {case['id']}", flush=True)

    await asyncio.gather(*map(ask_case, read_lines(given.cases)))


async def ask_endpoint(given: argparse.Namespace, server: LocalServer | None = None) -> None:
    """Ask the model at an address, or that of a server which runs."""
    wire = WireSettings(concurrency=given.concurrency)
    model = make_model(Endpoint(given.model, given.base_url, None, wire, None, None, server))
    try:
        await ask(model, given)
    finally:
        await model.close()


async def ask_server(given: argparse.Namespace) -> None:
    """Start llama.cpp's server, ask its model, and end the server."""
    server = LocalServer(given.model, given.serve_args)
    with tempfile.TemporaryDirectory() as folder:
        await server.run(Path(folder), lambda: ask_endpoint(given, server), print, None)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=Path)
    parser.add_argument("--model", required=True)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--base-url")
    where.add_argument("--serve", choices=("llama",))
    parser.add_argument("--serve-args", default="", help='e.g. "-c 4096 -np 4 -t 2"')
    parser.add_argument("--concurrency", type=int, default=1, help="cases at once")
    parser.add_argument("--wording", nargs="+", default=WORDINGS, choices=WORDINGS)
    parser.add_argument("--replies", type=Path, required=True)
    given = parser.parse_args()
    asyncio.run(ask_server(given) if given.serve else ask_endpoint(given))


if __name__ == "__main__":
    main()
