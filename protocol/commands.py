"""The commands that cross the pipe between a manager and its dispatcher, by their two-letter codes.

The names and codes are NNI's, so that either side can be NNI's up to 2.7; those in
`OWN_COMMANDS` are Pitchpipe's, used only between peers that announced themselves.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

__all__ = [
    "OWN_COMMANDS",
    "PARAMETERS_ENVIRONMENT",
    "PROTOCOL_ENVIRONMENT",
    "PROTOCOL_VERSION",
    "CommandType",
    "Frame",
]

PROTOCOL_VERSION = 1
"""The version of Pitchpipe's additions to the protocol."""

PROTOCOL_ENVIRONMENT = "PITCHPIPE_PROTOCOL"
"""The environment variable by which a manager tells its dispatcher which version it speaks."""

# Not a command line, which every user of the machine can read.
PARAMETERS_ENVIRONMENT = "PITCHPIPE_EXP_PARAMS"
"""The environment variable with the configuration for Pitchpipe's own dispatcher, as `--exp_params` has it."""


class CommandType(Enum):
    """A command; its value is the code that opens the frame.

    >>> CommandType.RequestTrialJobs.value
    b'GE'
    >>> CommandType(b"TR").name
    'NewTrialJob'
    """

    wire: bytes  # the value, as a plain attribute: every frame needs it
    code: str  # the value as text

    def __init__(self, wire: bytes) -> None:
        self.wire = wire
        self.code = wire.decode()

    # manager -> dispatcher
    Initialize = b"IN"
    RequestTrialJobs = b"GE"
    ReportMetricData = b"ME"
    UpdateSearchSpace = b"SS"
    ImportData = b"FD"
    AddCustomizedTrialJob = b"AD"
    TrialEnd = b"EN"
    Terminate = b"TE"
    Ping = b"PI"

    # dispatcher -> manager
    Initialized = b"ID"
    NewTrialJob = b"TR"
    SendTrialJobParameter = b"SP"
    NoMoreTrialJobs = b"NO"
    KillTrialJob = b"KI"
    Error = b"ER"

    # dispatcher -> manager, between peers only
    Pause = b"PA"
    Resume = b"RE"
    Checkpoint = b"CK"
    Processed = b"PR"

    # Members are singletons, every frame is looked up by one, and the enum's own hash is slow.
    __hash__ = object.__hash__


OWN_COMMANDS = frozenset(
    {CommandType.Error, CommandType.Pause, CommandType.Resume, CommandType.Checkpoint, CommandType.Processed}
)
"""Commands that a dispatcher must not send to a manager that did not announce itself: NNI's would end."""


class Frame(NamedTuple):  # not a dataclass: the trial's SDK imports this package and must start fast
    """One command with its payload (JSON text, or nothing)."""

    command: CommandType
    payload: str = ""
