"""The report: one self-contained HTML file about an experiment, with its figures."""

from __future__ import annotations

from .rendering import write_report
