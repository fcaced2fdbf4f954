"""Signatures and docstrings in pages of the documentation, in place of lines such as ``::: agrotools.api.evaluate``.

The site has them from its generator. In a terminal they are taken from the installed package, as stubs of Python.
"""

import functools
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from textwrap import indent
from typing import Any

from agrotools.core.texts import install_command

_REFERENCE = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
_MODULES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])")
"""Modules before the name of a class in an annotation, which a reader does not need."""
_QUOTED_CLASS = re.compile(r"'([A-Z]\w*)'")
_CHECKED = re.compile(r"Annotated\[(.+?)(?:, \w+\([^()]*\))+\]")
"""Type with checks of its value, such as ``Annotated[str, MinLen(min_length=1)]``."""
_STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
_LINE = 100
"""Longest signature on one line."""
_INDENT = "    "
_METHODS = (staticmethod, classmethod)
_PROPERTIES = (property, functools.cached_property)


def with_references(page: str) -> str:
    """Return a page with a heading, signature and docstring in place of each line that refers to a name."""
    return _REFERENCE.sub(lambda found: _entry(found[1]), page)


def _entry(name: str) -> str:
    """Return heading and stub of a class or function ``MODULE.NAME``."""
    module, _, attribute = name.rpartition(".")
    try:
        target = getattr(import_module(module), attribute)
    except ImportError:
        return f"### {name}\n\nTo see it here: `{install_command('tools')}`"
    return f"### {name}\n\n```python\n{_stub(target)}\n```"


def _stub(target: Any) -> str:
    """Return a function with signature and docstring, or a class with those of its public members."""
    if not inspect.isclass(target):
        keyword = "async def" if inspect.iscoroutinefunction(target) else "def"
        return _block(f"{keyword} {_signature(target)}:", [_docstring(target)])
    members = [member for name, member in vars(target).items() if not name.startswith("_")]
    return _block(f"class {_signature(target)}:", [_docstring(target), *_members(members)])


def _members(members: list[Any]) -> Iterator[str]:
    """Yield the stubs of those members of a class that have a docstring."""
    for member in members:
        if isinstance(member, _PROPERTIES):
            function = member.func if isinstance(member, functools.cached_property) else member.fget
            stub = f"@property\n{_stub(function)}"
        elif isinstance(member, _METHODS):
            stub = f"@{type(member).__name__}\n{_stub(member.__func__)}"
        elif inspect.isfunction(member):
            stub = _stub(member)
        else:
            continue
        if inspect.getdoc(member):
            yield stub


def _block(head: str, parts: list[str]) -> str:
    """Return a head with its indented parts, which an empty line separates."""
    body = "\n\n".join(filter(None, parts)) or "..."
    return f"{head}\n{indent(body, _INDENT)}"


def _docstring(target: Any) -> str:
    """Return the docstring in quotes; empty without one."""
    text = inspect.getdoc(target) or ""
    if not text:
        return ""
    end = "\n" if "\n" in text else ""
    return f'"""{text}{end}"""'


def _signature(target: Any) -> str:
    """Return name, parameters and result; a parameter a line if they do not fit on one."""
    signature = inspect.signature(target)
    parameters = [*_parameters(signature)]
    result = ""
    if signature.return_annotation not in (inspect.Signature.empty, None):
        result = f" -> {_annotation_text(signature.return_annotation)}"
    line = f"{target.__name__}({', '.join(parameters)}){result}"
    if len(line) <= _LINE:
        return line
    lines = "".join(f"{_INDENT}{each},\n" for each in parameters)
    return f"{target.__name__}(\n{lines}){result}"


def _parameters(signature: inspect.Signature) -> Iterator[str]:
    """Yield the parameters with annotation and default, and ``*`` before those that are given by name alone."""
    by_name_alone = False
    for each in signature.parameters.values():
        if each.name.startswith("_"):
            continue
        if each.kind is each.KEYWORD_ONLY and not by_name_alone:
            yield "*"
        by_name_alone |= each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        text = _STARS.get(each.kind, "") + each.name
        if each.annotation is not each.empty:
            text += f": {_annotation_text(each.annotation)}"
        if each.default is not each.empty:
            is_function = inspect.isroutine(each.default)
            text += f" = {each.default.__name__ if is_function else repr(each.default)}"
        yield text


def _annotation_text(annotation: Any) -> str:
    """Return an annotation with names of classes without their modules, and without checks of the value."""
    # A class that is imported later is named by a text, and so is an annotation with such a class.
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = _QUOTED_CLASS.sub(r"\1", _MODULES.sub("", text))
    return _CHECKED.sub(r"\1", text)
