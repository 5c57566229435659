"""Trials that are classes, run in the process of a real agent."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import pitchpipe
from pitchpipe.sdk import Checkpoint

from .client import LocalAgent, read_spool, start, wait_until
from .test_saving import continuation, last_checkpoint, pause
from .test_saving import recorded as recorded_texts

Parameters = dict[str, Any]
Event = dict[str, Any]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the agent cannot import the tests


class Train(pitchpipe.Trainable):
    """Adds lr at each step; logs its calls to a file, because it runs in another process."""

    def note(self, *words: object) -> None:
        with open(self.parameters["log"], "a") as file:
            print(os.getpid(), id(self), *words, file=file)

    def setup(self, parameters: Parameters) -> None:
        self.note("setup", parameters["lr"])
        self.score = 0.0

    def step(self) -> Any:
        self.note("step", self.iteration)
        if self.iteration == self.parameters.get("fails_at"):
            raise ValueError("the GPU fell off the bus")
        if self.parameters.get("slow"):
            time.sleep(0.01)
        self.score += self.parameters["lr"]
        return {"default": self.score, "done": self.iteration + 1 == self.parameters.get("steps", 3)}

    def save_checkpoint(self, directory: str) -> Parameters | None:
        self.note("save", self.iteration)
        if self.parameters.get("files"):
            Path(directory, "score").write_text(str(self.score))
            return None
        return {"score": self.score}

    def load_checkpoint(self, checkpoint: Any) -> None:
        self.note("load", self.iteration)
        if isinstance(checkpoint, str):
            self.score = json.loads(Path(checkpoint, "score").read_text())
        else:
            self.score = checkpoint["score"]

    def reset_config(self, new: Parameters) -> bool:
        self.note("reset", new["lr"])
        self.score = 0.0
        return not new.get("stubborn")

    def cleanup(self) -> None:
        self.note("cleanup")


def recorded(events: list[Event]) -> list[tuple[Any, ...]]:
    """Return what was reported and saved, in order: (sequence, number) and (name, next sequence, value)."""
    return [(*before, number_in(value)) for *before, value in recorded_texts(events)]


def number_in(value: Any) -> Any:
    found = json.loads(value) if isinstance(value, str) else value
    return found["default"] if isinstance(found, dict) else found


def after(events: list[Event]) -> dict[str, Any]:
    """Return what an order says that continues these events."""
    order = continuation(events)
    return {name: order[name] for name in ("attempt", "checkpoint", "first_sequence")}


class Lab:
    """An agent that runs the class, and the log of what was called."""

    def __init__(self, agent: LocalAgent, function: Callable[..., Any] = Train, **run: Any) -> None:
        self.agent = agent
        self.log = agent.folder / "log"
        self.client = agent.function(function, **run)

    def start(self, parameters: Parameters | None = None, **more: Any) -> dict[str, Any]:
        return start(parameters={"lr": 0.5, "log": str(self.log), **(parameters or {})}, **more)

    def run(self, parameters: Parameters | None = None, attempt: int = 1, **more: Any) -> list[Event]:
        self.client.tell(self.start(parameters, attempt=attempt, **more))
        return self.client.until_ended(attempt=attempt)

    def until_reported(self) -> list[Event]:
        """Start a trial of many steps and return its events up to the first report."""
        self.client.tell(self.start({"steps": 1000, "slow": True}))
        return self.client.events_until(lambda event: event["e"] == "report")

    @property
    def calls(self) -> list[str]:
        return [line.split(None, 2)[2] for line in self.log.read_text().splitlines()]

    @property
    def instances(self) -> int:
        return len({line.split()[1] for line in self.log.read_text().splitlines() if "setup" in line})


@pytest.fixture
def lab(agent: LocalAgent) -> Lab:
    return Lab(agent)


def test_class_is_set_up_stepped_to_its_end_and_cleaned_up(lab: Lab) -> None:
    events = lab.run()
    assert recorded(events) == [(0, 0.5), (1, 1.0), (2, 1.5), (0, 1.5)]
    assert [e["kind"] for e in events if e["e"] == "report"] == ["intermediate"] * 3 + ["final"]
    assert (events[-1]["exit_code"], events[-1]["error"]) == (0, None)
    assert events[-1]["exported"] is None
    assert lab.calls == ["setup 0.5", "step 0", "step 1", "step 2", "cleanup"]


def test_class_makes_as_many_steps_as_its_budget_and_saves_the_last(lab: Lab) -> None:
    events = lab.run({"steps": 100}, budget=2)
    assert recorded(events) == [(0, 0.5), (1, 1.0), ("1-1", 2, 1.0), (0, 1.0)]
    events = lab.run(
        {"steps": 100}, attempt=2, checkpoint="trials/0/checkpoints/1-1", first_sequence=2, budget=3
    )
    assert recorded(events) == [(2, 1.5), ("2-1", 3, 1.5), (0, 1.5)]
    assert lab.calls[5:] == ["setup 0.5", "load 2", "step 2", "save 3", "cleanup"]


@pytest.mark.parametrize("steps", [100, 2])
def test_class_pauses_at_a_budget_where_the_tuner_pauses_it_unless_it_is_done(lab: Lab, steps: int) -> None:
    message = lab.start({"steps": steps}, budget=2)
    record = {**json.loads(message["parameters"]), "pauses_at_budget": True}
    lab.client.tell({**message, "parameters": json.dumps(record)})
    events = lab.client.until_ended()
    final = [] if steps == 100 else [(0, 1.0)]
    assert recorded(events) == [(0, 0.5), (1, 1.0), ("1-1", 2, 1.0), *final]
    assert (events[-1]["paused"], events[-1]["exit_code"]) == ((False, 0) if final else (True, None))
    assert not final or json.loads(events[-2]["value"])["done"] is True


@pytest.mark.parametrize(
    ("keep", "names"),
    [
        ({"frequency": 2, "keep": 9}, [("1-1", 2), ("1-2", 4)]),
        ({"frequency": 2, "at_end": True, "keep": 9}, [("1-1", 2), ("1-2", 4), ("1-3", 5)]),
        ({"frequency": 5, "at_end": True}, [("1-1", 5)]),
        ({"at_end": True}, [("1-1", 5)]),
        ({}, []),
    ],
)
def test_class_saves_as_often_as_configured(
    lab: Lab, keep: dict[str, Any], names: list[tuple[str, int]]
) -> None:
    events = lab.run({"steps": 5}, keep=keep)
    assert [(e["name"], e["sequence"]) for e in events if e["e"] == "checkpoint"] == names


@pytest.mark.parametrize("files", [True, False])
def test_failed_class_continues_from_its_checkpoint(lab: Lab, files: bool) -> None:
    first = lab.run({"fails_at": 3, "steps": 5, "files": files}, keep={"frequency": 1})
    assert first[-1]["error"].endswith("ValueError: the GPU fell off the bus")
    assert "trial_agent/function_trial.py" not in first[-1]["error"]
    assert first[-1]["exit_code"] == 1
    events = lab.run({"steps": 5}, **after(first))
    assert recorded(events) == [(3, 2.0), (4, 2.5), (0, 2.5)]
    assert lab.calls.count("cleanup") == 2


def test_paused_class_saves_between_two_steps_and_continues(lab: Lab) -> None:
    events = lab.until_reported()
    lab.client.tell(pause())
    events += lab.client.until_ended()
    count = len([event for event in events if event["e"] == "report"])
    assert count < 1000
    assert (events[-1]["paused"], events[-1]["exit_code"]) == (True, None)
    assert last_checkpoint(events)["sequence"] == count
    assert lab.calls[-2:] == [f"save {count}", "cleanup"]
    events = lab.run({"steps": count + 1}, **after(events))
    assert recorded(events) == [(count, (count + 1) * 0.5), (0, (count + 1) * 0.5)]


def test_class_that_cannot_save_is_paused_all_the_same(agent: LocalAgent) -> None:
    class Forgetful(Train):
        def save_checkpoint(self, directory: str) -> None:
            return None

    lab = Lab(agent, Forgetful)
    lab.until_reported()
    lab.client.tell(pause())
    events = lab.client.until_ended()
    assert events[-1]["paused"]
    assert [event for event in events if event["e"] == "checkpoint"] == []
    assert not agent.trial_file("checkpoints").exists() or os.listdir(agent.trial_file("checkpoints")) == []


def test_stopped_class_ends_between_two_steps_and_is_cleaned_up(lab: Lab) -> None:
    lab.until_reported()
    ended = lab.client.kill()[-1]
    assert (ended["killed"], ended["paused"], ended["exit_code"]) == (True, False, None)
    assert lab.calls[-1] == "cleanup"


def test_instance_is_used_again_when_it_can_be_reset(agent: LocalAgent) -> None:
    lab = Lab(agent, reuse_actors=True)
    lab.run()
    assert recorded(lab.run({"lr": 2}, attempt=2)) == [(0, 2.0), (1, 4.0), (2, 6.0), (0, 6.0)]
    lab.run({"lr": 3, "stubborn": True}, attempt=3)
    steps = ["step 0", "step 1", "step 2"]
    assert lab.calls == [
        *("setup 0.5", *steps, "reset 2", *steps, "reset 3", "cleanup"),
        *("setup 3", *steps),
    ]
    agent.stop()  # and the instance that was kept is cleaned up at the end
    assert lab.calls[-1] == "cleanup"
    assert lab.calls.count("cleanup") == 2


def test_instance_is_not_used_again_on_other_gpus(agent: LocalAgent) -> None:
    lab = Lab(agent, reuse_actors=True)
    for attempt, gpus in enumerate(([0], [0], [1]), start=1):
        lab.run({"steps": 1}, attempt=attempt, gpus=gpus)
    assert lab.calls == ["setup 0.5", "step 0", "reset 0.5", "step 0", "cleanup", "setup 0.5", "step 0"]


def test_instance_of_another_class_is_not_used_again(agent: LocalAgent) -> None:
    lab = Lab(agent, reuse_actors=True)
    lab.run({"steps": 1})

    class Other(Train):
        pass

    Lab(agent, Other, reuse_actors=True).run({"steps": 1}, attempt=2)
    assert lab.calls == ["setup 0.5", "step 0", "cleanup", "setup 0.5", "step 0"]


def test_pause_in_the_last_step_comes_too_late(agent: LocalAgent) -> None:
    class Gated(Train):
        def step(self) -> Any:
            if self.iteration == 1:
                Path(self.parameters["go"]).with_name("last").touch()
            while self.iteration == 1 and not Path(self.parameters["go"]).exists():
                time.sleep(0.01)
            return super().step()

    lab = Lab(agent, Gated)
    go = agent.folder / "go"
    lab.client.tell(lab.start({"steps": 2, "go": str(go)}, keep={"at_end": True}))
    wait_until((agent.folder / "last").exists, "the last step")
    lab.client.tell(pause())
    lab.client.settle()
    go.touch()
    events = lab.client.until_ended()
    assert recorded(events) == [(0, 0.5), (1, 1.0), ("1-1", 2, 1.0), (0, 1.0)]
    assert (events[-1]["paused"], events[-1]["exit_code"]) == (False, 0)


def test_instance_that_failed_is_not_used_again(agent: LocalAgent) -> None:
    lab = Lab(agent, reuse_actors=True)
    lab.run({"fails_at": 1})
    lab.run({"lr": 2}, attempt=2)
    assert lab.calls == ["setup 0.5", "step 0", "step 1", "cleanup", "setup 2", "step 0", "step 1", "step 2"]


def test_instance_used_again_loads_the_checkpoint_of_its_attempt(agent: LocalAgent) -> None:
    lab = Lab(agent, reuse_actors=True)
    first = lab.run({"steps": 2}, keep={"at_end": True})
    assert recorded(lab.run({"steps": 3}, **after(first))) == [(2, 1.5), (0, 1.5)]
    assert lab.calls[4:] == ["reset 0.5", "load 2", "step 2"]


def test_factory_may_make_the_instance(agent: LocalAgent) -> None:
    lab = Lab(agent, lambda parameters: Train({**parameters, "lr": 7}), reuse_actors=True)
    assert recorded(lab.run())[0] == (0, 7.0)
    assert recorded(lab.run({"lr": 1}, attempt=2))[0] == (0, 1.0)
    assert lab.instances == 1


@pytest.mark.parametrize("as_instance", [True, False])
def test_wrapped_function_runs_like_the_function(agent: LocalAgent, as_instance: bool) -> None:
    def train(parameters: Parameters) -> int:
        pitchpipe.report_intermediate_result(pitchpipe.get_trial_id() == "AbCdE")
        pitchpipe.save_checkpoint({"x": 1})
        return 4

    made = pitchpipe.wrap_function(train)
    client = agent.function((lambda parameters: made(parameters)) if as_instance else made)
    assert recorded(client.run()) == [(0, True), ("1-1", 1, 1.0), (0, 4)]


def test_exported_paths_are_in_the_end(agent: LocalAgent) -> None:
    class Exporting(Train):
        export_formats = ("txt", "elsewhere")

        def export_model(self, formats: Any, directory: str) -> dict[str, str]:
            Path(directory, "model.txt").write_text(str(self.score))
            return {"txt": os.path.join(directory, "model.txt"), "elsewhere": "/models/1"}

    ended = Lab(agent, Exporting).run()[-1]
    assert ended["exported"] == {"txt": "trials/0/export/model.txt", "elsewhere": "/models/1"}
    assert (agent.folder / ended["exported"]["txt"]).read_text() == "1.5"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (None, "step() returned None"),
        ("abc", None),
        ({"done": True}, None),
        ({"loss": 1, "done": True}, None),
    ],
)
def test_results_that_are_not_numbers(agent: LocalAgent, result: Any, words: str | None) -> None:
    class Odd(Train):
        def step(self) -> Any:
            return result

    lab = Lab(agent, Odd)
    error = lab.run(budget=1)[-1]["error"]
    assert (words in error) if words else error is None
    assert lab.calls[-1] == "cleanup"


def test_number_is_a_result(agent: LocalAgent) -> None:
    class Plain(Train):
        def step(self) -> float:
            return 2.5

    assert recorded(Lab(agent, Plain).run(budget=2)) == [(0, 2.5), (1, 2.5), ("1-1", 2, 2.5), (0, 2.5)]


def test_failing_cleanup_changes_nothing(agent: LocalAgent) -> None:
    class Messy(Train):
        def cleanup(self) -> None:
            super().cleanup()
            raise RuntimeError("cannot clean up")

    lab = Lab(agent, Messy)
    assert lab.run()[-1]["error"] is None
    assert lab.run({"fails_at": 0}, attempt=2)[-1]["error"].endswith("fell off the bus")


def test_class_of_a_killed_agent_continues_in_another(lab: Lab, tmp_path: Path) -> None:
    lab.client.tell(lab.start({"steps": 100_000, "slow": True}, keep={"frequency": 1}))
    lab.client.events_until(lambda event: event["e"] == "checkpoint" and event["sequence"] >= 2)
    lab.agent.process.kill()
    lab.agent.process.wait()
    events = read_spool(tmp_path / "agents" / f"{lab.agent.id}.jsonl", "AbCdE", 1)
    saved = last_checkpoint(events)
    path = tmp_path / "trials" / "0" / "checkpoints" / saved["name"]
    assert Checkpoint(str(path)).to_dict() == {"score": saved["value"]}
    other = LocalAgent(tmp_path, str(tmp_path))
    try:
        again = Lab(other)
        steps = saved["sequence"] + 1
        found = again.run({"steps": steps}, **after(events))
        assert recorded(found) == [(steps - 1, steps * 0.5), (0, steps * 0.5)]
    finally:
        other.stop()
    wait_until(lambda: other.process.poll() is not None)
