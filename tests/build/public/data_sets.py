"""Small copies of the twelve public data sets, as their authors lay them out."""

from collections.abc import Callable
from pathlib import Path

from fake_agromind import write_agromind
from fake_clcd import write_clcd
from fake_deepnir import write_deepnir
from fake_deepweeds import write_deepweeds
from fake_fpcd import write_fpcd
from fake_hi_cna import write_hi_cna
from fake_ip102 import write_ip102
from fake_open_canopy import FakeTile, write_open_canopy
from fake_papple import write_papple
from fake_plantseg import write_plantseg
from fake_weedmap import write_weedmap
from fake_weedsense import write_weedsense

PONDS = [
    [(0, 20, 20, 30)], [(1, 30, 40, 40), (0, 120, 90, 30)], [(2, 90, 40, 44)],
    [(3, 60, 90, 36), (0, 180, 20, 30)], [(4, 140, 60, 50)],
    [(1, 10, 10, 30), (1, 100, 20, 40), (1, 180, 120, 36), (1, 60, 120, 8)], [(1, 20, 30, 40), (3, 150, 90, 40)],
    [],
]  # fmt: skip
"""Ponds of each FPCD pair; a speck in the sixth."""
SHARES = [0, 6, 12, 2, 30, 18]
"""Changed shares of the CLCD and Hi-CNA pairs, percent."""

WRITERS: dict[str, Callable[[Path], Path]] = {
    "agromind": write_agromind, "clcd": lambda folder: write_clcd(folder, SHARES), "deepnir": write_deepnir,
    "deepweeds": write_deepweeds, "fpcd": lambda folder: write_fpcd(folder, PONDS),
    "hi_cna": lambda folder: write_hi_cna(folder, SHARES), "ip102": write_ip102, "open_canopy": write_open_canopy,
    "papple": write_papple, "plantseg": write_plantseg, "weedmap": write_weedmap, "weedsense": write_weedsense,
}  # fmt: skip
"""Writers of the data sets with everything that tests of an adapter look at."""
SMALL_WRITERS: dict[str, Callable[[Path], Path]] = WRITERS | {
    "clcd": lambda folder: write_clcd(folder, SHARES[:3]),
    "deepnir": lambda folder: write_deepnir(folder, of_each=2, wheat=2),
    "fpcd": lambda folder: write_fpcd(folder, PONDS[:3]),
    "hi_cna": lambda folder: write_hi_cna(folder, SHARES[:3]),
    "ip102": lambda folder: write_ip102(folder, 1, (0, 1, 3, 7, 14, 18)),
    "open_canopy": lambda folder: write_open_canopy(folder, {2021: [FakeTile()]}),
    "papple": lambda folder: write_papple(folder, 2),
    "plantseg": lambda folder: write_plantseg(folder, 1),
    "weedmap": lambda folder: write_weedmap(folder, frames=4, maps="005"),
    "weedsense": lambda folder: write_weedsense(folder, codes=4, frames=1),
}
"""Writers of the smallest copies that an adapter reads, to be damaged."""
