"""Models: what answers a prompt. The wire is loaded only when a model is made."""

from pathlib import Path

from agrotools.core import UsageError
from agrotools.models.base import (
    DEFAULT_WIRE,
    Completion,
    ContentPart,
    FinishReason,
    ImagePart,
    Message,
    Model,
    ModelSettings,
    RequestedCall,
    TextPart,
    WireSettings,
    WireStats,
)

__all__ = [
    "DEFAULT_WIRE",
    "Completion",
    "ContentPart",
    "FinishReason",
    "ImagePart",
    "Message",
    "Model",
    "ModelSettings",
    "RequestedCall",
    "TextPart",
    "WireSettings",
    "WireStats",
    "make_model",
]


def make_model(
    spec: str,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    wire: WireSettings = DEFAULT_WIRE,
) -> Model:
    """The model that ``spec`` means.

    ``scripted:FILE``; ``PROVIDER:NAME`` with a provider of :data:`~agrotools.models.endpoint.PROVIDERS`; or a model's
    name on the OpenAI-compatible endpoint at ``base_url`` (default: ``OPENAI_BASE_URL``, else OpenAI). ``base_url`` and
    ``api_key_env`` stand above what is known of the provider.

    Raises:
        UsageError: no such script, an address that is none, or no key where one is needed.
    """
    if not spec.strip():
        raise UsageError("the model has no name", hint="give scripted:FILE or a name that the endpoint knows")
    if spec.startswith("scripted:"):
        from agrotools.models.scripted import ScriptedModel

        return ScriptedModel.from_file(Path(spec.removeprefix("scripted:")))
    from agrotools.models.endpoint import split_provider
    from agrotools.models.openai_compatible import OpenAICompatibleModel

    provider, name = split_provider(spec, base_url)
    return OpenAICompatibleModel(
        name, base_url=base_url, api_key_env=api_key_env, wire=wire, provider=provider, spelled=spec
    )
