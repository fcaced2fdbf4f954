"""Seconds per query, by the parts that metrics are broken down by: a sum and a number for each kind of sample."""

from collections.abc import Callable

from agrotools.scoring.sample_table import Kind, SampleTable
from agrotools.scoring.summary import Seconds, SecondsByPart


class SecondsTally:
    """The seconds that the valid records of a mode took, record by record."""

    def __init__(self, table: SampleTable) -> None:
        self._table = table
        self._sums: dict[int, tuple[float, int]] = {}

    def add(self, sample: int, seconds: float) -> None:
        """A valid record of the sample of that number in the table."""
        kind = self._table.kind_of[sample]
        total, n = self._sums.get(kind, (0.0, 0))
        self._sums[kind] = (total + seconds, n + 1)

    def by_part(self) -> SecondsByPart | None:
        """The means; None where nothing was added."""
        if not self._sums:
            return None
        kinds = [(self._table.kinds[at], amount) for at, amount in self._sums.items()]
        names = sorted({name for kind, _ in kinds for name, _ in kind.groups})

        def parts(label: Callable[[Kind], str | None]) -> dict[str, Seconds]:
            own: dict[str, list[tuple[float, int]]] = {}
            for kind, amount in kinds:
                if (value := label(kind)) is not None:
                    own.setdefault(value, []).append(amount)
            return {value: _mean(own[value]) for value in sorted(own)}

        return SecondsByPart(
            overall=_mean([amount for _, amount in kinds]),
            by_family=parts(lambda kind: kind.family),
            by_task_type=parts(lambda kind: kind.task_type),
            by_answer_type=parts(lambda kind: kind.answer_type),
            by_group={name: parts(lambda kind, name=name: dict(kind.groups).get(name)) for name in names},
        )


def _mean(amounts: list[tuple[float, int]]) -> Seconds:
    n = sum(count for _, count in amounts)
    return Seconds(mean=sum(total for total, _ in amounts) / n, n=n)
