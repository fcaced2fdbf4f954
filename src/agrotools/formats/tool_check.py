"""How often a tool agrees with the table of own photos: found by the build of a benchmark, shown by its runs."""

from collections.abc import Mapping, Sequence

from agrotools.core import FrozenModel
from agrotools.core.texts import counted_names, difference_text, within_text
from agrotools.formats.stored import read_stored

METADATA_KEY = "tool_check"
"""Key of the checks in the metadata of a benchmark's header."""
_PHOTOS_NAMED = 12
"""Photos that a sentence names: about as many as fit on two lines."""


class LabelCount(FrozenModel):
    """What the tool called the photos of one label of the table."""

    label: str
    right: int
    otherwise: int
    not_named: int


class ToolCheck(FrozenModel):
    """Comparison of a column with what its tool returned.

    ``agreed`` of ``n`` photos have the value of the table (numbers: within the tolerance); ``lower`` and ``upper``:
    95 % interval of that share, from 0 to 1. ``silent``: photos without a result. ``otherwise``: photos with another
    name.
    ``labels``: counts by label, for names. ``mean_difference``: mean absolute difference in ``unit``, for numbers.
    """

    column: str
    tool: str
    backend: str | None = None
    """Back-end of the tool, if the build was told one."""
    kind: str
    n: int
    agreed: int
    lower: float
    upper: float
    silent: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()
    labels: tuple[LabelCount, ...] = ()
    mean_difference: float | None = None
    unit: str | None = None
    abs_tol: float = 0.0
    rel_tol: float = 0.0

    def sentence(self) -> str:
        """Return the comparison in one sentence."""
        tool = f"{self.tool} ({self.backend})" if self.backend else self.tool
        share = f"{self.agreed} of {self.n} photos"
        interval = f"({100 * self.lower:.0f} to {100 * self.upper:.0f} %)"
        if self.kind == "number":
            within = within_text(self.abs_tol, self.rel_tol, self.unit, of="the value")
            text = f"{self.column}: {tool} agrees with you on {share} {interval}, {within}"
            if self.mean_difference is not None:
                differs = difference_text(f"{self.mean_difference:.3g}", self.unit)
                text += f"; it differs by {differs} on average"
            return text + _named("no value", self.silent)
        text = f"{self.column}: {tool} names {share} as you do {interval}"
        text += _named("another name", self.otherwise)
        return text + _named("no name", self.silent)

    def table(self) -> list[str]:
        """Return the counts by label as lines of a table; empty for numbers and where there is one label."""
        if len(self.labels) < 2:
            return []
        width = max(len("label"), *(len(each.label) for each in self.labels))
        lines = [f"{'label':{width}}  named right  named otherwise  not named"]
        lines += [
            f"{each.label:{width}}  {each.right:11}  {each.otherwise:15}  {each.not_named:9}"
            for each in self.labels
        ]
        return lines


def _named(what: str, photos: Sequence[str]) -> str:
    if not photos:
        return ""
    return f"; {what}: {counted_names(photos, _PHOTOS_NAMED)}"


def stored_checks(metadata: Mapping[str, object]) -> list[ToolCheck]:
    """Return the checks in the metadata of a benchmark's header; empty if it has none.

    Raises:
        BenchmarkError: the metadata were changed, and are no checks.
    """
    listed = metadata.get(METADATA_KEY)
    if not isinstance(listed, list):
        return []
    return [read_stored(ToolCheck, each, METADATA_KEY) for each in listed]
