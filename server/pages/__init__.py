"""The web pages: the list of experiments, and for each one overview, trials, plots, settings and logs.

They are built on NiceGUI, which keeps a connection to each open page; all their files come from this machine. They
read an experiment through `ExperimentView` and request changes from its manager.
"""

from __future__ import annotations

from .frame import ROOT
from .page_routes import add_pages
