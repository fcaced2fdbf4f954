"""Export and import of benchmarks: native folder with its card, Hugging Face layout, GTA-shaped JSON, Croissant."""

from agrotools.build.export.folder import (
    copy_benchmark,
    copy_files,
    describe_benchmark,
    rewrite_benchmark,
    write_benchmark,
)

__all__ = ["copy_benchmark", "copy_files", "describe_benchmark", "rewrite_benchmark", "write_benchmark"]
