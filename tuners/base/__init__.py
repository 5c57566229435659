"""What tuners share.

non_repeating_tuner  base class of tuners that only remember points: Random, GridSearch, QMC
learning_tuner       base class of tuners that learn from results
scheduled_tuner      base class of schedulers, which train in stages
history              points and their losses, ranked
explored             points suggested or measured before
grid                 a lazy walk over all points
layout               columns of the unit cube: numbers, choices, branches
search_prior         where users expect good points
embedding            the unit cube as features for distance-based models
"""

from __future__ import annotations

from .embedding import Embedding, active_dimension
from .explored import Explored, measurements, ready
from .history import History
from .layout import Layout
from .learning_tuner import LearningTuner, latin_hypercube
from .non_repeating_tuner import NonRepeatingTuner
from .outcomes import Outcomes
from .scheduled_tuner import Member, ScheduledTuner
from .search_prior import SearchPrior, rank_agreement
