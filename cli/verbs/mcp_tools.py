"""What `pitchpipe mcp` offers to an agent: each tool runs a verb with `--json` in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import TextContent

from ...protocol import JsonObject, Parameters
from ...store import ExperimentFolder
from ...store.reading import ExperimentView, to_json

_INSTRUCTIONS = """\
Pitchpipe tunes the hyper-parameters of a training script. The usual order: draft_config for a script, read and change
the file, validate_config with try_seconds, start_experiment, wait_for_experiment, explain_experiment. Experiments run
in the background and outlive this server. `experiment` is an id, or its beginning.
"""
_LONGEST_LOG = 20_000  # characters of a trial's output
_TOOLS = {
    "init": "draft_config",
    "validate": "validate_config",
    "run": "start_experiment",
    "create": "start_experiment",
    "list": "list_experiments",
    "status": "explain_experiment",
    "trials": "list_trials",
    "trial show": "explain_trial",
    "trial log": "read_trial_log",
    "trial add": "add_trial",
    "trial kill": "kill_trial",
    "update": "change_limits",
    "stop": "stop_experiment",
    "resume": "resume_experiment",
}
_ARGUMENTS = {
    "-o": "output",
    "--output": "output",
    "--force": "overwrite=true",
    "--param": "parameters",
    "--parameters": "parameters",
    "--fix": "fix",
    "--without": "without",
    "--maximize": "maximize",
    "--minimize": "maximize=false",
    "--set": "changes",
    "--try": "try_seconds",
    "--where": "where",
    "--sort": "sort",
    "--limit": "limit",
    "--max-trial-number": "max_trial_number",
    "--max-experiment-duration": "max_experiment_duration",
    "--trial-concurrency": "trial_concurrency",
    "--experiment-id": "experiment_id",
}
# Not for agents: click's usage, the mark of an error, options that no tool has.
_DROPPED = re.compile(
    r"^Usage: .*\n|^Try '.*\n\n?|^[Ee]rror: | \(use --anyway[^)]*\)|,? or --dir DIR| --dir \S+", re.MULTILINE
)
_VERB = re.compile(rf"pitchpipe ({'|'.join(sorted(_TOOLS, key=len, reverse=True))})\b")
_OPTION = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, _ARGUMENTS))})(?![\w-])")


class McpTools:
    """The tools; all experiments are in one directory (None: the default one)."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def draft_config(
        self,
        script: str,
        output: str = "experiment.yml",
        parameters: list[str] | None = None,
        fix: list[str] | None = None,
        without: list[str] | None = None,
        maximize: bool | None = None,
        trials: int = 100,
        concurrency: int = 2,
        overwrite: bool = False,
    ) -> JsonObject:
        """Write a config for a Python script: parameters with ranges around their defaults. The script is not run.

        `parameters` replace or add proposals, such as lr=loguniform:1e-5:1e-1, units=randint:16:257 or
        act=choice:relu,tanh. `fix` has NAME or NAME=VALUE of what is not tuned, `without` names to leave out.
        `maximize` says that higher results are better; without it the script is asked, else lower ones are. Returns the
        text of the file, notes, and calls that the script still needs.
        """
        words: list[object] = ["init", script, "--output", output, "--yes"]
        words += ["--trials", trials, "--concurrency", concurrency]
        options = {"--param": parameters, "--fix": fix, "--without": without}
        words += [f"{option}={value}" for option, values in options.items() for value in values or ()]
        words += [] if maximize is None else ["--maximize" if maximize else "--minimize"]
        words += ["--force"] if overwrite else []
        draft = _run(*words)
        notes = [_in_words_of_tools(note) for note in draft["notes"]]
        return {**draft, "notes": notes, "text": Path(output).read_text(encoding="utf-8")}

    def validate_config(
        self, config: str, changes: list[str] | None = None, try_seconds: float | None = None
    ) -> JsonObject:
        """Check a config file; all problems come at once, with line and column.

        With `try_seconds` the first trials run for so long, and `tried` says how they went. `changes` are values in
        place of the file's, such as max_trial_number=5 or tuner.name=TPE.
        """
        tried = [] if try_seconds is None else ["--try", "--seconds", try_seconds]
        return _run("validate", config, *_set(changes), *tried)

    def start_experiment(
        self, config: str, changes: list[str] | None = None, experiment_id: str | None = None
    ) -> JsonObject:
        """Start the experiment of a config file in the background; returns its `id`."""
        named = [] if experiment_id is None else ["--experiment-id", experiment_id]
        return self._verb("create", config, *_set(changes), *named)

    def list_experiments(self) -> list[JsonObject]:
        """List all experiments, the newest first."""
        return self._verb("list")

    def wait_for_experiment(self, experiment: str, seconds: float = 30.0) -> JsonObject:
        """Wait until an experiment is over, for at most so many seconds; return its status and best trial."""
        status = self._verb("status", experiment)
        folder = ExperimentFolder(Path(status["folder"]))
        if folder.manager() is None:
            return status
        folder.wait_until_unmanaged(seconds)
        return self._verb("status", experiment)

    def explain_experiment(self, experiment: str) -> JsonObject:
        """Explain how an experiment stands: best trials, failures by cause and `failure_regions`, `health`.

        `importance` says how much each parameter matters, `why_not` in it why this is unknown.
        """
        from ...server import read_importance

        status = self._verb("status", experiment)
        with ExperimentView(ExperimentFolder(Path(status["folder"]))) as view:
            matters = read_importance(view, None)
        return {**status, "importance": json.loads(to_json(matters))}

    def list_trials(
        self, experiment: str, where: str | None = None, sort: str = "best", limit: int = 20
    ) -> list[JsonObject]:
        """List trials with their parameters and results.

        `metrics` of a trial is what it reported last under each name. `where` has conditions such as lr < 0.1 and
        train_loss < 0.5 and status == 'FAILED'; `sort` is number, best, highest, lowest, longest, latest or the name of
        an objective, a metric, a parameter or a column (lowest first), or -NAME; `limit` 0 means all.
        """
        condition = [] if where is None else ["--where", where]
        return self._verb("trials", experiment, *condition, "--sort", sort, "--limit", limit)

    def explain_trial(self, experiment: str, trial: str | int) -> JsonObject:
        """Show everything about a trial (its number or id), and in `why` why it ended as it did."""
        return self._verb("trial", "show", experiment, trial, "--why")

    def read_trial_log(self, experiment: str, trial: str | int) -> str:
        """Return the end of what a trial printed."""
        return _text("trial", "log", experiment, trial, *self._where())[-_LONGEST_LOG:]

    def change_limits(
        self,
        experiment: str,
        max_trial_number: int | None = None,
        max_experiment_duration: str | None = None,
        trial_concurrency: int | None = None,
    ) -> JsonObject:
        """Change the limits of an experiment; a duration is text such as 2h. Returns all limits."""
        limits = _limits(max_trial_number, max_experiment_duration, trial_concurrency)
        return self._verb("update", experiment, *limits)

    def add_trial(self, experiment: str, parameters: Parameters) -> JsonObject:
        """Run a trial with these parameters in a running experiment."""
        return self._verb("trial", "add", experiment, "--parameters", json.dumps(parameters))

    def kill_trial(self, experiment: str, trial: str | int) -> JsonObject:
        """Kill a running trial; the experiment continues."""
        return self._verb("trial", "kill", experiment, trial)

    def stop_experiment(self, experiment: str) -> JsonObject:
        """Stop an experiment. Results are kept, and it can be resumed."""
        return self._verb("stop", experiment)

    def resume_experiment(
        self,
        experiment: str,
        max_trial_number: int | None = None,
        max_experiment_duration: str | None = None,
        trial_concurrency: int | None = None,
    ) -> JsonObject:
        """Continue an experiment in the background; one that is DONE needs a higher limit."""
        limits = _limits(max_trial_number, max_experiment_duration, trial_concurrency)
        return self._verb("resume", experiment, "--detach", *limits)

    def _verb(self, *words: object) -> Any:
        return _run(*words, *self._where())

    def _where(self) -> list[str]:
        return [] if self._directory is None else ["--dir", str(self._directory)]


def mcp_server(directory: Path | None) -> MCPServer:
    """Return the server with all tools, for experiments in one directory."""
    tools = McpTools(directory)
    named = [getattr(tools, name) for name in vars(McpTools) if not name.startswith("_")]
    return MCPServer(
        "pitchpipe",
        instructions=_INSTRUCTIONS,
        version=version("pitchpipe"),
        tools=[_StrictTool.from_function(tool) for tool in named],
    )


class _StrictTool(Tool):
    """A tool that refuses unknown arguments: if one was ignored, the tool would do something else than asked."""

    def model_post_init(self, _context: Any, /) -> None:
        """State in the schema that there are no other arguments."""
        self.parameters["additionalProperties"] = False

    async def run(self, arguments: JsonObject, context: Any, convert_result: bool = False) -> Any:
        """Check the arguments and run the tool; raise `ToolError`."""
        if problems := [*_problems(self, arguments)]:
            raise ToolError("; ".join(problems))
        result = await super().run(arguments, context, convert_result)
        if convert_result and not result.content:  # an empty list; some clients read only the text
            result.content = [TextContent(type="text", text="[]")]
        return result


def _problems(tool: Tool, arguments: JsonObject) -> Iterator[str]:
    """Yield what is wrong with the arguments of a call."""
    known = tool.parameters["properties"]
    if unknown := [name for name in arguments if name not in known]:
        yield f"unknown arguments of {tool.name}: {', '.join(unknown)}; it takes {', '.join(known)}"
    try:
        tool.fn_metadata.validate_arguments(arguments)
    except ValueError as error:
        details: Any = error  # pydantic's, which lists the arguments; its text has an address for each
        problems = {str(item["loc"][0]): item["msg"] for item in details.errors(include_url=False)}
        yield from (f"{name}: {message}" for name, message in problems.items())


def _run(*words: object) -> Any:
    """Return what a verb prints with `--json`; raise `ToolError` with its error message if it prints nothing."""
    return json.loads(_text(*words, "--json"))


def _text(*words: object) -> str:
    package = __name__.partition(".")[0]
    command = [sys.executable, "-P", "-m", package, *map(str, words)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not done.stdout:  # a verb may fail and still report, as after a failed trial
        raise ToolError(_in_words_of_tools(done.stderr).strip())
    return done.stdout


def _set(changes: list[str] | None) -> list[str]:
    return [f"--set={change}" for change in changes or ()]


def _limits(number: int | None, duration: str | None, concurrency: int | None) -> list[str]:
    given = {
        "max-trial-number": number,
        "max-experiment-duration": duration,
        "trial-concurrency": concurrency,
    }
    return [f"--{name}={value}" for name, value in given.items() if value is not None]


def _in_words_of_tools(text: str) -> str:
    """Return a message of a verb with the names of tools and arguments: an agent has no verbs and options.

    >>> _in_words_of_tools("error: a.yml exists already: choose another with -o, or add --force")
    'a.yml exists already: choose another with output, or add overwrite=true'
    >>> _in_words_of_tools("it is DONE, and pitchpipe resume k3 --max-trial-number N extends it")
    'it is DONE, and resume_experiment k3 max_trial_number N extends it'
    """
    text = _VERB.sub(lambda match: _TOOLS[match[1]], _DROPPED.sub("", text))
    return _OPTION.sub(lambda match: _ARGUMENTS[match[1]], text)
