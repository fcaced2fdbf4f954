"""Everything that is said to a model, as templates: one file per piece of text.

Templates are filled with values only; no value is ever read as a template, so hostile text stays text. Those in
``building/`` are said to models that help to build a benchmark (``render("building/NAME")``); no run depends on them.
Those in ``lagent/`` and ``agent_x/`` are said in the protocols of that name, and in no others.
"""

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from agrotools.core import Protocol

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import jinja2


_BUILDING = "building"
_OF_PROTOCOL: dict[Protocol, str] = {"lagent": "lagent", "agent-x": "agent_x"}
"""The folders of protocols that have templates of their own."""


@cache
def _sources() -> dict[str, str]:
    folder = files(__name__)
    own = (_BUILDING, *_OF_PROTOCOL.values())
    return _in(folder) | {f"{sub}/{name}": text for sub in own for name, text in _in(folder.joinpath(sub)).items()}


def _in(folder: "Traversable") -> dict[str, str]:
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".j2")]
    return {entry.name: entry.read_text(encoding="utf-8") for entry in sorted(found, key=lambda entry: entry.name)}


@cache
def _environment() -> "jinja2.Environment":
    import jinja2

    # Prompts are plain text: escaping for HTML would change what the model reads.
    return jinja2.Environment(
        loader=jinja2.DictLoader(_sources()),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


@cache
def _template(name: str) -> "jinja2.Template":
    return _environment().get_template(f"{name}.j2")


def render(name: str, **values: Any) -> str:
    """The text of the template ``name`` (without ``.j2``), without blanks at its ends."""
    return _template(name).render(**values).strip()


def fill(name: str, **values: str) -> str:
    """:func:`render` for a template that puts values in and does nothing else: many times as fast."""
    return "".join([values[text] if is_hole else text for text, is_hole in _pieces(name)]).strip()


@cache
def _pieces(name: str) -> tuple[tuple[str, bool], ...]:
    """The pieces of a template in order: its own text, or the name of the value that goes there.

    Raises:
        ValueError: the template does more than put values in.
    """
    from jinja2 import nodes

    pieces: list[tuple[str, bool]] = []
    for part in _environment().parse(_sources()[f"{name}.j2"]).body:
        for node in part.nodes if isinstance(part, nodes.Output) else [part]:
            if isinstance(node, nodes.TemplateData):
                pieces.append((node.data, False))
            elif isinstance(node, nodes.Name):
                pieces.append((node.name, True))
            else:
                raise ValueError(f"the template {name} does more than put values in: render it")
    return tuple(pieces)


@cache
def prompt_hash(protocol: Protocol = "react", beside: str = "") -> str:
    """SHA-256 over names and texts of the templates that runs in a protocol use, 16 hexadecimal digits.

    Runs compare if it agrees. ``beside``: what else the prompts are made of, where that is no template.
    """
    own = f"{_OF_PROTOCOL[protocol]}/" if protocol in _OF_PROTOCOL else None
    used = {name: text for name, text in _sources().items() if "/" not in name or (own and name.startswith(own))}
    return _hash({**used, **({"": beside} if beside else {})})


@cache
def building_prompt_hash() -> str:
    """As :func:`prompt_hash`, over what models are told that help to build a benchmark."""
    building = {name: text for name, text in _sources().items() if name.startswith(f"{_BUILDING}/")}
    # What a policy sees of files is told to them in the same words.
    return _hash({**building, "conduct.j2": _sources()["conduct.j2"]})


def _hash(sources: dict[str, str]) -> str:
    digest = hashlib.sha256()
    for name, text in sources.items():
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()[:16]
