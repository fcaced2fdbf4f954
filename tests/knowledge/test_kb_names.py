import random

import pytest

from agrotools.knowledge.kb_names import KbNames, healthy_crop, healthy_label, shipped_names
from agrotools.knowledge.words import folded


@pytest.mark.parametrize(
    ("first", "second", "crop", "same"),
    [
        ("angular_leaf_spot", "disease.bean_angular_leaf_spot", None, True),
        ("Angular Leaf-Spot", "bean_angular_leaf_spot", "bean", True), ("rust", "disease.bean_rust", None, True),
        ("disease.bean_rust", "rust", None, True), ("rust", "disease.coffee_rust", "bean", False),
        ("bean_rust", "disease.coffee_rust", None, False), ("healthy", "bean_healthy", None, True),
        ("bean_healthy", "a healthy leaf", "bean", True), ("healthy bean leaf", "bean_healthy", None, True),
        ("healthy", "coffee_healthy", "bean", False), ("bean_healthy", "coffee_healthy", None, False),
        ("healthy", "disease.bean_rust", None, False), ("Beet Armyworm", "spodoptera exigua", None, True),
        ("thing one", "Thing-One", None, True), ("thing one", "thing two", None, False),
    ],
)  # fmt: skip
def test_names_meet_by_what_they_mean(first: str, second: str, crop: str | None, same: bool) -> None:
    assert shipped_names().mean_same(first, second, crop) is same


def crop_key(names: KbNames, crop: str) -> str:
    """Key of a crop by a search of all entries."""
    plain = folded(crop)
    berry = f"{plain.removesuffix('ies')}y" if plain.endswith("ies") else plain
    forms = {plain, plain.removesuffix("s"), plain.removesuffix("es"), berry}
    for entry in names.entries:
        if entry.kind == "crop" and forms & {folded(name) for name in (*entry.names.all(), entry.slug)}:
            return entry.id
    return plain.removesuffix("s")


def ids_of(names: KbNames, name: str, crops: set[str]) -> set[str]:
    """Ids of what a name means by a search of all entries."""
    wanted = {folded(name), *(folded(f"{on} {name}") for on in crops)}
    found = {
        entry.id
        for entry in names.entries
        if entry.kind != "method"
        and (
            wanted & {folded(each) for each in (*entry.names.all(), entry.slug)}
            or entry.id == getattr(names.of_shipped(name), "id", None)
        )
    }
    return found or {entry.id for entry in names.entries if entry.id == name}


def same_by_search(names: KbNames, first: str, second: str, crop: str | None) -> bool:
    if folded(first) == folded(second):
        return True
    healthy = [healthy_crop(first), healthy_crop(second)]
    if None not in healthy:
        return len({crop_key(names, of) for each in healthy if (of := each or crop)}) < 2
    ids = [ids_of(names, name, {crop} if crop else set()) for name in (first, second)]
    if crop is None:
        crops = [{on for entry in names.entries if entry.id in known for on in entry.crops} for known in ids]
        ids = [ids[0] | ids_of(names, first, crops[1]), ids[1] | ids_of(names, second, crops[0])]
    return healthy == [None, None] and bool(ids[0] & ids[1])


def test_the_index_of_names_means_what_a_search_of_all_entries_means() -> None:
    rng = random.Random(0)
    names = KbNames(rng.sample(shipped_names().entries, 80))
    labels = [(*entry.names.all(), entry.id, *(f"{on} healthy" for on in entry.crops)) for entry in names.entries]
    pairs = [(rng.choice(each), rng.choice(each)) for each in labels]
    pairs += [(rng.choice(rng.choice(labels)), rng.choice(rng.choice(labels))) for _ in range(80)]
    same = [names.mean_same(*pair, crop) for pair in pairs for crop in (None, "beans")]
    assert same == [same_by_search(names, *pair, crop) for pair in pairs for crop in (None, "beans")]
    assert {True, False} == {*same}


def test_labels_of_healthy_leaves() -> None:
    assert healthy_label("Healthy", "black gram") == "black_gram_healthy"
    assert healthy_label("bean_healthy", "beans") == "bean_healthy"
    assert healthy_label("a healthy leaf") == "healthy"
    assert healthy_label("bean rust", "bean") is None
