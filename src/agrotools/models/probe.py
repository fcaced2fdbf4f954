"""Probe of an endpoint: tiny requests that show what it really does with images, tools, schemas, seeds and logprobs.

A picture shows a random number, so that a model that has not seen it cannot guess it (1 in 9,000).
"""

import asyncio
import base64
import hashlib
import io
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import ValidationError

from agrotools.core import AgrotoolsError, FrozenModel, ToolSpec
from agrotools.core.files import cache_dir, write_whole
from agrotools.models.base import Completion, ImagePart, Message, ModelSettings, RequestedCall, TextPart
from agrotools.models.endpoint import Address, Endpoint, address_of, make_model, split_provider
from agrotools.models.responses_format import SUFFIX

PROBE_FILE = "probe.json"
State = Literal["yes", "no", "refused", "unclear"]
_TOKENS = 300
"""Token limit of a reply: room for a model that thinks before it answers."""
_LISTING_TIMEOUT_S = 10
_CONTEXT_KEYS = ("max_model_len", "context_length", "max_context_length", "context_window", "n_ctx", "n_ctx_train")


class Finding(FrozenModel):
    """Outcome of one probe. ``tokens``: input and output tokens that the endpoint counted."""

    feature: str
    state: State
    detail: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class ProbeReport(FrozenModel):
    """Findings about a model at an address. ``date``: of the probe, in UTC."""

    model: str
    base_url: str
    date: str
    findings: tuple[Finding, ...]

    def state(self, feature: str) -> State | None:
        """Return the state of a feature; None if it was not probed."""
        return next((each.state for each in self.findings if each.feature == feature), None)


async def probe_endpoint(endpoint: Endpoint, ended: Callable[[Finding], None] = lambda _: None) -> ProbeReport:
    """Probe an endpoint with about ten tiny requests, one after the other.

    Args:
        ended: called with each finding.

    Raises:
        UsageError: the address is not valid, or a required key is missing.
        EndpointRefusal: not even text is answered: wrong key, model or address.
        EndpointUnreachable: no server answers.
    """
    provider, name = split_provider(endpoint.model, endpoint.base_url)
    address = address_of(name, provider, endpoint.base_url, endpoint.api_key_env)
    base_url, asking = address.base_url, _Asking(endpoint.impatient)
    findings: list[Finding] = []
    for probe in (_text, _images, _images_of_tools, _native_tools, _parallel_calls, _json_schema, _seed, _logprobs):
        began, before = time.monotonic(), (asking.input_tokens, asking.output_tokens)
        feature = probe.__name__.strip("_").replace("_", " ")
        try:
            state, detail = await probe(asking, base_url)
        except AgrotoolsError as error:
            if probe is _text:
                raise
            state, detail = "refused", error.message
        finding = Finding(
            feature=feature,
            state=state,
            detail=" ".join(detail.split())[:300],
            input_tokens=asking.input_tokens - before[0],
            output_tokens=asking.output_tokens - before[1],
            seconds=round(time.monotonic() - began, 2),
        )
        findings.append(finding)
        ended(finding)
    context = await _context(address, name)
    findings.append(Finding(feature="context", state="yes" if context else "unclear", detail=context))
    ended(findings[-1])
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return ProbeReport(model=endpoint.model, base_url=base_url, date=date, findings=tuple(findings))


class _Asking:
    """Requests to the endpoint, with a count of tokens."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self.input_tokens = self.output_tokens = 0
        self.plain_tokens = 0
        """Input tokens of the text probe, to tell what an image adds."""

    async def ask(self, *messages: Message, tools: Sequence[ToolSpec] = (), **settings: Any) -> Completion:
        model = make_model(self._endpoint)
        values = {"temperature": None, "max_output_tokens": _TOKENS, **settings}
        try:
            completion = await model.generate(messages, tools, ModelSettings.model_validate(values))
        finally:
            await model.close()
        self.input_tokens += completion.usage.input_tokens
        self.output_tokens += completion.usage.output_tokens
        return completion


def _tool(name: str, description: str, /, **properties: str) -> ToolSpec:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
    }
    return ToolSpec(
        name=name,
        category="probe",
        version="1",
        description=description,
        parameters=parameters,
        agreement={},
        defaults={},
    )


_ADD = _tool("add", "Return the sum of two numbers.", a="number", b="number")
_SHOW = _tool("show_picture", "Return the picture with this name.", name="string")


def _numbered_picture(seed: int) -> tuple[ImagePart, str]:
    """Return a picture (256 x 128 px) of a four-digit number, and the number."""
    from PIL import Image, ImageDraw, ImageFont

    number = str(Random(seed).randint(1000, 9999))
    image = Image.new("RGB", (256, 128), "white")
    ImageDraw.Draw(image).text((128, 64), number, "black", ImageFont.load_default(72), anchor="mm")
    content = io.BytesIO()
    image.save(content, "PNG")
    return ImagePart(f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"), number


async def _text(asking: _Asking, _base_url: str) -> tuple[State, str]:
    completion = await asking.ask(Message.of("user", "Reply with the word OK."))
    asking.plain_tokens = completion.usage.input_tokens
    counted = "" if completion.usage.input_tokens else "; it counts no tokens"
    return ("yes" if completion.text.strip() else "no"), f"{completion.text.strip()[:40]!r}{counted}"


async def _images(asking: _Asking, _base_url: str) -> tuple[State, str]:
    picture, number = _numbered_picture(time.time_ns())
    question = TextPart("Which number is in this picture? Reply with its digits.")
    completion = await asking.ask(Message(role="user", content=(question, picture)))
    return _seen(completion, number, asking)


async def _images_of_tools(asking: _Asking, _base_url: str) -> tuple[State, str]:
    picture, number = _numbered_picture(time.time_ns())
    call = RequestedCall(name="show_picture", arguments='{"name": "picture_1"}', id="call00000")
    completion = await asking.ask(
        Message.of("user", "Which number is in picture_1? Look at it with the tool, then reply with its digits."),
        Message(role="assistant", tool_calls=(call,)),
        Message(role="tool", content=(TextPart("The picture:"), picture), tool_call_id="call00000"),
        tools=[_SHOW],
    )
    return _seen(completion, number, asking)


def _seen(completion: Completion, number: str, asking: _Asking) -> tuple[State, str]:
    more = completion.usage.input_tokens - asking.plain_tokens
    cost = f"about {more} tokens for a picture of 256 x 128 px" if more > 0 else ""
    if number in completion.text:
        return "yes", cost
    said = f"not seen: {completion.text.strip()[:80]!r}" if completion.text.strip() else "no answer"
    return "no", f"{said}{f', but {cost}' if cost else ''}"


async def _native_tools(asking: _Asking, _base_url: str) -> tuple[State, str]:
    question = "What is 1234.5 + 876.25? Use the tool."
    completion = await asking.ask(Message.of("user", question), tools=[_ADD])
    for call in completion.tool_calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return "no", f"the arguments are no JSON: {call.arguments[:80]!r}"
        values = sorted(arguments.values(), key=str) if isinstance(arguments, dict) else []
        return ("yes" if values == [1234.5, 876.25] else "unclear"), f"{call.name}({call.arguments[:80]})"
    return "no", f"no call, but {completion.text.strip()[:80]!r}"


async def _parallel_calls(asking: _Asking, _base_url: str) -> tuple[State, str]:
    question = "Use the tool for 1.5 + 2 and for 30 + 4.25, with both calls in one message."
    completion = await asking.ask(Message.of("user", question), tools=[_ADD])
    calls = len(completion.tool_calls)
    return ("yes" if calls > 1 else "no"), f"{calls} in one message"


async def _json_schema(asking: _Asking, base_url: str) -> tuple[State, str]:
    properties = {"crop": {"type": "string", "enum": ["maize", "wheat"]}, "trees": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": ["crop", "trees"], "additionalProperties": False}
    named = {"name": "answer", "strict": True, "schema": schema}
    extra: dict[str, Any] = (
        {"text": {"format": {"type": "json_schema", **named}}}
        if base_url.endswith(SUFFIX)
        else {"response_format": {"type": "json_schema", "json_schema": named}}
    )
    completion = await asking.ask(
        Message.of("user", "Tell me a story about seven trees in a field of wheat."), extra=extra
    )
    try:
        value = json.loads(completion.text)
    except (ValueError, RecursionError):
        return "no", f"no JSON: {completion.text.strip()[:80]!r}"
    fits = isinstance(value, dict) and value.keys() == properties.keys() and isinstance(value["trees"], int)
    return ("yes" if fits else "no"), completion.text.strip()[:80]


async def _seed(asking: _Asking, _base_url: str) -> tuple[State, str]:
    question = Message.of("user", "Invent a name of eight letters for a new apple. Reply with the name only.")
    texts = [(await asking.ask(question, temperature=1.0, seed=seed)).text.strip() for seed in (7, 7, 8)]
    shown = ", ".join(repr(text[:20]) for text in texts)
    if texts[0] != texts[1]:
        return "no", f"equal seeds gave {shown}"
    return ("yes", shown) if texts[2] != texts[0] else ("unclear", f"all seeds gave {texts[0][:20]!r}")


async def _logprobs(asking: _Asking, _base_url: str) -> tuple[State, str]:
    question = Message.of("user", "Is water wet? Reply with yes or no.")
    completion = await asking.ask(question, top_logprobs=5)
    candidates = ", ".join(f"{token!r} {value:.2f}" for token, value in completion.first_token.items())
    return ("yes" if completion.first_token else "no"), candidates[:120]


async def _context(address: Address, name: str) -> str:
    """Return the context length that the endpoint's list of models states; empty if it states none."""
    import aiohttp

    url = f"{address.base_url.removesuffix(SUFFIX)}/models"
    limit = aiohttp.ClientTimeout(_LISTING_TIMEOUT_S)
    try:
        async with (
            aiohttp.ClientSession(headers=address.headers, timeout=limit) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            listed = (await response.json(content_type=None))["data"]
        entry = next(each for each in listed if each["id"] == name)
        found = {**entry, **(entry.get("meta") or {})}
        return next(f"{found[key]:,} tokens ({key})" for key in _CONTEXT_KEYS if isinstance(found.get(key), int))
    except (aiohttp.ClientError, OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration, TimeoutError):
        return ""


def _place(base_url: str, name: str) -> Path:
    return cache_dir("probes", f"{hashlib.sha256(f'{base_url} {name}'.encode()).hexdigest()[:16]}.json")


def keep_report(report: ProbeReport) -> Path:
    """Store a report in the cache, where runs find it, and return its path."""
    path = _place(report.base_url, report.model)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, report.model_dump_json(indent=1).encode(), synced=False)
    return path


def find_report(base_url: str, name: str) -> ProbeReport | None:
    """Return the stored report about a model at an address; None if there is none."""
    try:
        return ProbeReport.model_validate_json(_place(base_url, name).read_bytes())
    except (OSError, ValidationError):
        return None


def attach_report(base_url: str, name: str, run: Path, *, images: bool, native_tools: bool) -> list[str]:
    """Copy the stored report, if any, into a run folder; return warnings about what the run needs and lacks."""
    report = find_report(base_url, name) if base_url else None
    if report is None:
        return []
    write_whole(run / PROBE_FILE, report.model_dump_json(indent=1).encode(), synced=False)
    warnings: list[str] = []
    if images and report.state("images") in ("no", "refused"):
        warnings.append("the model did not see a picture in a probe: --no-images, or another model or server")
    if native_tools and report.state("native tools") in ("no", "refused"):
        warnings.append("the model made no native tool call in a probe: --protocol react calls tools in text")
    return [f"{warning} (agrotools doctor, {report.date[:10]})" for warning in warnings]


def run_probe(endpoint: Endpoint, ended: Callable[[Finding], None] = lambda _: None) -> ProbeReport:
    """Run :func:`probe_endpoint` to its end and store the report."""
    report = asyncio.run(probe_endpoint(endpoint, ended))
    keep_report(report)
    return report
