"""Endpoints by name: address, key variable and peculiarities, as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Provider:
    """What is known of an endpoint."""

    base_url: str
    key_env: str = ""
    """Environment variable of the key; empty where none is needed."""
    token_limit_key: str = "max_tokens"
    refuses: frozenset[str] = frozenset()
    """Settings that make it refuse a request: they are not sent."""
    headers: Mapping[str, str] = field(default_factory=dict)


PROVIDERS: dict[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
}
