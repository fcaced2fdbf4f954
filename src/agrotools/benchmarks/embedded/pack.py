"""Packed form of the drawn benchmarks, that of :mod:`agrotools.benchmarks.pack`."""

from agrotools.benchmarks.pack import Pack, pack_path, read_pack, write_pack

__all__ = ["Pack", "pack_path", "read_pack", "write_pack"]
