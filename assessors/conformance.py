"""The former name of `pitchpipe.testing`, which the tests of some plug-ins import."""

from __future__ import annotations

from ..testing import STEPS, AssessorConformance, curve, feed

__all__ = ["STEPS", "AssessorConformance", "curve", "feed"]
