"""Usage of external agents: what they report, or what is counted at their endpoint, by sample and for the budget.

Never both: if an endpoint counts the requests of an agent, its own reports are ignored. A budget can stop only what has
a price, so that tokens without one are an error where there is a budget.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from agrotools.agents.task import UsageReport
from agrotools.core import (
    AgrotoolsError,
    BudgetReached,
    InfrastructureError,
    Reply,
    ToolSpec,
    Usage,
    UsageError,
    first_error,
)
from agrotools.models import Message, WireStats
from agrotools.models.base import json_bytes
from agrotools.models.metered import BUDGET_HINT, Budget
from agrotools.models.prices import price_by_name, price_of

if TYPE_CHECKING:
    from agrotools.agents.counting_endpoint import CountingEndpoint


class UsageMeter:
    """Prices and budget of the agents of a run.

    Args:
        price: ``IN/OUT`` in USD per million tokens, for reports without a cost; by default, the price of their model.
        endpoint: endpoint that counts the agents' requests; then their reports do not count.

    Raises:
        UsageError: the price does not have that form.
    """

    def __init__(
        self, price: str | None = None, endpoint: "CountingEndpoint | None" = None
    ) -> None:
        self._price = price_of(None, "", price) if price is not None else None
        self.endpoint = endpoint
        self.stats = WireStats()
        self.budget: Budget | None = None

    def charge_to(self, budget: Budget) -> None:
        """Set the budget that pays for the agents; what earlier processes of the run spent counts."""
        self.budget = budget
        if budget.ledger.total_usd:
            budget.show_in(self.stats)

    def pay(self, report: UsageReport) -> Usage:
        """Charge a report to the budget, and return its usage with its cost; UsageError if a budget needs it."""
        tokens = (report.input_tokens, report.output_tokens)
        price = self._price or price_by_name(report.model)
        cost = (
            report.cost_usd if report.cost_usd is not None or price is None else price.usd(*tokens)
        )
        usage = Usage(**report.model_dump(exclude={"model", "cost_usd"}), cost_usd=cost)
        self.stats.add_usage(usage)
        if self.budget is not None and cost is not None:
            if self.stats.spent_usd is None:
                self.budget.show_in(self.stats)
            self.budget.pay(*tokens, cost)
        elif self.budget is not None and self.budget.usd is not None:
            raise UsageError(
                f"the agent reported tokens without their cost, and the price of {report.model or 'its model'} is not "
                "known, so no budget can be kept",
                hint="give --price IN/OUT, USD per million input and output tokens, or let it report cost_usd",
            )
        return usage

    async def close(self) -> None:
        """End the endpoint."""
        if self.endpoint is not None:
            await self.endpoint.close()


class SampleUsage:
    """Requests of an agent on one sample: counted ones with their replies, or its reports, each as a reply.

    ``fault``: reason to end the sample, or the run; ``failed`` is set with it.
    """

    def __init__(self, meter: UsageMeter) -> None:
        self.meter = meter
        self.replies: tuple[Reply, ...] = ()
        self.requests: list[tuple[Sequence[Message], Sequence[ToolSpec]]] = []
        self.fault: AgrotoolsError | None = None
        self.failed = asyncio.Event()
        self._known: dict[bytes, Any] = {}

    async def begin(self, task: dict[str, Any]) -> None:
        """Add the endpoint, if there is one, to a task in JSON."""
        if self.meter.endpoint is not None:
            task["endpoint"] = await self.meter.endpoint.begin(self)

    def end(self) -> None:
        """Refuse further requests."""
        if self.meter.endpoint is not None:
            self.meter.endpoint.end(self)

    async def settle(self) -> None:
        """Wait for the last replies to requests of the sample, so that they are counted with it."""
        if self.meter.endpoint is not None:
            await self.meter.endpoint.settle(self)

    def fail(self, error: AgrotoolsError) -> None:
        """Set the fault, unless there is one."""
        self.fault = self.fault or error
        self.failed.set()

    def check(self) -> None:
        """Raise the fault, if there is one, or BudgetReached if the budget is spent."""
        if self.fault is not None:
            raise self.fault
        budget = self.meter.budget
        if budget is not None and budget.usd is not None and budget.ledger.total_usd >= budget.usd:
            raise BudgetReached(
                f"the agent has spent {budget.ledger.total_usd:.4f} of {budget.usd:g} USD",
                hint=BUDGET_HINT,
            )

    def report(self, data: dict[str, Any]) -> None:
        """Add a report of the agent; a fault of it is the fault of the sample."""
        if self.meter.endpoint is not None:
            return  # its requests are counted
        try:
            self.replies = (
                *self.replies,
                Reply(usage=self.meter.pay(UsageReport.model_validate(data))),
            )
        except ValidationError as error:
            self.fail(
                InfrastructureError(
                    f"the agent's report of its usage is invalid: {first_error(error)}"
                )
            )
        except AgrotoolsError as error:
            self.fail(error)

    def messages_of(self, body: dict[str, Any]) -> tuple[list[Message], list[Any]]:
        """Return messages and tools of a request. Equal ones are the same objects, because agents send all again."""
        from agrotools.agents.counting_endpoint import message_of, read_messages, tool_of

        messages, tools = read_messages(body)
        return [self._read(message_of, each) for each in messages], self._read(
            lambda _: [*map(tool_of, tools)], tools
        )

    def _read(self, read: Any, value: Any) -> Any:
        key = json_bytes(value)
        if key not in self._known:
            self._known[key] = read(value)
        return self._known[key]
