"""The report: one HTML file that tells an experiment, with its figures, and needs nothing else to be read."""

from .pages import render_report, write_report

__all__ = ["render_report", "write_report"]
