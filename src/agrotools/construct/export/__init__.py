"""Benchmarks out and in: the native folder with its card, the Hugging Face layout, GTA-shaped JSON, Croissant."""

from agrotools.construct.export.folder import (
    FILES_FOLDER,
    HEADER_FILE,
    SAMPLES_FILE,
    check_replaceable,
    copy_artifacts,
    copy_benchmark,
    describe_benchmark,
    header_toml,
    replacing,
    write_benchmark,
)

__all__ = [
    "FILES_FOLDER",
    "HEADER_FILE",
    "SAMPLES_FILE",
    "check_replaceable",
    "copy_artifacts",
    "copy_benchmark",
    "describe_benchmark",
    "header_toml",
    "replacing",
    "write_benchmark",
]
