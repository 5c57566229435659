"""Checkpoints and pauses of command trials and functions, run by a real agent and killed at bad moments."""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from pitchpipe.sdk import Checkpoint
from pitchpipe.sdk.checkpoint import write_data
from pitchpipe.sdk.line_file import LineFile
from pitchpipe.trial_agent import Job, RunSpec
from pitchpipe.trial_agent.agent_events import Outbox
from pitchpipe.trial_agent.function_channel import FunctionChannel

from .client import PATIENCE, Client, LocalAgent, read_spool, start, wait_until
from .test_command_trials import READY, REPORT, script

Parameters = dict[str, Any]
Event = dict[str, Any]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the agent cannot import the tests

TRAIN = """
import pitchpipe as p, os, signal, sys
saved = p.get_checkpoint()
epoch = saved.to_dict()["epoch"] + 1 if saved else 0
while epoch < (p.get_budget() or 4):
    p.report_intermediate_result(epoch * 10)
    p.save_checkpoint({"epoch": epoch})
    if epoch == 1 and not saved:
        os.kill(os.getpid(), signal.SIGKILL)
    epoch += 1
p.report_final_result(epoch)
"""

SHELL = """
epoch=0
if [ -n "$PITCHPIPE_CHECKPOINT" ]; then epoch=$(cat "$PITCHPIPE_CHECKPOINT/epoch"); fi
while [ "$epoch" -lt 4 ]; do
    echo "{\\"intermediate\\": $epoch}" >> "$PITCHPIPE_REPORTS"
    epoch=$((epoch + 1))
    mkdir state; echo "$epoch" > state/epoch
    cp -r state "$PITCHPIPE_CHECKPOINTS/$PITCHPIPE_ATTEMPT-$epoch"; rm -r state
    echo "{\\"checkpoint\\": \\"$PITCHPIPE_ATTEMPT-$epoch\\"}" >> "$PITCHPIPE_REPORTS"
    if [ "$epoch$PITCHPIPE_ATTEMPT" = 21 ]; then kill -9 $$; fi
done
echo "{\\"final\\": $epoch}" >> "$PITCHPIPE_REPORTS"
"""


def recorded(events: list[Event]) -> list[tuple[Any, ...]]:
    """Return what was reported and saved, in order: (sequence, value) and (name, next sequence, value)."""
    found: list[tuple[Any, ...]] = []
    for event in events:
        if event["e"] == "report":
            found.append((event["sequence"], event["value"]))
        elif event["e"] == "checkpoint":
            found.append((event["name"], event["sequence"], event["value"]))
    return found


def last_checkpoint(events: list[Event]) -> Event:
    return [event for event in events if event["e"] == "checkpoint"][-1]


def continuation(events: list[Event], attempt: int = 2, **more: Any) -> dict[str, Any]:
    """Return the start of the attempt that continues from the last checkpoint of an earlier one."""
    saved = last_checkpoint(events)
    path = f"trials/0/checkpoints/{saved['name']}"
    return start(attempt=attempt, checkpoint=path, first_sequence=saved["sequence"], **more)


def pause(attempt: int = 1) -> dict[str, Any]:
    return {"op": "pause", "trial": "AbCdE", "attempt": attempt}


def agent_of(agent: LocalAgent, kind: str, text: str) -> Client:
    """Configure the agent for trials that run a text, as a command or in a function."""
    if kind == "command":
        return agent.command(script(agent, text))
    return agent.function(lambda _parameters: exec(text, {}))


def checkpoint_names(agent: LocalAgent) -> list[str]:
    return sorted(os.listdir(agent.trial_file("checkpoints")))


@pytest.mark.parametrize("language", ["python", "shell"])
def test_killed_script_continues_from_its_checkpoint_with_the_next_number(
    agent: LocalAgent, language: str
) -> None:
    (agent.folder / "train.sh").write_text(SHELL)
    client = agent.command(script(agent, TRAIN) if language == "python" else "sh train.sh")
    first = client.run()
    factor = 10 if language == "python" else 1
    assert recorded(first) == [(0, "0"), ("1-1", 1, 0.0), (1, str(factor)), ("1-2", 2, 1.0 * factor)]
    assert first[-1]["signal"] == 9
    client.tell(continuation(first))
    second = client.until_ended(attempt=2)
    assert second[-1]["exit_code"] == 0
    reports = [(e["kind"], e["sequence"], e["value"]) for e in second if e["e"] == "report"]
    assert reports == [
        ("intermediate", 2, str(2 * factor)),
        ("intermediate", 3, str(3 * factor)),
        ("final", 0, "4"),
    ]
    assert [e["sequence"] for e in second if e["e"] == "checkpoint"] == [3, 4]
    spool = agent.trial_file("reports-2.jsonl")
    assert [e | {"time": 0} for e in read_spool(spool, "AbCdE", 2, 2)] == [
        e | {"time": 0} for e in second[1:]
    ]


@pytest.mark.parametrize(("kind", "variable"), [("command", "41"), ("function", None)])
def test_budget_and_seed_reach_a_trial(agent: LocalAgent, kind: str, variable: str | None) -> None:
    text = (
        "import os, pitchpipe as p\n"
        "p.report_final_result([p.get_budget(), p.get_seed(), os.environ.get('PITCHPIPE_SEED')])"
    )
    client = agent_of(agent, kind, text)
    record = '{"parameter_id": 0, "parameters": {"seed": 7}, "family": 0, "repeat": 1, "seed": 41}'
    client.tell({**start(budget=2.5), "parameters": record})
    assert recorded(client.until_ended()) == [(0, json.dumps([2.5, 41, variable]))]
    assert recorded(client.run(attempt=2, parameters={"seed": 7})) == [(0, "[null, null, null]")]


def test_environment_of_the_first_attempt_has_no_checkpoint(agent: LocalAgent) -> None:
    agent.command("env").run()
    lines = agent.trial_file("stdout").read_text().splitlines()
    assert f"PITCHPIPE_CHECKPOINTS={agent.trial_file('checkpoints')}" in lines
    assert not [line for line in lines if line.startswith(("PITCHPIPE_CHECKPOINT=", "PITCHPIPE_BUDGET="))]


def test_trial_that_saves_nothing_leaves_no_folder(agent: LocalAgent) -> None:
    agent.command("true").run()
    assert not agent.trial_file("checkpoints").exists()


def test_only_so_many_checkpoints_stay(agent: LocalAgent) -> None:
    text = "import pitchpipe as p, sys\n" + (
        "for epoch in range(6):\n"
        "    p.report_intermediate_result([3, 9, 5, 1, 2, 4][epoch])\n"
        "    p.save_checkpoint({'epoch': epoch})\n"
    )
    agent.command(script(agent, text)).run(keep={"keep": 2, "rank_by": "score", "mode": "maximize"})
    assert set(checkpoint_names(agent)) >= {"1-2", "1-3", "1-6"}
    assert len(checkpoint_names(agent)) <= 5  # two may stay until the manager knows later ones
    assert Checkpoint(str(agent.trial_file("checkpoints/1-6"))).to_dict() == {"epoch": 5}


def test_checkpoint_without_a_folder_is_a_readable_problem(agent: LocalAgent) -> None:
    command = 'echo \'{"checkpoint": "1-9"}\' >> $PITCHPIPE_REPORTS'
    (problem,) = [event for event in agent.command(command).run() if event["e"] == "problem"]
    assert "there is no folder" in problem["message"]


@pytest.mark.parametrize("kind", ["command", "function"])
def test_trial_killed_while_it_saves_leaves_the_last_whole_checkpoint(agent: LocalAgent, kind: str) -> None:
    text = (
        "import pitchpipe as p, os, signal\n"
        "class Bomb:\n"
        "    def __reduce__(self):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "p.report_intermediate_result(1)\n"
        "p.save_checkpoint({'epoch': 0})\n"
        "p.report_intermediate_result(2)\n"
        "p.save_checkpoint({'epoch': 1, 'bomb': Bomb()})\n"
    )
    client = agent_of(agent, kind, text)
    client.tell(start())
    if kind == "command":
        events = client.until_ended()
        assert events[-1]["signal"] == 9
    else:  # the agent is killed with it
        agent.process.wait(PATIENCE)
        events = read_spool(agent.folder / "agents" / f"{agent.id}.jsonl", "AbCdE", 1)
    assert recorded(events) == [(0, "1"), ("1-1", 1, 1.0), (1, "2")]
    assert Checkpoint(str(agent.trial_file("checkpoints/1-1"))).to_dict() == {"epoch": 0}
    names = checkpoint_names(agent)
    assert [name for name in names if kind == "command" or not name.startswith(".")] == ["1-1"]


def resumable(parameters: Parameters) -> int:
    import pitchpipe as p

    saved = p.get_checkpoint()
    first = saved.to_dict()["epoch"] + 1 if saved else 0
    for epoch in range(first, int(p.get_budget() or 4)):
        p.report_intermediate_result({"default": epoch, "loss": 1.0})
        p.save_checkpoint({"epoch": epoch})
        if epoch == parameters.get("fails_at") and not saved:
            raise ValueError("the GPU fell off the bus")
    return 99


def test_function_continues_from_its_checkpoint_with_the_next_number(agent: LocalAgent) -> None:
    client = agent.function(resumable)
    first = client.run(parameters={"fails_at": 1})
    value = '{{"default": {}, "loss": 1.0}}'.format
    assert recorded(first) == [(0, value(0)), ("1-1", 1, 0.0), (1, value(1)), ("1-2", 2, 1.0)]
    assert first[-1]["error"].endswith("the GPU fell off the bus")
    client.tell(continuation(first, budget=3))
    second = client.until_ended(attempt=2)
    assert recorded(second) == [(2, value(2)), ("2-1", 3, 2.0), (0, "99")]
    spool = agent.folder / "agents" / f"{agent.id}.jsonl"
    assert [e for e in read_spool(spool, "AbCdE", 1) if e["e"] != "ended"] == first[1:-1]
    assert read_spool(spool, "AbCdE", 2, 2) == second[1:]
    assert set(checkpoint_names(agent)) >= {"1-2", "2-1"}


def test_function_leaves_the_checkpoint_it_came_from_alone(tmp_path: Path) -> None:
    run = RunSpec(kind="function", experiment="exp", folder=str(tmp_path))
    folder = tmp_path / "trials" / "0" / "checkpoints"
    (folder / "1-4").mkdir(parents=True)
    (folder / "1-4" / "checkpoint.json").write_text('{"sequence": 4, "value": null, "time": 1.0}')
    job = Job(
        trial="AbCdE",
        attempt=2,
        sequence_id=0,
        parameters="{}",
        run=run,
        first_sequence=4,
        checkpoint=str(folder / "1-4"),
    )
    spool, outbox = LineFile(str(tmp_path / "spool")), Outbox()
    channel = FunctionChannel(job, spool, outbox)
    for epoch in range(3):
        channel.save(lambda folder, epoch=epoch: write_data(folder, {"epoch": epoch}))
        outbox.take(outbox.last)
    spool.close()
    assert sorted(os.listdir(folder)) == ["1-4", "2-2", "2-3"]


@pytest.mark.parametrize("kind", ["command", "function"])
def test_attempt_whose_checkpoint_is_gone_does_not_begin_afresh(agent: LocalAgent, kind: str) -> None:
    client = agent.command(f"{READY}") if kind == "command" else agent.function(resumable)
    events = client.run(attempt=2, checkpoint="trials/0/checkpoints/1-4")
    assert recorded(events) == []
    assert "its checkpoint is gone" in events[-1]["error"]


def test_paused_script_ends_after_its_last_checkpoint(agent: LocalAgent) -> None:
    text = (
        "import pitchpipe as p, signal, sys, time\n"
        "def save(*_):\n"
        "    p.save_checkpoint({'saved': 'at the end'})\n"
        "    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "p.report_intermediate_result(1)\n"
        "time.sleep(600)\n"
    )
    client = agent.command(script(agent, text), grace=30)
    events = client.until_reported()
    client.tell(pause())
    events += client.until_ended()
    assert last_checkpoint(events)["sequence"] == 1
    assert (events[-1]["paused"], events[-1]["killed"], events[-1]["error"]) == (True, False, None)


def test_kill_of_a_pausing_script_is_a_kill(agent: LocalAgent) -> None:
    client = agent.command(f"trap '' TERM; {READY}; while :; do sleep 1; done", grace=600)
    client.until_reported()
    client.tell(pause(), {"op": "kill", "trial": "AbCdE", "attempt": 1, "grace": 0})
    ended = client.until_ended()[-1]
    assert (ended["paused"], ended["killed"], ended["signal"]) == (False, True, 9)


def test_script_that_ended_well_of_itself_was_not_paused(agent: LocalAgent) -> None:
    final = REPORT.replace("intermediate", "final") % 5
    client = agent.command(f"trap 'exit 0' TERM; {final}; while :; do sleep 0.05; done", grace=600)
    client.until_reported()
    client.tell(pause())
    ended = client.until_ended()[-1]
    assert (ended["paused"], ended["exit_code"]) == (False, 0)


def test_waiting_attempt_is_paused_before_it_runs(agent: LocalAgent) -> None:
    client = agent.command("sleep 600")
    client.tell(start(), start(trial="later"))
    client.tell({"op": "pause", "trial": "later", "attempt": 1})
    ended = client.until_ended("later")[-1]
    assert (ended["paused"], ended["killed"], ended["exit_code"]) == (True, False, None)
    client.kill()
    assert not agent.trial_file("stdout-2").exists()


def gated(parameters: Parameters) -> None:
    """Report, wait until the agent was asked to pause, then do what the parameters say."""
    import time

    import pitchpipe as p

    p.report_intermediate_result(0)
    while not os.path.exists(parameters["go"]):
        time.sleep(0.01)
    for step in range(parameters["reports"]):
        p.report_intermediate_result(step + 1)
        if parameters["saves"]:
            p.save_checkpoint({"step": step})
            Path(parameters["go"]).with_name("after").touch()
    if parameters.get("final"):
        p.report_final_result(1)


@pytest.mark.parametrize(
    ("parameters", "expected", "paused"),
    [
        ({"reports": 3, "saves": True}, [(0, "0"), (1, "1"), ("1-1", 2, 1.0)], True),
        ({"reports": 3, "saves": False}, [(0, "0"), (1, "1")], True),
        ({"reports": 1, "saves": False, "final": True}, [(0, "0"), (1, "1"), (0, "1")], False),
    ],
)
def test_pausing_function_ends_after_its_checkpoint_or_at_its_second_report(
    agent: LocalAgent, parameters: Parameters, expected: list[tuple[Any, ...]], paused: bool
) -> None:
    client = agent.function(gated)
    go = agent.folder / "go"
    events = client.until_reported(parameters={"go": str(go), **parameters})
    client.tell(pause())
    client.settle()
    go.touch()
    events += client.until_ended()
    assert recorded(events) == expected
    assert (events[-1]["paused"], events[-1]["killed"]) == (paused, False)
    assert events[-1]["exit_code"] == (None if paused else 0)
    assert not (agent.folder / "after").exists()


def test_kill_of_a_pausing_function_is_a_kill(agent: LocalAgent) -> None:
    client = agent.function(gated)
    go = agent.folder / "go"
    client.until_reported(parameters={"go": str(go), "reports": 3, "saves": True})
    client.tell(pause(), {"op": "kill", "trial": "AbCdE", "attempt": 1})
    client.settle()
    go.touch()
    ended = client.until_ended()[-1]
    assert (ended["paused"], ended["killed"]) == (False, True)


def test_paused_function_continues(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> int:
        import time

        import pitchpipe as p

        saved = p.get_checkpoint()
        first = saved.to_dict()["epoch"] + 1 if saved else 0
        for epoch in range(first, first + 1000 if not saved else 3 + first):
            p.report_intermediate_result(epoch)
            p.save_checkpoint({"epoch": epoch})
            time.sleep(0.001)
        return 1

    client = agent.function(train)
    client.tell(start())
    events = client.events_until(lambda event: event["e"] == "checkpoint")
    client.tell(pause())
    events += client.until_ended()
    assert events[-1]["paused"]
    count = len([event for event in events if event["e"] == "report"])
    assert count < 1000
    assert last_checkpoint(events)["sequence"] == count
    client.tell(continuation(events))
    second = [event for event in client.until_ended(attempt=2) if event["e"] == "report"]
    assert [event["sequence"] for event in second] == [count, count + 1, count + 2, 0]
    assert [event["value"] for event in second] == [str(count), str(count + 1), str(count + 2), "1"]


def test_stopped_function_saves_no_more(agent: LocalAgent) -> None:
    def train(parameters: Parameters) -> None:
        import pitchpipe as p

        p.report_intermediate_result(0)
        while True:
            p.save_checkpoint({"x": 1})

    client = agent.function(train)
    client.until_reported()
    ended = client.kill()[-1]
    assert (ended["killed"], ended["paused"]) == (True, False)


def test_agent_killed_before_a_checkpoint_was_collected_leaves_it_in_the_spool(agent: LocalAgent) -> None:
    client = agent.command(
        script(agent, TRAIN.replace("not saved", "False") + "import time; time.sleep(600)")
    )
    client.tell(start())
    spool = agent.trial_file("reports-1.jsonl")
    wait_until(lambda: spool.exists() and "final" in spool.read_text())
    os.kill(agent.process.pid, signal.SIGKILL)
    agent.process.wait()
    events = read_spool(spool, "AbCdE", 1)
    saved = last_checkpoint(events)
    assert (saved["name"], saved["sequence"]) == ("1-4", 4)
    assert Checkpoint(str(agent.trial_file("checkpoints/1-4"))).to_dict() == {"epoch": 3}
    wait_until(lambda: agent.trial_processes() == [], "the end of the script")


def test_checkpoints_that_an_interrupted_agent_did_not_describe_still_count(agent: LocalAgent) -> None:
    """Check that only the line in the spool counts: a restore needs no description."""
    path = agent.trial_file("checkpoints/1-1")
    path.mkdir(parents=True)
    (path / "data.json").write_text('{"epoch": 2}')
    client = agent.command(script(agent, TRAIN))
    events = client.run(attempt=2, checkpoint="trials/0/checkpoints/1-1", first_sequence=3)
    assert recorded(events) == [(3, "30"), ("2-1", 4, 30.0), (0, "4")]
    assert json.loads(agent.trial_file("checkpoints/2-1/checkpoint.json").read_text())["sequence"] == 4
    assert checkpoint_names(agent) == ["1-1", "2-1"]
