"""Checks of models and endpoints before a benchmark that takes long to load is loaded."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

from agrotools.core import BENCHMARKS
from agrotools.loading.benchmarks import Loading, load_as
from agrotools.models import priced_model
from agrotools.runner.config import EvalConfig
from agrotools.runner.policies import names_endpoint
from agrotools.runner.progress import stage_progress

_LONG_LOADING_S = 1.0
"""Seconds of loading after which endpoints are asked: shorter loading is over before they answer."""


def check_models(configs: Sequence[EvalConfig]) -> list[EvalConfig]:
    """Return the configurations with an endpoint; UsageError for a benchmark or model that cannot be used."""
    for each in configs:
        name, roots = each.benchmark.name, (each.benchmark.data_root or Path(), Path())
        if name not in BENCHMARKS and not any((root / name).is_dir() for root in roots):
            load_as(name, Loading(each.benchmark.data_root))  # its error names similar ones
    with_endpoint = [each for each in configs if names_endpoint(each.model.name)]
    for each in with_endpoint:
        priced_model(each.endpoint)
    return with_endpoint


def contacting_progress(
    checked: Sequence[EvalConfig], stream: TextIO
) -> Callable[[str, int, int], None]:
    """Return a callback ``(stage, done, total)`` of long preparations that also finds endpoints that cannot be used.

    Model names, keys and addresses of ``checked`` are checked at once; after a moment, each endpoint answers a tiny
    request.

    Raises:
        UsageError, EndpointRefusal, EndpointUnreachable: a model cannot be used; the last two in the callback.
    """
    show = stage_progress(stream)
    waiting = check_models(checked)
    began = time.monotonic()

    def report(stage: str, done: int, total: int) -> None:
        from agrotools.models.probe import check_endpoint

        while waiting and time.monotonic() - began > _LONG_LOADING_S:
            each = waiting.pop()
            if not (
                each.run.cache or each.endpoint.server
            ):  # otherwise all replies may be in the cache
                asyncio.run(check_endpoint(each.endpoint, each.model.settings))
        show(stage, done, total)

    return report
