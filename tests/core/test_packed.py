"""Packed sequences: contents, search, order."""

import random

from agrotools.core.packed import PackedBytes, PackedNames, sorted_entries


def test_entries_are_returned_found_and_added_once():
    entries = PackedBytes([b"b", b"", b"a", b"b"])
    assert [*entries] == [b"b", b"", b"a", b"b"]
    assert (len(entries), entries[-1], entries.find(b"b"), entries.find(b"c")) == (4, b"b", 0, -1)
    assert [entries.add(each) for each in (b"a", b"c", b"c", b"")] == [2, 4, 4, 1]


def test_many_entries_are_found_while_more_are_appended():
    entries, known = PackedBytes(), dict[bytes, int]()
    draw = random.Random(1)
    for _ in range(3000):
        entry = b"%d" % draw.randrange(2000)
        assert entries.find(entry) == known.get(entry, -1)
        assert entries.add(entry) == known.setdefault(entry, len(known))
    assert [*entries] == [*known]


def test_names_are_text():
    names = PackedNames(["é", "b"])
    names.extend(["c"])
    assert ([*names], names[0], names[1:], names.find("c")) == (["é", "b", "c"], "é", ["b", "c"], 2)
    assert names == PackedNames(["é", "b", "c"])


def test_entries_are_sorted_whatever_their_order(monkeypatch):
    monkeypatch.setattr("agrotools.core.packed._SORTED_AT_ONCE", 8)
    draw = random.Random(2)
    for n in (0, 1, 7, 8, 9, 16, 100):
        almost = [b"%04d" % (at + draw.randrange(6)) for at in range(n)]
        shuffled = draw.sample(almost, n)
        assert [*sorted_entries(almost)] == [*sorted_entries(shuffled)] == sorted(almost)
