"""Figures of experiments: pure functions from plain tables to plotly figures.

Make a table with `ExperimentTable.of(name, objectives, trials, dimensions_of(space), curves=...)`; each `plot_...`
draws a figure of it, with `theme="light"` or `"dark"`. `figure.update_layout(template=template("dark"))` changes the
theme of a figure. plotly is imported when the first figure is drawn.
"""

from __future__ import annotations

from .dimensions import Dimension, dimensions_of, drawable, existing_together, inferred, label, number_or_none
from .example import example_table
from .figure_parts import base_figure, nothing, ranged, short, value_axis, value_name, written
from .importances import Importance, importance, plot_importance
from .learning_curves import plot_curves
from .outline import MOST_TRIALS, Outline, Span, best_so_far, downsampled, joined
from .parallel_coordinates import looks_on_an_axis, metrics_in_order, plot_parallel
from .parameter_figures import contour_axes, plot_contour, plot_slice
from .result_figures import plot_edf, plot_history, plot_pareto
from .schedule_figure import plot_schedule
from .search_notes import health_notes
from .shown import Shown, shown_of
from .tables import Curve, ExperimentTable, Objective, TrialRecord, chosen_numbers
from .theme import BEST, SERIES, STATUS_LOOKS, ThemeName, template, template_layout, theme_of
from .timeline import plot_timeline

__all__ = [
    "BEST",
    "MOST_TRIALS",
    "SERIES",
    "STATUS_LOOKS",
    "Curve",
    "Dimension",
    "ExperimentTable",
    "Importance",
    "Objective",
    "Outline",
    "Shown",
    "Span",
    "ThemeName",
    "TrialRecord",
    "base_figure",
    "best_so_far",
    "chosen_numbers",
    "contour_axes",
    "dimensions_of",
    "downsampled",
    "drawable",
    "example_table",
    "existing_together",
    "health_notes",
    "importance",
    "inferred",
    "joined",
    "label",
    "looks_on_an_axis",
    "metrics_in_order",
    "nothing",
    "number_or_none",
    "plot_contour",
    "plot_curves",
    "plot_edf",
    "plot_history",
    "plot_importance",
    "plot_parallel",
    "plot_pareto",
    "plot_schedule",
    "plot_slice",
    "plot_timeline",
    "ranged",
    "short",
    "shown_of",
    "template",
    "template_layout",
    "theme_of",
    "value_axis",
    "value_name",
    "written",
]
