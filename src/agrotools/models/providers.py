"""Endpoints by name: address, key variable and peculiarities. All of it is data; the wire is the same for each."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

_NEWER_LIMIT = {"max_tokens": "max_completion_tokens"}

# What Ollama and its like write after the colon of a model's name: `mistral:7b` at home is no model of Mistral's.
_TAG = re.compile(r"latest|v?\d+(?:\.\d+)?[bm]?(?:-.*)?|instruct.*|text.*", re.IGNORECASE)


@dataclass(frozen=True)
class Provider:
    """What is known of an endpoint."""

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
    """The provider whose address this is."""
    return next((provider for provider in PROVIDERS.values() if provider.base_url == base_url), None)


def provider_hint(name: str) -> str:
    """What to tell somebody whose model's name says nothing of where the model is."""
    prefix, colon, rest = name.partition(":")
    close = get_close_matches(prefix, PROVIDERS, n=1) if colon else []
    if close:
        return f"did you mean {close[0]}:{rest}?"
    return f"for another endpoint give --base-url or PROVIDER:{name} ({', '.join(PROVIDERS)})"
