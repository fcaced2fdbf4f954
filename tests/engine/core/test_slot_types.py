"""Slot types by name, which every slot of a plug-in that is read asks for."""

import pytest

from agrotools.core import slot_types
from agrotools.core.registry import Registry


def test_slot_types_are_joined_once():
    assert slot_types() is slot_types()
    assert {"exact", "options", "reference_text"} <= slot_types().keys()


def test_objects_that_cannot_be_loaded_are_left_out(monkeypatch: pytest.MonkeyPatch):
    targets = {"first": "math:pi", "broken": "no_such_module:thing", "last": "math:e"}
    registry = Registry[float]("number", "agrotools.no_such_group", targets)
    asked: list[str] = []
    get = registry.get

    def recorded(name: str) -> float:
        asked.append(name)
        return get(name)

    monkeypatch.setattr(registry, "get", recorded)
    assert [round(each, 2) for each in registry.loaded()] == [3.14, 2.72]
    assert asked == ["first", "broken", "last"]
