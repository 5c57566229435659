"""Pitchpipe where neither Ray nor the libraries of web pages and figures can be imported.

They are installed; what Python imports first in a surrounding refuses them to every process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from .test_surroundings import assert_done, environment, prepare

pytestmark = pytest.mark.slow

PAGES = ("nicegui", "fastapi", "starlette", "uvicorn", "plotly", "jinja2", "markupsafe")
REFUSING = """\
import sys

class Refusing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {libraries!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Refusing)
"""
HEAD = """\
import sys
from pathlib import Path

import pitchpipe
from pitchpipe.protocol import MissingExtraError

def half(parameters):
    return parameters["x"] / 2

SPACE = {"x": pitchpipe.uniform(0, 1)}
GIVEN = dict(platform="local", tuner={"name": "Random"}, max_trial_number=2)

def said(call):
    try:
        call()
    except MissingExtraError as error:
        print(error)
    else:
        sys.exit("nothing was said")
"""
SEARCHES = """
result = pitchpipe.Experiment(half, SPACE, directory="python", **GIVEN).run()
print(result.status, result.counts, len(result.trials), result.health, "<table" in result._repr_html_())
print(len(pitchpipe.minimize(half, SPACE, n_trials=3).trials))
"""
SEARCH_OF_MODELS = """
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from pitchpipe.integrations.sklearn import PitchpipeSearchCV

X, y = load_iris(return_X_y=True)
search = PitchpipeSearchCV(LogisticRegression(max_iter=500), {"C": [0.1, 1.0]}, n_iter=2, cv=2)
print(search.fit(X, y).best_score_ > 0.5)
"""
REFUSED = """
experiment = pitchpipe.Experiment(half, SPACE, directory="refused", **GIVEN)
said(experiment.plot_history)
said(lambda: experiment.plot_edf("runs/one"))
said(lambda: experiment.run(ui=True))
assert not Path("refused").exists()
said(lambda: pitchpipe.TuneServer("runs/one", 0))
said(pitchpipe.Experiment.restore("runs/one").results().plot_history)
"""
# Those that need a library have it in their lists of imports; all others have to do without.
IMPORTS = """
import pkgutil
from importlib import import_module

failed = []
for module in pkgutil.walk_packages(pitchpipe.__path__, "pitchpipe.", onerror=failed.append):
    if not module.name.startswith("pitchpipe.integrations.") and not module.name.endswith(".__main__"):
        try:
            import_module(module.name)
        except ModuleNotFoundError:
            failed.append(module.name)
print(*sorted(failed))
"""
NEED_PAGES = ("pitchpipe.server.api", "pitchpipe.server.pages")
NEED_FRAMEWORK = {
    *("pitchpipe.server.application", "pitchpipe.server.request_guard", "pitchpipe.server.serving"),
    *("pitchpipe.compat.nni.rest", "pitchpipe.compat.tune.routes"),
}


class Place:
    """A folder in which each Python lacks some libraries."""

    def __init__(self, folder: Path, *libraries: str) -> None:
        self.folder = folder
        (folder / "first").mkdir()
        (folder / "first" / "sitecustomize.py").write_text(REFUSING.format(libraries=libraries))

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        variables = {"PYTHONPATH": str(self.folder / "first"), "PITCHPIPE_DIR": str(self.folder / "runs")}
        return subprocess.run(
            [sys.executable, "-P", *words],
            env=environment(self.folder) | variables,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=100,
        )

    def pitchpipe(self, *words: str) -> str:
        """Run a verb that works; return what it prints."""
        done = self.python("-m", "pitchpipe", *words)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stdout + done.stderr
        return done.stdout

    def refused(self, *words: str) -> str:
        """Run a verb that needs an extra; return the sentence that it prints."""
        done = self.python("-m", "pitchpipe", *words)
        assert (done.returncode, done.stdout) == (1, ""), done.stdout + done.stderr
        return done.stderr


def made(*libraries: str) -> Iterator[Place]:
    folder = Path(mkdtemp(prefix="pp-", dir="/tmp"))  # a short path: for sockets
    yield Place(prepare(folder), *libraries)
    rmtree(folder)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """Yield a place without Ray and the extra `ui`, where an experiment has run."""
    for place in made("ray", *PAGES):
        place.pitchpipe("run", "experiment.yml", "--experiment-id", "one")
        yield place


@pytest.fixture
def without_plotly() -> Iterator[Place]:
    yield from made("plotly")


def test_libraries_are_refused(place: Place) -> None:
    for name in ("ray", *PAGES):
        assert f"No module named '{name}'" in place.python("-c", f"import {name}").stderr


def test_experiment_runs_continues_and_is_read(place: Place) -> None:
    place.pitchpipe("resume", "one", "--max-trial-number", "3")
    assert_done(place.folder, 3)
    assert [one["id"] for one in json.loads(place.pitchpipe("list", "--json"))] == ["one"]
    assert json.loads(place.pitchpipe("status", "one", "--json"))["counts"] == {"SUCCEEDED": 3}
    assert len(json.loads(place.pitchpipe("trials", "one", "--json"))) == 3
    assert "trial 0" in place.pitchpipe("trial", "show", "one", "0", "--why")
    assert len(place.pitchpipe("export", "one", "--format", "csv").splitlines()) == 4
    assert len(json.loads(place.pitchpipe("export", "one"))["trials"]) == 3


def test_experiment_in_the_background_is_stopped(place: Place) -> None:
    (place.folder / "long.yml").write_text(
        (place.folder / "experiment.yml").read_text().replace("sh trial.sh", "sleep 60")
    )
    place.pitchpipe("create", "long.yml", "--experiment-id", "long")
    place.pitchpipe("stop", "long")
    assert json.loads(place.pitchpipe("status", "long", "--json"))["status"] == "STOPPED"


def test_doctor_tells_what_is_missing(place: Place) -> None:
    checks = {check["subject"]: check for check in json.loads(place.pitchpipe("doctor", "--json"))}
    assert checks["a trial (local)"]["level"] == "ok"
    assert "ui" in checks["extras"]["text"].partition("; not installed: ")[2].split(", ")
    assert "'nicegui>=" in checks["extras"]["hint"]


def test_searches_in_python_do_without(place: Place) -> None:
    done = place.python("-c", HEAD + SEARCHES)
    assert done.stdout.splitlines() == ["DONE {'SUCCEEDED': 2} 2 [] True", "3"], done.stderr


def test_search_of_models_does_without(place: Place) -> None:
    done = place.python("-c", HEAD + SEARCH_OF_MODELS)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (("ui", "one"), "the web pages need"),
        (("run", "experiment.yml", "--ui", "--experiment-id", "two"), "the web pages need"),
        (("run", "experiment.yml", "--keep-ui", "--experiment-id", "two"), "the web pages need"),
        (("run", "experiment.yml", "--ui-port", "0", "--experiment-id", "two"), "the web pages need"),
        (("report", "one"), "a report needs"),
    ],
)
def test_verb_that_needs_the_extra_says_so_and_makes_nothing(
    place: Place, words: tuple[str, ...], who: str
) -> None:
    before = sorted(place.folder.rglob("*"))
    error = place.refused(*words)
    assert error.startswith(f"error: {who} the extra ui: pip install 'fastapi>="), error
    assert error.count("\n") == 1
    assert all(f"'{name}>=" in error for name in ("nicegui", "plotly", "uvicorn", "jinja2"))
    assert sorted(place.folder.rglob("*")) == before


def test_calls_that_need_the_extra_say_so_and_make_nothing(place: Place) -> None:
    done = place.python("-c", HEAD + REFUSED)
    assert done.returncode == 0, done.stderr
    sentences = [
        line.partition(" the extra ui: pip install 'fastapi>=")[0] for line in done.stdout.splitlines()
    ]
    figures, pages = "figures need", "the web pages need"
    assert sentences == [figures, figures, pages, "the HTTP API needs", figures]


def test_only_the_server_and_its_pages_need_them(place: Place) -> None:
    done = place.python("-c", HEAD + IMPORTS)
    assert done.returncode == 0, done.stderr
    named = {name for name in done.stdout.split() if not name.startswith(NEED_PAGES)}
    assert named - {"pitchpipe.cli.verbs.mcp_tools"} == NEED_FRAMEWORK  # the library mcp needs starlette


def test_server_that_is_started_by_hand_says_so(place: Place) -> None:
    done = place.python("-m", "pitchpipe.server", "runs")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"].startswith(
        "the web pages need the extra ui: pip install 'fastapi>="
    )


def test_pages_name_plotly_alone_where_only_that_is_missing(without_plotly: Place) -> None:
    (without_plotly.folder / "runs" / "one").mkdir(parents=True)
    error = without_plotly.refused("ui", "--dir", "runs")
    assert error.startswith("error: the web pages need the extra ui: pip install 'plotly>=")
    assert error.count(">=") == 1
