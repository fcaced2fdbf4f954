"""One choice of scale: the caller, the sample or sidecar, the file itself, in this order."""

import pytest

from agrotools.tools.pictures import choose_scale


@pytest.mark.parametrize(
    ("given_m", "known", "in_file", "chosen", "differs"),
    [
        (None, None, None, None, False), (None, None, 0.1, 0.1, False), (None, 0.2, 0.1, 0.2, False),
        (0.3, None, None, 0.3, False), (0.3, 0.2, 0.1, 0.3, True), (0.3, None, 0.2, 0.3, True),
        (0.2039, 0.2, None, 0.2039, False), (0.2041, 0.2, None, 0.2041, True),
    ],
)  # fmt: skip
def test_the_first_that_is_known_is_used_and_a_difference_flagged(given_m, known, in_file, chosen, differs):
    scale = choose_scale(given_m, known, in_file)
    assert scale.gsd_m == chosen
    assert scale.flags == (("gsd_differs_from_file",) if differs else ())
    assert all(f"{value:g}" in scale.notes[0] for value in (given_m, known or in_file) if value and differs)
