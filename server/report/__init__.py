"""The report: one self-contained HTML file about an experiment, with its figures."""

from __future__ import annotations

from .pages import render_report, write_report

__all__ = ["render_report", "write_report"]
