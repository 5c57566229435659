"""The table of verbs, and the one place where errors become sentences and exit codes.

A verb's module is imported when the verb is used: `pitchpipe --help` shows this table and imports no more.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from importlib import import_module

import click

from .failures import explained
from .nnictl import translated

__all__ = ["INTERRUPTED", "VERBS", "main", "pitchpipe", "run"]

INTERRUPTED = 130
_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

# verb: (module and attribute, what it does)
VERBS = {
    "init": ("init:init", "Write an experiment.yml for a script."),
    "run": ("run:run", "Run an experiment and watch it."),
    "create": ("create:create", "Start an experiment in the background."),
    "resume": ("resume:resume", "Go on with an experiment that nobody runs."),
    "list": ("listing:list_experiments", "List the experiments of a directory."),
    "status": ("listing:status", "Show how an experiment stands."),
    "top": ("top:top", "Watch an experiment on the whole screen."),
    "ui": ("ui:ui", "Show experiments in a web browser."),
    "trials": ("trials:trials", "List the trials of an experiment."),
    "trial": ("trial:trial", "Show, add, run again or kill a trial; its output."),
    "update": ("update:update", "Change limits or the search space, live."),
    "import": ("importing:import_verb", "Tell the tuner results from elsewhere."),
    "stop": ("stop:stop", "Stop a running experiment."),
    "validate": ("validate:validate", "Check a config; with --try, run one trial of it."),
    "doctor": ("doctor:doctor", "Check this machine and this installation."),
    "export": ("export:export", "Write the trials as JSON, CSV or an Optuna study."),
    "report": ("report:report", "Write an experiment as one HTML file."),
    "compare": ("compare:compare", "Compare experiments."),
    "delete": ("delete:delete", "Delete experiments and all that they kept."),
    "ray": ("ray:ray", "See or end the private Ray."),
    "completion": ("completion:completion", "Print what makes a shell complete words."),
}


class LazyGroup(click.Group):
    """A group whose verbs are imported when they are used, from a table name -> (module:attribute, help)."""

    table = VERBS

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in the order in which one needs them."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb; None for a word that is none."""
        if cmd_name not in self.table:
            return None
        module, _, attribute = self.table[cmd_name][0].partition(":")
        return getattr(import_module(f".verbs.{module}", __package__), attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; a wrong one is answered with the nearest."""
        if args and args[0] not in self.table and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], self.table, n=1)
            hint = f"did you mean '{near[0]}'?" if near else "see pitchpipe --help"
            ctx.fail(f"there is no verb '{args[0]}': {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the table, and import nothing."""
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

    `pitchpipe VERB --help` shows what a verb takes, with an example.
    """


def main() -> None:
    """Run the command line and exit the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Trials may report half a character, which no encoding has; inside JSON its escape says the same.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output (head, less) has had enough; Python must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    # Nothing is left to be interrupted: a late Ctrl-C must not change the exit code.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run a command line in this process and answer its exit code."""
    if not sys.platform.startswith(("linux", "darwin")):
        click.echo(f"error: pitchpipe runs on Linux and macOS, not on {sys.platform}", err=True)
        return 2
    try:
        with explained():
            code = pitchpipe.main(translated(arguments), prog_name="pitchpipe", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show()
        return error.exit_code
    return code if isinstance(code, int) else 0
