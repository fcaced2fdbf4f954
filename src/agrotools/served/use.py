"""Use of a tool server by a run, as its manifest holds it."""

from agrotools.core import FrozenModel


class ServerUse(FrozenModel):
    """A tool server as the manifest of a run holds it: other values are other settings."""

    name: str
    address: str
    version: str
    schemas: str
    """SHA-256 over its tools with their schemas and descriptions."""
    sealed: bool
    """True if its processes could read their own programs and the files of their sample alone."""
