"""`pitchpipe init`: an experiment.yml for a script, from questions or options."""

from __future__ import annotations

import io
import os
import shlex
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ...config import PLATFORMS
from ...store import absolute, shell_word
from ..failures import Failure
from ..script_facts import ScriptFacts, higher_is_better, read_script
from ..verb import FILE, json_option, say, verb
from .config_draft import EXAMPLE, ConfigDraft, Proposal, ask_user, parameter_of, proposed, room_here
from .schema import SCHEMA_FILE

_OF_GPUS = frozenset(
    {"torch", "lightning", "pytorch_lightning", "transformers", "tensorflow", "keras", "jax"}
)
_MOST_NAMES = 10


@verb(
    "init",
    "pitchpipe init train.py",
    "pitchpipe init train.py --param lr=loguniform:1e-5:1e-1 --param units=choice:32,64 --maximize --yes --force",
    "pitchpipe init train.py --fix units --without momentum --yes --force",
)
@click.argument("script", type=FILE, required=False, metavar="[SCRIPT]")
@click.option(
    "--command",
    metavar="LINE",
    help="What a trial runs.  [default: python SCRIPT, with the options that it takes]",
)
@click.option(
    "--param",
    "specs",
    multiple=True,
    metavar="NAME=TYPE:...",
    help="A parameter, new or in place of a proposed one: uniform:LOW:HIGH, loguniform:LOW:HIGH, randint:LOW:HIGH, "
    "quniform:LOW:HIGH:Q, normal:MU:SIGMA, choice:A,B,C ...; may be given several times.",
)
@click.option(
    "--fix", "fixed", multiple=True, metavar="NAME[=VALUE]",
    help="Do not tune a parameter: it keeps this value, or its default in the script; may be given several times.",
)  # fmt: skip
@click.option(
    "--without", multiple=True, metavar="NAME", help="Leave a parameter out; may be given several times."
)
@click.option(
    "--maximize/--minimize", "maximize", default=None, help="Whether lower or higher results are better."
)
@click.option("--trials", type=click.IntRange(min=1), help="max_trial_number.  [default: 100]")
@click.option(
    "--concurrency", type=click.IntRange(min=1), help="trial_concurrency.  [default: what fits this machine]"
)
@click.option("--platform", type=click.Choice(list(PLATFORMS)), help="Where trials run.  [default: local]")
@click.option("--tuner", metavar="NAME", help="The search algorithm.  [default: the default tuner]")
@click.option("--assessor", metavar="NAME", help="The rule for early stopping.  [default: none]")
@click.option(
    "--output", "-o", type=FILE, default=Path("experiment.yml"),
    show_default=True, metavar="FILE", help="The output file.",
)  # fmt: skip
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: guess what the options leave out.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@json_option
def init(
    script: Path | None,
    specs: tuple[str, ...],
    fixed: tuple[str, ...],
    without: tuple[str, ...],
    output: Path,
    yes: bool,
    force: bool,
    as_json: bool,
    **fields: Any,
) -> None:
    """Write an experiment.yml for SCRIPT.

    A Python script is read but not run, to propose its parameters with ranges around their defaults; the defaults
    run as trial 0. Budgets, such as epochs, are not tuned. On a terminal, you are asked for whatever the options
    leave out. The file is checked before it is written.
    """
    if script is None and fields["command"] is None:
        raise Failure("give a SCRIPT, or a --command")
    text = _text_of(script)
    if output.exists() and not force:
        raise Failure(f"{output} exists already: choose another with -o, or add --force")
    if not absolute(output).parent.is_dir():
        raise Failure(f"{output} cannot be written: there is no directory {output.parent}")
    facts = _facts_of(script, text)
    proposal = proposed(facts, specs, fixed, without, fields["command"])
    draft = _draft(script, output, facts, proposal, fields)
    if not (yes or as_json) and sys.stdin.isatty():
        draft = ask_user(draft)
    if script is not None and fields["command"] is None:
        draft = replace(draft, command=_command(script, output, facts, draft.proposal.parameters))
    draft, assumption = _with_direction(draft, facts)
    missing = _missing_calls(facts, draft.command)
    if not draft.proposal.parameters:
        what = f"no parameters were found: add some, such as --param {EXAMPLE}"
        ways = _ways_to_pass(script, facts)
        raise Failure("\n".join([what, *ways, *_calls_to_add(script, facts, missing)]))
    text = draft.checked_text(output.parent)
    if (output.parent / SCHEMA_FILE).is_file():
        text = f"# yaml-language-server: $schema={SCHEMA_FILE}\n{text}"
    output.write_text(text, encoding="utf-8")
    notes = [
        *_choices_made(draft),
        *assumption,
        *_left_alone(draft, facts, without),
        *_remarks(draft.proposal.parameters, facts, fixed),
        *_further_metrics(facts),
        *([] if fields["command"] else _notes_on_command(draft, facts)),
    ]
    _say_written(as_json, draft, notes, missing, output, _calls_to_add(script, facts, missing))


def _draft(
    script: Path | None,
    output: Path,
    facts: ScriptFacts | None,
    proposal: Proposal,
    fields: Mapping[str, Any],
) -> ConfigDraft:
    """Return the draft that follows from script and options; `fields` are the fields that have options."""
    modules = facts.modules if facts is not None else frozenset()
    return ConfigDraft(
        name=_name(script, output),
        proposal=proposal,
        metric=(facts and facts.reports.key) or "default",
        guess=None if facts is None else higher_is_better(facts.reports.metric),
        room=room_here(for_gpus=not modules.isdisjoint(_OF_GPUS)),
        **{**fields, "command": fields["command"] or ""},
    )


def _with_direction(draft: ConfigDraft, facts: ScriptFacts | None) -> tuple[ConfigDraft, list[str]]:
    """Return the draft with a direction, and a note on it if it was assumed."""
    if draft.maximize is not None:
        return draft, []
    better, option, other = (
        ("higher", "minimize", "lower") if draft.guess else ("lower", "maximize", "higher")
    )
    why = "" if facts is None or draft.guess is None else f", since the script reports {facts.reports.metric}"
    assumption = f"assuming that {better} results are better{why}; use --{option} if {other} is better"
    return replace(draft, maximize=draft.guess is True), [assumption]


def _say_written(
    as_json: bool,
    draft: ConfigDraft,
    notes: list[str],
    missing: list[str],
    output: Path,
    calls: Sequence[str],
) -> None:
    written = {
        "file": str(output),
        "parameters": list(draft.proposal.parameters),
        "not_tuned": draft.proposal.kept,
        "notes": notes,
        "missing_calls": missing,
    }
    say(
        as_json,
        written,
        f"{output} written, with the parameters {', '.join(draft.proposal.parameters)}",
        *notes,
        *calls,
        f"next: pitchpipe validate {shell_word(output)} --try",
    )


def _choices_made(draft: ConfigDraft) -> Iterator[str]:
    if draft.proposal.kept:
        yield f"not tuned: {', '.join(draft.proposal.kept)}; to tune one: --param NAME=..."
    if why := draft.why_no_defaults():
        yield f"the script's defaults are not trial 0: {why}"


def _left_alone(draft: ConfigDraft, facts: ScriptFacts | None, without: Sequence[str]) -> Iterator[str]:
    """Yield notes on the options of the script whose defaults suggest no range."""
    if facts is None or facts.parameters or facts.constants is not None:
        return
    known = {*draft.proposal.parameters, *draft.proposal.kept, *without}
    rest = [option for option in facts.command_line.options if option.name not in known]
    if alone := [option.name for option in rest if not option.is_boolean]:
        yield f"left alone, since their defaults suggest no range: {_some(alone)}"
    if switches := [option.name for option in rest if option.is_boolean]:
        yield f"left alone: {_some(switches)}; to tune one: --param NAME=choice:true,false"


def _some(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_MOST_NAMES])} and {more} more"


def _further_metrics(facts: ScriptFacts | None) -> Iterator[str]:
    """Yield a note on the metrics that the script reports besides the one that is optimised."""
    if facts is not None and facts.reports.others:
        others = ", ".join(facts.reports.others)
        yield f"the script also reports {others}: to optimise or limit them, too, add them to objectives in the file"


def _notes_on_command(draft: ConfigDraft, facts: ScriptFacts | None) -> Iterator[str]:
    """Yield notes on the command of the file: which of several it runs, and what it has to be given by hand."""
    if facts is None:
        return
    line = facts.command_line
    if line.command and facts.takes_options and line.others:
        others = ", ".join(line.others)
        yield f"trials run the command {line.command} of the script; to run {others}, change trial_command in the file"
    yield from line.notes if facts.takes_options else ()
    if needed := [name for name in line.needs if name not in draft.proposal.parameters]:
        yield f"the script requires {', '.join(needed)}: add to trial_command in the file"


def _name(script: Path | None, output: Path) -> str:
    """Return the name of the script, or of the folder if the script has a common name."""
    stem = script.stem if script is not None else ""
    return stem if stem not in ("", "train", "main", "run", "trial") else absolute(output).parent.name


def _command(script: Path, output: Path, facts: ScriptFacts | None, parameters: Mapping[str, str]) -> str:
    """Return the command for a script; a script that takes options gets the parameters as options."""
    words = f"python {shlex.quote(os.path.relpath(script, output.parent))}"
    if facts is None or not facts.takes_options:
        return words
    has_null = any(None in parameter_of(name, spec)["_value"] for name, spec in parameters.items() if spec)
    return f"{words} {facts.command_line.arguments(parameters, with_null=has_null)}"


def _text_of(script: Path | None) -> str | None:
    """Return the text of a Python script; None for other programs."""
    if script is None or script.suffix != ".py":
        return None
    if not script.is_file():
        raise Failure(f"{script} is not a file" if script.exists() else f"there is no file {script}")
    source = script.read_bytes()
    try:
        compile(source, str(script), "exec", dont_inherit=True)
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        return source.decode(encoding)
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise Failure(f"{script} is not a readable Python script: {error}") from error


def _facts_of(script: Path | None, text: str | None) -> ScriptFacts | None:
    """Return the facts about a Python script; None for other programs."""
    if script is None or text is None:
        return None
    try:
        return read_script(text, script.parent)
    except SyntaxError as error:
        raise Failure(f"{script} is not a readable Python script: {error}") from error


def _remarks(parameters: Mapping[str, str], facts: ScriptFacts | None, fixed: Sequence[str]) -> Iterator[str]:
    """Yield notes on unusual parameters."""
    by_hand = [text.partition("=")[0].replace("_", "-") for text in fixed]
    for name, spec in parameters.items():
        if spec.startswith("choice:") and "," not in spec and name.replace("_", "-") not in by_hand:
            yield f"{name} has only one option: add more to the file"
        if facts is not None and (names := facts.names) and name not in names:
            yield f"the script does not look up {name}"
    for name in () if facts is None else facts.nested:
        yield f"left out, because it is nested: {name} (docs/reference/search_space.md)"


def _ways_to_pass(script: Path | None, facts: ScriptFacts | None) -> Iterator[str]:
    """Yield what to do about a script that takes options in a way that is not known."""
    if script is not None and facts is not None and not facts.takes_options and not facts.asks:
        command = shlex.quote(f"python {script} {{args}}")
        yield f"if {script} takes them as options --NAME=VALUE: --command {command}"


def _calls_to_add(script: Path | None, facts: ScriptFacts | None, missing: Sequence[str]) -> list[str]:
    """Return the lines about the calls that are missing in a script."""
    first = "" if facts is not None and facts.imports_us else " (import pitchpipe)"
    return [f"add to {script}{first}:", *(f"    {line}" for line in missing)] if missing else []


def _missing_calls(facts: ScriptFacts | None, command: str) -> list[str]:
    """Return the calls that are missing in the script, as lines to add."""
    if facts is None:
        return []
    missing: list[str] = []
    if facts.constants is not None:
        missing += () if facts.asks else facts.constants.lines
    elif facts.takes_options and facts.command_line.of_argparse and "{" not in command:
        missing.append("arguments = pitchpipe.parse_args(parser)       # in place of parser.parse_args()")
    elif not facts.asks and (not facts.takes_options or "{" not in command):
        missing.append("parameters = pitchpipe.get_next_parameter()   # a dict")
    if not facts.reports.has_intermediate:
        missing.append(
            "pitchpipe.report_intermediate_result(value)   # e.g. once per epoch; needed for early stopping"
        )
    if not facts.reports.has_final:
        missing.append("pitchpipe.report_final_result(value)          # once, at the end")
    return missing
