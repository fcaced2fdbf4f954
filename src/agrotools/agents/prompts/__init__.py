"""Everything that is said to a model, as templates: one file per piece of text.

Templates are filled with values only; no value is ever read as a template, so hostile text stays text. Those in
``building/`` are said to models that help to build a benchmark (``render("building/NAME")``); no run depends on them.
Protocols of benchmark plug-ins bring their own (:class:`agrotools.plugin.PromptTemplates`).
"""

import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from agrotools.plugin import PromptTemplates, WithPlugins

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import jinja2


_BUILDING = "building"
_PROTOCOL_TEMPLATES: WithPlugins[PromptTemplates] = WithPlugins(
    {},
    lambda plugin: {
        protocol.templates.prefix: protocol.templates for protocol in plugin.protocols.values() if protocol.templates
    },
)
"""Templates of the protocols of plug-ins, by prefix."""


@cache
def _sources() -> dict[str, str]:
    folder = files(__name__)
    building = _in(folder.joinpath(_BUILDING))
    return _in(folder) | {f"{_BUILDING}/{name}": text for name, text in building.items()}


@cache
def protocol_sources(templates: PromptTemplates) -> dict[str, str]:
    """The templates of a protocol by name, ``PREFIX/NAME.j2``."""
    folder = files(templates.package).joinpath(templates.folder)
    return {f"{templates.prefix}/{name}": text for name, text in _in(folder).items()}


def _source(name: str) -> str | None:
    """The text of the template of that name, with ``.j2``; None where there is none."""
    if name in _sources():
        return _sources()[name]
    templates = _PROTOCOL_TEMPLATES.get(name.rpartition("/")[0])
    return protocol_sources(templates).get(name) if templates else None


def _in(folder: "Traversable") -> dict[str, str]:
    templates = [entry for entry in folder.iterdir() if entry.name.endswith(".j2")]
    return {entry.name: entry.read_text(encoding="utf-8") for entry in sorted(templates, key=lambda entry: entry.name)}


@cache
def _environment() -> "jinja2.Environment":
    import jinja2

    # Prompts are plain text: escaping for HTML would change what the model reads.
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
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
    for part in _environment().parse(_source(f"{name}.j2") or "").body:
        for node in part.nodes if isinstance(part, nodes.Output) else [part]:
            if isinstance(node, nodes.TemplateData):
                pieces.append((node.data, False))
            elif isinstance(node, nodes.Name):
                pieces.append((node.name, True))
            else:
                raise ValueError(f"the template {name} does more than put values in: render it")
    return tuple(pieces)


@cache
def prompt_hash(templates: PromptTemplates | None = None, beside: str = "") -> str:
    """SHA-256 over names and texts of the templates that runs in a protocol use, 16 hexadecimal digits.

    Runs compare if it agrees.

    Args:
        templates: the protocol's own, which come after ours.
        beside: what else the prompts are made of, where that is no template.
    """
    used = {name: text for name, text in _sources().items() if "/" not in name}
    used |= protocol_sources(templates) if templates else {}
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
