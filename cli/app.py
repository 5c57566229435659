"""The table of verbs, and the one place that turns errors into messages and exit codes.

A verb's module is imported when the verb is used: `pitchpipe --help` shows this table and imports nothing else.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from importlib import import_module

import click

from ..protocol import foreign
from .failures import FAILED, INTERRUPTED, Failure, errors_as_failures
from .import_interrupts import ended_by_interrupts
from .printing import escape_output, finish_output, open_streams

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

# verb: (module and attribute, what it does)
VERBS = {
    "init": ("init:init", "Write an experiment.yml for a script."),
    "run": ("run:run", "Run an experiment and watch it."),
    "create": ("create:create", "Start an experiment in the background."),
    "resume": ("resume:resume", "Resume an experiment."),
    "list": ("listing:list_experiments", "List the experiments of a directory."),
    "status": ("listing:status", "Show the status of an experiment."),
    "top": ("top:top", "Watch an experiment on the whole screen."),
    "ui": ("ui:ui", "Show experiments in a web browser."),
    "trials": ("trials:trials", "List the trials of an experiment."),
    "trial": ("trial:trial", "Show, add, rerun or kill a trial; print its log."),
    "update": ("update:update", "Change limits or the search space of an experiment."),
    "import": ("import_verb:import_verb", "Import results measured elsewhere."),
    "stop": ("stop:stop", "Stop a running experiment."),
    "validate": ("validate:validate", "Check a config; with --try, run its first trials."),
    "schema": ("schema:schema", "Print the JSON schema of experiment.yml, for editors."),
    "doctor": ("doctor:doctor", "Check this machine and this installation."),
    "export": ("export:export", "Write the trials as JSON, CSV or an Optuna study."),
    "report": ("export:report", "Write an experiment as one HTML file."),
    "compare": ("compare:compare", "Compare experiments."),
    "delete": ("stop:delete", "Delete experiments and all their files."),
    "cluster": ("cluster:cluster", "Start Ray on several machines, show or end it."),
    "slurm": ("slurm:slurm", "Run an experiment as a job of Slurm."),
    "ray": ("ray:ray", "Show or stop the private Ray cluster."),
    "mcp": ("mcp:mcp", "Serve experiments to an agent (MCP)."),
    "completion": ("completion:completion", "Print the completion script for a shell."),
}


# What the words of other tools are called here.
_ELSEWHERE = {
    **dict.fromkeys(("start", "tune", "optimize", "search"), "run"),
    **dict.fromkeys(("log", "logs"), "trial log"),
    **dict.fromkeys(("show", "best"), "status"),
    **dict.fromkeys(("dashboard", "web", "serve"), "ui"),
    **dict.fromkeys(("rm", "remove"), "delete"),
    **{word: f"trial {word}" for word in ("add", "rerun", "kill")},
    "check": "validate",
    **dict.fromkeys(("ls", "experiment", "experiments"), "list"),
}


class LazyGroup(click.Group):
    """A group that imports its verbs on use, from a table of name -> (module:attribute, help)."""

    table = VERBS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order in which users need them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; return None for an unknown name."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        with ended_by_interrupts():
            return getattr(import_module(f".verbs.{module}", __package__), attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; suggest the nearest one for an unknown name."""
        if args and args[0] not in self.table and not args[0].startswith("-"):
            import difflib

            near = _ELSEWHERE.get(args[0]) if self.table is VERBS else None
            near = near or next(iter(difflib.get_close_matches(args[0], self.table, n=1)), None)
            if args[0] == "nnictl":
                ctx.fail("nnictl is a command of its own: write it without pitchpipe")
            hint = f"did you mean '{near}'?" if near else f"see {ctx.find_root().info_name} --help"
            ctx.fail(f"there is no verb '{args[0]}': {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table without importing any verb."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, text) for verb, (_, text) in self.table.items()])


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"pitchpipe {version('pitchpipe')}")
        ctx.exit()


@click.group(cls=LazyGroup, subcommand_metavar="VERB ...", context_settings=_SETTINGS)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version.",
)
def pitchpipe() -> None:
    """Tune the hyper-parameters of any training script.

    \b
    Example:
      pitchpipe run experiment.yml

    `pitchpipe VERB --help` shows the options of a verb, with examples.
    """


def main(execute: Callable[[list[str]], int] | None = None) -> None:
    """Run the command line and exit the process; `execute` is used in place of `run`."""
    open_streams()
    escape_output()
    try:
        code = (execute or run)(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = FAILED  # the reader of the output (head, less) has closed the pipe
    # The work is done: a late Ctrl-C must not change the exit code.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(finish_output(code))


def run(arguments: list[str], command: click.Command | None = None, program: str = "pitchpipe") -> int:
    """Run a command line in this process, of `pitchpipe` or of another command, and return its exit code.

    `program` is what the user called.
    """
    if not sys.platform.startswith(("linux", "darwin")):
        click.echo(f"error: pitchpipe runs on Linux and macOS, not on {sys.platform}", err=True)
        return 2
    try:
        with errors_as_failures():
            if command is None:
                own = arguments
                for other in foreign("command line"):
                    own = other.translated(own)
                code = pitchpipe.main(own, prog_name=program, standalone_mode=False)
            else:
                code = command.main(arguments, prog_name=command.name, standalone_mode=False, **_SETTINGS)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        _in_words_of(arguments, error).show()
        return error.exit_code
    return code if isinstance(code, int) else 0


def _in_words_of(arguments: list[str], error: click.ClickException) -> click.ClickException:
    """Return an error that names the options which the user wrote."""
    text = said = error.format_message()
    for other in foreign("command line"):
        said = other.in_the_users_words(arguments, said)
    if said == text:
        return error
    if isinstance(error, click.UsageError):
        return click.UsageError(said, error.ctx)
    return Failure(said, error.exit_code)
