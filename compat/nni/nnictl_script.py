"""The script `nnictl`: its command lines mean what they mean to NNI, and what programs read has NNI's form."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from ...cli import FAILED, USAGE, Failure, WholeNumber, chosen_experiment, pitchpipe, run
from ...protocol import JsonObject
from ...store.reading import ExperimentView, TrialQuery, csv_text
from .nnictl_algo import ALGO
from .nnictl_words import REPLACED, WITHOUT_EQUIVALENT, translated
from .rest_forms import NniExport, nni_export, nni_jobs, nni_profile

_SUCCEEDED = ("SUCCEEDED",)
_SHORT: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("algo", "reg"): ("algo", "register"),
    ("algo", "unreg"): ("algo", "unregister"),
}
# Words that only come before a verb; others (update, trial) are Pitchpipe's own as well.
_GROUPS = frozenset({"experiment", "algo", "config", "log", "webui", "platform"})
# nnictl's words that are Pitchpipe's as well.
_KEPT = (("create",), ("resume",), ("stop",), ("top",), ("trial", "kill"))
_EXTENDING = (("update", "trialnum"), ("update", "duration"))
_TAKE_ALL = (("stop",), ("experiment", "list"))


def of_nnictl(arguments: Sequence[str]) -> list[str]:
    """Return a command line with what NNI does without being told.

    It resumes in the background, and a higher limit continues an experiment that is DONE.

    >>> of_nnictl(["resume", "k3x9a2bq"])
    ['resume', 'k3x9a2bq', '--detach']
    """
    more = []
    if arguments[:1] == ["resume"] and not {"-f", "--foreground"} & set(arguments):
        more = ["--detach"]
    elif tuple(arguments[:2]) in _EXTENDING:
        more = ["--continue"]
    return [*arguments, *more]


def execute(arguments: list[str]) -> int:
    """Run a command line of nnictl and return its exit code."""
    words = tuple(arguments[:2])
    words = _SHORT.get(words, words)
    if words in _OWN:
        return run(arguments[2:], _OWN[words])
    topics = [word for word in words if word not in ("help", "-h", "--help")]
    lines = list(help_lines(*topics)) if len(topics) == 0 or (len(topics) == 1 and len(arguments) < 3) else []
    if lines:
        click.echo("\n".join(lines))
        return 0
    if words and words[0] in _GROUPS and words not in (*REPLACED, *WITHOUT_EQUIVALENT, *_OWN):
        return _refused(f"nnictl has no `{' '.join(words)}`: `nnictl {words[0]}` lists its verbs")
    if arguments[-1] == "all" and tuple(arguments[:-1]) in _TAKE_ALL:
        return _refused(f"write it as `nnictl {' '.join(arguments[:-1])} --all`")
    if words[:1] == ("create",) and len(translated(arguments)) == 1:
        return _refused("nnictl create needs a config: nnictl create --config FILE")
    return run(of_nnictl(arguments), program="nnictl")


def _refused(why: str) -> int:
    click.echo(f"error: {why}", err=True)
    return USAGE


def help_lines(group: str = "") -> Iterator[str]:
    """Yield nnictl's verbs with what each does, or what to do instead; only those of a group such as `trial`.

    >>> next(help_lines("algo")).split(maxsplit=3)[:3]
    ['nnictl', 'algo', 'list']
    """
    texts = {words: f"no equivalent: {instead}" for words, instead in WITHOUT_EQUIVALENT.items()}
    texts.update({words: f"pitchpipe {' '.join(ours)}: {_what(ours)}" for words, ours in REPLACED.items()})
    texts.update({words: _what(words) for words in _KEPT})
    texts.update({words: command.get_short_help_str(90) for words, command in _OWN.items()})
    texts.pop(("algo",))  # its verbs are among the own ones
    for words, text in sorted(texts.items()):
        if not group or (group == words[0] and len(words) > 1):
            yield f"nnictl {' '.join(words):<24}{text}"


def _what(ours: tuple[str, ...]) -> str:
    """Return what a verb of Pitchpipe does, in one sentence."""
    context = click.Context(pitchpipe)
    command: click.Command | None = pitchpipe
    for word in ours:
        assert isinstance(command, click.Group), ours
        command = command.get_command(context, word)
    assert command is not None, ours
    return command.get_short_help_str(90)


_NAME = click.argument("name", metavar="[ID]", required=False)
_DIRECTORY = click.option(
    "--dir", "directory", type=click.Path(path_type=Path), help="The directory of experiments."
)


@click.command("nnictl trial ls")
@_NAME
@_DIRECTORY
@click.option("--head", type=WholeNumber(min=1), help="Only the succeeded trials with the highest results.")
@click.option("--tail", type=WholeNumber(min=1), help="Only the succeeded trials with the lowest results.")
def trial_ls(name: str | None, directory: Path | None, head: int | None, tail: int | None) -> None:
    """Print the trials as a JSON array, as NNI does."""
    folder = chosen_experiment(name, None, directory)
    query = TrialQuery(limit=None)
    if count := head or tail:
        query = TrialQuery(statuses=_SUCCEEDED, sort="value", descending=head is not None, limit=count)
    with ExperimentView(folder) as view:
        click.echo(json.dumps(nni_jobs(view, query), indent=4))


@click.command("nnictl experiment export")
@_NAME
@_DIRECTORY
@click.option("--filename", "-f", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option("--type", "-t", "kind", type=click.Choice(["json", "csv"]), default="json", help="Its form.")
@click.option("--intermediate", "-i", is_flag=True, help="With the intermediate results.")
def export(name: str | None, directory: Path | None, filename: Path, kind: str, intermediate: bool) -> None:
    """Write the succeeded trials to a file, as NNI does."""
    with ExperimentView(chosen_experiment(name, None, directory)) as view:
        rows = list(nni_export(view, intermediate=intermediate))
    text = json.dumps(rows, indent=4) if kind == "json" else _csv(rows)
    filename.write_text(text, encoding="utf-8")
    click.echo(f"{len(rows)} {'trial is' if len(rows) == 1 else 'trials are'} in {filename}")


@click.command("nnictl experiment show")
@_NAME
@_DIRECTORY
def experiment_show(name: str | None, directory: Path | None) -> None:
    """Print the config and how far the experiment is as JSON, as NNI does."""
    with ExperimentView(chosen_experiment(name, None, directory)) as view:
        profile = nni_profile(view)
    times = {"startTime": profile["startTime"], "endTime": profile.get("endTime")}
    dates = {
        key: time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(ms // 1000))
        for key, ms in times.items()
        if ms is not None
    }
    click.echo(json.dumps({**profile, **dates}, indent=4, sort_keys=True))


@click.command("nnictl experiment status")
@_NAME
@_DIRECTORY
def experiment_status(name: str | None, directory: Path | None) -> None:
    """Print the status and why as JSON, as NNI does."""
    with ExperimentView(chosen_experiment(name, None, directory)) as view:
        summary = view.summary()
    errors = [summary.error or summary.reason] if summary.status == "ERROR" else []
    click.echo(json.dumps({"errors": errors, "status": summary.status}, indent=4))


@click.command("nnictl config show")
@_NAME
@_DIRECTORY
def config_show(name: str | None, directory: Path | None) -> None:
    """Print the config as JSON, as NNI does."""
    folder = chosen_experiment(name, None, directory)
    with ExperimentView(folder) as view:
        # The folder may be elsewhere than the config says.
        where = {"experimentWorkingDirectory": str(folder.path.parent)}
        click.echo(json.dumps({**view.config(), **where}, indent=4))


@click.command("nnictl webui url")
@_NAME
def webui_url(name: str | None) -> None:
    """Say where the pages are: nothing serves them in the background, so there is no address to print."""
    folder = chosen_experiment(name, None, None)
    raise Failure(
        f"no pages are served yet: `pitchpipe ui {folder.experiment_id}` serves them until Ctrl-C", FAILED
    )


def _csv(rows: Sequence[NniExport]) -> str:
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    return csv_text([names, *([row.get(name) for name in names] for row in flat)]).decode()


def _flat(row: NniExport) -> JsonObject:
    """Return a row of the CSV: the parameters, the reward or the metrics, the id, the intermediate results."""
    value = json.loads(row["value"])
    metrics = value if isinstance(value, dict) else {"reward": value}
    more = {"intermediate": [*map(json.loads, row["intermediate"])]} if "intermediate" in row else {}
    return {**row["parameter"], **metrics, "trialJobId": row["trialJobId"], **more}


#: Verbs whose output differs from that of Pitchpipe's.
_OWN: Mapping[tuple[str, ...], click.Command] = {
    ("trial", "ls"): trial_ls,
    ("experiment", "export"): export,
    ("experiment", "show"): experiment_show,
    ("experiment", "status"): experiment_status,
    ("config", "show"): config_show,
    ("webui", "url"): webui_url,
    **{("algo", name): command for name, command in ALGO.items()},
}
