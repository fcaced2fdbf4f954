"""Arguments of a tool as the text protocol shows them: one line, in place of a JSON Schema.

``{"image": string, "region"?: number[], "kind"?: "pest" | "disease" (what to look for)}``: types as in TypeScript, a
question mark where an argument may be left out, its description in brackets. All tools take 18 % fewer tokens in this
form, examples included; a model of 1.5B called them as often and as well (``studies/first_calls.py``).
"""

from typing import Any

from agrotools.text.loose_json import dumps


def arguments_text(schema: dict[str, Any]) -> str:
    """Return the properties of a JSON Schema of type object, as far as :meth:`ToolSpec.offered` keeps them."""
    required = schema.get("required", ())
    arguments: list[str] = []
    for name, argument in schema.get("properties", {}).items():
        mark = "" if name in required else "?"
        arguments.append(f"{dumps(name)}{mark}: {_type_text(argument)}{_note(argument)}")
    return f"{{{', '.join(arguments)}}}"


def _type_text(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " | ".join(map(_type_text, schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(map(dumps, schema["enum"]))
    if schema.get("type") == "array":
        item = _type_text(schema.get("items", {}))
        return f"({item})[]" if " | " in item else f"{item}[]"
    if "properties" in schema:
        return arguments_text(schema)
    types = schema.get("type", "any")
    return " | ".join(types) if isinstance(types, list) else types


def _note(argument: dict[str, Any]) -> str:
    notes: list[str] = []
    if "description" in argument:
        notes.append(argument["description"])
    if "default" in argument:
        notes.append(f"default {argument['default']:g}")
    return f" ({', '.join(notes)})" if notes else ""
