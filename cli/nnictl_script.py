"""The script `nnictl`: its command lines mean what they mean to NNI, and what programs read has NNI's form."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from ..store import ExperimentFolder
from ..store.reading import ExperimentView, TrialQuery
from .app import main as run_main
from .app import run
from .failures import FAILED, Failure
from .finding import chosen_experiment

__all__ = ["main", "of_nnictl"]

_SUCCEEDED = ("SUCCEEDED",)


def main() -> None:
    """Run the command line and exit the process."""
    run_main(_run)


def of_nnictl(arguments: Sequence[str]) -> list[str]:
    """Return a command line with what NNI does without being told: it resumes in the background.

    >>> of_nnictl(["resume", "k3x9a2bq"])
    ['resume', 'k3x9a2bq', '--detach']
    """
    in_background = arguments[:1] == ["resume"] and not {"-f", "--foreground"} & set(arguments)
    return [*arguments, "--detach"] if in_background else list(arguments)


def _run(arguments: list[str]) -> int:
    words = tuple(arguments[:2])
    if words == ("trial", "ls"):
        return run(arguments[2:], trial_ls)
    if words == ("experiment", "export"):
        return run(arguments[2:], export)
    if words == ("webui", "url"):
        return run(arguments[2:], webui_url)
    return run(of_nnictl(arguments))


_NAME = click.argument("name", metavar="[ID]", required=False)
_DIRECTORY = click.option(
    "--dir", "directory", type=click.Path(path_type=Path), help="The directory of experiments."
)


@click.command("nnictl trial ls")
@_NAME
@_DIRECTORY
@click.option(
    "--head", type=click.IntRange(min=1), help="Only the succeeded trials with the highest results."
)
@click.option("--tail", type=click.IntRange(min=1), help="Only the succeeded trials with the lowest results.")
def trial_ls(name: str | None, directory: Path | None, head: int | None, tail: int | None) -> None:
    """Print the trials as a JSON array, as NNI does."""
    folder = chosen_experiment(name, None, directory)
    query = TrialQuery(limit=None)
    if count := head or tail:
        query = TrialQuery(statuses=_SUCCEEDED, sort="value", descending=head is not None, limit=count)
    with ExperimentView(folder) as view:
        jobs = [_job(folder, view, trial) for trial in view.trials(query).trials]
    click.echo(json.dumps(jobs, indent=4))


@click.command("nnictl experiment export")
@_NAME
@_DIRECTORY
@click.option("--filename", "-f", type=click.Path(path_type=Path), required=True, help="The file to write.")
@click.option("--type", "-t", "kind", type=click.Choice(["json", "csv"]), default="json", help="Its form.")
@click.option("--intermediate", "-i", is_flag=True, help="With the intermediate results.")
def export(name: str | None, directory: Path | None, filename: Path, kind: str, intermediate: bool) -> None:
    """Write the succeeded trials to a file, as NNI does."""
    with ExperimentView(chosen_experiment(name, None, directory)) as view:
        rows = list(_exported(view, intermediate))
    text = json.dumps(rows, indent=4) if kind == "json" else _csv(rows)
    filename.write_text(text, encoding="utf-8")
    click.echo(f"{len(rows)} trials are in {filename}")


@click.command("nnictl webui url")
@_NAME
def webui_url(name: str | None) -> None:
    """Say where the pages are: nothing serves them in the background, so there is no address to print."""
    folder = chosen_experiment(name, None, None)
    raise Failure(
        f"no pages are served yet: `pitchpipe ui {folder.experiment_id}` serves them until Ctrl-C", FAILED
    )


def _job(folder: ExperimentFolder, view: ExperimentView, trial: dict[str, Any]) -> dict[str, Any]:
    """Return a trial in NNI's form: times in ms, records and values as JSON texts."""
    number, trial_id = trial["sequence_id"], trial["trial_id"]
    job = {
        "trialJobId": trial_id,
        "status": trial["status"],
        "hyperParameters": [view.record(number)],
        "logPath": str(folder.trial(number)),
        "sequenceId": number,
        "startTime": _ms(trial["start_time"]),
        "endTime": _ms(trial["end_time"]),
    }
    if trial["status"] == "SUCCEEDED":
        data = json.dumps(json.dumps(trial["final"]))
        final = {"timestamp": _ms(trial["end_time"]), "trialJobId": trial_id, "parameterId": None}
        job["finalMetricData"] = [{**final, "type": "FINAL", "sequence": 0, "data": data}]
    return {key: value for key, value in job.items() if value is not None}


def _exported(view: ExperimentView, intermediate: bool) -> Iterator[dict[str, Any]]:
    results = view.results() if intermediate else {}
    for trial in view.trials(TrialQuery(statuses=_SUCCEEDED, limit=None)).trials:
        final = json.dumps(trial["final"])
        row = {"parameter": trial["parameters"], "value": final, "trialJobId": trial["trial_id"]}
        if intermediate:
            before = [json.dumps(value) for value in results.get(trial["sequence_id"], {}).values()]
            row["intermediate"] = [*before, final]
        yield row


def _csv(rows: Sequence[dict[str, Any]]) -> str:
    flat = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the CSV: the parameters, the reward or the metrics, the id, the intermediate results."""
    value = json.loads(row["value"])
    metrics = value if isinstance(value, dict) else {"reward": value}
    more = {"intermediate": f"[{','.join(row['intermediate'])}]"} if "intermediate" in row else {}
    return {**row["parameter"], **metrics, "trialJobId": row["trialJobId"], **more}


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)
