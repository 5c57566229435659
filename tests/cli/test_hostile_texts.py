"""Texts of users on a terminal: nothing in them moves the cursor, is taken for markup, or passes for another text."""

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pitchpipe.cli.app import run
from pitchpipe.cli.live_table import render
from pitchpipe.cli.printing import TerminalBytes, escape_output
from pitchpipe.cli.verbs.top import screen
from pitchpipe.store import ExperimentFolder
from pitchpipe.store.reading import ExperimentView
from pitchpipe.telling import BestSoFar, RunProgress, escaped, option_text, parameters_text, visible

from ..hostile_texts import HOSTILE, TEXTS, hostile_experiment, stored_text

Call = Callable[..., tuple[str, str]]

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
ANY_TEXT = st.text(st.characters(codec=None), max_size=8) | st.sampled_from(TEXTS)

PARAMETERS = st.dictionaries(ANY_TEXT.filter(bool), ANY_TEXT, max_size=3)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    hostile_experiment(directory / "made1234").store.close()
    return directory


@pytest.fixture
def call(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """Yield a function that runs a verb as its process would, and returns what leaves for stdout and stderr."""

    def start(*words: str) -> tuple[str, str]:
        made = {name: io.BytesIO() for name in ("stdout", "stderr")}
        for name, output in made.items():
            monkeypatch.setattr(sys, name, io.TextIOWrapper(output, encoding="utf-8", write_through=True))
        escape_output()
        place = [] if words[0] == "validate" else ["--dir", str(directory)]
        assert (run([*words, *place]) == 0) != (words[0] == "validate")
        sys.stdout.flush()
        sys.stderr.flush()
        out, err = (output.getvalue().decode() for output in made.values())
        return out, err

    yield start
    monkeypatch.undo()


def assert_harmless(shown: str) -> None:
    assert escaped(shown, keep="\n\t") == shown


WORDS = [
    ("list",),
    ("status",),
    ("trials", "--limit", "0"),
    ("compare", "made1234", "made1234"),
    ("trial", "show", str(TEXTS.index(HOSTILE["lines"]))),
    ("trial", "show", str(TEXTS.index(HOSTILE["long word"]))),
    *(
        ("trial", "show", str(len(TEXTS) + TEXTS.index(HOSTILE[name])), "--why")
        for name in ("lines", "clear screen")
    ),
]


@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_verb_prints_no_control_character_no_line_of_a_users_and_no_endless_one(
    call: Call, words: tuple[str, ...]
) -> None:
    out, err = call(*words)
    assert_harmless(out)
    assert_harmless(err)
    assert not any(line.startswith("best: 1e9") for line in out.splitlines())
    assert max(map(len, out.splitlines())) < 5_000


@pytest.mark.parametrize(
    "words", [("status", "--json"), ("trials", "--limit", "0", "--json"), ("list", "--json")]
)
def test_json_has_the_texts_themselves(call: Call, words: tuple[str, ...]) -> None:
    out, _ = call(*words)
    assert_harmless(out)
    found = json.loads(out)
    if words[0] == "trials":
        reasons = {one["reason"] for one in found}
        assert {*map(stored_text, TEXTS)} <= reasons
        assert {stored_text(text) for one in found for text in one["parameters"]} >= {
            *map(stored_text, TEXTS)
        }


def test_each_problem_of_a_config_is_on_a_line_of_its_own(call: Call, tmp_path: Path) -> None:
    """Not all of the texts come as far as this: of two fields of the same name one counts."""
    empty = {"_type": "uniform", "_value": [1, 0]}
    config = {"trialCommand": "true", "searchSpace": dict.fromkeys(TEXTS, empty), **dict.fromkeys(TEXTS, 1)}
    (tmp_path / "e.json").write_text(json.dumps(config))
    _, err = call("validate", str(tmp_path / "e.json"))
    assert_harmless(err)
    *problems, last = err.splitlines()
    assert last.startswith(f"{len(problems)} problems found")
    assert len(problems) > len(TEXTS)
    assert {line.partition("e.json:")[0] for line in problems} == {f"{tmp_path}/"}


def test_top_and_the_live_view_show_every_text_and_no_markup(directory: Path) -> None:
    for text in TEXTS:
        best = BestSoFar("abc12", 3, {text: 1.0, "loss": 2.0}, {text: text})
        progress = RunProgress(
            experiment_id="made1234",
            name=text,
            status="RUNNING",
            reason=text,
            elapsed=1.0,
            counts={},
            best=(best,),
            waiting_for=text,
            warnings=(text,),
        )
        shown = drawn(render(progress))
        assert_harmless(shown)
        assert escaped(text).split()[0] in shown
    with ExperimentView(ExperimentFolder(directory / "made1234")) as view:
        shown = drawn(screen(view, view.summary(), 60))
    assert_harmless(shown)
    assert f"{HOSTILE['Rich'][:30]}" in shown


def drawn(found: object) -> str:
    console = Console(file=io.StringIO(), width=30_000, height=200, force_terminal=True)
    console.print(found)
    output = console.file
    assert isinstance(output, io.StringIO)
    return COLOURS.sub("", output.getvalue())


@given(ANY_TEXT, ANY_TEXT)
def test_two_texts_never_look_the_same(one: str, other: str) -> None:
    assert (visible(one) == visible(other)) == (one == other)
    assert_harmless(visible(one))
    assert "\n" not in visible(one)


@given(PARAMETERS, PARAMETERS)
def test_different_parameters_are_written_differently(one: dict[str, str], other: dict[str, str]) -> None:
    assert (parameters_text(one) == parameters_text(other)) == ([*one.items()] == [*other.items()])


@given(
    st.one_of(ANY_TEXT, st.none(), st.booleans(), st.integers()), st.text("0123456789truefalsn[]", max_size=5)
)
def test_text_never_looks_like_another_value(one: object, text: str) -> None:
    assert (option_text(one) == option_text(text)) == (one == text)


@given(st.lists(st.sampled_from([*TEXTS, "\x1b[32mgreen\x1b[0m", "10 %\r", "é", "\x1b["])), st.integers(1, 9))
def test_log_on_a_terminal_is_the_same_however_it_is_split(texts: list[str], size: int) -> None:
    data = "".join(texts).encode("utf-8", "surrogatepass")
    at_once, in_pieces = io.StringIO(), io.StringIO()
    TerminalBytes(at_once).write(data)
    pieces = TerminalBytes(in_pieces)
    for start in range(0, len(data), size):
        pieces.write(data[start : start + size])
    assert in_pieces.getvalue() == at_once.getvalue()
    assert_harmless(re.sub(r"\x1b\[[0-9;]*m|\x1b\[K|[\r\b]", "", at_once.getvalue()))


def test_log_on_a_terminal_keeps_colours_and_escapes_the_rest() -> None:
    output = io.StringIO()
    TerminalBytes(output).write(b"\x1b[32mgreen\x1b[0m 50 %\r100 %\n\x1b[2J\x1b]52;c;eA==\x07")
    assert output.getvalue() == "\x1b[32mgreen\x1b[0m 50 %\r100 %\n\\u001b[2J\\u001b]52;c;eA==\\u0007"
