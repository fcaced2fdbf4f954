"""An OpenAI-compatible endpoint on this machine that answers by a benchmark's reference trajectories.

It makes every reference call with the values it was shown and answers from them. If it is ``sloppy``, it makes the
mistakes that models make (odd formats, wrong arguments, wrong tools, early or wrong answers), by the request alone.
"""

import asyncio
import base64
import hashlib
import io
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web
from PIL import Image
from pydantic import JsonValue

from agrotools.agents.images import file_parts
from agrotools.core import PlotSlot, Sample, ToolSpec, UnresolvedRef
from agrotools.core.record import literal_value, resolved_value
from agrotools.formats.reference_results import derived_values
from agrotools.models import ImagePart
from agrotools.models.probe import QUESTIONS
from agrotools.text.answer_form import format_answer
from support.fault_server import Body, beside
from support.fault_server import completion as completion_body

Responder = Callable[[Body], web.Response | Awaitable[web.Response]]
SPEC = ToolSpec(
    name="calculate",
    category="analytics",
    version="1",
    description="Evaluate an expression.",
    parameters={"type": "object", "properties": {"expression": {"type": "string"}}},
    agreement={"expression": "expression"},
    defaults={},
)
"""A tool that requests of tests offer."""
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nG"
    "PU6DFiYGBgYmBgYGBgAAAK6ADq34v9kwAAAABJRU5ErkJggg=="
)
"""A whole picture of 2 x 2 pixels: the server refuses others, as real ones do."""


@dataclass
class Endpoint:
    """A running server. ``requests`` are the bodies it was sent (``bodies``: as bytes), ``headers`` the headers beside
    them, ``contacts`` the tiny requests that it answered before the first of them."""

    base_url: str
    contacts: list[Body] = field(default_factory=list)
    requests: list[Body] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@asynccontextmanager
async def serve(
    responder: Responder, *, port: int = 0, latency_s: float = 0.0, greets: bool = True
) -> AsyncIterator[Endpoint]:
    """Serve ``responder`` at ``<base_url>/chat/completions`` until the block ends. Port 0 takes a free one.

    ``greets``: whether the tiny requests of a first contact are answered without it.
    """
    endpoint = Endpoint("")

    async def reply_to(request: web.Request, body: Body) -> web.Response:
        if not all(map(is_whole_picture, pictures_of(body))):
            return error(400, "Failed to load image or audio file")  # as llama.cpp's server says it
        if greets and is_first_contact(body):
            endpoint.contacts.append(body)
            return completion("yes")
        endpoint.requests.append(body)
        endpoint.bodies.append(await request.read())
        endpoint.headers.append(dict(request.headers))
        await asyncio.sleep(latency_s)
        reply = responder(body)
        return await reply if isinstance(reply, Awaitable) else reply

    async def answer(request: web.Request) -> web.Response:
        return await reply_to(request, await request.json())

    async def answer_responses(request: web.Request) -> web.Response:
        return response_of(await reply_to(request, chat_body(await request.json())))

    app = web.Application(client_max_size=512 * 2**20)
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_post("/v1/responses", answer_responses)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        endpoint.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        yield endpoint
    finally:
        await runner.cleanup()


def serving(responder: Responder, **options: Any) -> AbstractContextManager[Endpoint]:
    """:func:`serve` in a thread of its own."""
    return beside(serve(responder, **options))


def text_of(message: Body) -> str:
    """All text of a message."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part["type"] == "text")
    return content or ""


def pictures_of(body: Body) -> list[bytes]:
    """The content of all pictures in a request."""
    parts = [
        part
        for message in body.get("messages", ())
        if isinstance(message.get("content"), list)
        for part in message["content"]
    ]
    urls = [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]
    return [base64.b64decode(url.partition("base64,")[2]) for url in urls]


def is_whole_picture(content: bytes) -> bool:
    """Whether a picture can be decoded to its last row, as real servers do."""
    try:
        with Image.open(io.BytesIO(content)) as picture:
            picture.load()
    except OSError:
        return False
    return True


def is_first_contact(body: Body) -> bool:
    """Whether a request is one of the tiny ones before a run."""
    return text_of(body["messages"][-1]) in QUESTIONS


def completion(
    text: str | None = None, calls: Sequence[tuple[str, str]] = (), finish_reason: str | None = None
) -> web.Response:
    """A chat completion with ``text`` and native ``calls`` (name, arguments as text)."""
    return web.json_response(completion_body(text, calls, finish_reason))


def chat_body(body: Body) -> Body:
    """The chat-completions form of a request to the Responses API, written from that API's documentation."""
    messages: list[Body] = []
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        match item.get("type", "message"):
            case "function_call":
                function = {"name": item["name"], "arguments": item["arguments"]}
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": ""})
                messages[-1].setdefault("tool_calls", []).append(
                    {"id": item["call_id"], "function": function}
                )
            case "function_call_output":
                content = _chat_parts(item["output"])
                messages.append(
                    {"role": "tool", "tool_call_id": item["call_id"], "content": content}
                )
            case "reasoning":
                pass
            case _:
                messages.append({"role": item["role"], "content": _chat_parts(item["content"])})
    chat = {"model": body["model"], "messages": messages}
    if tools := body.get("tools"):
        names = ("name", "description", "parameters")
        chat["tools"] = [{"function": {key: tool[key] for key in names}} for tool in tools]
    return chat


def _chat_parts(content: str | list[Body]) -> str | list[Body]:
    if isinstance(content, str):
        return content
    return [
        {"type": "image_url", "image_url": {"url": part["image_url"]}}
        if part["type"] == "input_image"
        else {"type": "text", "text": part["text"]}
        for part in content
    ]


def response_of(reply: web.Response) -> web.Response:
    """A chat completion in the form of the Responses API; errors are the same in both."""
    try:
        data = json.loads(reply.text or "")
        (choice,) = data["choices"]
    except (ValueError, KeyError):
        return reply
    message, reason = choice["message"], choice["finish_reason"]
    output: list[Body] = [{"type": "reasoning", "summary": []}]
    if message["content"]:
        output.append(
            {"type": "message", "content": [{"type": "output_text", "text": message["content"]}]}
        )
    output += [
        {"type": "function_call", "call_id": call["id"], **call["function"]}
        for call in message.get("tool_calls", [])
    ]
    ends = {"length": "max_output_tokens", "content_filter": "content_filter"}
    status = (
        {"status": "incomplete", "incomplete_details": {"reason": ends[reason]}}
        if reason in ends
        else {}
    )
    usage = {
        "input_tokens": data["usage"]["prompt_tokens"],
        "output_tokens": data["usage"]["completion_tokens"],
    }
    return web.json_response(
        {"object": "response", "status": "completed", "output": output, "usage": usage, **status}
    )


def error(status: int, message: str, code: str | None = None, **headers: str) -> web.Response:
    """An error in OpenAI's shape."""
    body = {"error": {"message": message, "type": "error", "code": code}}
    return web.json_response(body, status=status, headers=headers)


class ReferenceFollower:
    """Answers every request by the reference trajectory of the sample that the question belongs to.

    Samples are found by their query; those that share one are told apart by the images in the request.
    """

    def __init__(self, samples: Sequence[Sample], root: Path, *, sloppy: bool = False) -> None:
        self._root, self._sloppy = root, sloppy
        self._by_query: dict[str, list[Sample]] = defaultdict(list)
        self._images: dict[str, list[str]] = {}
        for sample in samples:
            self._by_query[sample.query].append(sample)

    @classmethod
    def of_folder(cls, folder: Path) -> "ReferenceFollower":
        lines = (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()
        return cls([Sample.model_validate_json(line) for line in lines if line.strip()], folder)

    def __call__(self, body: Body) -> web.Response:
        question = text_of(
            next(message for message in body["messages"] if message["role"] == "user")
        )
        sample = self._sample(question, body)
        if sample is None:
            return error(400, "this endpoint knows no sample with that question")
        protocol = (
            "native"
            if body.get("tools")
            else "react"
            if "Action Input:" in text_of(body["messages"][0])
            else "none"
        )
        if text_of(body["messages"][-1]).startswith("Now copy the values of your answer"):
            protocol = "none"
        place = [sample.id, len(body["messages"]), bool(body.get("tools"))]
        return _reply(
            sample, _results(body["messages"]), protocol, Luck(place) if self._sloppy else None
        )

    def _sample(self, question: str, body: Body) -> Sample | None:
        matching = [query for query in self._by_query if question.endswith(f"Question: {query}")]
        if not matching:
            return None
        candidates = self._by_query[max(matching, key=len)]
        if len(candidates) > 1:
            sent = _image_urls(body)
            alike = [
                sample
                for sample in candidates
                if (shown := self._shown(sample)) == sent[: len(shown)]  # then those of results
            ]
            candidates = alike or candidates
        return candidates[0]

    def _shown(self, sample: Sample) -> list[str]:
        if sample.id not in self._images:
            files = [
                file.model_copy(update={"path": str(self._root / file.path)})
                for file in sample.files
            ]
            self._images[sample.id] = [
                part.url for part in file_parts(files) if isinstance(part, ImagePart)
            ]
        return self._images[sample.id]


class Luck:
    """Random choices that depend on the place in a conversation alone: clients write the same messages differently."""

    def __init__(self, place: list[Any]) -> None:
        self._digest = hashlib.sha256(json.dumps(place).encode()).hexdigest()

    def of(self, purpose: str) -> float:
        """A number in [0, 1) for ``purpose``."""
        return int(hashlib.sha256(f"{self._digest}{purpose}".encode()).hexdigest()[:8], 16) / 2**32


def _image_urls(body: Body) -> list[str]:
    parts = [
        part
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


def _results(messages: Sequence[Body]) -> list[dict[str, JsonValue] | None]:
    """What the calls so far returned, as the conversation shows it; None for errors."""
    results: list[dict[str, JsonValue] | None] = []
    for message in messages[2:]:
        if message["role"] not in ("user", "tool"):
            continue
        for data in re.findall(
            r"<observation>\n(.*?)\n</observation>", text_of(message), re.DOTALL
        ):
            try:
                results.append(json.loads(data).get("result"))
            except ValueError:
                results.append(None)
    return results


def _reply(
    sample: Sample, results: list[dict[str, JsonValue] | None], protocol: str, luck: Luck | None
) -> web.Response:
    steps = sample.reference.steps if sample.reference else ()
    slip = luck.of("slip") if luck else 1.0
    if protocol == "none" or len(results) >= len(steps) or (len(results) > 0 and slip < 0.05):
        return _answer(sample, results, protocol, luck)
    step = steps[len(results)]
    try:
        arguments = {name: resolved_value(value, results) for name, value in step.arguments.items()}
    except UnresolvedRef:
        arguments = {name: literal_value(value) for name, value in step.arguments.items()}
    name = step.tool
    if 0.05 <= slip < 0.12:
        return (
            completion("Thought: what next?")
            if protocol == "react"
            else completion(None, [(name, '{"a": ')])
        )
    if 0.12 <= slip < 0.2:
        arguments["colour"] = "green"
    elif 0.2 <= slip < 0.26:
        name = "measure_everything"
    elif 0.26 <= slip < 0.34:
        arguments = {key: _off(value) for key, value in arguments.items()}
    if protocol == "native":
        return completion("I need a measurement.", [(name, json.dumps(arguments))])
    if 0.34 <= slip < 0.42:
        return completion(
            f"Thought: I measure.\n```json\n{json.dumps({'tool': name, 'arguments': arguments})}\n```"
        )
    if 0.42 <= slip < 0.5:
        return completion(
            f"**Action:** `{name}`\n**Action Input:** {arguments!r}\nObservation: 42\nFinal Answer: 42"
        )
    return completion(
        f"Thought: I need a measurement.\nAction: {name}\nAction Input: {json.dumps(arguments)}"
    )


def _answer(
    sample: Sample, results: list[dict[str, JsonValue] | None], protocol: str, luck: Luck | None
) -> web.Response:
    text = format_answer(sample.answer, derived_values(sample.answer, results)) if results else ""
    if not text:
        gold = {
            slot.name: getattr(slot, "value", None)
            for slot in sample.answer
            if not isinstance(slot, PlotSlot)
        }
        text = format_answer(
            sample.answer, {name: value for name, value in gold.items() if value is not None}
        )
    if not text:
        text = "The figure shows it."
    if luck and luck.of("value") < 0.3:
        text = re.sub(r"\d+(?:\.\d+)?", lambda match: f"{float(match[0]) * 1.3 + 1:.3g}", text)
    elif luck and luck.of("form") < 0.3:
        text = f"From what was measured I conclude this: {text.replace(': ', ' is ')}"
    return completion(
        f"Thought: That settles it.\nFinal Answer: {text}" if protocol == "react" else text
    )


def _off(value: JsonValue) -> JsonValue:
    return (
        value * 2 + 1 if isinstance(value, int | float) and not isinstance(value, bool) else value
    )
