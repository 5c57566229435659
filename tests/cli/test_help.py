"""Help, version, and what they must not import."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pitchpipe.cli.app import LazyGroup, pitchpipe

from .conftest import Call

HEAVY = ["asyncio", "numpy", "orjson", "psutil", "pydantic", "ray", "rich", "ruamel.yaml", "scipy", "sqlite3"]


def verbs_of(group: LazyGroup, *words: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, LazyGroup):
            yield from verbs_of(command, *words, name)
        else:
            yield (*words, name), command


VERBS = dict(verbs_of(pitchpipe))  # type: ignore[arg-type]


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_help_of_a_verb_has_its_examples_and_so_has_the_page(
    words: tuple[str, ...], call: Call, tree: Path
) -> None:
    page = (tree / "docs" / "reference" / "cli.md").read_text()
    called = call(*words, "--help")
    examples = VERBS[words].examples  # type: ignore[attr-defined]

    assert called.code == 0
    assert examples
    assert f"\n## {' '.join(words)}\n" in page
    for example in examples:
        assert example.startswith(f"pitchpipe {' '.join(words)}")
        assert f"  {example}\n" in called.out
        assert f"\n    {example}\n" in page


def test_the_page_has_no_verb_that_is_none(tree: Path) -> None:
    page = (tree / "docs" / "reference" / "cli.md").read_text()
    titles = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert titles == [" ".join(words) for words in VERBS]


@pytest.mark.parametrize("words", [(), ("trial",), ("ray",)], ids=["pitchpipe", "trial", "ray"])
def test_help_of_a_group_names_its_verbs_and_has_an_example(words: tuple[str, ...], call: Call) -> None:
    called = call(*words, "--help")
    assert called.code == 0
    for verb in [known[-1] for known in VERBS if known[:-1] == words]:
        assert f"\n  {verb} " in called.out
    assert "Example:" in called.out


def test_every_verb_of_an_experiment_takes_its_id_and_directory() -> None:
    without = {
        ("list",),
        ("validate",),
        ("ray", "status"),
        ("ray", "stop"),
        ("completion",),
        ("doctor",),
        ("init",),
        ("schema",),
    }
    without |= {("compare",), ("delete",), ("mcp",)}  # of several
    without |= {("cluster", verb) for verb in ("up", "status", "down")}
    for words, command in VERBS.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert words in without or {"--experiment-id", "--dir"} <= options, words


def test_version_is_that_of_the_package(call: Call) -> None:
    from importlib.metadata import version

    assert call("--version").out == f"pitchpipe {version('pitchpipe')}\n"


@pytest.mark.parametrize("words", [["--help"], ["--version"]], ids=" ".join)
def test_help_and_version_import_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys; from pitchpipe.cli.app import run; code = run(sys.argv[2:]);"
        "print('loaded:', *[name for name in sys.argv[1].split(',') if name in sys.modules]); sys.exit(code)"
    )
    command = [sys.executable, "-P", "-c", code, ",".join(HEAVY), *words]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "loaded:"


def test_no_verb_shows_the_help_as_wrong_usage(call: Call) -> None:
    called = call()
    assert called.code == 2
    assert "Verbs:" in called.err
    assert called.out == ""
