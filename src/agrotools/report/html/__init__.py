"""Report as one self-contained HTML file with tables, and with samples and their pictures."""

from agrotools.report.html.page import ReportResult, build_report
from agrotools.report.html.runs import ScoreRows, incomparable, keep_rows

__all__ = ["ReportResult", "ScoreRows", "build_report", "incomparable", "keep_rows"]
