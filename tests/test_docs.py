"""The documentation is true: links lead somewhere, names and tables are those of the code, examples run."""

import ast
import inspect
import json
import re
import runpy
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

import pitchpipe
from pitchpipe import assessors, tuners
from pitchpipe.dispatcher.plugin import Plugin
from pitchpipe.protocol import CommandType
from pitchpipe.sdk import current_trial
from pitchpipe.sdk.variables import Variables
from pitchpipe.trial_agent import environ
from pitchpipe.tuners import Tuner

from .page_tables import TableError, redraw
from .test_lineage import problem

ROOT = Path(__file__).resolve().parent.parent
OWN = [
    "README.md",
    "CHANGELOG.md",
    "docs/README.md",
    "docs/develop/architecture.md",
    "docs/reference/faults.md",
]
OWN += ["docs/reference/store.md", "docs/use/trial.md", "docs/develop/plugins.md"]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("*.md"),
        *(page for name in ("docs", "examples", "benchmarks") for page in (ROOT / name).rglob("*.md")),
    ]
)
FOLDERS: dict[str, frozenset[str]] = runpy.run_path(str(ROOT / "tests" / "import_rules.py"))["MAY_IMPORT"]
# `folder/file.py: Name.attribute`, as the pages name what is in a file.
NAMED = re.compile(r"`((?:[\w-]+/)+\w+\.py)(?:: ([\w.]+))?`")
IMAGE = re.compile(r"!\[[^]]+\]\(([^)]+)\)")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of one language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text(page), re.MULTILINE | re.DOTALL)


def definitions(file: Path) -> Iterator[str]:
    """Yield the functions and classes of a file, and the members of its classes as `Class.name`."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for inner in node.body for name in bound_by(inner))


def bound_by(statement: ast.stmt) -> list[str]:
    """Return the names that a statement of a class defines."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def test_every_page_is_looked_at() -> None:
    assert set(OWN) < set(PAGES)
    assert sum(page.startswith("docs/decisions/") for page in PAGES) >= 8


@pytest.mark.parametrize("page", PAGES)
def test_links_files_and_names_are_there(page: str) -> None:
    folder = (ROOT / page).parent
    assert [target for target in LINK.findall(text(page)) if not (folder / target).exists()] == []
    unknown = []
    for file, name in NAMED.findall(text(page)):
        found = next((place for place in (ROOT / file, folder / file) if place.exists()), None)
        if found is None or (name and name not in definitions(found)):
            unknown.append(f"{file}: {name}")
    # The plug-ins are an example's own.
    assert [name for name in unknown if not name.startswith("plugins/my_plugins.py")] == []
    named = re.findall(r"`(pitchpipe(?:\.\w+)+)", text(page))
    assert [why for name in named if (why := problem(name))] == []


@pytest.mark.parametrize(
    ("page", "least"), [("docs/develop/architecture.md", 20), ("docs/reference/faults.md", 14)]
)
def test_guarantees_name_their_tests(page: str, least: int) -> None:
    assert sum(file.startswith("tests/") and bool(name) for file, name in NAMED.findall(text(page))) >= least


# Decisions and tuners have an index of their own.
ELSEWHERE = ("docs/decisions/", "docs/reference/tuners/")


def test_every_page_is_in_the_index() -> None:
    linked = {(ROOT / "docs" / target).resolve() for target in LINK.findall(text("docs/README.md"))}
    pages = [page for page in PAGES if page.startswith("docs/") and not page.startswith(ELSEWHERE)]
    assert [page for page in pages if (ROOT / page) not in linked and page != "docs/README.md"] == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    pages = [page for page in PAGES if page.startswith(("docs/", "examples/"))]
    assert [page for page in pages if f"- {page}\n" not in text("mkdocs.yml")] == []


def test_every_image_is_on_a_page() -> None:
    shown = {(ROOT / page).parent / image for page in PAGES for image in IMAGE.findall(text(page))}
    assert set((ROOT / "docs" / "images").rglob("*.*")) == {path.resolve() for path in shown}


def test_short_names_of_methods_are_those_of_the_code() -> None:
    classes: dict[str, set[str]] = {}
    for file in [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]:
        for name in definitions(file):
            owner, _, attribute = name.partition(".")
            classes.setdefault(owner, set()).add(attribute)
    for page in PAGES:
        for owner, attribute in re.findall(r"`([A-Z]\w+)\.(?!md`)(\w+)`", text(page)):
            assert attribute in classes.get(owner, ()), f"{page}: {owner}.{attribute}"


@pytest.mark.parametrize("page", ["docs/develop/architecture.md", "docs/reference/store.md"])
def test_tables_are_as_drawn_from_the_code(page: str) -> None:
    assert "<!-- table: " in text(page)
    assert redraw(text(page)) == text(page), f"run: .venv/bin/python -P tests/page_tables.py {page}"


def test_every_table_of_the_database_is_on_the_page() -> None:
    from pitchpipe.store.schema import MIGRATIONS

    created = re.findall(r"CREATE TABLE (\w+)", "".join(MIGRATIONS))
    assert [
        name for name in created if f"<!-- table: {name} -->" not in text("docs/reference/store.md")
    ] == []


def test_table_that_there_is_not_is_named() -> None:
    with pytest.raises(TableError, match="'feelings'"):
        redraw("<!-- table: feelings -->\n<!-- end of table -->")


def test_tables_are_rewritten_in_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table: replies -->\nold\n<!-- end of table -->\nafter\n")
    subprocess.run([sys.executable, "-P", ROOT / "tests" / "page_tables.py", page], check=True)
    lines = page.read_text().splitlines()
    assert (lines[0], lines[2], lines[-1]) == ("before", "| column | type | meaning |", "after")
    assert "old" not in lines


def test_every_command_of_the_pipe_has_its_row() -> None:
    rows = dict(
        re.findall(r"^\| `([A-Z]{2})` \| (\w+) \|", text("docs/develop/architecture.md"), re.MULTILINE)
    )
    assert rows == {command.value.decode(): command.name for command in CommandType}


def test_parts_and_what_they_may_import_are_those_of_the_rule() -> None:
    rows = re.findall(r"^\| `(\w+)/` \| .* \| (.*) \|$", text("README.md"), re.MULTILINE)
    assert {folder: set(re.findall(r"`(\w+)`", cell)) for folder, cell in rows} == FOLDERS


def test_every_variable_and_function_of_a_trial_is_on_the_page() -> None:
    page = text("docs/use/trial.md")
    names = [value for name, value in vars(Variables).items() if name.isupper()]
    assert len(names) == 14
    assert [name for name in environ.limited_threads(1) if f"`{name}`" not in page] == []
    assert [name for name in names if f"| `{name}` |" not in page] == []
    called = [name for name in pitchpipe.__all__ if inspect.isfunction(getattr(current_trial, name, None))]
    assert [name for name in called if f"`{name}" not in page] == []


def test_every_method_of_a_tuner_is_on_the_page() -> None:
    page = text("docs/develop/plugins.md")
    checkpoints = {"load_checkpoint", "save_checkpoint", "get_checkpoint_path"}
    public = [name for name in vars(Tuner) if callable(getattr(Tuner, name)) and not name.startswith("_")]
    assert [name for name in public if f"| `{name}(" not in page and name not in checkpoints] == []
    assert Plugin("tuner", Tuner()).has("update_search_space")


NUMBERS = {7: "seven", 8: "eight", 9: "nine", 20: "twenty", 21: "twenty-one", 22: "twenty-two"}


@pytest.mark.parametrize(("room", "words"), [(tuners, "tuners"), (assessors, "rules")])
def test_every_algorithm_has_its_row_and_is_counted(room: Any, words: str) -> None:
    page = f"docs/reference/{room.__name__.rpartition('.')[2]}.md"
    rows = re.findall(r"^\| \[?`(\w+)`", text(page), re.MULTILINE)
    assert [name for name in room.names() if name not in rows] == []
    assert f"[{NUMBERS[len(room.names())]} {words}" in text("README.md")


NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?:e-\d+)?")
WITH_INTERVAL = re.compile(r"\d+\.\d+ (?:± \d+\.\d+|\([+-]?\d+\.\d+(?: to |-)[+-]?\d+\.\d+\))")


def test_figures_of_search_quality_are_in_its_data() -> None:
    data = "".join(path.read_text("utf-8") for path in (ROOT / "benchmarks").glob("*/measured/*.json"))
    page = re.sub(r"\]\([^)]*\)", "", text("docs/lab/search-quality.md"))
    assert len(WITH_INTERVAL.findall(page)) > 100
    assert sorted(set(WITH_INTERVAL.findall(page)) - set(WITH_INTERVAL.findall(data))) == []
    assert sorted(set(NUMBER.findall(page)) - set(NUMBER.findall(data))) == []


# the examples


def test_experiment_of_the_readme_runs_and_its_database_can_be_queried(
    tmp_path: Path, pitchpipe_run: Callable[..., str], by_hand: Callable[..., str]
) -> None:
    (config,), (script,) = blocks("README.md", "yaml"), blocks("README.md", "python")
    assert len(config.splitlines()) == 15
    (tmp_path / "experiment.yml").write_text(config.replace("max_trial_number: 30", "max_trial_number: 6"))
    (tmp_path / "train.py").write_text(script)
    summary = json.loads(pitchpipe_run(tmp_path, "run", "experiment.yml", "--json"))
    folder = Path(summary["folder"])
    assert summary["status"] == "DONE"
    assert sum(summary["counts"].values()) == 6
    assert 0.0 < summary["best"]["value"] < 5.0
    assert set(summary["best"]["parameters"]) == {"lr", "momentum"}
    with closing(sqlite3.connect(f"file:{folder}/experiment.db?mode=ro", uri=True)) as db:
        results = [db.execute(query).fetchall() for query in blocks("docs/reference/store.md", "sql")]
    assert len(results) == 5
    assert results[0][0][2:] == (summary["best"]["value"], summary["best"]["parameters"]["lr"])
    assert all(results)
    (script,) = blocks("docs/reference/store.md", "python")
    (folder / "best.py").write_text(script)
    printed = by_hand(folder / "best.py")
    (folder / "best.py").unlink()
    # The three best of those that succeeded: how many were stopped early depends on the machine.
    assert len(printed.splitlines()) == min(3, summary["counts"]["SUCCEEDED"])
    files = re.findall(r"`([\w.-]+)", text("docs/reference/store.md").split("experiment.db` is SQLite")[0])
    assert {path.name.split(".db-")[0] for path in folder.iterdir()} <= {*files, "experiment"}


def test_script_of_the_readme_runs_alone(tmp_path: Path, by_hand: Callable[..., str]) -> None:
    (script,) = blocks("README.md", "python")
    (tmp_path / "train.py").write_text(script)
    printed = by_hand(tmp_path / "train.py")
    assert len(printed.splitlines()) == 11
    assert "Final result: 0.01" in printed


LIGHT_MODELS = {
    "__init__": "",
    "datasets": "def load_digits(return_X_y): return [[0.5]], [1]",
    "model_selection": "import numpy\ndef cross_val_score(model, images, labels, cv): return numpy.array([model.C])",
    "svm": "class SVC:\n    def __init__(self, C, gamma, kernel): self.C = C",
}


@pytest.mark.slow
def test_tutorial_leads_to_a_tuned_model(
    tmp_path: Path,
    pitchpipe_run: Callable[..., str],
    by_hand: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By hand its script trains with scikit-learn, in trials with a light stand-in."""
    page = "docs/use/tutorial.md"
    for name, source in LIGHT_MODELS.items():
        path = tmp_path / "light" / "sklearn" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "light"))
    (folder := tmp_path / "digits").mkdir()  # the experiment is named after the folder
    (script,), (config,) = blocks(page, "python"), blocks(page, "yaml")
    (folder / "train.py").write_text(script)
    commands = re.findall(r"^    ((?:python|pitchpipe) .+)", text(page), re.MULTILINE)
    assert len(commands) == 9
    printed = []
    for command in commands:
        program, *words = shlex.split(command.replace("24", "2").replace("34", "3"))
        if program == "pitchpipe":
            pitchpipe_run(folder, *words)
        else:
            printed.append(by_hand(folder / words[0], *words[1:]))
        if "init" in words:
            of_another_machine = re.sub(
                r"(trial_concurrency:) \d+", r"\1 2", (folder / "experiment.yml").read_text()
            )
            assert of_another_machine == config.replace("24", "2")
    assert [round(float(line.removeprefix("Final result: ")), 3) for line in printed] == [0.692, 0.976]
    assert (folder / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs" / "use" / "howto").glob("*.md")), ids=lambda page: page.stem
)
def test_how_to_page_works_line_by_line(
    tmp_path: Path,
    page: Path,
    pitchpipe_run: Callable[..., str],
    by_hand: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page with a config is a script and commands; one without is a script alone. Further configs are checked."""
    name = page.relative_to(ROOT).as_posix()
    configs = blocks(name, "yaml")
    # The default takes longer to load.
    configs[:1] = [f"{config}tuner: {{name: Random}}\n" for config in configs[:1]]
    (tmp_path / "train.py").write_text("\n".join(blocks(name, "python")))
    for number, config in enumerate(configs):
        whole = config if number == 0 else json.dumps(yaml.safe_load(configs[0]) | yaml.safe_load(config))
        (tmp_path / f"{'experiment' if number == 0 else number}.yml").write_text(whole)
    monkeypatch.setenv("PITCHPIPE_GPUS", "0,1")
    if not configs:
        assert by_hand(tmp_path / "train.py").strip()
        return
    commands = re.findall(r"^    pitchpipe (.+)", text(name), re.MULTILINE)
    for command in [*commands, *(f"validate {number}.yml" for number in range(1, len(configs)))]:
        assert pitchpipe_run(tmp_path, *shlex.split(command)).strip(), command


@pytest.fixture
def tuned(tmp_path: Path, pitchpipe_run: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    """Return a function that runs an experiment with a script of docs/use/trial.md, and returns its summary."""

    def tuned(language: str, which: int, words: str = "", trials: int = 2, **fields: Any) -> dict[str, Any]:
        (tmp_path / "trial").write_text(blocks("docs/use/trial.md", language)[which])
        config = {
            "trial_command": f"{language} trial{words}",
            "max_trial_number": trials,
            "search_space": {"lr": {"_type": "uniform", "_value": [0, 1]}},
            "tuner": {"name": "Random"},
            "training_service": {"platform": "local"},
            **fields,
        }
        (tmp_path / "experiment.yml").write_text(json.dumps(config))
        summary = json.loads(pitchpipe_run(tmp_path, "run", "experiment.yml", "--json"))
        assert summary["counts"] == {"SUCCEEDED": trials}
        return summary

    return tuned


@pytest.mark.parametrize(("language", "steps"), [("python", 5), ("sh", 1)])
def test_trials_in_python_and_in_shell_run(
    tmp_path: Path,
    pitchpipe_run: Callable[..., str],
    tuned: Callable[..., dict[str, Any]],
    language: str,
    steps: int,
) -> None:
    summary = tuned(language, 0)
    for trial in json.loads(pitchpipe_run(tmp_path, "export", summary["id"]))["trials"]:
        assert trial["final"]["default"] == pytest.approx(trial["parameters"]["lr"] * steps)
        assert len(trial["intermediate"]) == steps


@pytest.mark.parametrize("words", ["", " {args}"])
def test_script_with_a_parser_runs(tuned: Callable[..., dict[str, Any]], words: str) -> None:
    model = {"_type": "choice", "_value": [{"_name": "knn", "k": {"_type": "randint", "_value": [6, 9]}}]}
    space = {"lr": {"_type": "uniform", "_value": [1, 2]}, "model": model}
    best = tuned("python", 1, words, search_space=space)["best"]
    parameters = best["parameters"]
    assert best["value"] == pytest.approx(parameters["lr"] * parameters["model"]["k"])


@pytest.mark.parametrize(("language", "which", "steps"), [("python", 3, 5), ("sh", 1, 3)])
def test_scripts_with_checkpoints_run_and_save(
    tmp_path: Path, tuned: Callable[..., dict[str, Any]], language: str, which: int, steps: int
) -> None:
    tuned(language, which, trials=1, checkpoint={"keep": 9})
    saved = sorted(path.name for path in tmp_path.rglob("trials/0/checkpoints/*"))
    assert saved == [f"1-{number + 1}" for number in range(steps)]


@pytest.mark.parametrize("which", [2, 4])
def test_function_or_class_as_a_trial_runs(tmp_path: Path, by_hand: Callable[..., str], which: int) -> None:
    (tmp_path / "tune.py").write_text(blocks("docs/use/trial.md", "python")[which])
    assert by_hand(tmp_path / "tune.py").startswith("DONE ")


@pytest.mark.dispatcher_process  # the plug-ins print
def test_plug_ins_of_the_page_are_loaded_and_used(tmp_path: Path, pitchpipe_run: Callable[..., str]) -> None:
    (source,), (config,) = (
        blocks("docs/develop/plugins.md", "python"),
        blocks("docs/develop/plugins.md", "yaml"),
    )
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "my_plugins.py").write_text(source)
    (tmp_path / "experiment.yml").write_text(config)
    (script,) = blocks("docs/develop/plugins.md", "sh")
    assert "\nsleep 1 " in script
    # A trial that is judged bad is stopped before its end, however slow the machine is.
    script = script.replace("\nsleep 1 ", "\ncase $x in 6*|8*) sleep 60;; esac ")
    (tmp_path / "trial.sh").write_text(script)
    summary = json.loads(pitchpipe_run(tmp_path, "run", "experiment.yml", "--json"))
    assert (summary["status"], summary["best"]["value"]) == ("DONE", 0.0)
    assert summary["counts"] == {"SUCCEEDED": 3, "EARLY_STOPPED": 2}
    trials = json.loads(pitchpipe_run(tmp_path, "export", summary["id"]))["trials"]
    reasons = {trial["reason"] for trial in trials if trial["status"] == "EARLY_STOPPED"}
    assert reasons == {"6 is worse than 5", "8 is worse than 5"}


def test_plug_ins_of_the_page_pass_the_suites_as_the_page_says(tmp_path: Path) -> None:
    page = "docs/develop/plugins.md"
    (tmp_path / "my_plugins.py").write_text(blocks(page, "python")[0])
    (tmp_path / "test_plugins.py").write_text(blocks(page, "py")[0])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "test_plugins.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert re.search(r"\d\d passed, [1-9] skipped", done.stdout)


def test_architecture_links_every_decision() -> None:
    linked = {
        Path(link).name for link in LINK.findall(text("docs/develop/architecture.md")) if "decisions/" in link
    }
    assert linked == {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")}


@pytest.mark.parametrize(("script", "config"), [(0, 1), (1, 0)])  # each with the other's counterpart
def test_project_for_nni_and_its_counterpart_run(
    tmp_path: Path, pitchpipe_run: Callable[..., str], script: int, config: int
) -> None:
    (tmp_path / "train.py").write_text(blocks("docs/use/moving/nni.md", "python")[script])
    (tmp_path / "config.yml").write_text(blocks("docs/use/moving/nni.md", "yaml")[config])
    summary = json.loads(pitchpipe_run(tmp_path, "run", "config.yml", "--json"))
    assert (summary["status"], sum(summary["counts"].values())) == ("DONE", 6)
    assert "FAILED" not in summary["counts"]
    assert summary["best"]["value"] > 0.8


@pytest.mark.parametrize(
    "page", ["docs/use/python.md", "docs/use/moving/optuna.md", "docs/use/moving/ray-tune.md"]
)
def test_loops_and_lines_to_move_run(tmp_path: Path, by_hand: Callable[..., str], page: str) -> None:
    # Tune needs pyarrow, which nothing else here does.
    script = "\n".join(block for block in blocks(page, "python") if "from ray" not in block)
    (tmp_path / "script.py").write_text(script)
    lines = by_hand(tmp_path / "script.py").splitlines()
    if page == "docs/use/python.md":
        error, lr = map(float, lines[0].split())
        assert error < 0.5
        assert 0.1 < lr < 10
    assert lines[-1] in ("{'SUCCEEDED': 2}", "DONE") or lines[-1].startswith("[{'loss': ")


@pytest.mark.parametrize("page", PAGES)
def test_page_has_no_placeholder_and_no_paragraph_twice_in_a_row(page: str) -> None:
    """Both are what a merge by hand leaves behind."""
    assert re.findall(r"\b(?:N{2,}|X{3,}|TODO|TBD|FIXME)\b", text(page)) == []
    paragraphs = [part for part in text(page).split("\n\n") if part.strip()]
    assert [one for one, after in pairwise(paragraphs) if one == after] == []
