"""Tiny requests to an endpoint, and what follows from their replies: the first contact before a run, and a probe.

The first contact shows within a second that no server answers, or that the key, the model, images or tools are refused,
instead of sample by sample during the run. If only a single request is refused while others are answered, the
configuration is not at fault: the sample is invalid, and the run continues. A probe (``agrotools doctor``) shows what
the endpoint really does with images, tools, schemas, seeds and logprobs.
"""

import asyncio
import hashlib
import io
import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeGuard
from urllib.parse import urlsplit

from pydantic import ValidationError

from agrotools.core import (
    AgrotoolsError,
    EndpointProblem,
    EndpointRefusal,
    EndpointUnreachable,
    FrozenModel,
    InfrastructureError,
    ToolSpec,
)
from agrotools.core.files import cache_dir, write_whole
from agrotools.models import make_model
from agrotools.models.base import (
    Completion,
    ImagePart,
    Message,
    Model,
    ModelSettings,
    ModelWrapper,
    RequestedCall,
    TextPart,
)
from agrotools.models.chat_format import SUFFIX
from agrotools.models.endpoint import Address, Endpoint, address_of, provider_at, split_provider
from agrotools.models.transport import proxy_for

QUESTIONS = (
    "Is water wet? Reply with yes or no.",
    "How many legs does a cow have? Reply with the number.",
)
"""First question, and the one sent if the first is refused: a content filter may reject any single text."""

_GREEN = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAAUUlEQVR42u3PMQ0AMAgAMJgabn"
    "Qieio4SFoHzZqOy14cJyAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgILDvA5sjAWbyYbcdAA"
    "AAAElFTkSuQmCC"
)
"""64 x 64 green pixels: several models reject images smaller than 28 x 28."""
LONG_PROMPT = 16_000
"""Tokens that a request must have the time for."""
_MOST_TOKENS = 16
_ANSWERED = ("stop", "tool_calls", "length")
_PASSING = ("unreachable", "reply")
"""Problems of an :class:`InfrastructureError` that do not show which requests the endpoint accepts."""
_LISTENS_S = 5.0
_WITHOUT = {
    "images": "--no-images tells of them in words instead",
    "tools": "--protocol react calls tools in text",
}

_ALL_KINDS = frozenset(("images", "tools"))


class FirstContact(ModelWrapper):
    """A model whose endpoint is probed with a tiny request before the first real one.

    The endpoint is probed again before the first request with images or tools if these were not expected. Conditions
    that a tiny request cannot settle (429, 5xx, no reply in time) are left to the real requests. ``probe``: creates a
    model at the same endpoint for one tiny request; None disables probing.
    """

    def __init__(self, model: Model, probe: Callable[[], Model] | None = None) -> None:
        super().__init__(model)
        self._probe = probe
        self._lock = asyncio.Lock()
        self._expected: frozenset[str] = frozenset()
        self._tools: Sequence[ToolSpec] = ()
        self._with_system = False
        self._probed_kinds: frozenset[str] | None = None
        """Content kinds other than text of the last tiny request; None if none was sent."""
        self._refused: tuple[EndpointProblem, str] | None = None
        """First real request that was refused before any got a reply: the problem and the question."""
        self._tokens_per_s = 0.0

    def expect(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        """Make the first tiny request contain the same kinds of content as this later request."""
        self._expected |= _needs(messages, tools)
        self._tools = self._tools or tools[:1]
        self._with_system |= messages[0].role == "system"

    def timeout_s(self, slots: int) -> float | None:
        """Return how long a server that reads ``slots`` long prompts at once may take; None if its speed is unknown."""
        return slots * LONG_PROMPT / self._tokens_per_s if self._tokens_per_s else None

    async def probe_endpoint(self, settings: ModelSettings) -> None:
        """Send the tiny requests, unless earlier ones contained the expected content.

        Raises:
            EndpointRefusal: the endpoint refuses the key, the model, images or tools.
            EndpointUnreachable: no server answers at the address.
        """
        async with self._lock:
            if self._probe and (
                self._probed_kinds is None or not self._expected <= self._probed_kinds
            ):
                await self._ask(self._probe, settings)
                self._probed_kinds = self._expected

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        """Return one reply.

        Raises:
            InfrastructureError: no reply was received, or only this request is refused.
            EndpointRefusal: two different requests were refused for the same reason, so all would be.
            EndpointUnreachable: no server answers at the address.
        """
        known = self._probed_kinds
        if (
            self._probe
            and known != _ALL_KINDS
            and (known is None or not _needs(messages, tools) <= known)
        ):
            self.expect(messages, tools)
            await self.probe_endpoint(settings)
        try:
            return await self.model.generate(messages, tools, settings)
        except EndpointRefusal as refusal:
            if refusal.problem == "credit" or self._is_for_all(refusal, messages):
                raise
            hint = "other requests are answered" if self.stats.has_worked else refusal.hint
            raise InfrastructureError(
                refusal.message, hint=hint, problem=refusal.problem
            ) from refusal

    def _is_for_all(self, refusal: EndpointRefusal, messages: Sequence[Message]) -> bool:
        """True if no request was ever answered and a different one was refused for the same reason."""
        if self.stats.has_worked:
            return False
        question = "\n".join(message.text for message in messages if message.role == "user")
        first = self._refused = self._refused or (refusal.problem, question)
        return first[0] == refusal.problem and first[1] != question

    async def _ask(self, probe: Callable[[], Model], settings: ModelSettings) -> None:
        """Send a tiny request with all that is expected; if it is refused, find out what of it is at fault."""
        first, second = QUESTIONS
        most = min(settings.max_output_tokens or _MOST_TOKENS, _MOST_TOKENS)
        tiny, needs = settings.model_copy(update={"max_output_tokens": most}), self._expected
        met = await self._tiny(probe, first, tiny, needs)
        if _answers(met):
            used = met.usage.input_tokens + met.usage.output_tokens
            self._tokens_per_s = used / met.seconds if met.seconds else 0.0
            self.stats.worked_before = True
            return
        if _refusal(met) is None:
            if (
                isinstance(met, InfrastructureError)
                and met.problem == "unreachable"
                and not self.stats.replies
            ):
                await self._check_listens(met.message)
            return
        # With the run's own token limit: some endpoints reject a small one.
        plain = await self._tiny(probe, second, settings, frozenset())
        if (refused := _refusal(plain)) is not None and not self.stats.replies:
            raise refused
        if not _answers(plain):
            return
        self.stats.worked_before = True
        if (
            needs
            and (refused := _refusal(await self._tiny(probe, first, settings, needs))) is not None
        ):
            need = next(iter({refused.problem} & needs or needs))
            if not {refused.problem} & needs and len(needs) > 1:
                tools = await self._tiny(probe, first, settings, frozenset({"tools"}))
                need = "tools" if _refusal(tools) else "images"
            raise EndpointRefusal(
                f"the model replies to text but takes no {need}: {refused.message}",
                problem=refused.problem,
                hint=_WITHOUT[need],
            )

    async def _check_listens(self, why: str) -> None:
        """Raise EndpointUnreachable if no server accepts connections at the address."""
        if await _listens(self.base_url):
            return
        vendor = provider_at(self.base_url)
        hint = "start the server, or correct the address (--base-url)"
        if vendor is not None and vendor.key_env:
            hint = "check the network of this machine: connection, firewall, proxy"
        reason = re.search(r"\[([^\]]+)\]$", why)  # of the connection, without the address
        raise EndpointUnreachable(
            f"no server at {self.base_url}{f' ({reason[1]})' if reason else ''}", hint=hint
        )

    async def _tiny(
        self, probe: Callable[[], Model], text: str, settings: ModelSettings, needs: frozenset[str]
    ) -> Completion | InfrastructureError | EndpointRefusal:
        """Return the reply to a tiny request with content of these kinds, or the error in its place."""
        image = [ImagePart(_GREEN)] if "images" in needs else []
        system = [Message.of("system", "Be brief.")] if self._with_system else []
        messages = [*system, Message(role="user", content=(TextPart(text), *image))]
        model = probe()
        try:
            return await model.generate(messages, self._tools if "tools" in needs else (), settings)
        except (EndpointRefusal, InfrastructureError) as error:
            return error
        finally:
            await model.close()


async def check_endpoint(endpoint: Endpoint, settings: ModelSettings) -> None:
    """Send a tiny request to an endpoint before long preparations; errors as of :meth:`FirstContact.probe_endpoint`."""
    model = make_model(endpoint)
    try:
        await FirstContact(model, lambda: make_model(endpoint.impatient)).probe_endpoint(settings)
    finally:
        await model.close()


def _needs(messages: Sequence[Message], tools: Sequence[ToolSpec]) -> frozenset[str]:
    needs: set[str] = set()
    if any(message.has_images for message in messages):
        needs.add("images")
    if tools:
        needs.add("tools")
    return frozenset(needs)


def _answers(met: object) -> TypeGuard[Completion]:
    return isinstance(met, Completion) and met.finish_reason in _ANSWERED


def _refusal(met: object) -> EndpointRefusal | None:
    if isinstance(met, InfrastructureError) and met.problem and met.problem not in _PASSING:
        return EndpointRefusal(met.message, hint=met.hint, problem=met.problem)
    return met if isinstance(met, EndpointRefusal) else None


async def _listens(base_url: str) -> bool:
    """True if a server accepts connections at an address, or at its proxy."""
    parts = urlsplit(proxy_for(base_url) or base_url)
    try:
        async with asyncio.timeout(_LISTENS_S):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or {"http": 80}.get(parts.scheme, 443)
            )
    except TimeoutError:
        return True  # No answer, but no refusal either.
    except (OSError, ValueError):
        return False
    writer.close()
    return True


PROBE_FILE = "probe.json"
State = Literal["yes", "no", "refused", "unclear"]
_TOKENS = 300
"""Token limit of a reply: room for a model that thinks before it answers."""
_LISTING_TIMEOUT_S = 10
_CONTEXT_KEYS = (
    "max_model_len",
    "context_length",
    "max_context_length",
    "context_window",
    "n_ctx",
    "n_ctx_train",
)


class ProbeFinding(FrozenModel):
    """Outcome of one probe, with the tokens that the endpoint counted."""

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
    findings: tuple[ProbeFinding, ...]

    def state(self, feature: str) -> State | None:
        """Return the state of a feature; None if it was not probed."""
        return next((each.state for each in self.findings if each.feature == feature), None)


async def probe_endpoint(
    endpoint: Endpoint, ended: Callable[[ProbeFinding], None] = lambda _: None
) -> ProbeReport:
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
    asking = _Asking(endpoint.impatient, address.base_url)
    findings: list[ProbeFinding] = []
    for probe in (
        _text,
        _images,
        _images_of_tools,
        _native_tools,
        _parallel_calls,
        _json_schema,
        _seed,
        _logprobs,
    ):
        began, before = time.monotonic(), (asking.input_tokens, asking.output_tokens)
        feature = probe.__name__.strip("_").replace("_", " ")
        try:
            state, detail = await probe(asking)
        except AgrotoolsError as error:
            if probe is _text:
                raise
            state, detail = "refused", error.message
        finding = ProbeFinding(
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
    findings.append(
        ProbeFinding(feature="context", state="yes" if context else "unclear", detail=context)
    )
    ended(findings[-1])
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return ProbeReport(
        model=endpoint.model, base_url=address.base_url, date=date, findings=tuple(findings)
    )


class _Asking:
    def __init__(self, endpoint: Endpoint, base_url: str) -> None:
        self._endpoint, self.base_url = endpoint, base_url
        self.input_tokens = self.output_tokens = 0
        self.plain_tokens = 0
        """Input tokens of the text probe, to tell what an image adds."""

    async def ask(
        self, *messages: Message, tools: Sequence[ToolSpec] = (), **settings: Any
    ) -> Completion:
        model = make_model(self._endpoint)
        values = {"temperature": None, "max_output_tokens": _TOKENS, **settings}
        try:
            completion = await model.generate(messages, tools, ModelSettings.model_validate(values))
        finally:
            await model.close()
        self.input_tokens += completion.usage.input_tokens
        self.output_tokens += completion.usage.output_tokens
        return completion


def _tool(name: str, description: str, **properties: str) -> ToolSpec:
    fields = {key: {"type": kind} for key, kind in properties.items()}
    parameters: dict[str, Any] = {"type": "object", "properties": fields, "required": list(fields)}
    kept: dict[str, Any] = {"category": "probe", "version": "1", "agreement": {}, "defaults": {}}
    return ToolSpec(name=name, description=description, parameters=parameters, **kept)


_ADD = _tool("add", "Return the sum of two numbers.", a="number", b="number")
_SHOW = _tool("show_picture", "Return the picture with this title.", title="string")


def _numbered_picture(seed: int) -> tuple[ImagePart, str]:
    """Return a picture (256 x 128 px) of a four-digit number, and the number."""
    from PIL import Image, ImageDraw, ImageFont

    number = str(Random(seed).randint(1000, 9999))
    image = Image.new("RGB", (256, 128), "white")
    ImageDraw.Draw(image).text((128, 64), number, "black", ImageFont.load_default(72), anchor="mm")
    content = io.BytesIO()
    image.save(content, "PNG")
    return ImagePart.of("image/png", content.getvalue()), number


async def _text(asking: _Asking) -> tuple[State, str]:
    completion = await asking.ask(Message.of("user", "Reply with the word OK."))
    asking.plain_tokens = completion.usage.input_tokens
    counted = "" if completion.usage.input_tokens else "; it counts no tokens"
    return (
        "yes" if completion.text.strip() else "no"
    ), f"{completion.text.strip()[:40]!r}{counted}"


async def _images(asking: _Asking) -> tuple[State, str]:
    picture, number = _numbered_picture(time.time_ns())
    question = TextPart("Which number is in this picture? Reply with its digits.")
    completion = await asking.ask(Message(role="user", content=(question, picture)))
    return _seen(completion, number, asking)


async def _images_of_tools(asking: _Asking) -> tuple[State, str]:
    picture, number = _numbered_picture(time.time_ns())
    call = RequestedCall(name="show_picture", arguments='{"title": "picture_1"}', id="call00000")
    completion = await asking.ask(
        Message.of(
            "user",
            "Which number is in picture_1? Look at it with the tool, then reply with its digits.",
        ),
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


async def _native_tools(asking: _Asking) -> tuple[State, str]:
    question = "What is 1234.5 + 876.25? Use the tool."
    completion = await asking.ask(Message.of("user", question), tools=[_ADD])
    for call in completion.tool_calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return "no", f"the arguments are no JSON: {call.arguments[:80]!r}"
        values = sorted(arguments.values(), key=str) if isinstance(arguments, dict) else []
        return (
            "yes" if values == [1234.5, 876.25] else "unclear"
        ), f"{call.name}({call.arguments[:80]})"
    return "no", f"no call, but {completion.text.strip()[:80]!r}"


async def _parallel_calls(asking: _Asking) -> tuple[State, str]:
    question = "Use the tool for 1.5 + 2 and for 30 + 4.25, with both calls in one message."
    completion = await asking.ask(Message.of("user", question), tools=[_ADD])
    calls = len(completion.tool_calls)
    return ("yes" if calls > 1 else "no"), f"{calls} in one message"


async def _json_schema(asking: _Asking) -> tuple[State, str]:
    properties = {
        "crop": {"type": "string", "enum": ["maize", "wheat"]},
        "trees": {"type": "integer"},
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": ["crop", "trees"],
        "additionalProperties": False,
    }
    named = {"name": "answer", "strict": True, "schema": schema}
    extra: dict[str, Any] = (
        {"text": {"format": {"type": "json_schema", **named}}}
        if asking.base_url.endswith(SUFFIX)
        else {"response_format": {"type": "json_schema", "json_schema": named}}
    )
    completion = await asking.ask(
        Message.of("user", "Tell me a story about seven trees in a field of wheat."), extra=extra
    )
    try:
        value = json.loads(completion.text)
    except (ValueError, RecursionError):
        return "no", f"no JSON: {completion.text.strip()[:80]!r}"
    fits = (
        isinstance(value, dict)
        and value.keys() == properties.keys()
        and isinstance(value["trees"], int)
    )
    return ("yes" if fits else "no"), completion.text.strip()[:80]


async def _seed(asking: _Asking) -> tuple[State, str]:
    question = Message.of(
        "user", "Invent a name of eight letters for a new apple. Reply with the name only."
    )
    texts = [
        (await asking.ask(question, temperature=1.0, seed=seed)).text.strip() for seed in (7, 7, 8)
    ]
    shown = ", ".join(repr(text[:20]) for text in texts)
    if texts[0] != texts[1]:
        return "no", f"equal seeds gave {shown}"
    return (
        ("yes", shown) if texts[2] != texts[0] else ("unclear", f"all seeds gave {texts[0][:20]!r}")
    )


async def _logprobs(asking: _Asking) -> tuple[State, str]:
    question = Message.of("user", "Is water wet? Reply with yes or no.")
    completion = await asking.ask(question, top_logprobs=5)
    candidates = ", ".join(
        f"{token!r} {value:.2f}" for token, value in completion.first_token.items()
    )
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
        return next(
            f"{found[key]:,} tokens ({key})"
            for key in _CONTEXT_KEYS
            if isinstance(found.get(key), int)
        )
    except (
        aiohttp.ClientError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        StopIteration,
        TimeoutError,
    ):
        return ""


def _place(base_url: str, name: str) -> Path:
    return cache_dir(
        "probes", f"{hashlib.sha256(f'{base_url} {name}'.encode()).hexdigest()[:16]}.json"
    )


def find_report(base_url: str, name: str) -> ProbeReport | None:
    """Return the stored report about a model at an address; None if there is none."""
    try:
        return ProbeReport.model_validate_json(_place(base_url, name).read_bytes())
    except (OSError, ValidationError):
        return None


def attach_report(
    base_url: str, name: str, run: Path, *, images: bool, native_tools: bool
) -> list[str]:
    """Copy the stored report, if any, into a run folder; return warnings about what the run needs and lacks."""
    report = find_report(base_url, name)
    if report is None:
        return []
    write_whole(run / PROBE_FILE, report.model_dump_json(indent=1).encode(), synced=False)
    warnings: list[str] = []
    if images and report.state("images") in ("no", "refused"):
        warnings.append(
            "the model did not see a picture in a probe: --no-images, or another model or server"
        )
    if native_tools and report.state("native tools") in ("no", "refused"):
        warnings.append(
            "the model made no native tool call in a probe: --protocol react calls tools in text"
        )
    return [f"{warning} (agrotools doctor, {report.date[:10]})" for warning in warnings]


def run_probe(
    endpoint: Endpoint, ended: Callable[[ProbeFinding], None] = lambda _: None
) -> ProbeReport:
    """Run :func:`probe_endpoint` to its end, and store the report in the cache, where runs find it."""
    report = asyncio.run(probe_endpoint(endpoint, ended))
    path = _place(report.base_url, report.model)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, report.model_dump_json(indent=1).encode(), synced=False)
    return report
