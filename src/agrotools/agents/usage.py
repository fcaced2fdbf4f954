"""Usage of external agents: what they report is priced, charged to the budget of the run, and added up by sample."""

from agrotools.agents.task import UsageReport
from agrotools.core import BudgetReached, Reply, Usage, UsageError
from agrotools.models import WireStats
from agrotools.models.metered import Budget
from agrotools.models.prices import price_by_name, price_of


class UsageMeter:
    """Prices and budget of the agents of a run.

    Args:
        price: ``IN/OUT`` in USD per million tokens, for reports without a cost; by default, the price of their model.

    Raises:
        UsageError: the price does not have that form.
    """

    def __init__(self, price: str | None = None) -> None:
        self._price = price_of(None, "", price) if price is not None else None
        self.stats = WireStats()
        self._budget: Budget | None = None

    def charge_to(self, budget: Budget) -> None:
        """Set the budget that pays for the agents; what earlier processes of the run spent counts."""
        self._budget = budget
        if budget.ledger.total_usd:
            budget.show_in(self.stats)

    def check_budget(self) -> None:
        """Check that the budget is not spent.

        Raises:
            BudgetReached: it is.
        """
        budget = self._budget
        if budget is not None and budget.usd is not None and budget.ledger.total_usd >= budget.usd:
            raise BudgetReached(
                f"the agent has spent {budget.ledger.total_usd:.4f} of {budget.usd:g} USD",
                hint="finished samples are kept; run the same command with a larger --budget to resume",
            )

    def pay(self, report: UsageReport) -> Usage:
        """Charge a report to the budget, and return its usage with its cost, if that is known.

        Raises:
            UsageError: there is a limit of cost, and the cost is not known.
        """
        tokens = (report.input_tokens, report.output_tokens)
        price = self._price or price_by_name(report.model)
        cost = report.cost_usd if report.cost_usd is not None or price is None else price.usd(*tokens)
        self.stats.replies += 1
        self.stats.input_tokens += report.input_tokens
        self.stats.output_tokens += report.output_tokens
        if self._budget is not None and cost is not None:
            if self.stats.spent_usd is None:
                self._budget.show_in(self.stats)
            self._budget.pay(*tokens, cost)
        elif self._budget is not None and self._budget.usd is not None:
            raise UsageError(
                f"the agent reported tokens without their cost, and the price of {report.model or 'its model'} is not "
                "known, so no budget can be kept",
                hint="give --price IN/OUT, USD per million input and output tokens, or let it report cost_usd",
            )
        return Usage(**report.model_dump(exclude={"model", "cost_usd"}), cost_usd=cost)


class SampleUsage:
    """Sum of the reports on one sample."""

    def __init__(self, meter: UsageMeter) -> None:
        self.meter = meter
        self._usage: Usage | None = None

    @property
    def replies(self) -> tuple[Reply, ...]:
        """The sum as a single reply; empty if nothing was reported."""
        return () if self._usage is None else (Reply(usage=self._usage),)

    def add(self, report: UsageReport) -> None:
        """Add a report, and charge it to the budget; see :meth:`UsageMeter.pay`."""
        usage = self.meter.pay(report)
        if self._usage is None:
            self._usage = usage
            return
        costs = (self._usage.cost_usd, usage.cost_usd)
        self._usage = Usage(
            input_tokens=self._usage.input_tokens + usage.input_tokens,
            output_tokens=self._usage.output_tokens + usage.output_tokens,
            cached_input_tokens=self._usage.cached_input_tokens + usage.cached_input_tokens,
            cost_usd=None if costs[0] is None or costs[1] is None else costs[0] + costs[1],
        )
