"""jieba, which parts Chinese text into words (extra ``zh``)."""

import warnings
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import Any

from agrotools.core import UsageError
from agrotools.core.files import cache_dir


@cache
def jieba_cutter() -> tuple[Any, str]:
    """A tokenizer of jieba's with its dictionary, and jieba's version.

    Raises:
        UsageError: jieba is not installed.
    """
    with warnings.catch_warnings():
        # Its strings have escapes that newer Pythons warn of, and it imports pkg_resources where that is present.
        warnings.simplefilter("ignore")
        try:
            jieba: Any = import_module("jieba")
        except ImportError as error:
            raise UsageError(
                "parting Chinese text into words needs jieba", hint="pip install 'agrotools[zh]'"
            ) from error
        jieba.setLogLevel("CRITICAL")
        cutter = jieba.Tokenizer()
        # It keeps its dictionary compiled, by default where every user of the machine could put another in its place.
        folder = cache_dir("jieba")
        with suppress(OSError):  # without the folder it reads its list anew each time
            folder.mkdir(parents=True, exist_ok=True)
        cutter.tmp_dir = str(folder)
        cutter.initialize()
    return cutter, str(jieba.__version__)
