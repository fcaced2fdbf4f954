"""What the metadata of a header says was left out of the benchmark, wherever it says it."""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

_WORDS = ("absent", "dropped", "left_out", "unread")
"""A key that is one of these or ends in one, ``tiles_dropped``, says what is not in the benchmark."""


def left_out(metadata: Mapping[str, JsonValue]) -> list[tuple[str, str]]:
    """What was left out and how many or which: (``weedmap, tiles dropped, empty``, ``3``), in
    the order of the alphabet: a header that was written and read again has another."""
    found = ((" ".join(where.replace("_", " ").split()), text) for where, text in _found(metadata, "") if text)
    return sorted(found)


def without_left_out(metadata: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The metadata that is not about what was left out."""
    kept: dict[str, JsonValue] = {}
    for key, value in metadata.items():
        if _is_about_it(key):
            continue
        kept[key] = without_left_out(value) if isinstance(value, dict) else value
    return kept


def said(value: JsonValue) -> str:
    """A value of the metadata as words."""
    if isinstance(value, list):
        return ", ".join(map(said, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {said(item)}" for key, item in sorted(value.items()))
    return "" if value is None else str(value)


def _found(metadata: Mapping[str, JsonValue], at: str) -> Iterator[tuple[str, str]]:
    for key, value in metadata.items():
        where = f"{at}, {key}" if at else key
        if _is_about_it(key):
            if isinstance(value, dict):
                yield from ((f"{where}, {reason}", said(what)) for reason, what in value.items())
            else:
                yield where, said(value)
        elif isinstance(value, dict):
            yield from _found(value, where)


def _is_about_it(key: str) -> bool:
    return key in _WORDS or key.endswith(tuple(f"_{word}" for word in _WORDS))
