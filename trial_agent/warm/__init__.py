"""Warm starts: trials of a Python script are forks of a process that has already imported what the script imports.

starts        when there is such a process, a zygote, and when not; the start of a trial through it (in the agent)
hook/         the folder that brings the following into the trial's own Python
survey        finds what a script imports first
zygote        imports that, and forks
side_effects  which imports cannot be done ahead
"""

from __future__ import annotations

from .starts import Adopted, Launch, WarmStarts
