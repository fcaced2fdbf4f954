"""Readers of public repositories for the benchmark ``field``, by the name of the data set's folder."""

from field_sources.snapshot import Reader
from field_sources.trees import TOWN_TREES

READERS: dict[str, Reader] = {
    "town_trees": TOWN_TREES,
}
