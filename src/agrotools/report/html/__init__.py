"""Report as one self-contained HTML file with tables, and with samples and their pictures."""

from agrotools.report.html.page import DEFAULT_SAMPLES, ReportResult, build_report
from agrotools.report.html.runs import Outcomes, incomparable

__all__ = ["DEFAULT_SAMPLES", "Outcomes", "ReportResult", "build_report", "incomparable"]
