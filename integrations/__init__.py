"""Thin adapters to other people's libraries: one file each, imported by its name, each an optional extra.

`pitchpipe.integrations.xgboost` needs xgboost and no other of these libraries; importing this package needs none.
"""

from __future__ import annotations
