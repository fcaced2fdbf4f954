import numpy as np
import pytest

from agrotools.tools.change.pond_evidence import BASIN_TEST, RING_TEST, Evidence

PLAIN = Evidence(0.5, (1.0, 0.0), (2.0, 1.0), (1.0, 0.0), (0.0, -1.0))


def test_by_hand() -> None:
    assert PLAIN.probability(np.array([1.0, 0.0])) == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert PLAIN.probability(np.array([3.0, 1.0])) == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert PLAIN.probability(np.array([1e9, 0.0])) == pytest.approx(1 / (1 + np.exp(-4.5)))


def test_products_of_features_count() -> None:
    crossed = Evidence(0.0, (0.0,) * 3, (1.0,) * 3, (0.0,) * 3, (0.0,) * 3, (1.0, 10.0, 100.0))
    assert crossed.probability(np.array([1.0, 2.0, 0.0])) == pytest.approx(1 / (1 + np.exp(-2.0)))
    assert crossed.probability(np.array([0.2, 0.0, 0.5])) == pytest.approx(1 / (1 + np.exp(-1.0)))


def test_what_is_unlike_all_that_was_right_is_refused() -> None:
    bounded = Evidence(9.0, (0.0,), (1.0,), (0.0,), (0.0,), low=(-1.0,), high=(1.0,))
    assert bounded.probability(np.array([0.9])) > 0.99
    assert bounded.probability(np.array([1.1])) == 0.0
    assert bounded.probability(np.array([-1.1])) == 0.0


@pytest.mark.parametrize("test", [RING_TEST, BASIN_TEST])
def test_shipped_weights_are_whole(test: Evidence) -> None:
    size = len(test.mean)
    assert {len(part) for part in (test.scale, test.linear, test.square)} == {size}
    assert len(test.low) == len(test.high) in (0, size)
    assert len(test.products) in (0, size * (size - 1) // 2)
    assert min(test.scale) > 0
    assert all(a < b for a, b in zip(test.low, test.high, strict=True))
    assert 0 <= test.probability(np.array(test.mean)) <= 1
