"""Endpoints: a model and how it is asked; providers, addresses, keys and peculiarities."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import urlsplit

from agrotools.core import UsageError
from agrotools.models.base import DEFAULT_WIRE, Model, WireSettings
from agrotools.models.prices import Price, price_of, priced_for_budget

_NEWER_LIMIT = {"max_tokens": "max_completion_tokens"}

# What Ollama and its like write after the colon of a model's name: `mistral:7b` at home is not a model of Mistral's.
_TAG = re.compile(r"latest|v?\d+(?:\.\d+)?[bm]?(?:-.*)?|instruct.*|text.*", re.IGNORECASE)


@dataclass(frozen=True)
class Endpoint:
    """A model and how it is asked.

    ``model``: ``scripted:FILE``; ``PROVIDER:NAME`` with a provider of :data:`PROVIDERS`; or a model's name on the
    OpenAI-compatible endpoint at ``base_url`` (default: ``OPENAI_BASE_URL``, else OpenAI). ``base_url`` and
    ``api_key_env``, the environment variable of the key, stand above what is known of the provider.
    """

    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    wire: WireSettings = DEFAULT_WIRE
    price: str | None = None
    """``IN/OUT`` in USD per million tokens, where the table of prices does not know the model or is out of date."""

    @property
    def impatient(self) -> "Endpoint":
        """The same for tiny requests, see :attr:`~agrotools.models.base.WireSettings.impatient`."""
        return replace(self, wire=self.wire.impatient)


def make_model(endpoint: Endpoint) -> Model:
    """The model of ``endpoint``; no request is sent yet.

    Raises:
        UsageError: no such script, an address that is none, or no key where one is needed.
    """
    spec = endpoint.model
    if not spec.strip():
        raise UsageError("the model has no name", hint="give scripted:FILE or a name that the endpoint knows")
    if spec.startswith("scripted:"):
        from agrotools.models.scripted import ScriptedModel

        return ScriptedModel.from_file(Path(spec.removeprefix("scripted:")))
    from agrotools.models.openai_compatible import OpenAICompatibleModel

    provider, name = split_provider(spec, endpoint.base_url)
    return OpenAICompatibleModel(
        name,
        base_url=endpoint.base_url,
        api_key_env=endpoint.api_key_env,
        wire=endpoint.wire,
        provider=provider,
        spelled=spec,
    )


@dataclass(frozen=True)
class PricedModel:
    """A model that is set up, before it is used, and the price of its tokens (None: not known, or nothing to pay)."""

    name: str
    """As it was spelled."""
    model: Model
    price: Price | None
    budget_usd: float | None = None

    @property
    def base_url(self) -> str:
        """Address of the endpoint; empty for a script."""
        return getattr(self.model, "base_url", "")


def priced_model(endpoint: Endpoint, budget_usd: float | None = None, *, option: str = "--price") -> PricedModel:
    """The model of ``endpoint`` with its price; ``option`` is how the latter can be given.

    Raises:
        UsageError: as of :func:`make_model`; a wrong price; a budget where the price is not known.
    """
    model = make_model(endpoint)
    address: str = getattr(model, "base_url", "")
    price = price_of(address, endpoint.model, endpoint.price) if address else None
    if budget_usd is not None and address:
        price = priced_for_budget(price, endpoint.model, option=option)
    return PricedModel(endpoint.model, model, price, budget_usd)


@dataclass(frozen=True)
class Provider:
    """Address, key and peculiarities of a vendor or of a server program."""

    base_url: str
    key_env: str = ""
    """Environment variable of the key; empty where none is needed."""
    spelling: Mapping[str, str | None] = field(default_factory=dict)
    """Settings that it knows under another name, or (None) refuses: those are not sent."""
    headers: Mapping[str, str] = field(default_factory=dict)
    docs: str = ""
    """The vendor's page on this."""


PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        spelling=_NEWER_LIMIT,
        docs="https://platform.openai.com/docs/api-reference/chat/create",
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        spelling={"seed": None},
        docs="https://ai.google.dev/gemini-api/docs/openai",
    ),
    "dashscope": Provider(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        spelling=_NEWER_LIMIT,
        docs="https://www.alibabacloud.com/help/en/model-studio/compatibility-of-openai-with-dashscope",
    ),
    "dashscope-cn": Provider(
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        spelling=_NEWER_LIMIT,
        docs="https://help.aliyun.com/zh/model-studio/compatibility-of-openai-with-dashscope",
    ),
    "openrouter": Provider(
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        headers={"X-Title": "agrotools"},
        docs="https://openrouter.ai/docs/api-reference/overview",
    ),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", docs="https://api-docs.deepseek.com"),
    "mistral": Provider(
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        spelling={"seed": "random_seed"},
        docs="https://docs.mistral.ai/api#operation/createChatCompletion",
    ),
    "groq": Provider(
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        spelling=_NEWER_LIMIT,
        docs="https://console.groq.com/docs/openai",
    ),
    "together": Provider(
        "https://api.together.ai/v1",
        "TOGETHER_API_KEY",
        docs="https://docs.together.ai/docs/inference/openai-compatibility",
    ),
    "fireworks": Provider(
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
        docs="https://docs.fireworks.ai/tools-sdks/openai-compatibility",
    ),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY", docs="https://docs.x.ai/api/integrations"),
    "zhipu": Provider(
        "https://open.bigmodel.cn/api/paas/v4",
        "ZHIPUAI_API_KEY",
        docs="https://docs.bigmodel.cn/cn/guide/develop/openai",
    ),
    "moonshot": Provider(
        "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", docs="https://platform.moonshot.ai/docs/api/chat"
    ),
    "moonshot-cn": Provider(
        "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY", docs="https://platform.kimi.com/docs/api/overview"
    ),
    "siliconflow": Provider(
        "https://api.siliconflow.com/v1",
        "SILICONFLOW_API_KEY",
        docs="https://docs.siliconflow.com/en/api-reference/chat-completions/chat-completions",
    ),
    "siliconflow-cn": Provider(
        "https://api.siliconflow.cn/v1",
        "SILICONFLOW_API_KEY",
        docs="https://docs.siliconflow.cn/docs/userguide/quickstart",
    ),
    "vllm": Provider(
        "http://localhost:8000/v1", docs="https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"
    ),
    "sglang": Provider("http://localhost:30000/v1", docs="https://docs.sglang.io/docs/basic_usage/send_request"),
    "ollama": Provider("http://localhost:11434/v1", docs="https://docs.ollama.com/api/openai-compatibility"),
    "llamacpp": Provider(
        "http://localhost:8080/v1", docs="https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"
    ),
    "lmstudio": Provider("http://localhost:1234/v1", docs="https://lmstudio.ai/docs/app/api/endpoints/openai"),
}


def split_provider(spec: str, base_url: str | None = None) -> tuple[Provider | None, str]:
    """The provider that ``spec`` begins with, and the model's name there; None and all of it where it names none.

    With a ``base_url`` the name may be that of a local model, whose part after the colon is a size or a tag.
    """
    prefix, _, name = spec.partition(":")
    provider = PROVIDERS.get(prefix)
    if provider is None or not name or (base_url and _TAG.fullmatch(name)):
        return None, spec
    return provider, name


def provider_at(base_url: str) -> Provider | None:
    """The provider with this address."""
    return next((provider for provider in PROVIDERS.values() if provider.base_url == base_url), None)


def provider_hint(name: str) -> str:
    """Hint for a model's name without a provider or an address."""
    prefix, colon, rest = name.partition(":")
    close = get_close_matches(prefix, PROVIDERS, n=1) if colon else []
    if close:
        return f"did you mean {close[0]}:{rest}?"
    if colon:
        return f"known: {', '.join(PROVIDERS)}; for another endpoint give --base-url"
    return f"for another endpoint give --base-url or PROVIDER:{name} ({', '.join(PROVIDERS)})"


_SHORTEST_SECRET = 16
"""Placeholders (x, none, EMPTY, token-abc123) are shorter, and may stand in any reply; vendors' keys are longer."""


@dataclass(frozen=True)
class Address:
    """An address, and the key that its requests carry."""

    base_url: str
    key_env: str
    key: str = field(repr=False)
    """Empty where none is sent."""
    headers: Mapping[str, str] = field(repr=False)
    """Of every request, the key's included."""
    spelling: Mapping[str, str | None]
    """Settings under other names; see :class:`~agrotools.models.endpoint.Provider`."""

    @property
    def secret(self) -> str:
        """Text that must not be stored or shown: the key, unless it is a placeholder for servers without keys."""
        return self.key if len(self.key) >= _SHORTEST_SECRET else ""


def address_of(name: str, provider: Provider | None, base_url: str | None, api_key_env: str | None) -> Address:
    """Address of the model ``name``: ``base_url``, else the provider's, else ``OPENAI_BASE_URL``, else OpenAI's own.

    Raises:
        UsageError: the address is not an HTTP URL or holds a secret, or there is no key where one is needed.
    """
    from importlib.metadata import version

    if provider is None and not base_url and not os.environ.get("OPENAI_BASE_URL"):
        _check_prefix(name)
    fallback = provider or PROVIDERS["openai"]
    address = base_url or (None if provider else os.environ.get("OPENAI_BASE_URL")) or fallback.base_url
    address = _checked_url(address)
    vendor = provider_at(address)
    known = provider or vendor or Provider(address)
    # A vendor that is named by its address gets its own key, never another vendor's.
    key_env = api_key_env or (vendor.key_env if vendor else "") or fallback.key_env
    # One's own server or a proxy may need no key; a vendor does, and who names a variable has one.
    needed = bool(api_key_env) or (vendor is not None and bool(vendor.key_env))
    key = _key_from(key_env, needed, None if provider else provider_hint(name))
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": f"agrotools/{version('agrotools')}",
        **known.headers,
    }
    if key:
        headers["Authorization"] = f"Bearer {key}"
    return Address(address, key_env, key, headers, known.spelling)


def _check_prefix(name: str) -> None:
    """Refuse ``PREFIX:NAME`` without an address: OpenAI's own names have a colon only where a model is fine-tuned.

    Raises:
        UsageError: the prefix is no provider.
    """
    prefix, colon, _ = name.partition(":")
    if colon and prefix not in ("ft", *PROVIDERS):
        raise UsageError(f"unknown provider {prefix!r}", hint=provider_hint(name))


def _checked_url(url: str) -> str:
    if "@" in url or "?" in url:
        raise UsageError(
            "the base URL holds a user name, a password or a query",
            hint="give the key in an environment variable: addresses are written to the run's manifest",
        )
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise UsageError(f"{url!r} is not a base URL", hint="it must look like http://localhost:8000/v1")
    return url.rstrip("/").removesuffix("/chat/completions")


def _key_from(variable: str, needed: bool, hint: str | None) -> str:
    if not variable:
        return ""
    key = os.environ.get(variable, "").strip()
    if not key and needed:
        raise UsageError(
            f"the environment variable {variable} is not set",
            hint=f"it must hold the endpoint's API key; {hint}" if hint else "it must hold the endpoint's API key",
        )
    if not key.isascii() or not key.isprintable():
        raise UsageError(f"the environment variable {variable} does not hold an API key")
    return key
