from hypothesis import given
from hypothesis import strategies as st

from agrotools.core.files import fold_of, pairs_by_hash


def test_pairs_follow_the_rank_of_the_hash_and_an_odd_one_stays_alone() -> None:
    assert pairs_by_hash(["d", "b", "a", "c", "f", "e"]) == [["a", "b"], ["c", "d"], ["e", "f"]]
    assert fold_of(["d", "b", "a", "c", "f", "e"]) == {"a": 0, "b": 0, "c": 1, "d": 1, "e": 0, "f": 0}
    assert pairs_by_hash(["b", "c", "a"]) == [["a", "b"], ["c"]]
    assert pairs_by_hash([]) == []


@given(st.lists(st.text("0123456789abcdef", min_size=1, max_size=6)))
def test_order_and_repeats_do_not_matter(hashes: list[str]) -> None:
    pairs = pairs_by_hash(hashes)
    assert pairs == pairs_by_hash(reversed(hashes + hashes))
    assert sorted(member for pair in pairs for member in pair) == sorted(set(hashes))
    fold = fold_of(hashes)
    assert set(fold) == set(hashes)
    assert all(len({fold[member] for member in pair}) == 1 for pair in pairs)
