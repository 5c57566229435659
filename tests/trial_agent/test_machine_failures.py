"""Each call of the agent that the system can refuse is refused once: the machine is at fault, if anything fails."""

from __future__ import annotations

import builtins
import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pitchpipe
from pitchpipe.runner import AttemptEnded, FailureKind
from pitchpipe.runner.verdicts import failure_kind
from pitchpipe.sdk.errors import MachineError
from pitchpipe.trial_agent import core
from pitchpipe.trial_agent.command_trial import spawn
from pitchpipe.trial_agent.warm import Launch

from .client import PATIENCE, REPORTS_AND_SAVES, Actor, LocalAgent, reports_and_saves, start, wait_until
from .test_command_trials import script
from .test_saving import agent_of

REFUSABLE = {
    os: "open makedirs mkdir read write fsync rename replace listdir stat fstat lseek pipe unlink rmdir",
    builtins: "open",
    subprocess: "Popen",
}


class System:
    """Refuses the call number `refused` of one thread, from when it is asked to; counts them."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.thread: int | None = None
        self.calls: list[str] = []
        self.refused = 0
        self.why = errno.EIO
        for module, names in REFUSABLE.items():
            for name in names.split():
                call = getattr(module, name)
                patch.setattr(module, name, self._counting(f"{module.__name__}.{name}", call))

    def _counting(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **more: Any) -> Any:
            # The pipe on which a new process says that it runs never fails.
            is_counted = (name, sys._getframe(1).f_code.co_filename) != ("os.read", subprocess.__file__)
            if threading.get_ident() == self.thread and is_counted:
                self.calls.append(f"{name}{arguments!r}")
                if len(self.calls) == self.refused:
                    raise OSError(self.why, os.strerror(self.why))
            return call(*arguments, **more)

        return counted


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    monkeypatch.setattr(core, "RETRY_PAUSE", 0.0)
    return System(monkeypatch)


@pytest.fixture
def bench(tmp_path: Path, system: System) -> Callable[..., list[dict[str, Any]]]:
    """Return what runs a trial in an agent, in whose thread one call is refused, and then another one."""
    runs = 0

    def run(kind: str, refused: int, why: int = errno.EIO, **run: Any) -> list[dict[str, Any]]:
        nonlocal runs
        runs += 1
        folder = tmp_path / str(runs)
        folder.mkdir()
        with Actor(folder) as actor:
            if kind == "command":
                actor.configure(kind=kind, command=REPORTS_AND_SAVES, **run)
            else:
                actor.configure_function(reports_and_saves if kind == "function" else Steps, **run)
            system.thread, system.calls, system.refused, system.why = actor.thread.ident, [], refused, why
            events = actor.run()
            system.thread = None
            assert actor.run(trial="after", sequence_id=1)[-1]["exit_code"] == 0
        return events

    return run


class Steps(pitchpipe.Trainable):
    def setup(self, parameters: dict[str, Any]) -> None:
        self.left = 2

    def step(self) -> dict[str, Any]:
        self.left -= 1
        return {"default": 0.9, "done": not self.left}

    def save_checkpoint(self, folder: str) -> dict[str, Any]:
        return {"left": self.left}

    def load_checkpoint(self, checkpoint: Any) -> None:
        raise AssertionError("nothing to restore")


def fault(events: list[dict[str, Any]]) -> str:
    """Return who is at fault: `machine`, `trial` or, of a success, nobody."""
    *others, ended = events
    problems = [event for event in others if event["e"] == "problem"]
    if problems or ended.get("infra"):
        return "machine" if all(problem.get("infra") for problem in problems) else "trial"
    whole = AttemptEnded(0.0, "AbCdE", 1, exit_code=ended["exit_code"], error=ended["error"])
    if whole.error is None and whole.exit_code == 0:
        finals = [event["value"] for event in events if event["e"] == "report" and event["kind"] == "final"]
        return "" if len(finals) == 1 and "0.9" in finals[0] else "trial"
    return "machine" if failure_kind(whole) is FailureKind.INFRA else "trial"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "synced", "why"),
    [("command", True, errno.EIO), ("function", False, errno.EMFILE), ("class", True, errno.EIO)],
)
def test_no_call_that_the_system_refuses_to_the_agent_is_the_fault_of_the_trial(
    kind: str, synced: bool, why: int, bench: Callable[..., Any], system: System
) -> None:
    assert fault(bench(kind, 0, synced=synced)) == ""
    count, refused = len(system.calls), []
    for number in range(1, count + 3):
        events = bench(kind, number, why, synced=synced)
        if len(system.calls) < number:
            continue  # reads may be more or fewer
        refused.append(system.calls[number - 1])
        assert fault(events) != "trial", (refused[-1], events)
    assert len(refused) > 5, system.calls


NOTHING = Launch(arguments=["/bin/true"], directory="/", environment={}, mark=b"", stdout=1, stderr=2)


@pytest.mark.parametrize("why", [errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY])
def test_process_that_the_system_cannot_make_is_not_a_command_that_cannot_run(
    why: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(MachineError) as raised:
        spawn(NOTHING)
    assert raised.value.errno == why


def test_agent_without_descriptors_is_the_fault_of_the_machine_and_recovers(agent: LocalAgent) -> None:
    client = agent.command("true")
    client.run(trial="before")
    soft, hard = resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{agent.process.pid}/fd"))
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (used, hard))
    ended = client.run(trial="without")[-1]
    assert (ended["infra"], ended["exit_code"]) == (True, None)
    assert "Too many open files" in ended["error"]
    resource.prlimit(agent.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
    assert client.run(trial="after")[-1]["exit_code"] == 0


def test_kill_and_shutdown_do_not_wait_until_the_machine_may_be_well_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "RETRY_PAUSE", 3600.0)
    (tmp_path / "trials").touch()  # no folder can be made there
    with Actor(tmp_path) as actor:
        actor.configure(kind="command", command="true")
        agent = actor.agent
        for number, ask in enumerate(({"op": "kill", "trial": "t0", "attempt": 1}, {"op": "shutdown"})):
            agent.handle(start(trial=f"t{number}"))
            wait_until(lambda: agent._current is not None or not agent._waiting, "the start")
            agent.handle(ask)
            wait_until(lambda: agent._current is None and not agent._waiting, "the end")
        actor.thread.join(PATIENCE)
        assert not actor.thread.is_alive()


def test_error_of_the_system_is_the_trials_unless_it_was_in_a_report(
    agent: LocalAgent, tmp_path: Path
) -> None:
    def limited(parameters: dict[str, Any]) -> None:
        import pitchpipe

        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            if parameters["reports"]:
                pitchpipe.report_final_result(0.9)
            else:
                with open(parameters["path"], "w") as file:
                    file.write("0.9")
        except OSError as error:
            raise RuntimeError("training failed") from error
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    client = agent.function(limited)
    for reports in (True, False):
        client.tell(
            start(trial=str(reports), parameters={"reports": reports, "path": str(tmp_path / "mine")})
        )
        events = client.until_ended(str(reports))
        assert "RuntimeError: training failed" in events[-1]["error"]
        assert fault(events) == ("machine" if reports else "trial")


HALF = """
echo '{"intermediate": 1}' >> $PITCHPIPE_REPORTS
dd if=/dev/zero of=$PITCHPIPE_OUTPUT_DIR/ballast bs=4096 2> /dev/null
(printf '{"final": '; head -c 8000 /dev/zero | tr '\\0' 1; echo '}') >> $PITCHPIPE_REPORTS
true
"""


def test_result_that_a_script_cannot_write_is_the_fault_of_a_full_disk(
    agent_on_small_disk: LocalAgent,
) -> None:
    events = agent_on_small_disk.command(HALF).run()
    assert [event["e"] for event in events if event["e"] != "problem"] == ["started", "report", "ended"]
    assert fault(events) == "machine"


# A script whose calls of the system are refused while it makes one of the SDK: `then` is what it does about it.
REFUSED = """
import errno, os, sys
from pitchpipe.sdk import line_file

def refuse(*_):
    raise OSError({why}, os.strerror({why}))

import pitchpipe
pitchpipe.report_intermediate_result(0.5)
write = line_file.os.write
{where} = refuse
try:
    pitchpipe.{call}
except OSError:
    {then_at_once}
line_file.os.write = write
{then}
"""
REPORTS = ("line_file.os.write", "report_final_result(1)")
SAVES = ("os.makedirs", "save_checkpoint({})")
RAISES = "raise"
ENDS = "sys.exit(1)"  # its last words did not fit either
FAILS = "raise RuntimeError('training failed')"
CONTINUES = "pitchpipe.report_intermediate_result(0.6); sys.exit(1)"  # it got over that


@pytest.mark.parametrize(
    ("what", "why", "then", "who"),
    [
        (REPORTS, errno.EIO, RAISES, "machine"),
        (("os.stat", "report_final_result(1)"), errno.EIO, RAISES, "machine"),
        (("os.rename", "save_checkpoint({})"), errno.EIO, RAISES, "machine"),
        (SAVES, errno.EIO, RAISES, "machine"),
        (("os.listdir", "report_final_result(os.listdir())"), errno.EIO, RAISES, "trial"),
        (REPORTS, errno.ENOSPC, ENDS, "machine"),
        (REPORTS, errno.EDQUOT, FAILS, "machine"),
        (REPORTS, errno.EIO, CONTINUES, "trial"),
        (REPORTS, errno.ENOSPC, "", "machine"),  # and did not forget its final result
        (SAVES, errno.EMFILE, ENDS, "machine"),
        (SAVES, errno.ENOSPC, FAILS, "machine"),
        (SAVES, errno.ENOSPC, CONTINUES, "trial"),
    ],
)
def test_report_that_a_script_cannot_write_is_the_fault_of_the_machine_whatever_the_script_says(
    what: tuple[str, str], why: int, then: str, who: str, agent: LocalAgent
) -> None:
    where, call = what
    at_once, later = (then, "") if then == RAISES else ("pass", then)
    text = REFUSED.format(where=where, call=call, why=why, then_at_once=at_once, then=later)
    events = agent.command(script(agent, text)).run()
    assert fault(events) == who
    if then != RAISES:
        assert (os.strerror(why) in (events[-1]["error"] or "")) is (who == "machine")
    assert events[-1]["exit_code"] == (1 if then else 0)


UNOPENED = """
import errno, os, sys
import pitchpipe

def refuse(*_):
    raise OSError(errno.EIO, os.strerror(errno.EIO))

os.open = refuse
try:
    pitchpipe.report_intermediate_result(0.5)
except OSError:
    sys.exit(1)  # its last words did not fit either
"""


def test_file_of_reports_that_a_script_cannot_open_is_the_fault_of_the_machine(agent: LocalAgent) -> None:
    events = agent.command(script(agent, UNOPENED)).run()
    assert fault(events) == "machine"


CHAINED = """
import errno, os

def save():
    raise OSError({why}, os.strerror({why}))

try:
    save()
except OSError{name}:
    raise RuntimeError("unexpected pos 64 vs 0"){cause}
"""


@pytest.mark.parametrize("kind", ["command", "function"])
@pytest.mark.parametrize(
    ("is_named", "why", "who"),
    [(False, errno.ENOSPC, "machine"), (True, errno.EDQUOT, "machine"), (False, errno.ENOENT, "trial")],
)
def test_library_that_raises_another_error_for_a_full_disk_hides_nothing(
    kind: str, is_named: bool, why: int, who: str, agent: LocalAgent
) -> None:
    name, cause = (" as error", " from error") if is_named else ("", "")
    text = CHAINED.format(name=name, cause=cause, why=why)
    ended = agent_of(agent, kind, text).run()[-1]
    assert ended["error"].endswith("RuntimeError: unexpected pos 64 vs 0")
    assert fault([ended]) == who


FULL = """
import os, sys, pitchpipe
ballast = os.path.join(os.environ["PITCHPIPE_OUTPUT_DIR"], "ballast")
try:
    {fill}
except OSError:
    pass
pitchpipe.get_next_parameter()
{what}
"""
BYTES = "open(ballast, 'wb', buffering=0).write(bytes(8 << 20))"
NODES = "[open(f'{ballast}-{number}', 'w').close() for number in range(200_000)]"


@pytest.mark.parametrize(
    ("fill", "what"),
    [
        (BYTES, "pitchpipe.save_checkpoint({'weights': 'x' * 100_000})"),
        (NODES, "pitchpipe.save_checkpoint({'weights': 'x'})"),
        (NODES, "open(ballast + '-model', 'w')"),
        (NODES, "sys.exit('cannot save the model')"),
    ],
)
def test_failure_on_a_disk_without_blocks_or_inodes_is_the_fault_of_the_machine(
    fill: str, what: str, agent_on_small_disk: LocalAgent
) -> None:
    command = script(agent_on_small_disk, FULL.format(fill=fill, what=what))
    events = agent_on_small_disk.command(command).run()
    assert events[-1]["exit_code"] == 1
    assert fault(events) == "machine"
