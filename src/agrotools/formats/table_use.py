"""Share of the table of own photos that a benchmark uses; its build counts the rows, its results name the share."""

from collections.abc import Mapping

from agrotools.core import FrozenModel
from agrotools.formats.stored import read_stored

USE_KEY = "table_use"
"""Key of the numbers in the metadata of a benchmark's header."""
_ENOUGH = 0.8
"""Share of the rows with a photo from which a benchmark stands for its table."""


class TableUse(FrozenModel):
    """Rows of a table with a photo, and those of them that are used, or would be with more questions."""

    used: int
    with_photo: int

    def warning(self) -> str:
        """Return the line that stands above all results if too few rows are used; empty if not."""
        if not self.with_photo or self.used >= _ENOUGH * self.with_photo:
            return ""
        share = 100 * self.used / self.with_photo
        return f"uses {self.used} of {self.with_photo} rows of the table that have a photo ({share:.0f} %)"


def stored_use(metadata: Mapping[str, object]) -> TableUse | None:
    """Return the numbers in the metadata of a benchmark's header; None if it has none.

    Raises:
        BenchmarkError: the metadata were changed, and are no such numbers.
    """
    stored = metadata.get(USE_KEY)
    return None if stored is None else read_stored(TableUse, stored, USE_KEY)


def stored_warnings(metadata: Mapping[str, object]) -> list[str]:
    """Return the lines that stand above all results on a benchmark; empty if nothing is wrong with it."""
    use = stored_use(metadata)
    line = use.warning() if use else ""
    return [f"The benchmark {line}."] if line else []
