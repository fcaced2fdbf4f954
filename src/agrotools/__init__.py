"""agrotools: how well do multimodal models use tools to solve agricultural problems?"""

__version__: str


def __getattr__(name: str) -> str:
    if name == "__version__":
        # Read when asked for: importlib.metadata alone would cost a tenth of the start of the command.
        from importlib.metadata import version

        return version("agrotools")
    raise AttributeError(f"module 'agrotools' has no attribute {name!r}")
