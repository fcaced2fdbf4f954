"""agrotools: how well do multimodal models use tools to solve agricultural problems?"""

from importlib.metadata import version as _version

__version__ = _version("agrotools")
