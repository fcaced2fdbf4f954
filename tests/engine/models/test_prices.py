"""Prices: the table that ships, how a model is looked up in it, and the override."""

import contextlib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agrotools
from agrotools.core import UsageError
from agrotools.models.endpoint import Endpoint, price_at
from agrotools.models.prices import IMAGE_TOKENS, Price, price_of

TABLE = tomllib.loads(
    (Path(agrotools.__file__).parent / "data" / "prices.toml").read_text(encoding="utf-8")
)
ROWS = [(provider, name) for provider, entry in TABLE.items() for name in entry["models"]]


@pytest.mark.parametrize(("provider", "name"), ROWS)
def test_every_row_is_a_price_that_never_falls_as_requests_grow(provider: str, name: str) -> None:
    price = price_of(provider, name)
    assert price is not None
    assert price == price_of(f"https://{TABLE[provider]['hosts'][0]}/v1", name)
    assert not price.is_free
    assert 0 < price.input_usd_per_million < 100
    assert 0 < price.output_usd_per_million < 500
    assert price.cached_share is None or 0 < price.cached_share < 1
    edges = [0, 1, *(tier.above + more for tier in price.tiers for more in (0, 1)), 10_000_000]
    costs = [price.usd(edge, 100) for edge in edges]
    assert costs == sorted(costs)
    assert edges == sorted(edges)


@pytest.mark.parametrize(
    ("place", "name", "rates"),
    [
        ("openai", "gpt-4.1", (2.0, 8.0)),
        ("https://api.openai.com/v1", "gpt-4.1", (2.0, 8.0)),
        ("openai", "gpt-4.1-2025-04-14", (2.0, 8.0)),
        ("anthropic", "claude-haiku-4-5-20251001", (1.0, 5.0)),
        ("https://openrouter.ai/api/v1", "anthropic/claude-sonnet-4.5", (3.0, 15.0)),
        ("vllm", "anything", (0.0, 0.0)),
        ("http://localhost:8000/v1", "anything", (0.0, 0.0)),
        ("http://[::1]:8000/v1", "x", (0.0, 0.0)),
        ("openai", "gpt-4.11", None),
        ("openai", "GPT-4.1", None),
        ("openai", "gpt-4.1-2025-04-14-preview", None),
        ("https://api.openai.com.evil.example/v1", "gpt-4.1", None),
        ("http://10.0.0.7:8000/v1", "x", None),
        ("nobody", "gpt-4.1", None),
        (None, "gpt-4.1", None),
    ],
)
def test_a_model_is_found_by_provider_or_address_and_never_by_likeness(place, name, rates) -> None:
    price = price_of(place, name)
    assert (price and (price.input_usd_per_million, price.output_usd_per_million)) == rates


def test_long_prompts_cost_their_rates_for_all_tokens() -> None:
    price = price_of("gemini", "gemini-2.5-pro")
    assert price is not None
    assert price.usd(200_000, 1000) == pytest.approx(0.2 * 1.25 + 0.001 * 10)
    assert price.usd(200_001, 1000) == pytest.approx(0.200001 * 2.5 + 0.001 * 15)
    assert "more for long prompts" in str(price)


def test_pictures_are_counted_as_the_model_counts_them() -> None:
    small = price_of("openai", "gpt-4o-mini")
    assert small is not None
    assert small.image_tokens[0] > 20_000
    assert price_of("openai", "gpt-4o-mini", "1/2").image_tokens == small.image_tokens  # pyright: ignore[reportOptionalMemberAccess]
    other = price_of("openai", "gpt-4.1")
    assert other is not None
    assert other.image_tokens == IMAGE_TOKENS


@pytest.mark.parametrize(
    ("text", "rates"),
    [("0.4/1.6", (0.4, 1.6)), ("2/8", (2, 8)), ("0/0", (0, 0)), (".5/1", (0.5, 1))],
)
def test_an_override_wins_over_the_table_and_over_local(
    text: str, rates: tuple[float, float]
) -> None:
    for place in ("openai", "http://localhost:8000/v1", None):
        price = price_of(place, "gpt-4.1", text)
        assert price is not None
        assert (price.input_usd_per_million, price.output_usd_per_million) == rates
        assert price.source == "--price"
        assert price.is_free == (text == "0/0")


@given(st.text(max_size=20))
def test_no_override_ends_in_anything_but_a_price_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        price = price_of(None, "m", text)
        assert price is not None
        assert price.usd(10**6, 10**6) >= 0


def test_a_budget_needs_a_price() -> None:
    endpoint = Endpoint("m", budget_usd=1.0)
    with pytest.raises(UsageError, match="price of m is not known") as refused:
        price_at("http://a/v1", "m", endpoint)
    assert "--price IN/OUT" in str(refused.value)
    with pytest.raises(UsageError) as refused:
        price_at("http://a/v1", "m", endpoint, option="judge_price")
    assert 'judge_price = "IN/OUT"' in str(refused.value)
    assert price_at("http://localhost:1/v1", "m", endpoint) is not None
    known = Price(input_usd_per_million=1, output_usd_per_million=2, source="t", as_of="2026-01-02")
    assert str(known) == "1.00/2.00 USD per million tokens, as of 2026-01-02"
    assert str(known.model_copy(update={"input_usd_per_million": 0.075})).startswith("0.075/2.00 ")
