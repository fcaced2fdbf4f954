"""Endpoints, providers, addresses and API keys; and a model that replies from a script."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, ValidationError

from agrotools.core import FrozenModel, ToolSpec, UsageError, first_error
from agrotools.core.files import read_text
from agrotools.models.base import (
    DEFAULT_WIRE,
    Completion,
    Message,
    Model,
    ModelSettings,
    WireSettings,
    WireStats,
)
from agrotools.models.prices import Price, price_of

if TYPE_CHECKING:
    from agrotools.models.local_server import LocalServer

_NEWER_LIMIT: Mapping[str, str | None] = {"max_tokens": "max_completion_tokens"}

# Tags that Ollama and similar servers append after a colon: a local `mistral:7b` is not a model of the Mistral API.
_TAG = re.compile(r"latest|v?\d+(?:\.\d+)?[bm]?(?:-.*)?|instruct.*|text.*", re.IGNORECASE)


@dataclass(frozen=True)
class Endpoint:
    """A model and its connection settings.

    ``model``: ``scripted:FILE``; ``PROVIDER:NAME`` with a provider of :data:`PROVIDERS`; or the name of a model on the
    OpenAI-compatible endpoint at ``base_url`` (default: ``OPENAI_BASE_URL``, else OpenAI). ``base_url`` and
    ``api_key_env``, the environment variable of the key, override the provider's defaults.
    """

    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    wire: WireSettings = DEFAULT_WIRE
    price: str | None = None
    """``IN/OUT`` in USD per million tokens, if the price table lacks the model or is out of date."""
    budget_usd: float | None = None
    """Maximum spending on this model in USD; requires a known price."""
    server: "LocalServer | None" = None
    """Server that agrotools runs for this model; ``base_url`` is None then."""

    @property
    def impatient(self) -> "Endpoint":
        """Copy for tiny requests; see :attr:`~agrotools.models.base.WireSettings.impatient`."""
        return replace(self, wire=self.wire.impatient)


def check_model_name(spec: str) -> None:
    """Raise a UsageError if ``spec`` is a provider without a model, e.g. ``openai:``."""
    prefix, colon, name = spec.partition(":")
    if colon and prefix in PROVIDERS and not name.strip():
        raise UsageError(f"{spec} names no model", hint=f"give {prefix}:MODEL")


@dataclass(frozen=True)
class PricedModel:
    """A configured model and the price of its tokens (None: unknown, or the model has no address)."""

    name: str
    """Name as given by the user."""
    model: Model
    price: Price | None
    budget_usd: float | None = None

    @property
    def base_url(self) -> str:
        """Address of the endpoint; empty for a script."""
        return getattr(self.model, "base_url", "")


def price_at(
    base_url: str | None, name: str, endpoint: Endpoint, *, option: str = "--price"
) -> Price | None:
    """Return the price of the model ``name`` at an address; None if it is unknown or ``base_url`` is empty.

    Raises:
        UsageError: the price of ``endpoint`` is not valid, or it has a budget and the price is unknown.
    """
    if not base_url:
        return None
    price = price_of(base_url, name, endpoint.price)
    if price is None and endpoint.budget_usd is not None:
        # A key of the configuration file takes a text in quotes.
        form = f"{option} {{}}" if option.startswith("--") else f'{option} = "{{}}"'
        given, example = form.format("IN/OUT"), form.format("0.4/1.6")
        raise UsageError(
            f"the price of {name} is not known, so no budget can be kept",
            hint=f"give {given}, USD per million input and output tokens, e.g. {example}",
        )
    return price


@dataclass(frozen=True)
class Provider:
    """Address, key variable and peculiarities of a vendor or a server program."""

    base_url: str
    key_env: str = ""
    """Environment variable of the key; empty if no key is needed."""
    spelling: Mapping[str, str | None] = field(default_factory=dict)
    """The provider's names of settings that differ from the format's; None for settings that must not be sent."""
    headers: Mapping[str, str] = field(default_factory=dict)


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", _NEWER_LIMIT),
    "openai-responses": Provider("https://api.openai.com/v1/responses", "OPENAI_API_KEY"),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", {"seed": None}
    ),
    "dashscope": Provider(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", _NEWER_LIMIT
    ),
    "dashscope-cn": Provider(
        "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", _NEWER_LIMIT
    ),
    "openrouter": Provider(
        "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", headers={"X-Title": "agrotools"}
    ),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY", {"seed": "random_seed"}),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY", _NEWER_LIMIT),
    "together": Provider("https://api.together.ai/v1", "TOGETHER_API_KEY"),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "zhipu": Provider("https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY"),
    "moonshot": Provider("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    "moonshot-cn": Provider("https://api.moonshot.cn/v1", "MOONSHOT_API_KEY"),
    "siliconflow": Provider("https://api.siliconflow.com/v1", "SILICONFLOW_API_KEY"),
    "siliconflow-cn": Provider("https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
    "vllm": Provider("http://localhost:8000/v1"),
    "sglang": Provider("http://localhost:30000/v1"),
    "ollama": Provider("http://localhost:11434/v1"),
    "llamacpp": Provider("http://localhost:8080/v1"),
    "lmstudio": Provider("http://localhost:1234/v1"),
}


def split_provider(spec: str, base_url: str | None = None) -> tuple[Provider | None, str]:
    """Split ``spec`` into a provider and a model name; return None and ``spec`` if it has no provider prefix.

    With a ``base_url``, ``spec`` may be the name of a local model whose part after the colon is a size or a tag.
    """
    prefix, _, name = spec.partition(":")
    provider = PROVIDERS.get(prefix)
    if provider is None or not name or (base_url and _TAG.fullmatch(name)):
        return None, spec
    return provider, name


def provider_at(base_url: str) -> Provider | None:
    """Return the provider with this address, or None."""
    return next(
        (provider for provider in PROVIDERS.values() if provider.base_url == base_url), None
    )


def provider_hint(name: str) -> str:
    """Return a hint for a model name without a provider or an address."""
    prefix, colon, rest = name.partition(":")
    close = get_close_matches(prefix, PROVIDERS, n=1) if colon else []
    if close:
        return f"did you mean {close[0]}:{rest}?"
    if colon:
        return f"known: {', '.join(PROVIDERS)}; for another endpoint give --base-url"
    return f"for another endpoint give --base-url or PROVIDER:{name} ({', '.join(PROVIDERS)})"


_SHORTEST_SECRET = 16
"""Placeholders (x, none, EMPTY, token-abc123) are shorter and may occur in any reply; vendors' keys are longer."""


@dataclass(frozen=True)
class Address:
    """An address and the key that its requests carry."""

    base_url: str
    key_env: str
    key: str = field(repr=False)
    """API key; empty if none is sent."""
    headers: Mapping[str, str] = field(repr=False)
    """Headers of every request, including the key."""
    spelling: Mapping[str, str | None]
    """Names of settings at this address; see :attr:`Provider.spelling`."""

    @property
    def secret(self) -> str:
        """Text that must not be stored or shown: the key, or an empty string if it is only a placeholder."""
        return self.key if len(self.key) >= _SHORTEST_SECRET else ""


_may_lack_key: ContextVar[bool] = ContextVar("may lack key", default=False)


@contextmanager
def without_keys() -> Generator[None]:
    """Within the block, no key is required, because no request will be sent."""
    token = _may_lack_key.set(True)
    try:
        yield
    finally:
        _may_lack_key.reset(token)


def address_of(
    name: str, provider: Provider | None, base_url: str | None, api_key_env: str | None
) -> Address:
    """Return the address of the model ``name``: ``base_url``, the provider's, ``OPENAI_BASE_URL`` or OpenAI's own.

    Raises:
        UsageError: the address is not an HTTP URL or contains a secret, or a required key is missing.
    """
    from importlib.metadata import version

    prefix, colon, _ = name.partition(":")
    is_openai = provider is None and not base_url and not os.environ.get("OPENAI_BASE_URL")
    if (
        is_openai and colon and prefix not in ("ft", *PROVIDERS)
    ):  # its own names have a colon only if fine-tuned
        raise UsageError(f"unknown provider {prefix!r}", hint=provider_hint(name))
    fallback = provider or PROVIDERS["openai"]
    address = (
        base_url or (None if provider else os.environ.get("OPENAI_BASE_URL")) or fallback.base_url
    )
    address = checked_url(address)
    vendor = provider_at(address)
    known = provider or vendor or Provider(address)
    # A vendor that is identified by its address gets its own key, never another vendor's.
    key_env = api_key_env or (vendor.key_env if vendor else "") or fallback.key_env
    # A local server or a proxy may need no key; a vendor does, and so does an explicitly named variable.
    needed = bool(api_key_env) or (vendor is not None and bool(vendor.key_env))
    key = key_from(
        key_env, needed and not _may_lack_key.get(), None if provider else provider_hint(name)
    )
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": f"agrotools/{version('agrotools')}",
        **known.headers,
    }
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return Address(address, key_env, key, headers, known.spelling)


def checked_url(url: str, variable: str = "") -> str:
    """Return an HTTP address without a trailing slash; ``variable`` is the environment variable that holds it, if any.

    Raises:
        UsageError: it is not an HTTP address, or contains a user name, a password or a query.
    """
    if "@" in url or "?" in url:
        raise UsageError(
            f"{f'the address in {variable}' if variable else 'the base URL'} holds a user name, a password or a query",
            hint="give the key in an environment variable: addresses are written to the run's manifest",
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable():
        why = (
            f"{variable} does not hold an HTTP address"
            if variable
            else f"{url!r} is not a base URL"
        )
        raise UsageError(why, hint="it must look like http://localhost:8000/v1")
    return url.rstrip("/").removesuffix("/chat/completions")


def key_from(variable: str, needed: bool, hint: str | None = None) -> str:
    """Return the API key in an environment variable, or an empty string if there is none and none is needed.

    Raises:
        UsageError: a needed key is missing, or the variable holds something else.
    """
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key and not variable.isupper():  # names of environment variables are in capital letters
        raise UsageError(
            f"the name of the environment variable of the API key ({len(variable)} characters) is not that of one "
            "that is set; it is not shown, because it may be the key itself",
            hint='give the name of the variable, not the key: export MY_KEY=..., then "--api-key-env MY_KEY"',
        )
    if not key and needed:
        raise UsageError(
            f"the environment variable {variable} is not set",
            hint=f"set it to the endpoint's API key; {hint}"
            if hint
            else "set it to the endpoint's API key",
        )
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the environment variable {variable} does not hold an API key")
    return key


Responder = Callable[[Sequence[Message], Sequence[ToolSpec], ModelSettings], Completion | str]


def _completed(reply: Any) -> Any:
    """Return a scripted reply with arguments as JSON text, ids of calls and a finish reason, as far as they lack."""
    calls = reply.get("tool_calls") if isinstance(reply, dict) else None
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        return reply
    completed: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        given = call.get("arguments", {})
        arguments = given if isinstance(given, str) else json.dumps(given)
        completed.append({"id": f"call{index:05d}", **call, "arguments": arguments})
    return {"finish_reason": "tool_calls" if calls else "stop", **reply, "tool_calls": completed}


class ScriptedReplies(FrozenModel):
    """Replies to conversations whose first user message contains ``when`` (to all conversations if it is empty).

    The reply is chosen by the number of assistant messages so far, so that a scene works in every mode and at any
    concurrency; the last reply repeats. A reply is text, or an object with ``text`` and ``tool_calls``, whose arguments
    are an object or JSON text.
    """

    when: str = ""
    replies: Annotated[
        tuple[Annotated[Completion, BeforeValidator(_completed)] | str, ...], Field(min_length=1)
    ]


class ScriptedModel:
    """Model that replies from the first matching scene, or from a Python callable."""

    def __init__(
        self, script: Sequence[ScriptedReplies] | Responder, *, name: str = "scripted"
    ) -> None:
        self._script = script
        self.name = name
        self.base_url = ""
        self.stats = WireStats()

    @classmethod
    def from_file(cls, path: Path) -> "ScriptedModel":
        """Read a script: ``.toml`` with ``[[scenes]]``, ``.json`` with a list, or ``.jsonl`` with one entry per line.

        An entry is a scene (``when``, ``replies``); a plain list of replies is one scene that matches everything.

        Raises:
            UsageError: the file is not a valid script.
        """
        return cls(_read_scenes(path), name=f"scripted:{path.name}")

    async def generate(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], settings: ModelSettings
    ) -> Completion:
        self.stats.replies += 1
        if callable(self._script):
            reply = self._script(messages, tools, settings)
            return Completion(text=reply) if isinstance(reply, str) else reply
        question = next((message.text for message in messages if message.role == "user"), "")
        turn = sum(message.role == "assistant" for message in messages)
        for scene in self._script:
            if scene.when in question:
                reply = scene.replies[min(turn, len(scene.replies) - 1)]
                return Completion(text=reply) if isinstance(reply, str) else reply
        raise UsageError(
            f"{self.name} has no scene for this question", hint="add a scene without `when`"
        )

    async def close(self) -> None:
        return None


def _read_scenes(path: Path) -> tuple[ScriptedReplies, ...]:
    try:
        text = read_text(path)
        if path.suffix == ".toml":
            entries: Any = tomllib.loads(text).get("scenes", [])
        elif path.suffix == ".jsonl":
            entries = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            entries = json.loads(text)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read the script {path}: {error}", hint="it must be TOML, JSON or JSONL"
        ) from error
    if not isinstance(entries, list) or not entries:
        raise UsageError(
            f"the script {path} has no scenes",
            hint='give a list of replies: ["first reply", "second reply"]',
        )
    if not any(isinstance(entry, dict) and "replies" in entry for entry in entries):
        entries = [{"replies": entries}]
    try:
        return tuple(ScriptedReplies.model_validate(entry) for entry in entries)
    except ValidationError as error:
        raise UsageError(f"the script {path} is wrong at {first_error(error)}") from error
