import pytest

from agrotools.knowledge.kb_names import healthy_label, shipped_names


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
def test_names_meet_by_what_they_mean(
    first: str, second: str, crop: str | None, same: bool
) -> None:
    assert shipped_names().mean_same(first, second, crop) is same


def test_labels_of_healthy_leaves() -> None:
    assert healthy_label("Healthy", "black gram") == "black_gram_healthy"
    assert healthy_label("bean_healthy", "beans") == "bean_healthy"
    assert healthy_label("a healthy leaf") == "healthy"
    assert healthy_label("bean rust", "bean") is None
