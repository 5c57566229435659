"""Thin adapters to other libraries. Each is one file, is imported by its name and has an extra of its own.

Importing `pitchpipe.integrations.xgboost` requires only xgboost, importing this package none of the libraries.
"""

from __future__ import annotations
