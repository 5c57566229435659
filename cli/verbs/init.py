"""`pitchpipe init`: an experiment.yml for a script, from questions or options."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from ...config import PLATFORMS
from ..failures import Failure
from ..verb import FILE, verb

__all__ = ["init"]


@verb(
    "init",
    "pitchpipe init train.py",
    "pitchpipe init train.py --param lr=loguniform:1e-5:1e-1 --param units=choice:32,64 --maximize --yes",
)
@click.argument("script", type=FILE, required=False, metavar="[SCRIPT]")
@click.option("--command", metavar="LINE", help="What a trial runs.  [default: python SCRIPT]")
@click.option(
    "--param",
    "specs",
    multiple=True,
    metavar="NAME=TYPE:...",
    help="A parameter: uniform:LOW:HIGH, loguniform:LOW:HIGH, randint:LOW:HIGH, quniform:LOW:HIGH:Q, normal:MU:SIGMA, "
    "choice:A,B,C ...; may be given several times.",
)
@click.option(
    "--maximize/--minimize", "maximize", default=None, help="Whether lower or higher results are better."
)
@click.option("--trials", type=click.IntRange(min=1), help="max_trial_number.  [default: 100]")
@click.option("--concurrency", type=click.IntRange(min=1), help="trial_concurrency.  [default: 2]")
@click.option("--platform", type=click.Choice(list(PLATFORMS)), help="Where trials run.  [default: local]")
@click.option("--tuner", metavar="NAME", help="The search algorithm.  [default: the default tuner]")
@click.option("--assessor", metavar="NAME", help="The rule for early stopping.  [default: none]")
@click.option(
    "--output", "-o", type=FILE, default=Path("experiment.yml"),
    show_default=True, metavar="FILE", help="The output file.",
)  # fmt: skip
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: guess what the options leave out.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def init(
    script: Path | None,
    command: str | None,
    specs: tuple[str, ...],
    maximize: bool | None,
    trials: int | None,
    concurrency: int | None,
    platform: str | None,
    tuner: str | None,
    assessor: str | None,
    output: Path,
    yes: bool,
    force: bool,
) -> None:
    """Write an experiment.yml for SCRIPT.

    A Python script is read but not run, to propose its parameters with ranges around their defaults. On a
    terminal, you are asked for whatever the options leave out. The file is checked before it is written.
    """
    from ..drafting import Draft, asked, proposed_parameters
    from ..script_facts import read_script

    if output.exists() and not force:
        raise Failure(f"{output} exists already: choose another with -o, or add --force")
    if script is None and command is None:
        raise Failure("give a SCRIPT, or a --command")
    text = _text_of(script)
    facts = read_script(text) if text is not None else None
    draft = Draft(
        command=command or f"python {shlex.quote(os.path.relpath(script or '', output.parent))}",
        parameters=proposed_parameters(facts, specs),
        maximize=maximize,
        trials=trials,
        concurrency=concurrency,
        platform=platform,
        tuner=tuner,
        assessor=assessor,
    )
    if not yes and sys.stdin.isatty():
        draft = asked(draft)
    output.write_text(draft.checked_text(output.parent), encoding="utf-8")
    click.echo(f"{output} written, with the parameters {', '.join(draft.parameters)}")
    if draft.maximize is None:
        click.echo("assuming that lower results are better; use --maximize if higher is better")
    for line in (*_remarks(draft.parameters, facts), *_advice(script, facts)):
        click.echo(line)
    click.echo(f"next: pitchpipe validate {shlex.quote(str(output))} --try")


def _text_of(script: Path | None) -> str | None:
    """Return the text of a Python script; None for other programs."""
    if script is None or script.suffix != ".py":
        return None
    if not script.is_file():
        raise Failure(f"there is no file {script}")
    text = script.read_text(encoding="utf-8", errors="replace")
    try:
        compile(text, str(script), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise Failure(f"{script} is not a readable Python script: {error}") from error
    return text


def _remarks(parameters: Mapping[str, str], facts: object) -> Iterator[str]:
    """Yield notes on unusual parameters."""
    from ..script_facts import ScriptFacts

    for name, spec in parameters.items():
        if spec.startswith("choice:") and "," not in spec:
            yield f"{name} has only one option: add more to the file"
        known = isinstance(facts, ScriptFacts) and (name in facts.parameters or name in facts.flags)
        if isinstance(facts, ScriptFacts) and (facts.parameters or facts.flags) and not known:
            yield f"the script does not look up {name}"


def _advice(script: Path | None, facts: object) -> list[str]:
    """Return the calls that the script still lacks, as lines to add."""
    from ..script_facts import ScriptFacts

    if not isinstance(facts, ScriptFacts):
        return []
    missing = []
    structured = [name for name, value in facts.parameters.items() if isinstance(value, dict | list | tuple)]
    if not facts.asks and facts.flags and not facts.parameters:
        missing.append("arguments = pitchpipe.parse_args(parser)       # in place of parser.parse_args()")
    elif not facts.asks:
        missing.append("parameters = pitchpipe.get_next_parameter()   # a dict")
    if not facts.reports_intermediate:
        missing.append(
            "pitchpipe.report_intermediate_result(value)   # e.g. once per epoch; needed for early stopping"
        )
    if not facts.reports_final:
        missing.append("pitchpipe.report_final_result(value)          # once, at the end")
    lines = [f"left out, because it is nested: {name} (docs/search_space.md)" for name in structured]
    if missing:
        lines += [f"add to {script} (import pitchpipe):", *(f"    {line}" for line in missing)]
    return lines
