"""Packed sequences: contents, search, order."""

import pickle
import random
from itertools import pairwise

import pytest

from agrotools.core.packed import Numbers, PackedBytes, PackedNames, sorted_entries


def test_entries_are_returned_found_and_added_once():
    entries = PackedBytes([b"b", b"", b"a", b"b"])
    assert [*entries] == [b"b", b"", b"a", b"b"]
    assert (len(entries), entries[-1], entries.find(b"b"), entries.find(b"c")) == (4, b"b", 0, -1)
    assert [entries.add(each) for each in (b"a", b"c", b"c", b"")] == [2, 4, 4, 1]


@pytest.mark.parametrize("few", [0, 500, 1 << 16])
def test_many_entries_are_found_while_more_are_appended(monkeypatch: pytest.MonkeyPatch, few: int):
    monkeypatch.setattr("agrotools.core.packed._FEW", few)
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


@pytest.fixture
def in_files(monkeypatch: pytest.MonkeyPatch):
    """Blocks of more than 64 bytes lie in files."""
    monkeypatch.setattr("agrotools.core.packed._IN_MEMORY", 64)


def test_entries_in_files_are_those_in_memory(in_files: None):
    draw = random.Random(3)
    known = [b"%d" % draw.randrange(5000) for _ in range(5000)]
    entries = PackedBytes(known[:4500])
    for each in known[4500:]:
        entries.append(each)
    assert [*entries] == known == [entries[at] for at in range(5000)] == [*pickle.loads(pickle.dumps(entries))]
    assert [*entries.part(4400, 4600)] == known[4400:4600]
    assert all(entries.find(each) == known.index(each) for each in known[:200])
    assert [*sorted_entries(known)] == sorted(known)
    places, repeated = entries.sorted_places()
    assert [*places] == sorted(range(5000), key=known.__getitem__)
    assert known[repeated] == next(one for one, other in pairwise(sorted(known)) if one == other)
    with pytest.raises(IndexError):
        entries[5000]


def test_numbers_in_files_are_those_in_memory(in_files: None):
    numbers = Numbers("d", range(10_000))
    before = numbers.view
    for _ in range(10_000):
        numbers.append(0.5)
    numbers[3] = -1
    assert [*numbers] == [*pickle.loads(pickle.dumps(numbers))] == [0, 1, 2, -1, *range(4, 10_000), *[0.5] * 10_000]
    assert (len(before), len(numbers), numbers[-1], [*numbers[2:4]]) == (10_000, 20_000, 0.5, [2, -1])
