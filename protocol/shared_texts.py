"""Texts that one process writes and another recognises: why an attempt failed, and why a search ended."""

from __future__ import annotations

# The attempt was to start from a checkpoint that no longer exists.
CHECKPOINT_GONE = "its checkpoint is gone"
# What Python writes between two tracebacks if the first exception led to the second one.
LED_TO = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
# "used 3 GiB, more than the limit of 2 GiB": the agent has killed the trial.
OVER_LIMIT = "more than the limit of"

# Why the command of a trial could not be started.
NOT_FOUND = "command not found: "
NOT_EXECUTABLE = "not executable: "
NOT_UNDERSTOOD = "cannot understand the command "
CANNOT_RUN = "cannot run "
NO_COMMAND = "the command is empty"
NOT_STARTED = (NOT_FOUND, NOT_EXECUTABLE, NOT_UNDERSTOOD, CANNOT_RUN, NO_COMMAND)

# How the reasons begin for which `stop_when` ends a search.
EXPECTED_GAIN = "expected gain "
NO_GAIN = "no further gain is expected"
