"""The line at the bottom of a terminal that is written over again and again; in a pipe, plain lines."""

import os
import sys
from typing import TextIO

_DUMB = ("dumb", "unknown")
_USUAL_COLUMNS = 80


class LiveLine:
    """Writes to a stream that may be a terminal of any width, a pipe, or gone.

    A stream that breaks (its reader went away, its disk is full) is given up: what is written to it is lost, and
    nothing is raised.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._gone = False
        self._drawn_cells = 0
        self._open = False
        self.live = _is_terminal(stream)
        """Whether the line can be written over: a terminal that moves its cursor (``TERM`` is not ``dumb``)."""

    @property
    def cells(self) -> int:
        """Cells that a line may fill now; the last column stays free, where terminals differ in when they wrap."""
        try:
            columns = os.get_terminal_size(self._stream.fileno()).columns
        except (OSError, ValueError):
            columns = 0
        return max((columns or _USUAL_COLUMNS) - 1, 1)

    def draw(self, text: str) -> None:
        """Show ``text`` in place of what was drawn before, cut to the terminal; in a pipe, as a line of its own."""
        if not self.live:
            self._write(f"{printable(text)}\n")
            return
        from rich.cells import cell_len

        cells = self.cells
        text = cut(printable(text), cells)
        self._write(self._erased(cells) + text)
        self._drawn_cells = cell_len(text)
        self._open = True

    def print(self, text: str) -> None:
        """Write a line that stays. The next :meth:`draw` goes below it."""
        erased = self._erased(self.cells) if self._open else ""
        self._write(f"{erased}{printable(text)}\n")
        self._open = False

    def end(self) -> None:
        """Leave what is drawn where it is, and go on below it."""
        if self._open:
            self._write("\n")
            self._open = False

    def _erased(self, cells: int) -> str:
        """What removes the drawn line, also where the terminal has become so narrow that it fills several rows."""
        rows_above = (self._drawn_cells - 1) // (cells + 1) if self._open and self._drawn_cells else 0
        return f"\033[{rows_above}A\r\033[J" if rows_above else "\r\033[K"

    def _write(self, text: str) -> None:
        if self._gone:
            return
        try:
            self._put(text)
        except BlockingIOError:
            pass
        except (OSError, ValueError):
            self._gone = True
            _let_go(self._stream)

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            self._stream.write(text.encode("ascii", "backslashreplace").decode())
        self._stream.flush()


def cut(text: str, cells: int) -> str:
    """``text`` in at most ``cells`` cells, ``…`` where something is left out. A wide character takes two cells."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= cells:
        return text
    return set_cell_size(text, cells - 1).rstrip() + "…" if cells > 1 else "…"[:cells]


def printable(text: str) -> str:
    """``text`` without control characters, so that a name can neither move the cursor nor break the line."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "?" for each in text)


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty() and os.environ.get("TERM") not in _DUMB
    except ValueError:
        return False


def _let_go(stream: TextIO) -> None:
    """Point a standard stream nowhere: Python would fail at exit over what is left in its buffer."""
    if stream in (sys.stdout, sys.stderr):
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
        except (OSError, ValueError):
            return
