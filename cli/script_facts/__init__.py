"""Facts about a training script, from its source without running it: parameters, defaults, reports.

script_syntax     the syntax tree, names and the values of expressions
script_options    options of a command line, and how a trial command passes them
*_scripts         one kind of script each, for the table in script_reading
lookups           what a script looks up in `get_next_parameter()`
script_reports    what it reports
guessed_ranges    a range for a name and a default
"""

from __future__ import annotations

from .guessed_ranges import is_budget, is_setting
from .script_reading import ScriptFacts, read_script
from .script_reports import higher_is_better

__all__ = ["ScriptFacts", "higher_is_better", "is_budget", "is_setting", "read_script"]
