"""Facts about experiments and trials in words, for the command line, Python, pages, reports and agents alike.

A number, a count or a reason is written here and nowhere else, so that it reads the same wherever it is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .best_lines import gain_text, gains_over_defaults
    from .failed_trials import (
        FailedTrial,
        ending_beside,
        ending_text,
        excerpt,
        hint_text,
        region_text,
        trials_text,
    )
    from .trial_story import Ending, ending_of, facts_of
    from .words import (
        STATUS_WORDS,
        best_result_text,
        closeness_lines,
        closest_text,
        counts_text,
        duration_text,
        escaped,
        experiment_text,
        front_lines,
        front_text,
        is_bare,
        left_text,
        length_text,
        margin_text,
        moment_text,
        nouns,
        number_text,
        option_text,
        parameters_text,
        rate_text,
        reason_text,
        repeat_text,
        repeats_text,
        result_text,
        value_text,
        values_text,
        violation_text,
        visible,
    )
else:
    __getattr__ = lazy_names(__name__, __file__)
