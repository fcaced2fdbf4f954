import pytest

from agrotools.knowledge.kb_names import healthy_label, shipped_names, species_in


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
        ("Rost", "disease.coffee_leaf_rust", None, True), ("Rost", "disease.coffee_leaf_rust", "coffee", True),
        ("Rost", "disease.coffee_leaf_rust", "bean", False),
        ("thing one", "Thing-One", None, True), ("thing one", "thing two", None, False),
    ],
)  # fmt: skip
def test_names_meet_by_what_they_mean(
    first: str, second: str, crop: str | None, same: bool
) -> None:
    assert shipped_names().mean_same(first, second, crop) is same


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Uromyces phaseoli", "bean_rust"),
        ("Alternaria solani", "early_blight"),
        ("Xanthomonas vesicatoria", "bacterial_spot_pepper_tomato"),
        ("Fusarium graminearum", "wheat_head_scab"),
    ],
)
def test_a_former_name_and_each_species_of_several_name_an_entry(name: str, slug: str) -> None:
    """The last one is also one of two species of an ear rot, but the scab has that name alone."""
    assert [entry.slug for entry in shipped_names().all_of_name(name)] == [slug]


def test_species_in_a_scientific_name() -> None:
    assert species_in("Alternaria solani and A. linariae") == [
        "Alternaria solani",
        "Alternaria linariae",
    ]
    assert species_in("Tilletia indica") == []
    assert species_in("Cercospora kikuchii and related species") == []
    assert species_in(None) == []


def test_labels_of_healthy_leaves() -> None:
    assert healthy_label("Healthy", "black gram") == "black_gram_healthy"
    assert healthy_label("bean_healthy", "beans") == "bean_healthy"
    assert healthy_label("a healthy leaf") == "healthy"
    assert healthy_label("bean rust", "bean") is None
