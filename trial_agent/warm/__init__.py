"""Warm starts: trials of a Python script are forks of a process that has already imported what the script imports.

starts        when there is such a process, and when not (in the agent)
launch        what a trial is started with, and which zygote fits it
zygotes       one zygote: its process, and the start of a trial through it, whose parent the agent becomes
hook/         the folder that brings the following into the trial's own Python
survey        finds what a script imports first
zygote        imports that, and forks
side_effects  which imports cannot be done ahead
"""

from __future__ import annotations

from .launch import Launch
from .starts import WarmStarts
from .zygotes import Adopted
