"""Shards of a run: parts of its samples, each run on a machine of its own (``--shard 3/16``), merged afterwards.

Samples that share a cluster stay together, and shards have about the same number of requests. The split follows from
the samples and modes of the run alone, so that every machine computes the same one.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import cast

from agrotools.core import Mode, UsageError
from agrotools.core.base import count_text
from agrotools.runner.estimate import expected_requests
from agrotools.runner.manifest import Manifest, Shard
from agrotools.runner.plan import Plan


def shard_text(shard: object) -> str:
    """Return a shard, ``"3/16"`` or ``(3, 16)``, as text; UsageError if it is none of 1 to the count."""
    given = "/".join(map(str, cast("Sequence[object]", shard))) if isinstance(shard, tuple | list) else str(shard)
    match = re.fullmatch(r"\s*([0-9]{1,18})\s*/\s*([0-9]{1,18})\s*", given)
    if match is None:
        raise UsageError(f"shard {given!r} is not of the form NUMBER/COUNT", hint="e.g. 3/16, the third of 16 shards")
    number, count = map(int, match.groups())
    if not 1 <= number <= count:
        hint = f"shards are numbered from 1/{count} to {count}/{count}" if count else "at least one shard, e.g. 1/1"
        raise UsageError(f"there is no shard {number}/{count}", hint=hint)
    return f"{number}/{count}"


def shard_run(plan: Plan, manifest: Manifest, shard: str) -> tuple[Plan, Manifest]:
    """Return plan and manifest of one shard of a run; UsageError if there are more shards than clusters."""
    number, count = map(int, shard.split("/"))
    own = split(plan, count)[number - 1]
    parts = [each._replace(positions=[at for at in each.positions if at in own]) for each in plan.parts]
    part = Plan(plan.samples, parts)
    one_epoch: dict[Mode, int] = {mode: n // manifest.epochs for mode, n in manifest.planned.items()}
    whole = Shard(number=number, count=count, sample_ids=manifest.sample_ids, planned=one_epoch)
    update = {"shard": whole, "sample_ids": part.sample_ids(), "planned": part.sizes()}
    return part, manifest.model_copy(update=update)


def split(plan: Plan, count: int) -> list[set[int]]:
    """Return the positions of the samples of each shard.

    The cluster with the most requests comes first, and each goes to the shard with the fewest requests so far (Graham's
    rule of longest processing times, at most a third above the best possible split).

    Raises:
        UsageError: there are more shards than clusters.
    """
    costs, members = Counter[str](), dict[str, set[int]]()
    for part in plan.parts:
        for at in part.positions if part.epoch == 0 else ():
            sample = plan.samples[at]
            cluster = sample.cluster or sample.id
            costs[cluster] += expected_requests(sample, part.mode)
            members.setdefault(cluster, set()).add(at)
    if count > len(costs):
        raise UsageError(
            f"{count} shards of {count_text(len(costs), 'cluster')}: some would be empty, because samples that share"
            " a file run on one machine",
            hint=f"--shard NUMBER/{len(costs)} or fewer",
        )
    shards = [set[int]() for _ in range(count)]
    loads = [0] * count
    for cluster in sorted(costs, key=lambda name: (-costs[name], name)):
        least = loads.index(min(loads))
        shards[least] |= members[cluster]
        loads[least] += costs[cluster]
    return shards
