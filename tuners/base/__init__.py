"""What tuners share.

explored         points suggested or measured before, and the base class of tuners that only remember them
learning_tuner   base class of tuners that learn from results
scheduled_tuner  base class of schedulers, which train in stages
history          points and their losses, ranked
outcomes         what trials with several objectives, or with limits, reported
grid             a lazy walk over all points
embedding        the unit cube: its columns, and features for distance-based models
search_prior     where users expect good points
"""

from __future__ import annotations

from .embedding import Embedding, Layout
from .explored import Explored, NonRepeatingTuner, measurements, ready
from .history import History
from .learning_tuner import LearningTuner, latin_hypercube
from .outcomes import Outcomes
from .scheduled_tuner import Member, ScheduledTuner
from .search_prior import SearchPrior, rank_agreement
