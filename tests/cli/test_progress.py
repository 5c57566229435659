"""What a run shows while it lasts."""

import io
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from pitchpipe.cli.display import PlainDisplay, ProgressMeter, SilentDisplay
from pitchpipe.cli.live_table import LiveDisplay, render
from pitchpipe.cli.verbs.run import make_display
from pitchpipe.protocol import Objective
from pitchpipe.runner.effects import AttemptOrder
from pitchpipe.runner.trial import TrialStatus
from pitchpipe.telling import BestSoFar, RunProgress, progress_line
from pitchpipe.telling.failed_trials import FailedTrial

from .conftest import make_trial
from .screens import HALF, drawn


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the displays draw, whatever terminal the tests themselves run in."""
    monkeypatch.setenv("TERM", "xterm")


def test_table_fits_a_narrow_terminal() -> None:
    many = BestSoFar("Xy3fA", 17, 0.9722, {f"parameter_{n}": n for n in range(50)})
    narrow = RunProgress(
        experiment_id="k3x9a2bq", name="", status="RUNNING", reason="", elapsed=1.0, counts={}, best=(many,)
    )
    assert max(map(len, drawn(narrow, width=60))) <= 60
    assert len(drawn(narrow, width=60)) == 5


def test_long_parameters_leave_a_line_short() -> None:
    best = BestSoFar("Xy3fA", 17, 0.9722, {"mask": [0.123456] * 1000, "p": 1})
    line = progress_line(replace(HALF, best=(best,)))
    assert "trial 17: mask=[0.123456, 0.123456" in line
    assert len(line) < 500


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_the_best_value_and_every_count_are_visible_at_any_width(width: int) -> None:
    best = BestSoFar("Xy3fA", 17, 0.9722, {f"a_long_parameter_name_{n}": n for n in range(30)})
    failed = FailedTrial(sequence_id=3, reason="ValueError: " + "too big " * 40, last_line="")
    counts = dict.fromkeys(("RUNNING", "WAITING", "SUCCEEDED", "FAILED", "USER_CANCELED", "SYS_CANCELED"), 12)
    lines = drawn(replace(HALF, best=(best,), failures=(failed,), counts=counts, remaining=7300.0), width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert "  best  0.9722  trial 17  a_long" in text
    assert "trial 3 failed ValueError: too big" in text
    assert all(f"12 {word}" in text for word in ("running", "waiting", "succeeded", "failed", "killed"))


@pytest.mark.parametrize(
    ("width", "facts"),
    [(120, "20/40 trials  30 trials/min  about 40 s left"), (50, "20/40 trials  30 trials/min")],
)
def test_a_narrow_terminal_gets_a_shorter_bar_and_fewer_facts(width: int, facts: str) -> None:
    bar = drawn(HALF, width)[1]
    assert bar.endswith(facts)
    assert 10 <= len(bar.removesuffix(facts).strip()) <= 40


class Noticed(io.StringIO):
    """A stream that notices a text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.noticed, self._text = threading.Event(), text

    def write(self, text: str) -> int:
        if self._text in text:
            self.noticed.set()
        return super().write(text)


def test_a_message_is_not_broken_by_us() -> None:
    terminal = Waits()
    with LiveDisplay(terminal) as display:
        display.message("to continue: " + "pitchpipe resume k3x9a2bq " * 20)
    assert "pitchpipe resume k3x9a2bq " * 20 in terminal.getvalue()


def test_a_frame_that_the_terminal_broke_is_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # as it is now is how it would stay
    terminal = Waits()
    display = LiveDisplay(terminal)
    with display.drawing():
        monkeypatch.setenv("COLUMNS", "100")
        display.draw(HALF)
        before = len(terminal.getvalue())
        monkeypatch.setenv("COLUMNS", "50")
        display.draw(HALF)
    # 6 lines, of which all but the head and the failure have become two rows each.
    assert terminal.getvalue()[before:].startswith("\x1b[8A\x1b[1G\x1b[J\n\n\n\n\n")


def test_front_of_repeated_configurations_is_one_of_families(manager: Any) -> None:
    manager.runner.best.points = lambda: {3: (0.0, 1.0), 4: (0.1, 0.2), 9: (1.0, 0.0)}
    manager.runner.families.repeats = SimpleNamespace(count=5)
    assert "  front: 3 families, knee family 4" in drawn(ProgressMeter(manager).read(1.0))


def test_front_is_shown_with_its_size_and_its_knee(manager: Any) -> None:
    manager.runner.best.points = lambda: {3: (0.0, 1.0), 4: (0.1, 0.2), 9: (1.0, 0.0)}
    progress = ProgressMeter(manager).read(1.0)
    assert "front: 3 trials, knee trial 4" in progress_line(progress).split("; ")
    assert "  front: 3 trials, knee trial 4" in drawn(progress)
    assert "front" not in progress_line(HALF) + "".join(drawn(HALF))


class Waits(io.StringIO):
    """A terminal that takes nothing until `close`d; it says when it was first written to."""

    def isatty(self) -> bool:
        return True


def test_display_is_chosen_by_where_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = io.StringIO()
    assert isinstance(make_display(Waits(), errors, quiet=False), LiveDisplay)
    monkeypatch.setenv("TERM", "dumb")
    assert type(make_display(Waits(), errors, quiet=False)) is PlainDisplay
    assert isinstance(make_display(io.StringIO(), errors, quiet=False), PlainDisplay)
    quiet = make_display(Waits(), errors, quiet=True)
    for display in (quiet, make_display(io.StringIO(), errors, quiet=False, lines=False)):
        assert type(display) is SilentDisplay


def test_plain_display_says_nothing_twice() -> None:
    output, errors = io.StringIO(), io.StringIO()
    display = PlainDisplay(output, errors)
    for _ in range(3):
        display.draw(HALF)
    display.draw(replace(HALF, status="DONE"))
    display.write("warning: careful")
    assert output.getvalue() == progress_line(HALF) + "\n"
    assert errors.getvalue() == "warning: careful\n"


def test_plain_display_is_not_silent_for_long() -> None:
    output = io.StringIO()
    display = PlainDisplay(output, output)
    for elapsed in (0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0):
        display.draw(replace(HALF, elapsed=elapsed))
    assert [line.split(":")[0] for line in output.getvalue().splitlines()] == ["0.0 s", "15 s", "30 s"]


def test_live_display_leaves_only_messages_on_the_screen() -> None:
    terminal = Waits()
    with LiveDisplay(terminal) as display:
        display.update(HALF)
        display.message("warning: careful")
    assert "warning: careful" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith("\x1b[2K")  # the table was wiped away


def test_message_does_not_wait_for_the_next_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pitchpipe.cli.display._FIRST_INTERVAL", 3600.0)
    monkeypatch.setattr(PlainDisplay, "interval", 3600.0)
    drawn, shown = Noticed("RUNNING"), Noticed("web pages")
    display = PlainDisplay(drawn, shown)
    display.update(HALF)
    with display:
        assert drawn.noticed.wait(30)
        display.message("web pages: http://127.0.0.1:1")
        assert shown.noticed.wait(30)


def test_a_terminal_that_is_gone_does_not_disturb() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with PlainDisplay(Gone(), Gone()) as display:
        display.update(HALF)
        display.message("warning: careful")


@pytest.fixture
def manager() -> Any:
    """Return the progress that a meter reads from a manager with one best trial."""
    best = make_trial(3, "SUCCEEDED", {"x": 1}, 0.5)
    runner = SimpleNamespace(
        families=SimpleNamespace(of=lambda trial: None, repeats=SimpleNamespace(count=1)),
        status=TrialStatus.RUNNING, reason="", counts={TrialStatus.RUNNING: 1, TrialStatus.FAILED: 0},
        failures=[],
        objectives=(Objective(name="default", direction="minimize"),), waiting=[],
        best=SimpleNamespace(front=[best], points=lambda: {3: (0.5,)}, closest=None),
        elapsed=lambda now: now,
    )  # fmt: skip
    config = SimpleNamespace(
        experiment_name=None, max_trial_number=20, max_experiment_duration=None,
        training_service=SimpleNamespace(platform="local"),
    )  # fmt: skip
    folder = SimpleNamespace(experiment_id="e")
    return SimpleNamespace(folder=folder, config=config, runner=runner, warnings=list)


def test_meter_before_the_start(manager: Any) -> None:
    manager.runner = None
    meter = ProgressMeter(manager)
    assert meter.read(0.0) == RunProgress(
        experiment_id="e", name="", status="STARTING", reason="", elapsed=0.0, counts={}, total=20
    )
    manager.config.training_service.platform = "ray"
    starting = meter.read(7.0)
    assert progress_line(starting) == "STARTING; 0/20 trials; waiting: Ray is starting, for 7.0 s"
    # Its time begins when Ray has started: a time before that would be followed by a shorter one.
    assert drawn(starting)[0] == "e  STARTING"
    assert drawn(replace(starting, status="RUNNING"))[0] == "e  RUNNING  7.0 s"


def test_meter_forecasts_from_the_throughput(manager: Any) -> None:
    meter = ProgressMeter(manager)
    assert meter.read(0.0).rate is None
    for end in range(1, 11):
        manager.runner.counts[TrialStatus.SUCCEEDED] = end
        progress = meter.read(end * 2.0)
    assert progress.finished == 10
    assert progress.rate == pytest.approx(0.5)
    assert progress.remaining == pytest.approx(20.0)
    assert progress.counts == {"RUNNING": 1, "SUCCEEDED": 10}
    assert progress.best == (BestSoFar("T0003", 3, 0.5, {"x": 1}),)
    assert meter.read(21.0).rate == pytest.approx(0.5)  # the next end is not overdue yet
    assert (meter.read(60.0).rate or 1.0) < 0.2  # now it is


def test_meter_forecasts_the_end_of_the_time(manager: Any) -> None:
    manager.config.max_experiment_duration = 100.0
    meter = ProgressMeter(manager)
    progress = meter.read(30.0)
    assert (progress.remaining, progress.is_bound) == (pytest.approx(70.0), True)
    assert "at most 1 min 10 s left" in progress_line(progress)
    manager.runner.counts[TrialStatus.SUCCEEDED] = 10
    progress = meter.read(40.0)  # 10 more trials at one a second
    assert (progress.remaining, progress.is_bound) == (pytest.approx(10.0), False)


def test_meter_tells_what_is_out_of_order(manager: Any) -> None:
    manager.warnings = lambda: ["agent 0-0 gives no sign of life: trial 3 runs there"]
    progress = ProgressMeter(manager).read(0.0)
    assert "agent 0-0 gives no sign of life: trial 3 runs there" in progress_line(progress)
    screen = Console(width=80, record=True, file=io.StringIO())
    screen.print(render(progress))
    assert "  agent 0-0 gives no sign of life" in screen.export_text()


def test_meter_tells_why_nothing_runs(manager: Any) -> None:
    manager.runner.waiting = [AttemptOrder]
    manager.runner.why_waiting = lambda trial: "no GPU is free"
    assert ProgressMeter(manager).read(0.0).waiting_for == ""
    manager.runner.counts = {TrialStatus.WAITING: 1}
    assert ProgressMeter(manager).read(0.0).waiting_for == "no GPU is free"
