"""Drawing with one thread."""

from collections.abc import Iterator
from contextlib import contextmanager

import cv2


@contextmanager
def one_thread() -> Iterator[None]:
    """Thousands of tiny drawing operations: handing each to several threads costs more than it gains."""
    threads = cv2.getNumThreads()
    cv2.setNumThreads(1)
    try:
        yield
    finally:
        cv2.setNumThreads(threads)
