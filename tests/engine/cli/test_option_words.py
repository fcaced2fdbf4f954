"""Words of the command line for what tools say of their arguments."""

import pytest

from agrotools.cli.option_words import in_options, options_of, with_pairs

OPTIONS = options_of(
    dict.fromkeys(
        ["bands", "gsd_m", "region", "view", "chm", "dsm", "dtm", "depth", "min_px", "label_map"]
    )
)


@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("say bands={'R': 3, 'NIR': 4}", """say --bands '{"R": 3, "NIR": 4}'"""),
        ("say bands={'R': 3} or {'N': 1}", """say --bands '{"R": 3}' or --bands '{"N": 1}'"""),
        ("bands: 'x' is no band", "--bands: 'x' is no band"),
        ("pass gsd_m, metres per pixel", "pass --gsd-m, metres per pixel"),
        ("min_px = 3 is not below", "--min-px 3 is not below"),
        ("say view='side'", "say --view side"),
        ("take a part with region", "take a part with --region"),
        ("pass chm, or dsm and dtm", "pass --chm, or --dsm and --dtm"),
        ("the depth of a region of bands", "the depth of a region of bands"),
        ("use a colour picture", "use a colour picture"),
        ("it takes view (optional), dsm", "it takes --view (optional), --dsm"),
    ],
)
def test_arguments_become_options(said: str, typed: str) -> None:
    assert in_options(said, OPTIONS) == typed
    assert in_options(typed, OPTIONS) == typed


def test_bands_of_zones_are_an_option_each() -> None:
    said = "say bands={'R': 3, 'NIR': 4}, or use {'R': 1}"
    typed = "say --band R=3 --band NIR=4, or use --band R=1"
    assert in_options(said, {"bands": "--band"}, with_pairs) == typed
