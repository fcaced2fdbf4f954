"""The report as one HTML file: tables, and samples with their pictures. Nothing in it is fetched from anywhere."""

from agrotools.report.html.choosing import Outcomes
from agrotools.report.html.page import DEFAULT_SAMPLES, Written, build_report

__all__ = ["DEFAULT_SAMPLES", "Outcomes", "Written", "build_report"]
