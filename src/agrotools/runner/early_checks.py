"""Checks of models and endpoints before a benchmark that takes long to load is loaded."""

import time
from collections.abc import Sequence
from pathlib import Path

from agrotools.agents.options import AgentOptions
from agrotools.calling.services import run_now
from agrotools.core import BENCHMARKS
from agrotools.core.progress import Progress
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.models import priced_model
from agrotools.runner.config import EvalConfig
from agrotools.runner.policies import names_endpoint, policy_source

_LONG_LOADING_S = 1.0
"""Seconds of loading after which endpoints are asked: shorter loading is over before they answer."""


def check_models(configs: Sequence[EvalConfig]) -> list[EvalConfig]:
    """Return the configurations with an endpoint; UsageError for a benchmark or model that cannot be used."""
    for each in configs:
        name, roots = each.benchmark.name, (each.benchmark.data_root or Path(), Path())
        if name not in BENCHMARKS and not any((root / name).is_dir() for root in roots):
            load_as(name, Loading(each.benchmark.data_root))  # its error names similar ones
    for each in configs:
        if names_endpoint(each.model.name):
            priced_model(each.endpoint)
        else:
            # Whether there is such a baseline, run, script or agent does not depend on the samples.
            policy_source(each.endpoint, (), agents=AgentOptions(agent=each.external_agent))
    return with_endpoint(configs)


def with_endpoint(configs: Sequence[EvalConfig]) -> list[EvalConfig]:
    """Return the configurations whose model is at an endpoint: all that is left to check once they are known."""
    return [each for each in configs if names_endpoint(each.model.name)]


class EndpointCheck:
    """Check of the endpoints of runs while something else takes long: each answers a tiny request once.

    Model names, keys and addresses are checked at once.

    Raises:
        UsageError: a model cannot be used.
    """

    def __init__(self, checked: Sequence[EvalConfig]) -> None:
        self._waiting = check_models(checked)
        self._began = time.monotonic()

    def when_due(self) -> None:
        """Send a tiny request to each endpoint that was not asked yet, if the work already takes long.

        Raises:
            EndpointRefusal, EndpointUnreachable: an endpoint cannot be used.
        """
        from agrotools.models.probe import check_endpoint

        while self._waiting and time.monotonic() - self._began > _LONG_LOADING_S:
            each = self._waiting.pop()
            replies_may_be_cached = each.run.cache or each.endpoint.server
            if not replies_may_be_cached:
                # Some work tells of its steps within an event loop: the calls of tools on new scenes.
                run_now(check_endpoint(each.endpoint, each.model.settings))

    def between_steps(self, show: Progress) -> Progress:
        """Return what long work calls between its steps: first this check, if it is due, then ``show``."""

        def check_and_show(stage: str, done: int, total: int) -> None:
            self.when_due()
            show(stage, done, total)

        return check_and_show
