"""The former name of `pitchpipe.testing`, which the tests of some plug-ins import."""

from __future__ import annotations

from ..testing import CORNER, DIFFERENT, MANY, SPACES, TunerConformance, run, value_of

__all__ = ["CORNER", "DIFFERENT", "MANY", "SPACES", "TunerConformance", "run", "value_of"]
