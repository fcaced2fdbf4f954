"""Differences of runs on published benchmarks from the runs of their papers."""

from agrotools.benchmarks._dialogs.samples import PUBLISHED_WAYS
from agrotools.core import Mode
from agrotools.runner.config import RECORDED
from agrotools.runner.manifest import Manifest
from agrotools.runner.policies import is_baseline

PUBLISHED_SAMPLES = {
    "gta": {"": 229},
    "thinkgeo": {"": 436, "optical": 436, "sar": 50, "all": 486},
    "agent-x": {"": 828},
}
"""Questions by benchmark and ``split``, as the papers count them."""


def departures(manifest: Manifest, mode: Mode) -> tuple[str, ...]:
    """What differs, each in a few words; empty where the run was made as published but for the tools themselves."""
    found: list[str] = []
    if manifest.privileged:
        found.append("this policy sees the gold")
    way = PUBLISHED_WAYS.get(manifest.benchmark)
    baseline = is_baseline(manifest.model)
    if baseline:
        found.append("a baseline, which is no model and has no protocol")
    elif way is not None and manifest.protocol != way.protocol:
        found.append(f"protocol {manifest.protocol}, not that of the paper")
    split = str(manifest.benchmark_options.get("split", ""))
    wanted = PUBLISHED_SAMPLES.get(manifest.benchmark, {}).get(split)
    if wanted is not None and len(manifest.sample_ids) != wanted:
        found.append(f"{len(manifest.sample_ids)} questions of {wanted}")
    if manifest.benchmark == "agent-x":
        return (*found, *_tools_of_agent_x(manifest, mode))
    if mode == "end-to-end":
        recorded, others = _tools(manifest)
        if recorded:
            found.append("recorded observations instead of tools" + (f" for {len(recorded)} of them" if others else ""))
        if others:
            found.append("tools of this package, not those of the paper")
        if way is not None and not baseline and manifest.max_steps != way.max_steps:
            found.append(f"at most {manifest.max_steps} turns, not {way.max_steps}")
    return tuple(found)


def _tools(manifest: Manifest) -> tuple[list[str], list[str]]:
    """The tools that were not run, but answered for from the reference, and the others."""
    recorded = sorted(tool for tool, backend in manifest.backends.items() if backend == RECORDED)
    return recorded, [tool for tool in manifest.toolset if tool not in recorded]


def _tools_of_agent_x(manifest: Manifest, mode: Mode) -> list[str]:
    """Agent-X runs no tool: the model makes up what they return."""
    if mode == "end-to-end":
        recorded, others = _tools(manifest)
        ran = "tools ran" if others else "recorded observations" if recorded else ""
        return [f"{ran}; in the paper the model makes up what tools return"] if ran else []
    prompted = manifest.protocol == PUBLISHED_WAYS["agent-x"].protocol and not is_baseline(manifest.model)
    return ["a prompt of ours, which offers the tools of the question alone"] if prompted else []
