"""Prices of tokens: a dated table that ships with the package, and a user override."""

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agrotools.core import FrozenModel, UsageError

# A table of our own: genai-prices 0.2.3 lacks 19 of these 159 models (all of DashScope's), has other rates for 8,
# needs an HTTP client, and matches names by similarity, which is too unreliable for a budget.
_TABLE = Path(__file__).parents[1] / "data" / "prices.toml"
_LOCAL = frozenset(
    {"vllm", "sglang", "ollama", "llamacpp", "llama.cpp", "lmstudio", "tgi", "local"}
)
_DATED = re.compile(r"-(?:20\d\d-\d\d-\d\d|20\d{6})$")
_AMOUNT = re.compile(r"\d{1,7}(?:\.\d{1,9})?|\.\d{1,9}")

IMAGE_TOKENS = (1600, 6000)
"""Default tokens of an image of at most 1,568 px per side: typical and maximum.

Endpoints count patches of 28 to 32 px (2,401 to 3,136 for a full square, times up to 2.46 for small models: 5,907),
tiles of 512 px (up to 1,445) or a fixed number; models far above these values have an entry in the table.
"""


class Tier(FrozenModel):
    """Rates in USD per million tokens for requests with more than ``above`` input tokens."""

    above: int
    input_usd_per_million: float
    output_usd_per_million: float


class Price(FrozenModel):
    """Rates in USD per million tokens."""

    input_usd_per_million: float
    output_usd_per_million: float
    source: str
    """Source of the rates: the package they come from, ``--price``, or ``local``."""
    as_of: str = ""
    """Date of the rates, ISO 8601; empty for an override."""
    tiers: tuple[Tier, ...] = ()
    """Rates of long prompts, in ascending order; a tier applies to all tokens of the request."""
    cached_share: float | None = None
    """Rate of input tokens from the provider's prompt cache as a share of the rate of others; None if it is unknown."""
    image_tokens: tuple[int, int] = IMAGE_TOKENS
    """Input tokens of an image of at most 1,568 px per side: typical and maximum."""

    @property
    def is_free(self) -> bool:
        """True if all rates are zero (e.g. a local server)."""
        return not (self.input_usd_per_million or self.output_usd_per_million or self.tiers)

    def usd(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost of one request in USD; never decreases when a count increases.

        ``cached_tokens``: input tokens that are charged as cached, if their rate is known.
        """
        rates = (self.input_usd_per_million, self.output_usd_per_million)
        for tier in self.tiers:
            if input_tokens > tier.above:
                rates = (tier.input_usd_per_million, tier.output_usd_per_million)
        saved = cached_tokens * (1 - (1 if self.cached_share is None else self.cached_share))
        return ((input_tokens - saved) * rates[0] + output_tokens * rates[1]) / 1e6

    def __str__(self) -> str:
        taken_in, out = (
            _usd_text(self.input_usd_per_million),
            _usd_text(self.output_usd_per_million),
        )
        rates = f"{taken_in}/{out} USD per million tokens"
        longer = ", more for long prompts" if self.tiers else ""
        return f"{rates}{longer}, as of {self.as_of}" if self.as_of else f"{rates}{longer}"


def price_of(
    provider_or_base_url: str | None, model: str, override: str | None = None
) -> Price | None:
    """Return the price of a model, or None if the table does not contain it.

    Names match exactly, or without a date suffix (``gpt-4o-2024-08-06``); never by similarity.

    Args:
        provider_or_base_url: name of a provider (``openai``), or address of an endpoint.
        model: name at the endpoint, or ``PROVIDER:NAME``.
        override: ``IN/OUT`` in USD per million tokens; takes precedence.

    Raises:
        UsageError: the override does not have that form.
    """
    if override is not None:
        return _overridden(override, model)
    place = provider_or_base_url or ""
    host = _host(place)
    is_here = (
        host in ("localhost", "::1", "0.0.0.0")
        or host.endswith(".localhost")
        or re.match(r"127\.\d", host)
    )
    if place.lower() in _LOCAL or is_here:
        return Price(input_usd_per_million=0, output_usd_per_million=0, source="local")
    for provider, entry in _table().items():
        if place.lower() == provider or host in entry["hosts"]:
            return _price_of_entry(
                entry, model.removeprefix(f"{provider}:").removeprefix(f"{provider}-responses:")
            )
    return None


def price_by_name(model: str) -> Price | None:
    """Return the price of ``PROVIDER:NAME``, or of a name that only one provider of the table has; else None."""
    provider, _, name = model.partition(":")
    if name and provider in _table():
        return price_of(provider, name)
    found = [price for entry in _table().values() if (price := _price_of_entry(entry, model))]
    return found[0] if len(found) == 1 else None


def _overridden(text: str, model: str) -> Price:
    amounts = text.split("/")
    if len(amounts) != 2 or not all(_AMOUNT.fullmatch(amount) for amount in amounts):
        raise UsageError(
            f"{text!r} is not a price",
            hint="give IN/OUT, USD per million input and output tokens, e.g. --price 0.4/1.6",
        )
    pictures = [
        entry["image_tokens"][model]
        for entry in _table().values()
        if model in entry["image_tokens"]
    ]
    return Price(
        input_usd_per_million=float(amounts[0]),
        output_usd_per_million=float(amounts[1]),
        source="--price",
        image_tokens=tuple(pictures[0]) if pictures else IMAGE_TOKENS,
    )


def _price_of_entry(entry: dict[str, Any], model: str) -> Price | None:
    models = entry["models"]
    name = model if model in models else _DATED.sub("", model)
    if name not in models:
        return None
    rates, cached = models[name], entry["cached"].get(name)
    return Price(
        input_usd_per_million=rates[0],
        output_usd_per_million=rates[1],
        source=entry["source"],
        as_of=str(entry["as_of"]),
        tiers=tuple(
            Tier(
                above=rates[at],
                input_usd_per_million=rates[at + 1],
                output_usd_per_million=rates[at + 2],
            )
            for at in range(2, len(rates), 3)
        ),
        cached_share=None if cached is None else cached / rates[0],
        image_tokens=tuple(entry["image_tokens"].get(name, IMAGE_TOKENS)),
    )


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {
        provider: {"image_tokens": {}, "cached": {}} | entry for provider, entry in table.items()
    }


def _host(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "") if "://" in address else ""
    except ValueError:
        return ""


def _usd_text(usd: float) -> str:
    return f"{usd:.2f}" if round(usd, 2) == usd else f"{usd:g}"
