"""Reports: terminal tables of runs, comparisons of two runs, and explanations of single samples."""

from agrotools.report.comparison import comparison_tables
from agrotools.report.explain import explain, explanation_text, print_explanation
from agrotools.report.tables import print_tables, tables, tables_text

__all__ = [
    "comparison_tables",
    "explain",
    "explanation_text",
    "print_explanation",
    "print_tables",
    "tables",
    "tables_text",
]
