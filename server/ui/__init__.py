"""The pages: experiments, and of each one overview, trials, plots, settings and logs.

They are written in Python on NiceGUI, which keeps a connection to each open page; everything they need is served
from this machine. They read an experiment through `ExperimentView`, and ask its manager for changes.
"""

from __future__ import annotations

from .pages import add_pages
from .site import Site

__all__ = ["Site", "add_pages"]
