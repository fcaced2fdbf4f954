"""What tools that are exact themselves return, so that a chain's truth is known before anything runs."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import orjson
from pydantic import JsonValue

from agrotools.core import PlotSeries, PlotSpec
from agrotools.text.expressions import evaluate
from agrotools.tools.result import round_significant

_DIGITS = 6
"""Tools round what they return to six significant digits."""


def exact_result(tool: str, arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    """What ``calculate``, ``plot`` or ``lookup_agronomy`` returns for these arguments, as far as questions need it."""
    if tool == "calculate":
        return _calculated(arguments)
    if tool == "plot":
        return {"spec": _spec(arguments)}
    return _looked_up(arguments)


def _calculated(arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    value = evaluate(arguments["expression"], arguments.get("variables") or {})
    return {"value": cast(JsonValue, round_significant(float(value), _DIGITS) if isinstance(value, float) else value)}


def _spec(arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    series = tuple(PlotSeries.model_validate(each) for each in arguments["series"])
    told = {name: arguments[name] for name in ("title", "x_label", "y_label", "x_unit", "y_unit") if name in arguments}
    legend = arguments["kind"] == "pie" or len(series) > 1
    spec = PlotSpec.model_validate({"kind": arguments["kind"], "series": series, "legend": legend, **told})
    return spec.model_dump(mode="json")


def _looked_up(arguments: Mapping[str, Any]) -> dict[str, JsonValue]:
    return orjson.loads(_hits(orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)))


@lru_cache(maxsize=1024)
def _hits(arguments: bytes) -> str:
    """The same entries are asked about of many pictures."""
    from agrotools.tools import lookup_agronomy

    return lookup_agronomy(**orjson.loads(arguments)).model_dump_json()
