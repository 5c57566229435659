"""`Auto`, the default tuner, and the parts that no other tuner uses.

    tuner          what to suggest next: the first design, the model, a branch, the trust region, a small change
    model          one number or switch for each ingredient; the losses and the candidates' expected improvement
    outcome_model  the same of several objectives, and of limits
    side_models    how unfinished trials end, where trials fail, and what earlier searches know
    local_search   how to look near the best point, and how far from it

The Gaussian process is in `numerics/`, its fits and the search for candidates in `models/`, which other tuners share.
"""

from __future__ import annotations

from .tuner import AutoTuner
