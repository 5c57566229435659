"""Facts about experiments and trials in words, for the command line, Python, pages, reports and agents alike.

A number, a count or a reason is written here and nowhere else, so that it reads the same wherever it is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol import lazy_names

if TYPE_CHECKING:
    from .best_lines import (
        best_intermediate_text,
        best_result_text,
        closeness_lines,
        closest_text,
        front_lines,
        front_text,
        gain_text,
        gains_over_defaults,
        why_none_text,
    )
    from .code_story import changed_since_text, code_changes, code_note, code_note_of, start_lines
    from .comparison import (
        ComparedExperiment,
        comparison_facts,
        comparison_notes,
        config_differences,
        milestones,
        setting_text,
        value_or_dash,
        why_not_compared,
    )
    from .failed_trials import (
        FailedTrial,
        ending_beside,
        ending_text,
        failed_text,
        region_object,
        region_text,
        trials_text,
    )
    from .run_progress import ENDED, STARTING, BestSoFar, ProgressLines, RunProgress, progress_line
    from .schedule_lines import SCHEDULE_HEADS, changes_of_schedule, copied_text, schedule_rows
    from .trial_story import (
        Ending,
        column_text,
        ending_of,
        facts_of,
        reason_text,
        repeats_text,
        value_text,
        values_text,
        violation_text,
        who_text,
    )
    from .words import (
        STATUS_WORDS,
        counts_text,
        differing_parameters,
        duration_text,
        escaped,
        experiment_text,
        is_bare,
        left_text,
        length_text,
        metric_text,
        moment_text,
        nouns,
        number_text,
        option_text,
        pace_text,
        parameter_texts,
        parameters_text,
        rate_text,
        result_text,
        results_text,
        standing_text,
        status_text,
        visible,
    )
else:
    __getattr__ = lazy_names(__name__, __file__)
