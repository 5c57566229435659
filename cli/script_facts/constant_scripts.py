"""Scripts whose parameters are constants in their text: a dict, a class, or variables of the module.

A trial cannot reach them, so the facts name the lines that have to be added, with `get_next_parameter`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .class_scripts import class_fields, value_of
from .script_options import Constants, ScriptOption
from .script_syntax import EnumMember, Script, assigned_names, assigned_values, called_name

_PARAMETERS_CALL = "pitchpipe.get_next_parameter()"
_CONFIG = re.compile(r"conf|cfg|param|hyper|setting|default|^(hp|hps|args|opts?|options)$")
_DICTS = frozenset({"dict", "ConfigDict", "EasyDict", "edict", "Box", "DotMap", "Munch"})
_DATACLASSES = frozenset({"dataclass", "define", "frozen", "attrs", "BaseModel", "NamedTuple"})
_NAMESPACES = frozenset({"SimpleNamespace", "Namespace"})


def constants_of(script: Script, *, asks: bool) -> Constants | None:
    """Return the constants that look like parameters, with what to write; None without any.

    A script that `asks` for its parameters has the lines already, and not its variables if they are not looked up.

    >>> script = Script(ast.parse('''
    ... config = {
    ...     "epochs": 10,
    ...     "optimizer": {"lr": 0.1, "name": "adam"},
    ... }
    ... train(config)
    ... '''))
    >>> found = constants_of(script, asks=False)
    >>> [(option.name, option.default) for option in found.options]
    [('epochs', 10), ('lr', 0.1)]
    >>> print(*found.lines, sep="\\n")
    parameters = pitchpipe.get_next_parameter()   # below line 5
    for part in (config, config["optimizer"]):
        part.update({key: parameters[key] for key in part.keys() & parameters.keys()})
    """
    for read in (
        (_of_dict, _of_dataclass, _of_class) if asks else (_of_dict, _of_dataclass, _of_class, _of_module)
    ):
        found = read(script)
        if found is not None and any(_is_worth_tuning(option) for option in found.options):
            return found
    return None


def _is_worth_tuning(option: ScriptOption) -> bool:
    return option.is_proposed or isinstance(option.default, bool)


def _of_dict(script: Script) -> Constants | None:
    """Return the values of `config = {...}`, also inside a function."""
    for node in script.nodes:
        names = [name for name in assigned_names(node) if _CONFIG.search(name.lower())]
        if not names or not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        made = called_name(node.value) if isinstance(node.value, ast.Call) else ""
        items = dict(_items(script, node.value))
        if made in _NAMESPACES:
            found = _constants(
                _options(items),
                [f"vars({names[0]}).update({_PARAMETERS_CALL})   # below line {node.end_lineno}"],
            )
        elif isinstance(node.value, ast.Dict) or made in _DICTS:
            found = _of_nested(names[0], items, node.end_lineno)
        else:
            continue
        if any(map(_is_worth_tuning, found.options)):
            return found
    return None


def _items(script: Script, node: ast.expr) -> Iterator[tuple[str, Any]]:
    """Yield the names and values in `{...}`, `dict(...)` or `ConfigDict({...})`; a nested one is a dict."""
    if isinstance(node, ast.Dict):
        pairs = [(script.value(key), value) for key, value in zip(node.keys, node.values, strict=True)]
    elif isinstance(node, ast.Call) and called_name(node) in _DICTS | _NAMESPACES:
        pairs = [(item.arg, item.value) for item in node.keywords]
        for argument in node.args[:1]:
            yield from _items(script, argument)
    else:
        return
    for name, value in pairs:
        if isinstance(name, str):
            inner = dict(_items(script, value))
            yield name, inner or script.value(value)


def _of_nested(name: str, items: dict[str, Any], line: int | None) -> Constants:
    """Return the values of the dict `name` and of the dicts in it, by their own names: `lr` in `config["model"]`."""
    parts = {f'{name}["{key}"]': value for key, value in items.items() if isinstance(value, dict)}
    values, left_out = _values_with_own_names([items, *parts.values()])
    worth = {option.name for option in _options(values) if _is_worth_tuning(option)}
    inside = [path for path, part in parts.items() if part.keys() & worth]
    if not inside:
        top = {key: value for key, value in values.items() if key in items}
        return _constants(
            _options(top), [f"{name}.update({_PARAMETERS_CALL})   # below line {line}"], left_out
        )
    lines = [
        f"parameters = {_PARAMETERS_CALL}   # below line {line}",
        f"for part in ({', '.join([name, *inside])}):",
        "    part.update({key: parameters[key] for key in part.keys() & parameters.keys()})",
    ]
    return _constants(_options(values), lines, left_out)


def _values_with_own_names(dicts: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """Return the values whose names occur once in a dict and those inside of it, and the names that are left out.

    Left out are dicts that are nested more deeply, and numbers whose names occur twice.

    >>> _values_with_own_names([{"lr": 0.1, "size": 2, "model": {}}, {"size": 8, "act": {}, "bias": True}])
    ({'lr': 0.1, 'bias': True}, ['act', 'size'])
    """
    every = [item for each in dicts for item in each.items()]
    counts = Counter(key for key, _ in every)
    values = {key: value for key, value in every if counts[key] == 1 and not isinstance(value, dict)}
    deeper = [key for inner in dicts[1:] for key, value in inner.items() if isinstance(value, dict)]
    twice = [key for key, value in every if counts[key] > 1 and isinstance(value, int | float)]
    return values, [*deeper, *dict.fromkeys(twice)]


def _of_dataclass(script: Script) -> Constants | None:
    """Return the fields of a dataclass that the script makes an instance of, or whose name says what it is."""
    for definition in script.definitions.values():
        if not isinstance(definition, ast.ClassDef) or not (markers := _dataclass_markers(definition)):
            continue
        instance = next((call for call in script.calls if script.origin(call) == definition.name), None)
        if instance is None and not _CONFIG.search(definition.name.lower()):
            continue
        if instance is not None and _has_arguments(instance) and "dataclass" not in markers:
            continue  # only of a dataclass is there a copy with other values
        found = _of_fields(script, definition, instance)
        if any(map(_is_worth_tuning, found.options)):
            return found
    return None


def _of_fields(script: Script, definition: ast.ClassDef, instance: ast.Call | None) -> Constants:
    """Return the fields of a dataclass, with the values that the call for the instance gives them."""
    given = {} if instance is None else {item.arg: item.value for item in instance.keywords}
    options: list[ScriptOption] = []
    nested: list[str] = []
    for name, annotation, default in class_fields(script, definition):
        field = value_of(script, annotation, given.get(name, default))
        if script.class_of(annotation) and not field.choices:
            nested.append(name)
        if not any(isinstance(choice, EnumMember) for choice in field.choices):  # no JSON can express it
            options.append(ScriptOption(name=name, default=field.default, choices=field.choices))
    return _constants(options, [_line_of_instance(script, definition.name, instance)], nested)


def _dataclass_markers(definition: ast.AST) -> set[str]:
    """Return the decorators and bases that make the fields of a class its arguments."""
    if not isinstance(definition, ast.ClassDef):
        return set()
    return {called_name(mark) for mark in (*definition.decorator_list, *definition.bases)} & _DATACLASSES


def _has_arguments(call: ast.Call) -> bool:
    """Return whether a call has arguments of its own, besides those that Pitchpipe gives it."""
    return bool(call.args) or any(item.arg is not None for item in call.keywords)


def _line_of_instance(script: Script, name: str, made: ast.Call | None) -> str:
    if made is None or not _has_arguments(made):
        return f"{name}(**{_PARAMETERS_CALL})   # in place of {name}()"
    variable = next((names[0] for node in script.nodes if (names := _names_of(node, made))), "config")
    line = f"{variable} = dataclasses.replace({variable}, **{_PARAMETERS_CALL})"
    return f"{line}   # below line {made.end_lineno}, with import dataclasses"


def _names_of(node: ast.AST, value: ast.expr) -> list[str]:
    is_it = isinstance(node, ast.Assign | ast.AnnAssign) and node.value is value
    return assigned_names(node) if is_it else []


def _of_class(script: Script) -> Constants | None:
    """Return the attributes of `class Config: ...`, which is used without an instance, or as one that reads them."""
    for definition in script.definitions.values():
        if (
            isinstance(definition, ast.ClassDef)
            and _CONFIG.search(definition.name.lower())
            and not _dataclass_markers(definition)
        ):
            values = {name: script.value(value) for name, value in assigned_values(definition.body)}
            lines = [
                f"for name, value in {_PARAMETERS_CALL}.items():   # below line {definition.end_lineno}",
                f"    setattr({definition.name}, name, value)",
            ]
            found = _constants(_options(values), lines)
            if any(map(_is_worth_tuning, found.options)):
                return found
    return None


def _of_module(script: Script) -> Constants | None:
    """Return the numbers that are variables of the module, without those that are used before the last of them is set.

    One line below them changes them all. It stands where it reaches the most of them.
    """
    found = [
        (name, node)
        for name, node in script.constants.items()
        if _is_worth_tuning(ScriptOption(name=name, default=script.value(node.value)))
        and not name.startswith("_")
    ]
    first_use = _first_uses(script)
    reached: list[tuple[str, ast.Assign | ast.AnnAssign]] = []
    for _, last in found:
        end = last.end_lineno or last.lineno
        kept = [each for each in found if each[1].lineno <= end and first_use.get(each[0], end + 1) > end]
        reached = kept if len(kept) > len(reached) else reached
    if not reached:
        return None
    line = max(node.end_lineno or node.lineno for _, node in reached)
    options = [ScriptOption(name=name, default=script.value(node.value)) for name, node in reached]
    return _constants(options, [f"globals().update({_PARAMETERS_CALL})   # below line {line}"])


def _first_uses(script: Script) -> dict[str, int]:
    """Return the line where each variable is first used when the module is run, outside the bodies of functions."""
    lines: dict[str, int] = {}
    for statement in script.body:
        for node in _run_at_once(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                lines[node.id] = min(node.lineno, lines.get(node.id, node.lineno))
    return lines


def _run_at_once(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without the bodies of functions, which run later, and of blocks, which follow."""
    for name, value in ast.iter_fields(node):
        is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and name == "body"
        is_block = isinstance(node, ast.If | ast.Try | ast.With) and name in ("body", "orelse", "finalbody")
        for inner in [] if is_later or is_block else value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST):
                yield inner
                yield from _run_at_once(inner)


def _constants(options: Sequence[ScriptOption], lines: list[str], nested: Sequence[str] = ()) -> Constants:
    """Return the constants that are numbers, booleans or one of several values; texts are mostly paths and names."""
    kept = [option for option in options if option.choices or isinstance(option.default, int | float)]
    return Constants(options=kept, lines=lines, nested=nested)


def _options(values: Mapping[str, Any]) -> list[ScriptOption]:
    return [ScriptOption(name=name, default=value) for name, value in values.items()]
