"""Files of R (``.rda``, ``.rds``) in XDR form: their values, and the places at which vectors of numbers begin.

Packages of R hold rasters in this form. A raster is not copied from here: its place (:class:`Vector`) goes into the
pack, and the download reads the numbers at it. The form is described in "R Internals", section "Serialization Formats".
"""

import struct
from dataclasses import dataclass, field
from typing import Any

from agrotools_benchmarks.field.pack import unpacked

_SYMBOL, _LIST, _CLOSURE = 1, 2, 3
_CHARACTERS, _LOGICAL, _INTEGER, _REAL = 9, 10, 13, 14
_STRINGS, _VALUES, _BYTECODE, _S4, _REFERENCE = 16, 19, 21, 25, 255
_CONSTANTS = {254: None, 253: "<global>"}
"""Kinds that the files of ``r_packages`` hold; R has more."""
_OF_OWN_FORM = frozenset({2, 6, 21, 239, 240, 243, 244})
"""Kinds of constants of a compiled function (calls, functions within it) that no file has, and that are not read."""
_HAS_ATTRIBUTES, _HAS_TAG = 0x200, 0x400
_FORMS = {_LOGICAL: "i4", _INTEGER: "i4", _REAL: "f8"}


@dataclass(frozen=True)
class Vector:
    """Vector of R. ``offset``: place of its first number in the unpacked file; ``form``: of a number, big-endian."""

    values: tuple[Any, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    offset: int = 0
    form: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return self.attributes["names"].values

    def __getitem__(self, name: str) -> Any:
        """Return a member of a list by its name."""
        return self.values[self.names.index(name)]


def read_r(content: bytes) -> Any:
    """Return what a file of R holds: a :class:`Vector`, or the slots of an object, or objects by their names."""
    return _Reading(unpacked(content)).everything()


class _Reading:
    """A stream that is being read."""

    def __init__(self, stream: bytes) -> None:
        self._stream, self._at = stream, 0
        self._references: list[Any] = []

    def everything(self) -> Any:
        if self._stream.startswith((b"RDX2\n", b"RDX3\n")):
            self._at += 5
        if self._stream[self._at : self._at + 2] != b"X\n":
            raise ValueError("no file of R in XDR form")
        self._at += 2
        version, _, _ = self._integers(3)
        if version == 3:
            self._bytes(self._integer())  # the encoding of its texts
        return self._item()

    def _integers(self, number: int) -> tuple[int, ...]:
        return struct.unpack(f">{number}i", self._bytes(4 * number))

    def _integer(self) -> int:
        return self._integers(1)[0]

    def _bytes(self, number: int) -> bytes:
        found = self._stream[self._at : self._at + number]
        self._at += number
        return found

    def _item(self) -> Any:
        flags = self._integer()
        kind, is_tagged, has_attributes = flags & 0xFF, flags & _HAS_TAG, flags & _HAS_ATTRIBUTES
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind == _REFERENCE:
            return self._references[(flags >> 8 or self._integer()) - 1]
        if kind == _SYMBOL:
            return self._referable(self._item())
        if kind in (_LIST, _CLOSURE):
            if has_attributes:
                self._item()
            return self._pairs(self._item() if is_tagged else None)
        if kind == _CHARACTERS:
            length = self._integer()
            return None if length == -1 else self._bytes(length).decode("latin-1")
        if kind == _S4:
            return self._item()
        if kind == _BYTECODE:
            return self._bytecode()
        return self._vector(kind, bool(has_attributes))

    def _referable(self, found: Any) -> Any:
        self._references.append(found)
        return found

    def _pairs(self, tag: Any) -> dict[Any, Any]:
        """Return a list of pairs as a dictionary; names that are missing are numbers."""
        first, rest = self._item(), self._item()
        name = tag if isinstance(tag, str) else id(first)
        return {name: first} | (rest if isinstance(rest, dict) else {})

    def _vector(self, kind: int, has_attributes: bool) -> Vector:
        length, offset = self._integer(), self._at
        if kind in (_STRINGS, _VALUES):
            values = tuple(self._item() for _ in range(length))
        else:
            if kind not in _FORMS:
                raise ValueError(
                    f"the file of R holds an object of the kind {kind}, which is not read"
                )
            form = _FORMS[kind]
            letter = {"i4": "i", "f8": "d"}[form]
            values = struct.unpack(f">{length}{letter}", self._bytes(int(form[1]) * length))
        attributes = self._item() if has_attributes else None
        return Vector(values, attributes or {}, offset, _FORMS.get(kind, ""))

    def _bytecode(self) -> str:
        """Read a compiled function, which nobody asks for, to reach what stands behind it."""
        self._integer()
        self._item()
        for _ in range(self._integer()):
            kind = self._integer()
            if kind in _OF_OWN_FORM:
                raise ValueError(f"a function of R holds a constant of the kind {kind}")
            self._item()
        return "<function>"
