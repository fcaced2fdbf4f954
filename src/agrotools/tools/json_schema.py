"""JSON Schema of a tool's arguments: plain enough for every OpenAI-style endpoint, and in words for messages."""

from collections.abc import Sequence
from typing import Any

_DROPPED = frozenset({"title", "$defs", "format", "discriminator"})


def plain_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """``schema`` with definitions inlined and without titles, formats, null branches and null defaults.

    An argument that may be null is one that may be left out, so "or null" only costs tokens and trips endpoints.

    Raises:
        ValueError: the schema refers to itself, which cannot be inlined.
    """
    return _plain(schema, schema.get("$defs", {}), ())


def _plain(schema: dict[str, Any], definitions: dict[str, Any], open_refs: tuple[str, ...]) -> dict[str, Any]:
    schema = dict(schema)
    if ref := schema.pop("$ref", None):
        if ref in open_refs:
            raise ValueError(f"the type {ref.rsplit('/', 1)[-1]} refers to itself")
        target = definitions[ref.rsplit("/", 1)[-1]]
        return _plain({**target, **schema}, definitions, (*open_refs, ref))

    def inner(value: dict[str, Any]) -> dict[str, Any]:
        return _plain(value, definitions, open_refs)

    # "oneOf" is how tagged unions come; endpoints know "anyOf" alone, and the tag tells the branches apart anyway.
    unions = [*schema.pop("anyOf", []), *schema.pop("oneOf", [])]
    branches = [branch for branch in unions if branch.get("type") != "null"]
    if {"type": "number"} in branches:
        branches = [branch for branch in branches if branch != {"type": "integer"}]
    if len(branches) == 1:
        return inner({**branches[0], **schema})
    plain: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _DROPPED or (key == "default" and value is None):
            continue
        if key == "const":
            plain["enum"] = [value]
        elif key == "properties":
            plain[key] = {name: inner(item) for name, item in value.items()}
        elif key == "prefixItems":
            kinds = [inner(item) for item in value]
            plain["items"] = kinds[0] if all(kind == kinds[0] for kind in kinds) else {"anyOf": kinds}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            plain[key] = inner(value)
        else:
            plain[key] = value
    if branches:
        plain["anyOf"] = [inner(branch) for branch in branches]
    return plain


def in_words(schema: dict[str, Any]) -> str:
    """What ``schema`` allows, as a person would say it: ``a number above 0``, ``one of auto, exg``."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(in_words(branch) for branch in schema["anyOf"]))
    if "enum" in schema:
        choices = [str(choice) for choice in schema["enum"]]
        return choices[0] if len(choices) == 1 else f"one of {', '.join(choices)}"
    match schema.get("type"):
        case "integer":
            return "a whole number" + _range(schema)
        case "number":
            return "a number" + _range(schema)
        case "boolean":
            return "true or false"
        case "string":
            return "text" + _count(schema, "minLength", "maxLength", "characters")
        case "array":
            items = schema.get("items", {})
            how_many = _count(schema, "minItems", "maxItems", "") or " of"
            return f"a list{how_many} {_plural(in_words(items))}"
        case "object":
            return _object_in_words(schema)
        case _:
            return "any value"


def _object_in_words(schema: dict[str, Any]) -> str:
    if properties := schema.get("properties"):
        required = set(schema.get("required", ()))
        keys = [name if name in required else f"{name} (optional)" for name in properties]
        return f"an object with {', '.join(keys)}"
    values = schema.get("additionalProperties")
    return f"an object from names to {_plural(in_words(values))}" if isinstance(values, dict) else "an object"


def _range(schema: dict[str, Any]) -> str:
    above, least = schema.get("exclusiveMinimum"), schema.get("minimum")
    below, most = schema.get("exclusiveMaximum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}"
    low = f" above {above:g}" if above is not None else f" of at least {least:g}" if least is not None else ""
    high = f" below {below:g}" if below is not None else f" of at most {most:g}" if most is not None else ""
    return f"{low} and{high}" if low and high else low + high


def _count(schema: dict[str, Any], least_key: str, most_key: str, noun: str) -> str:
    least, most = schema.get(least_key), schema.get(most_key)
    noun = f" {noun}" if noun else ""
    if least is None and most is None:
        return ""
    if least == most:
        return f" of exactly {least}{noun}"
    if most is None:
        return f" of at least {least}{noun}"
    return f" of at most {most}{noun}" if least is None else f" of {least} to {most}{noun}"


_PLURALS = {
    "a number": "numbers",
    "a whole number": "whole numbers",
    "text": "texts",
    "a list": "lists",
    "an object": "objects",
    "any value": "values",
}


def _plural(words: str) -> str:
    if " or " in words:
        return f"values, each {words}"
    for singular, plural in _PLURALS.items():
        if words.startswith(singular):
            return plural + words.removeprefix(singular)
    return f"values, each {words}"


def schema_at(schema: dict[str, Any], path: Sequence[str | int]) -> dict[str, Any] | None:
    """The part of a plain ``schema`` that governs the value at ``path``, or None where the schema does not say."""
    for step in path:
        branches = schema.get("anyOf", [schema])
        inner = [found for branch in branches if (found := _child(branch, step)) is not None]
        if not inner:
            return None
        schema = inner[0]
    return schema


def _child(schema: dict[str, Any], step: str | int) -> dict[str, Any] | None:
    if isinstance(step, int):
        found = schema.get("items")
    else:
        found = schema.get("properties", {}).get(step, schema.get("additionalProperties"))
    return found if isinstance(found, dict) else None
