"""Writes src/agrotools/data/prices.toml from two packages that keep track of prices (both MIT; facts only are taken).

    pip download --no-deps litellm genai-prices        # and unpack both wheels
    python performance/make_prices.py --litellm FOLDER --genai-prices FOLDER > src/agrotools/data/prices.toml

litellm knows prices and abilities (which models see images) of the vendors' own endpoints; genai-prices those of
OpenRouter. Taken are models that chat and see images, are not retired and are meant for general use.
"""

import argparse
import json
import re
import sys
import types
from collections.abc import Iterator
from datetime import UTC, date, datetime
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

VENDORS = {
    "openai": ("openai", ["api.openai.com"]),
    "gemini": ("gemini", ["generativelanguage.googleapis.com"]),
    "anthropic": ("anthropic", ["api.anthropic.com"]),
    "dashscope": ("dashscope", ["dashscope-intl.aliyuncs.com"]),
    "mistral": ("mistral", ["api.mistral.ai"]),
    "xai": ("xai", ["api.x.ai"]),
    "deepseek": ("deepseek", ["api.deepseek.com"]),
    "groq": ("groq", ["api.groq.com"]),
    "together": ("together_ai", ["api.together.xyz", "api.together.ai"]),
}
"""Our name of a provider: litellm's name, and the hosts of its OpenAI-compatible endpoint."""

SPECIAL = re.compile(
    r"search|computer-use|deep-research|robotics|cyber|daybreak|rosalind|-law|customtools|omni|-exp|learnlm|gemma-2"
    r"|vibe|build|code|mythos|experimental|-beta|-gv2|audio|realtime|image|^ft:|-fast$|streaming|-0309"
)
OPENROUTER = re.compile(
    r"(anthropic/claude-(?!3)|google/gemini-|openai/gpt-(4o|4\.1|5\.[56]|6)(?!.*-pro)|qwen/qwen3-vl-)"
)
"""What is mostly asked for through OpenRouter: one vendor's price behind each name, and open models that see."""
DATED = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")

# Per picture of 1,568 x 1,568 px at most: tiles of 512 px after scaling the short side to 768 px, 2,833 + 5,667 a tile.
IMAGE_TOKENS = {"gpt-4o-mini": (25501, 48169)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--litellm", type=Path, required=True, help="folder with the unpacked wheel"
    )
    parser.add_argument(
        "--genai-prices", type=Path, required=True, help="folder with the unpacked wheel"
    )
    parser.add_argument(
        "--as-of", type=date.fromisoformat, default=datetime.now(UTC).date(), help="day of reading"
    )
    given = parser.parse_args()
    table = json.loads(
        (given.litellm / "litellm" / "model_prices_and_context_window_backup.json").read_text()
    )
    print(
        "# Prices in USD per million tokens, as [input, output]; [input, output, above, input, output...] where longer"
    )
    print(
        "# prompts cost more: all tokens of a request with more input tokens than `above` at the rates behind it."
    )
    print(
        "# Under `cached`: rate of input tokens from the prompt cache, of short prompts, where the package knows one."
    )
    print(
        "# Written by performance/make_prices.py; facts from the packages named (both MIT licence), read on `as_of`."
    )
    for provider, (theirs, hosts) in VENDORS.items():
        rows = dict(sorted(_vendor_rows(table, theirs, given.as_of)))
        cached = {name: _cached(table, theirs, name) for name in rows}
        _print(provider, hosts, f"litellm {_version(given.litellm)}", given.as_of, rows, cached)
    rows = dict(sorted(_openrouter_rows(given.genai_prices, table, given.as_of)))
    when = datetime(given.as_of.year, given.as_of.month, given.as_of.day, tzinfo=UTC)
    found = (
        (model.id, model.get_prices(when).cache_read_mtok)
        for model in _genai_models(given.genai_prices, "openrouter")
    )
    cached = {
        name: float(getattr(price, "base", price))
        for name, price in found
        if name in rows and price is not None
    }
    _print(
        "openrouter",
        ["openrouter.ai"],
        f"genai-prices {_version(given.genai_prices)}",
        given.as_of,
        rows,
        cached,
    )


def _version(folder: Path) -> str:
    metadata = next(folder.glob("*.dist-info/METADATA"))
    return HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))["Version"]


def _sees(entry: dict[str, Any]) -> bool:
    return entry.get("mode") == "chat" and bool(entry.get("supports_vision"))


def _vendor_rows(
    table: dict[str, Any], provider: str, as_of: date
) -> Iterator[tuple[str, list[float]]]:
    found: dict[str, list[float]] = {}
    for key, entry in table.items():
        name = key.removeprefix(f"{provider}/")
        retired = entry.get("deprecation_date")
        if entry.get("litellm_provider") != provider or not _sees(entry) or SPECIAL.search(name):
            continue
        if retired and date.fromisoformat(retired) <= as_of:
            continue
        row = _litellm_row(entry)
        if row and row[0] > 0:
            found[name] = row
    # A dated name is listed only where it costs something else than the name without the date.
    return (
        (name, row)
        for name, row in found.items()
        if found.get(DATED.sub("", name)) != row or not DATED.search(name)
    )


def _cached(table: dict[str, Any], provider: str, name: str) -> float | None:
    entry = table.get(f"{provider}/{name}") or table.get(name) or {}
    usd = entry.get("cache_read_input_token_cost") or entry.get("input_cost_per_token_cache_hit")
    return _million(usd) if usd else None


def _litellm_row(entry: dict[str, Any]) -> list[float]:
    if tiers := entry.get("tiered_pricing"):
        row: list[float] = []
        for tier in sorted(tiers, key=lambda tier: tier["range"][0]):
            row += [int(tier["range"][0])] if row else []
            row += [_million(tier["input_cost_per_token"]), _million(tier["output_cost_per_token"])]
        return row
    if not entry.get("input_cost_per_token"):
        return []
    row = [_million(entry["input_cost_per_token"]), _million(entry["output_cost_per_token"])]
    for key in sorted(entry):
        if above := re.fullmatch(r"input_cost_per_token_above_(\d+)k_tokens", key):
            output = entry[key.replace("input", "output")]
            row += [int(above[1]) * 1000, _million(entry[key]), _million(output)]
    return row


def _million(usd_per_token: float) -> float:
    return round(usd_per_token * 1e6, 6)


def _openrouter_rows(
    folder: Path, table: dict[str, Any], as_of: date
) -> Iterator[tuple[str, list[float]]]:
    seeing = {_plain(key) for key, entry in table.items() if _sees(entry)}
    for model in _genai_models(folder, "openrouter"):
        name = model.id
        retired = getattr(model, "deprecated", False)
        if not OPENROUTER.match(name) or ":" in name or SPECIAL.search(name) or retired:
            continue
        if _plain(name) not in seeing and not re.search(r"-vl-|vision|glm-[\d.]+v", name):
            continue
        prices = model.get_prices(datetime(as_of.year, as_of.month, as_of.day, tzinfo=UTC))
        row = _genai_row(prices)
        if row and row[0] > 0:
            yield name, row


def _plain(name: str) -> str:
    """``anthropic/claude-sonnet-4.5`` and ``claude-sonnet-4-5`` are one model."""
    return name.lower().rpartition("/")[2].replace(".", "-")


def _genai_models(folder: Path, provider: str) -> list[Any]:
    # Its HTTP client is needed for updates only.
    sys.modules.setdefault("httpx2", types.ModuleType("httpx2"))
    client: Any = sys.modules["httpx2"]
    client.__dict__.setdefault("__getattr__", lambda _name: object)
    sys.path.insert(0, str(folder))
    from genai_prices.data import providers  # pyright: ignore[reportMissingImports]

    return next(entry.models for entry in providers if entry.id == provider)


def _genai_row(prices: Any) -> list[float]:
    pair = (prices.input_mtok, prices.output_mtok)
    if None in pair:
        return []
    bases = [getattr(price, "base", price) for price in pair]
    row = [float(base) for base in bases]
    starts = sorted({tier.start for price in pair for tier in getattr(price, "tiers", ())})
    for start in starts:
        row.append(int(start))
        for price, base in zip(pair, bases, strict=True):
            reached = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
            row.append(float(reached[-1] if reached else base))
    return row


def _print(
    provider: str,
    hosts: list[str],
    source: str,
    as_of: date,
    rows: dict[str, list[float]],
    cached: dict[str, float | None],
) -> None:
    print(f"\n[{provider}]")
    print(f"hosts = {json.dumps(hosts)}")
    print(f'source = "{source}"')
    print(f"as_of = {as_of}")
    pictures = {name: list(IMAGE_TOKENS[name]) for name in rows if name in IMAGE_TOKENS}
    print(f"\n[{provider}.models]")
    for name, row in rows.items():
        print(f"{json.dumps(name)} = {json.dumps(row)}")
    if any(cached.values()):
        print(f"\n[{provider}.cached]")
        for name in rows:
            if rate := cached.get(name):
                print(f"{json.dumps(name)} = {rate}")
    if pictures:
        print(
            "\n# Tokens of a picture of at most 1,568 px a side: typical, and the most; where far from the usual."
        )
        print(f"[{provider}.image_tokens]")
        for name, tokens in pictures.items():
            print(f"{json.dumps(name)} = {json.dumps(tokens)}")


if __name__ == "__main__":
    main()
