"""A real Chromium, a server in a separate process, and an experiment whose trials end when the test lets them."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run
from pitchpipe.store import ExperimentFolder

PATIENCE = 60_000  # milliseconds

# What fixtures return: functions that open an address in a tab, check a page, serve the pages of a directory.
Open = Callable[..., Any]
Check = Callable[[Any], None]
Serve = Callable[[Path], str]

TRIAL = """
import os, pitchpipe
from pathlib import Path

parameters = pitchpipe.get_next_parameter()
x, kind = parameters["x"], parameters["kind"]
print(f"training with x = {x}", flush=True)
if kind == "broken":
    raise ValueError(f"loss is not finite: {x} <img src=nowhere onerror=alert(1)>")
for step in range(4):
    pitchpipe.report_intermediate_result({"default": x * (step + 1) / 4, "loss": 1 - x})
if kind in ("slow", "bad"):
    open(Path(os.environ["GATES"]) / str(pitchpipe.get_sequence_id())).close()  # a pipe: waits for the test
    print("the gate is open", flush=True)
pitchpipe.report_final_result({"default": x, "loss": 1 - x})
"""

TUNER = """
from pitchpipe import Tuner

FIRST = [("good", 0.5), ("broken", 0.125), ("broken", 0.25), ("broken", 0.375), ("good", 0.9), ("bad", 0.1)]


class Listed(Tuner):
    def update_search_space(self, search_space):
        pass

    def generate_parameters(self, parameter_id, **kwargs):
        kind, x = FIRST[parameter_id] if parameter_id < len(FIRST) else ("slow", 0.7)
        solver = {"_name": "sgd", "momentum": 0.5} if parameter_id % 2 else {"_name": "adam"}
        return {"x": x, "kind": kind, "solver": solver}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""

CONFIG: dict[str, Any] = {
    "experiment_name": "story",
    "trial_command": f"{shlex.quote(sys.executable)} trial.py",
    "trial_concurrency": 2,
    "max_trial_number": 40,
    "objectives": [{"name": "default", "direction": "maximize"}],
    "search_space": {
        "x": {"_type": "uniform", "_value": [0, 1]},
        "kind": {"_type": "choice", "_value": ["good", "broken", "bad", "slow"]},
        "solver": {
            "_type": "choice",
            "_value": [
                {"_name": "adam"},
                {"_name": "sgd", "momentum": {"_type": "uniform", "_value": [0, 1]}},
            ],
        },
    },
    "tuner": {"class_name": "listed.Listed", "code_directory": "."},
    "assessor": {"name": "Medianstop", "class_args": {"start_step": 1}},
    "kill_grace": 1,
    "training_service": {"platform": "local"},
}


@dataclass
class Story:
    """A running experiment: 0 and 4 succeeded, 1 to 3 failed, 5 was stopped early, 6 and 7 wait for their gates."""

    directory: Path
    gates: Path
    url: str = ""

    def open_gate(self, number: int) -> None:
        (self.gates / str(number)).open("w").close()

    def address(self, page: str = "") -> str:
        return f"{self.url}/story/{page}".rstrip("/")


@pytest.fixture(scope="module")
def environment() -> Iterator[dict[str, str]]:
    """Yield the environment of a module's processes, with a separate runtime directory."""
    runtime = tempfile.mkdtemp(prefix="pp-", dir="/tmp")
    yield {**os.environ, "PITCHPIPE_RUNTIME_DIR": runtime}
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture(scope="module")
def serve(environment: dict[str, str]) -> Iterator[Serve]:
    """Yield a function that serves the pages of a directory and returns their address."""
    processes: list[subprocess.Popen[str]] = []

    def start(directory: Path) -> str:
        words = ["ui", "--dir", str(directory), "--port", "0", "--no-browser"]
        command = [sys.executable, "-P", "-m", "pitchpipe", *words]
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=directory,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        processes.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip().removesuffix("/")

    yield start
    for process in processes:
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module")
def story(
    tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str], serve: Serve
) -> Iterator[Story]:
    """Yield the running experiment, with its pages."""
    directory = tmp_path_factory.mktemp("experiments")
    code = tmp_path_factory.mktemp("code")
    (code / "trial.py").write_text(TRIAL)
    (code / "listed.py").write_text(TUNER)
    gates = code / "gates"
    gates.mkdir()
    for number in range(CONFIG["max_trial_number"]):
        os.mkfifo(gates / str(number))
    config = code / "experiment.yml"
    config.write_text(json.dumps({**CONFIG, "trial_environment": {"GATES": str(gates)}}))

    def call(*words: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PITCHPIPE_RUNTIME_DIR", environment["PITCHPIPE_RUNTIME_DIR"])
            assert run([*words, "--dir", str(directory)]) == 0

    with warnings.catch_warnings(action="ignore", category=ResourceWarning):  # it is not waited for
        call("create", str(config), "--experiment-id", "story", "--quiet")
    found = Story(directory, gates)
    try:
        found.url = serve(directory)
        yield found
    finally:
        if ExperimentFolder(directory / "story").manager() is not None:
            call("stop", "story")


WINDOW = {"width": 1300, "height": 900}
PHONE = {"width": 390, "height": 844}
SERIOUS = """async () => (await axe.run({ resultTypes: ["violations"] })).violations
    .filter(found => ["serious", "critical"].includes(found.impact))
    .flatMap(found => found.nodes.map(node => `${found.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`))"""


@pytest.fixture(scope="module")
def context(chromium: Any) -> Iterator[Any]:
    """Yield a browser window; its cache and its first tab are shared by the tests of a module."""
    context = chromium.new_context(viewport=WINDOW, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    context.new_page()
    yield context
    context.close()


@pytest.fixture
def open_page(context: Any) -> Iterator[Open]:
    """Yield a function that opens an address in a tab, in the `scheme` of colours that the system has.

    There must be no errors and no requests to other machines.
    """
    tabs = [context.pages[0]]
    opened: list[Any] = []
    problems: list[str] = []

    def note_request(asked: Any) -> None:
        if not asked.url.startswith(("http://127.0.0.1:", "data:", "blob:", "about:")):
            problems.append(f"asked {asked.url}")

    def note_console(message: Any) -> None:
        if message.type == "error":
            problems.append(f"console: {message.text} {message.location}")

    watched = {
        "console": note_console,
        "pageerror": lambda error: problems.append(f"error: {error}"),
        "dialog": lambda dialog: problems.append(f"dialog: {dialog.message}"),
        "request": note_request,
    }

    def start(address: str, scheme: str = "light") -> Any:
        page = tabs.pop() if tabs else context.new_page()
        opened.append(page)
        for event, note in watched.items():
            page.on(event, note)
        page.set_viewport_size(WINDOW)
        page.emulate_media(color_scheme=scheme)
        page.goto(address)
        # Before that, what is typed and clicked does not reach the server; pages of plain HTML have no socket.
        page.wait_for_function("window.did_handshake || !document.querySelector('#app')")
        return page

    yield start
    for page in opened[1:]:
        page.close()
    for page in opened[:1]:  # starting the next page in the same tab is much cheaper than a new one
        page.goto("about:blank")
        for event, note in watched.items():
            page.remove_listener(event, note)
    assert problems == []


@pytest.fixture(scope="module")
def axe() -> str:
    """Return the script of axe-core, which the package carries."""
    package = pytest.importorskip(
        "axe_playwright_python.base", reason="axe-playwright-python is not installed"
    )
    return (Path(package.__file__).parent / package.AXE_FILE_NAME).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def check_page(axe: str) -> Check:
    """Return a function that checks a page: names, roles and contrast, one heading, and whether a phone shows it all.

    It looks at half of the pages light in a window, and at the others, which were opened `dark`, on a phone.
    """

    def check(page: Any) -> None:
        window = page.viewport_size
        if page.locator("body.body--dark").count():
            page.set_viewport_size(PHONE)
        page.evaluate(axe)
        assert page.evaluate(SERIOUS) == []
        assert page.locator("h1").count() == 1
        page.set_viewport_size(PHONE)
        page.wait_for_function("document.documentElement.scrollWidth <= 390")
        page.set_viewport_size(window)

    return check
