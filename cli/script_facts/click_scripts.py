"""Scripts with commands of click, whose options are decorators, or of typer, whose options are arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .class_scripts import Style, arguments_of, bare_annotation, value_of
from .script_options import CommandLine, ScriptOption, chosen_command
from .script_syntax import Script, called_name, keyword, plain

Function = ast.FunctionDef | ast.AsyncFunctionDef
_KNOWN_DECORATORS = frozenset(
    {"command", "option", "argument", "pass_context", "pass_obj", "version_option", "help_option"}
)
_TYPER = Style(hyphens=True, nested=False, enum_values=True, off="no-")
_ENDINGS = ("_command", "_cmd", "_group", "_grp")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    """A function that is a command, with the decorator that makes it one."""

    function: Function
    decorator: ast.expr
    name: str


def click_options(script: Script) -> CommandLine | None:
    """Return the command line of a script with click; None without click.

    >>> script = Script(ast.parse('''
    ... import click
    ... @click.command()
    ... @click.option("--bias/--no-bias", default=True)
    ... @click.argument("data")
    ... def train(bias, data): ...
    ... '''))
    >>> line = click_options(script)
    >>> [(option.name, option.words) for option in line.options], line.needs, line.is_complete
    ([('bias', ('--bias', '--no-bias'))], ['data'], True)
    """
    if "click" not in script.modules:
        return None
    commands = [*_commands(script, "command", _ENDINGS)]
    if not commands:
        return None
    chosen = chosen_command(commands, lambda command: command.name)
    groups = _above(script, chosen)
    options, needs = _of_decorators(script, chosen.function)
    leading: list[ScriptOption] = []
    for group in groups:
        above, more = _of_decorators(script, group.function)
        leading += (replace(option, leads=True) for option in above)
        needs += more
    decorators = map(script.stands_for, chosen.function.decorator_list)
    return CommandLine(
        # Options of further groups stand between the names of commands.
        options=[*(leading if len(groups) == 1 else ()), *options],
        command=" ".join([*(group.name for group in groups[1:]), chosen.name]) if groups else "",
        others=[command.name for command in commands if groups and command is not chosen],
        needs=needs,
        is_complete=all(called_name(decorator) in _KNOWN_DECORATORS for decorator in decorators),
    )


def typer_options(script: Script) -> CommandLine | None:
    """Return the command line of a script with typer; None without typer.

    >>> script = Script(ast.parse('''
    ... import typer
    ... def main(data: str, batch_size: int = 32): ...
    ... typer.run(main)
    ... '''))
    >>> line = typer_options(script)
    >>> [(option.name, option.default) for option in line.options], line.needs
    ([('batch-size', 32)], ['data'])
    """
    if "typer" not in script.modules:
        return None
    commands = [*_commands(script, "command")]
    for call in script.calls:
        is_run = script.origin(call) == "typer.run"
        found = script.definition(keyword(call, "function", 0)) if is_run else None
        if found is not None and isinstance(found[1], Function):
            commands.append(_Command(function=found[1], decorator=call, name=found[1].name))
    if not commands:
        return None
    callbacks = [*_commands(script, "callback")]
    chosen = chosen_command(commands, lambda command: command.name)
    options, needs = _of_arguments(script, chosen.function)
    is_grouped = len(commands) > 1 or bool(callbacks)
    leading: list[ScriptOption] = []
    for callback in callbacks:
        above, more = _of_arguments(script, callback.function)
        leading += (replace(option, leads=True) for option in above)
        needs += more
    return CommandLine(
        options=[*leading, *options],
        command=chosen.name if is_grouped else "",
        others=[command.name for command in commands if is_grouped and command is not chosen],
        needs=needs,
    )


def _commands(script: Script, kind: str, endings: Sequence[str] = ()) -> Iterator[_Command]:
    """Yield the functions with a decorator such as `@click.command()` or `@cli.command("train")`.

    Without a name, a command has that of its function, without these endings.
    """
    for function in script.functions:
        for decorator in function.decorator_list:
            if called_name(decorator) == kind:
                ending = next((ending for ending in endings if function.name.endswith(ending)), "")
                name = function.name.removesuffix(ending).lower().replace("_", "-")
                given = keyword(decorator, "name", 0) if isinstance(decorator, ast.Call) else None
                name = str(script.value(given) or name)
                yield _Command(function=function, decorator=decorator, name=name)


def _owner(script: Script, command: _Command) -> str:
    """Return the name of the group that a command belongs to; empty if it stands alone."""
    decorated = script.origin(command.decorator).rpartition(".")[0]
    if decorated and decorated != "click":
        return decorated
    added = (call for call in script.calls if called_name(call) == "add_command")
    name = command.function.name
    owners = (call for call in added if name in [script.origin(argument) for argument in call.args])
    return next((script.origin(call).rpartition(".")[0] for call in owners), "")


def _above(script: Script, command: _Command) -> list[_Command]:
    """Return the groups that a command of click is in, the outermost first."""
    groups = {group.function.name: group for group in _commands(script, "group", _ENDINGS)}
    above: list[_Command] = []
    while (group := groups.pop(_owner(script, command), None)) is not None:
        above.insert(0, group)
        command = group
    return above


def _of_decorators(script: Script, function: Function) -> tuple[list[ScriptOption], list[str]]:
    """Return the options of a command of click, and what it requires."""
    options: list[ScriptOption] = []
    needs: list[str] = []
    for decorator in map(script.stands_for, function.decorator_list):
        if not isinstance(decorator, ast.Call):
            continue
        words = [word for word in map(script.value, decorator.args) if isinstance(word, str)]
        is_required = script.value(keyword(decorator, "required"))
        is_asked = keyword(decorator, "prompt") is not None and keyword(decorator, "default") is None
        if called_name(decorator) == "argument" and words:
            if is_required is not False and keyword(decorator, "default") is None:
                needs.append(words[0])
        elif called_name(decorator) == "option" and (option := _option(script, decorator, words)) is not None:
            options.append(option)
            if is_required is True or is_asked:
                needs.append(option.name)
    return options, needs


def _option(script: Script, call: ast.Call, words: Sequence[str]) -> ScriptOption | None:
    """Return an option of click: `"--lr"`, or `"--bias/--no-bias"`; None if it has no long name."""
    long = next((word for word in words if word.startswith("--")), None)
    if long is None:
        return None
    on, slash, off = (part.strip() for part in long.partition("/"))
    option = ScriptOption(name=on.removeprefix("--"))
    default = plain(script.value(keyword(call, "default")))
    is_flag = script.value(keyword(call, "is_flag")) is True
    if slash:
        return replace(option, default=default is True, words=(on, off))
    if is_flag and default is not True:
        return replace(option, default=False, words=(on, ""))
    takes_one = not any(script.value(keyword(call, name)) for name in ("multiple", "count", "is_flag"))
    if (
        not takes_one
        or keyword(call, "flag_value") is not None
        or (script.value(keyword(call, "nargs")) or 1) != 1
    ):
        return option
    return _with_type(script, option, keyword(call, "type"), default)


def _with_type(script: Script, option: ScriptOption, kind: ast.expr | None, default: Any) -> ScriptOption:
    """Return an option with the default, the choices and the bounds of a type such as `click.IntRange(1, 64)`."""
    name = called_name(kind) if kind is not None else ""
    if name in ("float", "FLOAT", "FloatRange") and type(default) is int:
        default = float(default)
    if name == "Choice" and isinstance(kind, ast.Call):
        choices = [plain(choice, "name") for choice in script.listed(keyword(kind, "choices", 0))]
        return replace(option, default=default, choices=tuple(choices))
    if name in ("IntRange", "FloatRange") and isinstance(kind, ast.Call):
        low, high = script.number(keyword(kind, "min", 0)), script.number(keyword(kind, "max", 1))
        return replace(option, default=default, low=low, high=high)
    return replace(option, default=default)


def _of_arguments(script: Script, function: Function) -> tuple[list[ScriptOption], list[str]]:
    """Return the options of a command of typer, and what it requires. What has no default is an argument."""
    options: list[ScriptOption] = []
    needs: list[str] = []
    for name, annotation, given in arguments_of(function):
        info = _info(annotation) or given
        made = called_name(info) if isinstance(info, ast.Call) else ""
        if script.origin(bare_annotation(annotation)) == "typer.Context":
            continue
        inside = keyword(given, "default", 0) if isinstance(given, ast.Call) and given is info else given
        value = value_of(script, annotation, inside)
        if made == "Argument" or (given is None and made != "Option"):
            needs += [name] if value.is_required else []
            continue
        option = _TYPER.option("", name, value)
        if isinstance(info, ast.Call):
            option = _renamed(script, option, info, given is info)
        options.append(option)
        needs += [option.name] if value.is_required else []
    return options, needs


def _info(annotation: ast.expr) -> ast.Call | None:
    """Return the `typer.Option(...)` inside `Annotated[float, typer.Option(...)]`."""
    if not isinstance(annotation, ast.Subscript) or called_name(annotation.value) != "Annotated":
        return None
    items = annotation.slice.elts[1:] if isinstance(annotation.slice, ast.Tuple) else ()
    calls = (item for item in items if isinstance(item, ast.Call))
    return next((call for call in calls if called_name(call) in ("Option", "Argument")), None)


def _renamed(script: Script, option: ScriptOption, info: ast.Call, has_default: bool) -> ScriptOption:
    """Return an option with the names and bounds of `typer.Option(0.1, "--lr", min=0)`."""
    words = [word for word in map(script.value, info.args[has_default:]) if isinstance(word, str)]
    low, high = script.number(keyword(info, "min")), script.number(keyword(info, "max"))
    option = replace(option, low=low, high=high)
    long = next((word for word in words if word.startswith("--")), None)
    if long is None:
        return option
    on, _, off = (part.strip() for part in long.partition("/"))
    return replace(option, name=on.removeprefix("--"), words=None if option.words is None else (on, off))
