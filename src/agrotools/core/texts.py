"""Short texts that all rooms write alike: numbers with nouns, names, commands, hints, first errors of a file."""

import shlex
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails


def without_surrogates(value: Any) -> Any:
    """Return JSON data with each lone surrogate (not encodable as UTF-8) replaced by U+FFFD."""
    if isinstance(value, str):
        return (
            value
            if value.isascii()
            else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, list):
        return [without_surrogates(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {without_surrogates(key): without_surrogates(item) for key, item in items}
    return value


def name_in_tables(model: str) -> str:
    """Return the name of a model or agent for a column: of an address, its last part, or its host without a path."""
    scheme, _, address = model.partition("://")
    if scheme not in ("http", "https"):
        return model
    host, _, path = address.partition("?")[0].rstrip("/").partition("/")
    return path.rpartition("/")[2] or host.rpartition("@")[2]


def plain_message(detail: ErrorDetails) -> str:
    """Return the message of an error of pydantic without its prefix for errors that our validators raise."""
    return detail["msg"].removeprefix("Value error, ")


def first_error(error: ValidationError) -> str:
    """Return the first invalid field and its error: ``slots.0.value: Input should be a number``."""
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc'])) or 'the whole'}: {plain_message(detail)}"


def spell_location(location: Iterable[str | int]) -> str:
    """Return the path to a value: ``("answer", 0, "from")`` becomes ``answer[0].from``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a hint for a name that is not in ``known``: the closest names, or all of them if none is close."""
    known = list(known)
    close = get_close_matches(name, known, n=2)
    return f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(known)}"


def names_hint(name: str, known: Collection[str], names: str) -> str:
    """Return the hint for an unknown name: the nearest known one, if one is near, and all names.

    ``names``: all names, as the user reads them.

    >>> names_hint("oracel", ["oracle", "guess"], "known: oracle, guess")
    'did you mean oracle? known: oracle, guess'
    """
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}? {names}" if near else names


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 sample``, ``1,002 samples``; ``plural`` is an irregular plural."""
    return f"{count} {noun}" if count == 1 else f"{count:,} {plural or f'{noun}s'}"


def first_names(names: Sequence[str], most: int) -> str:
    """Return the first ``most`` names in one line, and whether there are more: ``s1, s2, ...``."""
    more = ", ..." if len(names) > most else ""
    return ", ".join(names[:most]) + more


def counted_names(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return the first ``most`` names in one line, and the number of the others: ``s1, s2 and 4 more``.

    ``separator``: ``"; "`` for names that have commas of their own.
    """
    others = len(names) - most
    more = f" and {others} more" if others > 0 else ""
    return separator.join(names[:most]) + more


def difference_text(amount: str, unit: str | None) -> str:
    """Return a difference of two values with its unit: ``5 mm``, ``2 percentage points``.

    "2 %" of a value that is in percent itself could be read as a share of that value.
    """
    if unit == "%":
        return f"{amount} percentage point" if amount == "1" else f"{amount} percentage points"
    return f"{amount} {unit}" if unit else amount


def within_text(
    absolute: float, relative: float, unit: str | None, of: str = "the true value"
) -> str:
    """Return how far an answer may be off: ``within 1, or within 10 % of the true value, whichever is more``.

    ``absolute`` is in ``unit``; ``relative`` is a share, and ``of`` says of what.
    """
    parts: list[str] = []
    if absolute:
        parts.append(f"within {difference_text(f'{absolute:g}', unit)}")
    if relative:
        parts.append(f"within {100 * relative:g} % of {of}")
    if not parts:
        return "without any difference"
    text = ", or ".join(parts)
    return f"{text}, whichever is more" if len(parts) > 1 else text


def prompt_tokens_text(tokens: float, cached: float | None) -> str:
    """Return prompt tokens with the share of them that the server read from its prompt cache, if it says so."""
    if not tokens:
        return "0 tokens in"
    return f"{amount_text(tokens)} tokens in ({_cached_text(tokens, cached)})"


def tokens_text(tokens_in: float, cached: float | None, tokens_out: float) -> str:
    """Return prompt tokens and generated tokens: ``1.4 M tokens in, 11,511 out; 30 % cached``."""
    both = f"{amount_text(tokens_in)} tokens in, {amount_text(tokens_out)} out"
    return f"{both}; {_cached_text(tokens_in, cached)}" if tokens_in else both


def _cached_text(tokens: float, cached: float | None) -> str:
    return (
        "cached tokens not reported" if cached is None else f"{100 * cached / tokens:.0f} % cached"
    )


def amount_text(n: float) -> str:
    """Return a count with at most five digits: ``12,345``, ``1.235 M``."""
    return f"{n:,.0f}" if n < 99_999.5 else f"{n / 1e6:.4g} M"


def benchmark_title(name: str, version: str) -> str:
    """Return a benchmark with its version: ``embedded, version 10``; a bare number reads as one of samples."""
    return f"{name}, version {version}" if version else name


def number_text(value: float, digits: int = 6) -> str:
    """Return a number with ``digits`` significant digits, and no exponent for a large one: ``8.93``, ``1857``."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e15 else text


def command_line(*words: object) -> str:
    """Return a command of agrotools as it is typed in a shell, also with a path that begins with a dash."""
    typed = (
        f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word)
        for word in words
    )
    return shlex.join(["agrotools", *typed])


@cache
def install_command(extra: str = "") -> str:
    """Return the command that installs an extra of this package from the source of the current installation."""
    import json
    from importlib.metadata import distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    wanted = f"[{extra}]" if extra else ""
    recorded = distribution("agrotools").read_text("direct_url.json") or "{}"
    source: dict[str, Any] = json.loads(recorded)
    if "dir_info" in source:
        editable = "-e " if source["dir_info"].get("editable") else ""
        folder = url2pathname(urlsplit(str(source["url"])).path)
        if Path(folder).is_dir():
            return f"pip install {editable}{shlex.quote(folder + wanted)}"
        return f"pip install {editable}'.{wanted}' in the source folder of agrotools"
    return (
        f"pip install 'agrotools{wanted} @ {source['url']}'"
        if source
        else f"pip install 'agrotools{wanted}'"
    )
