"""How a run on GTA or ThinkGeo differs from the way of their papers: who shows printed rows beside it says so."""

from agrotools.benchmarks.published.ways import PUBLISHED_WAYS
from agrotools.core import Mode
from agrotools.runner.manifest import Manifest
from agrotools.runner.policies import is_baseline
from agrotools.runner.recorded_tools import RECORDED

PUBLISHED_SAMPLES = {"gta": {"": 229}, "thinkgeo": {"": 436, "optical": 436, "sar": 50, "all": 486}}
"""Questions by benchmark and ``split``, as the papers count them."""


def departures(manifest: Manifest, mode: Mode) -> tuple[str, ...]:
    """What differs, each in a few words; empty where the run was made as published but for the tools themselves."""
    found: list[str] = []
    if manifest.privileged:
        found.append("this policy sees the gold")
    way = PUBLISHED_WAYS[manifest.benchmark]
    baseline = is_baseline(manifest.model)
    if baseline:
        found.append("a baseline, which is no model and has no protocol")
    elif manifest.protocol != way.protocol:
        found.append(f"protocol {manifest.protocol}, not that of the paper")
    split = str(manifest.benchmark_options.get("split", ""))
    wanted = PUBLISHED_SAMPLES[manifest.benchmark].get(split)
    if wanted is not None and len(manifest.sample_ids) != wanted:
        found.append(f"{len(manifest.sample_ids)} questions of {wanted}")
    if mode == "end-to-end":
        recorded = sorted(tool for tool, backend in manifest.backends.items() if backend == RECORDED)
        others = [tool for tool in manifest.toolset if tool not in recorded]
        if recorded:
            found.append("recorded observations instead of tools" + (f" for {len(recorded)} of them" if others else ""))
        if others:
            found.append("tools of this package, not those of the paper")
        if not baseline and manifest.max_steps != way.max_steps:
            found.append(f"at most {manifest.max_steps} turns, not {way.max_steps}")
    return tuple(found)
