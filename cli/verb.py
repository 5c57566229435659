"""What all verbs share: a command with examples in its help, and the options that name an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from .printing import let_output_fail, print_line


class _Path(click.Path):
    """A path; a leading `~` is the home directory, even where the shell does not expand it (`--dir=~/runs`)."""

    def __init__(self, **more: Any) -> None:
        super().__init__(path_type=Path, **more)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        from ..store import with_home

        return super().convert(with_home(value), param, ctx)


FILE = _Path(dir_okay=False)
_DIRECTORY = _Path(file_okay=False)


class WholeNumber(click.IntRange):
    """An integer within bounds, whose error message is a full sentence."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            bounds = f"of at least {self.min}" if self.max is None else f"from {self.min} to {self.max}"
            self.fail(f"'{value}' is not a whole number {bounds}", param, ctx)


F = TypeVar("F", bound=Callable[..., Any])


class Verb(click.Command):
    """A command whose help ends with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the command line; suggest `--set` for an unknown option that is a field of CONFIG."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            field = self._field_meant(name)
            if field is None or (error.possibilities and field != _as_field(name)):
                raise
            ctx.fail(f"No such option '{name}'. Did you mean '--set {field}=VALUE'?")

    def _field_meant(self, option: str) -> str | None:
        """Return the field of CONFIG that an unknown option resembles, if the verb has `--set`."""
        from ..config import ExperimentConfig, nearest

        takes_fields = any(parameter.name == "overrides" for parameter in self.params)
        return nearest(_as_field(option), ExperimentConfig.model_fields) if takes_fields else None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples unchanged, whatever their width."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def _as_field(option: str) -> str:
    """Return an option in the spelling of a field.

    >>> _as_field("--max-trial-number")
    'max_trial_number'
    """
    return option.lstrip("-").replace("-", "_")


def verb(name: str, *examples: str) -> Callable[[Callable[..., Any]], Verb]:
    """Make a function a verb; its docstring is the help."""
    return click.command(name, cls=Verb, examples=examples)


def directory_option(function: F) -> F:
    """Add `--dir`."""
    return click.option(
        "--dir",
        "directory",
        type=_DIRECTORY,
        metavar="DIR",
        help="The directory of the experiments.  [default: $PITCHPIPE_DIR or ~/pitchpipe-experiments]",
    )(function)


def experiment_options(function: F) -> F:
    """Add the optional ID, `--experiment-id`, which is another way to give it, and `--dir`."""
    function = click.argument(
        "experiment", required=False, metavar="[ID]", shell_complete=complete_experiment
    )(function)
    return _named_options(function)


def trial_options(function: F) -> F:
    """Add `[ID] TRIAL`, `--experiment-id` and `--dir`."""
    function = click.argument("names", nargs=-1, required=True, metavar="[ID] TRIAL")(function)
    return _named_options(function)


def new_experiment_options(function: F) -> F:
    """Add CONFIG, and `--experiment-id` and `--dir` of a new experiment."""
    function = config_options(function)
    function = click.option(
        "--experiment-id", metavar="ID", help="Its id: up to 32 letters, digits, '-', '_'.  [default: random]"
    )(function)
    return click.option(
        "--dir",
        "directory",
        type=_DIRECTORY,
        metavar="DIR",
        help="The directory of the experiments."
        "  [default: the config's experiment_working_directory, else $PITCHPIPE_DIR or ~/pitchpipe-experiments]",
    )(function)


def resume_if_exists_option(function: F) -> F:
    """Add `--resume-if-exists`."""
    help_text = "Continue the experiment with this --experiment-id if there is one; higher limits extend it."
    return click.option("--resume-if-exists", is_flag=True, help=help_text)(function)


def config_options(function: F) -> F:
    """Add CONFIG and `--set`."""
    function = click.argument("config", type=_Path(), metavar="CONFIG")(function)
    return click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set a field of CONFIG, such as max_trial_number=5 or tuner.name=TPE; may be given several times.",
    )(function)


def best_by_option(function: F) -> F:
    """Add `--best-by`."""
    help_text = "Show one trial of the front as the best: by an objective, or the front's knee."
    return click.option("--best-by", metavar="NAME|knee", help=help_text)(function)


def watch_options(function: F) -> F:
    """Add `--json` and `--quiet`."""
    help_text = "Print one JSON object at the end, and nothing else on stdout."
    function = click.option("--json", "as_json", is_flag=True, help=help_text)(function)
    return click.option("--quiet", "-q", is_flag=True, help="Show no progress, only the result.")(function)


def json_option(function: F) -> F:
    """Add `--json`."""
    help_text = "Print one JSON object, and nothing else on stdout."
    return click.option("--json", "as_json", is_flag=True, help=help_text)(function)


def say(as_json: bool, result: Mapping[str, object], *lines: str) -> None:
    """Print what a verb has done, as a JSON object or as lines; the verb succeeds even if they cannot be printed."""
    if not as_json:
        say_lines(lines)
        return
    from ..store.reading import to_json

    let_output_fail()
    click.echo(to_json(result).decode())


def say_lines(lines: Iterable[str]) -> None:
    """Print what a verb has done, or has done so far; the verb succeeds even if the lines cannot be printed."""
    let_output_fail()
    for line in lines:
        print_line(line)


def limit_options(function: Any) -> Any:
    """Add `--max-trial-number`, `--max-experiment-duration` and `--trial-concurrency`."""
    count = WholeNumber(min=1)
    for option in (
        click.option("--trial-concurrency", type=count, metavar="N", help="New limit: N trials at a time."),
        click.option(
            "--max-experiment-duration",
            type=_Duration(),
            metavar="D",
            help="New limit: D of running time in all (2h).",
        ),
        click.option("--max-trial-number", type=count, metavar="N", help="New limit: N trials in all."),
    ):
        function = option(function)
    return function


def _named_options(function: F) -> F:
    function = click.option(
        "--experiment-id",
        metavar="ID",
        shell_complete=complete_experiment,
        help="The experiment, if ID is not given.",
    )(function)
    return directory_option(function)


class _Duration(click.ParamType):
    """A duration in seconds, or as text with a unit, as in the config."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        from ..config import UnitError, parse_duration

        try:
            seconds = parse_duration(float(value) if value.replace(".", "", 1).isdigit() else value)
        except UnitError as error:
            self.fail(error.with_hint(), param, ctx)
        if seconds <= 0:
            self.fail("must be more than 0 seconds", param, ctx)
        return seconds


def complete_experiment(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Return the ids in the directory that begin with the given text, for shell completion."""
    from ..store import ExperimentFolder, FolderError
    from .lookup import experiments_directory

    try:
        directory = experiments_directory(context.params.get("directory"))
    except FolderError:
        return []  # no message can be shown while the user types
    ids = (folder.experiment_id for folder in ExperimentFolder.all(directory))
    return [experiment_id for experiment_id in ids if experiment_id.startswith(begun)]
