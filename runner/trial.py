"""One trial: its data, its statuses and the table of its legal moves."""

from __future__ import annotations

import hashlib
from collections.abc import Container
from dataclasses import dataclass, field
from enum import StrEnum
from string import ascii_lowercase, ascii_uppercase, digits


class TrialStatus(StrEnum):
    """The state of a trial (NNI's names; PAUSED is Ray Tune's)."""

    WAITING = "WAITING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    EARLY_STOPPED = "EARLY_STOPPED"
    USER_CANCELED = "USER_CANCELED"
    SYS_CANCELED = "SYS_CANCELED"

    __hash__ = str.__hash__  # needed for each event; the enum's own is slow

    @property
    def is_final(self) -> bool:
        """Whether the trial has ended; a failed or cancelled one can be run again."""
        return self not in _LIVE


_LIVE = (TrialStatus.WAITING, TrialStatus.RUNNING, TrialStatus.PAUSED)


class Cause(StrEnum):
    """Why a trial moves."""

    STARTED = "started"
    ENDED_WELL = "ended well"
    ENDED_BADLY = "ended badly"
    EARLY_STOP = "stopped early"
    USER_CANCEL = "cancelled by the user"
    SYSTEM_CANCEL = "cancelled by the system"
    REFUSED = "refused by the executor"
    PAUSED = "paused"
    RESUMED = "resumed"
    RETRIED = "retried"

    __hash__ = str.__hash__


_ENDS = {
    Cause.ENDED_WELL: TrialStatus.SUCCEEDED,
    Cause.ENDED_BADLY: TrialStatus.FAILED,
    Cause.EARLY_STOP: TrialStatus.EARLY_STOPPED,
    Cause.USER_CANCEL: TrialStatus.USER_CANCELED,
    Cause.SYSTEM_CANCEL: TrialStatus.SYS_CANCELED,
}

# Every status has a row. A trial may end before its start is reported.
TRIAL_MOVES: dict[TrialStatus, dict[Cause, TrialStatus]] = {
    TrialStatus.WAITING: {
        Cause.STARTED: TrialStatus.RUNNING,
        Cause.REFUSED: TrialStatus.WAITING,
        Cause.RETRIED: TrialStatus.WAITING,
        Cause.PAUSED: TrialStatus.PAUSED,
        **_ENDS,
    },
    TrialStatus.RUNNING: {Cause.PAUSED: TrialStatus.PAUSED, Cause.RETRIED: TrialStatus.WAITING, **_ENDS},
    TrialStatus.PAUSED: {
        Cause.RESUMED: TrialStatus.WAITING,
        Cause.EARLY_STOP: TrialStatus.EARLY_STOPPED,
        Cause.USER_CANCEL: TrialStatus.USER_CANCELED,
        Cause.SYSTEM_CANCEL: TrialStatus.SYS_CANCELED,
    },
    TrialStatus.SUCCEEDED: {},
    TrialStatus.FAILED: {Cause.RESUMED: TrialStatus.WAITING},
    TrialStatus.EARLY_STOPPED: {},
    TrialStatus.USER_CANCELED: {},
    TrialStatus.SYS_CANCELED: {Cause.RESUMED: TrialStatus.WAITING},
}


class FailureKind(StrEnum):
    """What kind of failure ended an attempt."""

    INFRA = "INFRA"  # its agent, worker or node was lost, or the machine refused what the agent needs
    OOM = "OOM"  # out of memory: of the machine, of its limit, of a device
    TIMEOUT = "TIMEOUT"  # longer than max_trial_duration
    NAN = "NAN"  # its final result is NaN
    IMPORT = "IMPORT"  # a module that cannot be imported
    USER_ERROR = "USER_ERROR"  # any other error of the script
    KILLED = "KILLED"  # a signal that Pitchpipe did not send


class WrongMove(Exception):
    """A bug in the manager: a move that the trial's status forbids; the message has the trial's last moves."""

    def __init__(self, trial: Trial, cause: Cause) -> None:
        story = "; ".join(trial.story) or "nothing"
        super().__init__(
            f"trial {trial.trial_id} is {trial.status} and cannot be '{cause}'; its story: {story}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a trial ends when its process is gone, and why."""

    cause: Cause
    reason: str
    kind: FailureKind | None = None


@dataclass(slots=True, kw_only=True)
class Trial:
    """One evaluation of one parameter set."""

    trial_id: str
    sequence_id: int
    parameter_id: int | str | None
    record: str  # the parameter record as JSON text, as the tuner sent it
    created: float
    status: TrialStatus = TrialStatus.WAITING
    attempt: int = 0
    slot: int | None = None
    agent: str | None = None
    gpus: tuple[int, ...] | None = None
    start_time: float | None = None
    end_time: float | None = None
    next_sequence: int = 0  # the number of the next intermediate result
    finals: int = 0
    final: str | None = None  # the JSON text of the final result
    values: tuple[float, ...] | None = None  # of the final result, for each objective
    verdict: Verdict | None = None
    reason: str = ""  # why it ended as it did
    kind: FailureKind | None = None
    exit_code: int | None = None
    pid: int | None = None
    error: str | None = None
    next_unsent: int = 0  # that of the next one to send to the dispatcher
    first_sequence: int = 0  # that of the first one of the present attempt
    checkpoint: str | None = None  # where the next attempt starts: a path in the experiment's folder
    checkpoint_sequence: int = 0  # that of the first one after the checkpoint
    copy_of: str | None = None  # the checkpoint of another trial that is copied to `checkpoint` before
    budget: float | None = None
    failed: dict[str, int] = field(default_factory=dict)  # attempts, by kind of failure
    resume: str | None = None  # the JSON of a `PendingResume`
    user_retries: int = 0  # how often the user had it run again after it had ended
    code: str | None = None  # the digest of what its last attempt ran: a row of `code_versions`
    story: tuple[str, ...] = field(default=(), repr=False)

    def move(self, cause: Cause) -> None:
        """Change the status as the table says; raise `WrongMove` if it has no move for `cause`."""
        target = TRIAL_MOVES[self.status].get(cause)
        if target is None:
            raise WrongMove(self, cause)
        self.story = (*self.story[-7:], f"{self.status} -> {target} ({cause})")
        self.status = target

    @property
    def mark(self) -> str:
        """What distinguishes the trial from a forgotten one with its number and id: the time when it was made.

        >>> Trial(trial_id="AbCdE", sequence_id=0, parameter_id=0, record="{}", created=1714550400.25).mark
        '6175fdf8e7090'
        """
        return f"{round(self.created * 1e6):x}"

    @property
    def is_assigned(self) -> bool:
        """Whether an executor was asked to run it and has not ended it."""
        return self.slot is not None


def _table(signs: str) -> bytes:
    """Return the table that makes each byte one of the signs."""
    return bytes(ord(signs[byte % len(signs)]) for byte in range(256))


_LETTERS = _table(ascii_uppercase + ascii_lowercase)
_SIGNS = _table(ascii_uppercase + ascii_lowercase + digits)


def new_trial_id(experiment_id: str, sequence_id: int, taken: Container[str]) -> str:
    """Return a trial id in NNI's form (a letter, then four letters or digits), the same in each call.

    >>> new_trial_id("demo", 0, ()) == new_trial_id("demo", 0, ()) != new_trial_id("demo", 1, ())
    True
    """
    for attempt in range(1000):
        digest = hashlib.blake2b(f"{experiment_id}/{sequence_id}/{attempt}".encode(), digest_size=5).digest()
        trial_id = (digest[:1].translate(_LETTERS) + digest[1:].translate(_SIGNS)).decode()
        if trial_id not in taken:
            return trial_id
    raise RuntimeError("no free trial id: the experiment holds too many trials for ids of five characters")
