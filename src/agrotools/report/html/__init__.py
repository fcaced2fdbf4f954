"""Report as one self-contained HTML file with tables, and with samples and their pictures."""

from pathlib import Path

LOOK = Path(__file__).parent / "look.css"
"""Colours and fonts of all pages. It is here because the review page has them, too, and need not import the report."""
