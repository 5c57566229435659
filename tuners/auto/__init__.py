"""`Auto`, the default tuner, and the parts that no other tuner uses.

    tuner            what to suggest next: the first design, the model, a branch, the trust region, a small change
    model            Gaussian processes of the warped losses, and the candidates' expected improvement
    failure_model    where trials fail
    settings         one number or switch for each ingredient
    initial_design   the first suggestions
    local_search     how to look near the best point
    trust_region     how far from it
    learning_curves  results expected of trials that were stopped or still run

The Gaussian process is in `models/`, the search for candidates in `candidates/`; other tuners share both.
"""

from __future__ import annotations

from .tuner import AutoTuner
