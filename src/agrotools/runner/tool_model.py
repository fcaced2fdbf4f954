"""The vision model that tools ask whose back-end is ``vlm``: from a configuration to a model and its price."""

from collections.abc import Mapping
from dataclasses import dataclass

from agrotools.core import UsageError
from agrotools.models import DEFAULT_WIRE, Model, WireSettings, make_model
from agrotools.models.prices import Price, price_of, priced_for_budget
from agrotools.tools.vlm import NAME_A_MODEL, VLM


@dataclass(frozen=True)
class ToolModel:
    """A model and what its tokens cost; None where nobody knows."""

    name: str
    model: Model
    price: Price | None
    base_url: str


def tool_model(
    backends: Mapping[str, str],
    name: str | None,
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    wire: WireSettings = DEFAULT_WIRE,
    price: str | None = None,
    budget_usd: float | None = None,
) -> ToolModel | None:
    """The model that tools ask; None where none of them does.

    Raises:
        UsageError: tools ask a model and none is named, or one is named and no tool asks it; a wrong address, key or
            price; a budget where the price is not known.
    """
    asking = [tool for tool, backend in backends.items() if backend == VLM]
    if not asking:
        if name or base_url or price:
            raise UsageError(
                "a vision model for tools is named, and no tool asks it", hint="choose where: --backend TOOL=vlm"
            )
        return None
    if not name:
        raise UsageError(f"{asking[0]} is to ask a vision model, and none is named", hint=NAME_A_MODEL)
    model = make_model(name, base_url=base_url, api_key_env=api_key_env, wire=wire)
    address = getattr(model, "base_url", "")
    found = price_of(address, name, price)
    if budget_usd is not None and address:
        found = priced_for_budget(found, name, option="--vlm-price")
    return ToolModel(name, model, found, address)


def recorded_backends(backends: Mapping[str, str], model: ToolModel | None) -> dict[str, str]:
    """Back-ends as a manifest holds them: with the model that is asked, which makes another tool of each."""
    return {
        tool: f"{backend}:{model.name}" if model and backend == VLM else backend for tool, backend in backends.items()
    }
