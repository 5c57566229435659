"""Runs every check on one config in turn, from data to a model, and collects the problems."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from ..protocol import JsonObject, brief_json
from .config_files import ConfigFiles
from .cross_checks import IGNORED, check_fields, check_space, check_stop, fill_defaults, free_form_note
from .draft import draft_of
from .plugins import Checker, PluginCheck, ask_dispatcher, check_trackers
from .problems import MISSING, ConfigError, ConfigProblem, Finding, did_you_mean
from .root_fields import ConfigFields
from .source import Source, read_source
from .starting_points import check_starting_points
from .values import UnitError

Fields = TypeVar("Fields", bound=ConfigFields)

_KINDS = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}
# What the fields that hold others look like.
_EXAMPLES = {
    "objectives": "[{name: accuracy, direction: maximize}]",
    "defaults": "{lr: 0.1, layers: 2}",
    "initial_points": "[{lr: 0.1, layers: 2}]",
    "priors": "{lr: {centre: 0.1}}",
    "warm_start": "[k3x9a2bq, earlier.csv]",
    "repeats": "{count: 5}",
}
# The field that a section written as one word probably means.
_FIRST_FIELDS = {"training_service": "platform"}


class ConfigCheck(Generic[Fields]):
    """The checks of one config, and their result.

    `base` is the folder that relative paths start from; without one the data is canonical.
    """

    def __init__(
        self,
        model: type[Fields],
        data: Any,
        base: str | os.PathLike[str] | None,
        *,
        main: Source | None = None,
        needs_command: bool = True,
    ) -> None:
        self.stored = base is None
        self.draft = draft_of(data, main, stored=self.stored)
        self.model = model
        self.main = main
        self.space_source: Source | None = None
        self.base = base
        self.needs_command = needs_command
        self.problems: list[ConfigProblem] = []
        self.checked = PluginCheck()
        self.config: Fields | None = None if self.draft.stopped else self._check()

    def result(self) -> Fields:
        """Return the config, or raise `ConfigError` with all problems."""
        files = ConfigFiles(self.main, self.space_source)
        problems = files.ordered([*files.problems(self.draft.findings), *self.problems])
        if problems or self.config is None:
            raise ConfigError(problems)
        self.config._notes = tuple(self.draft.notes)
        self.config._form = self.draft.form
        if self.main is not None:
            given = [path for path in IGNORED if path in self.draft.origins]
            self.config._ignored = {path: files.named(self.draft.origins[path]) for path in given}
        return self.config

    def check_plugins(self, checker: Checker | None = None) -> None:
        """Ask a dispatcher process about the tuner and the assessor, and check the trackers.

        Nothing is done if the section of a plug-in is malformed.
        """
        if self.config is None or self.draft.wrong & {"tuner", "assessor", "advisor"}:
            return
        is_space_wrong = self.draft.wrong & {"search_space", "search_space_file", "constraints"}
        without = ["search_space", "constraints"] if is_space_wrong else []
        if "objectives" in self.draft.wrong:
            without.append("objectives")
        self.checked = ask_dispatcher(self.config, checker, without=without)
        wrong_paths = {finding.path for finding in self.draft.findings}
        for finding in (*self.checked.findings, *check_trackers(self.config)):
            if self.draft.origin(finding.path) not in wrong_paths:
                self.draft.note(finding)

    def check_also(self, check: Callable[[Fields], list[Finding]], *reads: str) -> None:
        """If there are problems, add those of a later `check`, unless a field that it `reads` is malformed."""
        has_problems = bool(self.problems or self.draft.findings)
        if has_problems and self.config is not None and not self.draft.wrong & {*reads}:
            self._note(check(self.config))

    def _check(self) -> Fields:
        fill_defaults(self.draft.values)
        config, findings = validate_fields(self.model, self.draft.values, self.base)
        self._note(findings)
        self._note(check_fields(config, self.draft, self.needs_command))
        if not self.stored:
            self._note(check_stop(config))
            config = self._with_space(config)
        if config.search_space is not None and not self.draft.wrong & {"search_space", "constraints"}:
            if config.tuner.class_name is None:
                at = self.draft.origin(("search_space",))
                space, remarks = self.draft.form.read_space(config.search_space, at)
                self.draft.notes += remarks
                config = config.model_copy(update={"search_space": space})
            findings = check_space(config, stored=self.stored)
            if note := free_form_note(config, findings):
                self.draft.notes.append(note)
                return config
            self._note(findings)
            if not self.stored and not self.draft.wrong & {"search_space", "constraints"}:
                self._note(check_starting_points(config, self.draft.values.get("priors")))
        return config

    def _note(self, findings: list[Finding]) -> None:
        for finding in findings:
            self.draft.note(finding)

    def _with_space(self, config: Fields) -> Fields:
        inline, file = (name in self.draft.values for name in ("search_space", "search_space_file"))
        if inline and file:
            self.draft.add(("search_space_file",), "excludes search_space", "keep one of them", at_key=True)
        elif not inline and not file and self._is_space_optional(config):
            self.draft.notes.append(f"{config.tuner.class_name} gets an empty search space: none is given")
            return config.model_copy(update={"search_space": {}})
        elif not inline and not file and ("search_space_file",) not in self.draft.meant:
            self.draft.add(("search_space",), MISSING, "or search_space_file")
        elif config.search_space_file is not None:
            return self._read_space(config, config.search_space_file)
        return config

    def _is_space_optional(self, config: Fields) -> bool:
        return config.tuner.class_name is not None and not self.draft.form.own_tuner_needs_space

    def _read_space(self, config: Fields, file: FilePath) -> Fields:
        try:
            source = read_source(file, self._named(str(self.draft.values["search_space_file"])))
        except ConfigError as error:
            self.problems += error.problems
            self.draft.wrong.add("search_space")
            return config
        self.space_source = source
        if remark := self.draft.form.read_words(source):
            self.draft.notes.append(f"{source.file}: {remark}")
        if not isinstance(source.data, dict):
            self.draft.add(("search_space",), "must be a mapping", "an empty search space is {}")
            return config
        return config.model_copy(update={"search_space": source.data})

    def _named(self, file: str) -> str:
        """Return the name of a file for messages: relative in the same way as that of the main file."""
        folder = os.path.dirname(self.main.file) if self.main is not None else os.fspath(self.base or "")
        return os.path.join(folder, os.path.expanduser(file))


def validate_fields(
    model: type[Fields], values: JsonObject, base: str | os.PathLike[str] | None
) -> tuple[Fields, list[Finding]]:
    """Return the model and the problems; a malformed top-level field gets its default."""
    context = {"base": base}
    try:
        return model.model_validate(values, context=context), []
    except ValidationError as error:
        findings = [_finding(item) for item in error.errors(include_url=False)]
    wrong = {finding.path[0] for finding in findings}
    rest = {name: value for name, value in values.items() if name not in wrong}
    return model.model_validate(rest, context=context), findings


def _finding(error: ErrorDetails) -> Finding:
    path = tuple(error["loc"])
    if path[:1] == ("training_service",):
        # The union of training services adds the platform to the path.
        path = path[:1] + path[2:]
    if path[-1] == "[key]":
        path = path[:-1]
    message, hint = _sentence(error)
    return Finding(path=path, message=message, hint=hint)


def _sentence(error: ErrorDetails) -> tuple[str, str]:
    kind, value, details = error["type"], error.get("input"), error.get("ctx", {})
    cause = details.get("error")
    if isinstance(cause, UnitError):
        return str(cause), cause.hint
    if kind == "missing":
        return MISSING, ""
    if kind in ("string_too_short", "too_short"):
        return "must not be empty", ""
    if kind == "literal_error":
        choices = details["expected"].replace("'", "")
        words = choices.replace(" or ", ", ").split(", ")
        return f"must be {choices}, not {brief_json(value)}", did_you_mean(value, words)
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind].format(**details)}, not {brief_json(value)}", ""
    if kind in _KINDS:
        field = str(error["loc"][0])
        is_whole = len(error["loc"]) == 1 and field in _EXAMPLES
        hint = f"such as {_EXAMPLES[field]}" if is_whole else _type_hint(kind, value, field)
        return f"must be {_KINDS[kind]}, not {brief_json(value)}", hint
    return f"{error['msg']}, not {brief_json(value)}", ""


def _type_hint(kind: str, value: Any, field: str) -> str:
    if kind == "string_type" and isinstance(value, int | float):
        return "put it in quotes"
    if kind in ("model_type", "model_attributes_type", "dict_type") and isinstance(value, str):
        return f"{_FIRST_FIELDS[field]}: {value}" if field in _FIRST_FIELDS else ""
    if kind in ("int_type", "float_type") and isinstance(value, str) and _is_number_text(value):
        return f"write {value} without quotes"
    if kind == "bool_type" and isinstance(value, str):
        meant = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
        return f"write {meant[value.lower()]}" if value.lower() in meant else ""
    return ""


def _is_number_text(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
