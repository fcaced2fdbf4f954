"""A Ray cluster on this machine, whose nodes find the hostile tools and have a key in their environment."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

KEY = "sk-secret"


@contextmanager
def started_cluster(cache: Path, **head: Any) -> Iterator[Any]:
    """Provide the cluster of ``RAY_ADDRESS``, with a head node of these resources."""
    import hostile_tools
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("PYTHONPATH", str(Path(hostile_tools.__file__).parent))
        patch.setenv("AGROTOOLS_CACHE", str(cache))
        cluster = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **head})
        try:
            patch.setenv("RAY_ADDRESS", cluster.address)
            yield cluster
        finally:
            cluster.shutdown()
