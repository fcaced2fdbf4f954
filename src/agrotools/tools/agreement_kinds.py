"""What an argument's type says of itself: how two values agree, and a description where it carries one."""

import types
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from agrotools.core import AgreementKind
from agrotools.tools.argument_types import Agree, FileArgument, RegionArgument

_UNIONS = (Union, types.UnionType)
_SEQUENCES = (list, tuple, Sequence)


def agreement_kind(annotation: Any) -> AgreementKind | None:
    """``Agree`` where the type carries one, else by the type: file, choice, number, text, series; None if unclear."""
    markers = list(_markers(annotation))
    for marker in markers:
        if isinstance(marker, Agree):
            return marker.kind
    if any(isinstance(marker, FileArgument) for marker in markers):
        return "file"
    kinds: set[AgreementKind | None] = {_kind_of_plain(member) for member in _members(annotation)}
    return kinds.pop() if len(kinds) == 1 else None


def takes_path(annotation: Any) -> bool:
    """Whether a value of the type may hold a path, at any depth."""
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return True
    return any(takes_path(member) for member in get_args(annotation))


def default_description(annotation: Any) -> str | None:
    """The description that a file or region type brings along."""
    for marker in _markers(annotation):
        if isinstance(marker, (FileArgument, RegionArgument)):
            return marker.description
    return None


def _markers(annotation: Any) -> Iterator[Any]:
    """Metadata of the type: of itself, of the members of a union, of the items of a list."""
    if get_origin(annotation) is Annotated:
        inner, *metadata = get_args(annotation)
        yield from metadata
        yield from _markers(inner)
    elif get_origin(annotation) in (*_UNIONS, list):
        for member in get_args(annotation):
            yield from _markers(member)


def _members(annotation: Any) -> Iterator[Any]:
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) in _UNIONS:
        for member in get_args(annotation):
            yield from _members(member)
    elif annotation is not type(None):
        yield annotation


def _kind_of_plain(annotation: Any) -> AgreementKind | None:
    if get_origin(annotation) is Literal or annotation is bool:
        return "choice"
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "choice"
    if annotation in (int, float):
        return "number"
    if annotation is str:
        return "text"
    if get_origin(annotation) in _SEQUENCES:
        items = {
            _kind_of_plain(member) for item in get_args(annotation) if item is not ... for member in _members(item)
        }
        return "series" if items == {"number"} else None
    return None
