"""Report as one self-contained HTML file with tables, and with samples and their pictures."""

from agrotools.report.html.page import ReportResult, build_report
from agrotools.report.html.runs import incomparable

__all__ = ["ReportResult", "build_report", "incomparable"]
