"""What verbs print, in the words of the tools: an agent has tools and arguments, not verbs and options."""

from __future__ import annotations

import re

__all__ = ["in_words_of_tools"]

_TOOLS = {
    "init": "draft_config",
    "validate": "validate_config",
    "run": "start_experiment",
    "create": "start_experiment",
    "list": "list_experiments",
    "status": "explain_experiment",
    "trials": "list_trials",
    "trial show": "explain_trial",
    "trial log": "read_trial_log",
    "trial add": "add_trial",
    "trial kill": "kill_trial",
    "update": "change_limits",
    "stop": "stop_experiment",
    "resume": "resume_experiment",
}
_ARGUMENTS = {
    "-o": "output",
    "--output": "output",
    "--force": "overwrite=true",
    "--param": "parameters",
    "--parameters": "parameters",
    "--fix": "fix",
    "--without": "without",
    "--maximize": "maximize",
    "--minimize": "maximize=false",
    "--set": "changes",
    "--try": "try_seconds",
    "--where": "where",
    "--sort": "sort",
    "--limit": "limit",
    "--max-trial-number": "max_trial_number",
    "--max-experiment-duration": "max_experiment_duration",
    "--trial-concurrency": "trial_concurrency",
    "--experiment-id": "experiment_id",
}
# What has no counterpart: click's usage, the mark of an error, options that no tool has.
_DROPPED = re.compile(
    r"^Usage: .*\n|^Try '.*\n\n?|^[Ee]rror: | \(use --anyway[^)]*\)|,? or --dir DIR| --dir \S+", re.MULTILINE
)
_VERB = re.compile(rf"pitchpipe ({'|'.join(sorted(_TOOLS, key=len, reverse=True))})\b")
_OPTION = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, _ARGUMENTS))})(?![\w-])")


def in_words_of_tools(text: str) -> str:
    """Return a message of a verb with the names of tools and of their arguments.

    >>> in_words_of_tools("error: a.yml exists already: choose another with -o, or add --force")
    'a.yml exists already: choose another with output, or add overwrite=true'
    >>> in_words_of_tools("it is DONE, and pitchpipe resume k3 --max-trial-number N extends it")
    'it is DONE, and resume_experiment k3 max_trial_number N extends it'
    """
    text = _VERB.sub(lambda found: _TOOLS[found[1]], _DROPPED.sub("", text))
    return _OPTION.sub(lambda found: _ARGUMENTS[found[1]], text)
