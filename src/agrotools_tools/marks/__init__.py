"""Marks drawn on photographs, and the regions inside them."""

from typing import Literal

MarkColour = Literal["red", "green", "blue", "yellow", "magenta", "cyan", "white"]
MarkShape = Literal["box", "ellipse", "polygon", "arrow"]
