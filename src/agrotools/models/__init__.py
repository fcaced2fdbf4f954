"""Models that answer prompts. The HTTP client is loaded only when a model is created."""

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
from agrotools.models.endpoint import (
    Endpoint,
    PricedModel,
    Provider,
    ScriptedModel,
    check_model_name,
    price_at,
    split_provider,
)


def make_model(endpoint: Endpoint) -> Model:
    """Create the model of ``endpoint``; no request is sent yet.

    Raises:
        UsageError: the script does not exist, the address is not a valid URL, or a required key is missing.
    """
    spec, server, base_url = endpoint.model, endpoint.server, endpoint.base_url
    if server is not None:
        from agrotools.models.local_server import LOCAL_URL

        base_url = server.url or LOCAL_URL
        provider, name = Provider(base_url), server.request_name
    else:
        check_model_name(spec)
        if not spec.strip():
            raise UsageError(
                "the model has no name", hint="give scripted:FILE or a name that the endpoint knows"
            )
        if spec.startswith("scripted:"):
            return ScriptedModel.from_file(Path(spec.removeprefix("scripted:")))
        provider, name = split_provider(spec, base_url)
    from agrotools.models.openai_compatible import OpenAICompatibleModel

    return OpenAICompatibleModel(
        name,
        base_url=base_url,
        api_key_env=endpoint.api_key_env,
        wire=endpoint.wire,
        provider=provider,
        spelled=spec,
    )


def priced_model(endpoint: Endpoint, *, option: str = "--price") -> PricedModel:
    """Create the model of ``endpoint`` with its price; ``option`` names the price option in error messages."""
    model = make_model(endpoint)
    price = price_at(getattr(model, "base_url", ""), endpoint.model, endpoint, option=option)
    return PricedModel(endpoint.model, model, price, endpoint.budget_usd)
