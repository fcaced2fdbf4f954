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
    """The model that ``spec`` means: ``scripted:FILE``, or a model's name on an OpenAI-compatible endpoint.

    Raises:
        UsageError: no such script, an address that is none, or no key where one is needed.
    """
    if not spec.strip():
        raise UsageError("the model has no name", hint="give scripted:FILE or a name that the endpoint knows")
    if spec.startswith("scripted:"):
        from agrotools.models.scripted import ScriptedModel

        return ScriptedModel.from_file(Path(spec.removeprefix("scripted:")))
    from agrotools.models.openai_compatible import OpenAICompatibleModel

    return OpenAICompatibleModel(spec, base_url=base_url, api_key_env=api_key_env, wire=wire)
