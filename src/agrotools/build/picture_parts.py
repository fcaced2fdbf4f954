"""Halves and quarters of a picture, with the names that people give them."""

Region = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels, half-open."""
Part = tuple[str, Region]


def halves(columns: int, rows: int) -> tuple[list[Part], list[Part]]:
    """The left and right half of a picture, and its upper and lower one."""
    x, y = columns // 2, rows // 2
    across: list[Part] = [("left", (0, 0, x, rows)), ("right", (x, 0, columns, rows))]
    return across, [("upper", (0, 0, columns, y)), ("lower", (0, y, columns, rows))]


def quarters(columns: int, rows: int) -> list[Part]:
    """The quarters of a picture, row by row."""
    x, y = columns // 2, rows // 2
    return [
        ("top left", (0, 0, x, y)),
        ("top right", (x, 0, columns, y)),
        ("bottom left", (0, y, x, rows)),
        ("bottom right", (x, y, columns, rows)),
    ]
