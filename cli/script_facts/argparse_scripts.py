"""Scripts with parsers of argparse, and of simple_parsing and transformers, which add the fields of dataclasses."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from .class_scripts import SIMPLE_PARSING, command_line, options_of, transformers_options
from .script_options import CommandLine, ScriptOption, chosen_command
from .script_syntax import Script, called_name, keyword, plain

_LONG_PREFIX = "--"
_MAKERS = ("ArgumentParser", "HfArgumentParser", "add_parser")
_GROUPS = ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers")
_PARSES = ("parse_args", "parse_known_args", "parse_args_into_dataclasses")
_ADDS = ("add_argument", "add_arguments", "HfArgumentParser", "ArgumentParser")
_ADD_NOTHING = ("print", "repr", "str", "autocomplete")


@dataclass(slots=True, kw_only=True)
class _Parser:
    """A parser of the script; `command` is its name if it is one of several commands of another.

    `needs` are the options and arguments that are required. It `is_complete` if there are no options that were not
    found. A parent gives its options to others and parses nothing. `parses` is the name of the method that it parses
    with, empty if it is not called.
    """

    name: str = ""
    command: str = ""
    options: list[ScriptOption] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    commands: list[_Parser] = field(default_factory=list)
    is_complete: bool = True
    is_parent: bool = False
    parses: str = ""

    def add(self, other: CommandLine | _Parser) -> None:
        """Add the options that another parser has."""
        self.options += other.options
        self.needs += other.needs
        self.is_complete &= other.is_complete


def argparse_options(script: Script) -> CommandLine | None:
    """Return the command line of the parser that the script uses; None without one.

    >>> script = Script(ast.parse('''
    ... import argparse
    ... parser = argparse.ArgumentParser()
    ... parser.add_argument("--lr", type=float, default=1)
    ... parser.add_argument("data")
    ... options = parser.parse_args()
    ... '''))
    >>> line = argparse_options(script)
    >>> [(option.name, option.default) for option in line.options], line.needs, line.is_complete
    ([('lr', 1.0)], ['data'], True)
    """
    if not any(called_name(call) in _ADDS for call in script.calls):
        return None
    reader = _Reader(script)
    if not any(parser.options or parser.needs or parser.commands for parser in reader.all()):
        return None
    return replace(reader.command_line(), of_argparse=True)


class _Reader:
    """Finds the parsers of a script, and which of them each option belongs to.

    A variable belongs to the function that assigns it, its scope: `.main`, or "" for the module. Options of a parser
    that is passed to a function are those of `anywhere`: they count for every parser.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self.notes: list[str] = []  # for the user
        self.parsers: dict[tuple[str, str], _Parser] = {}  # by the scopes and names of their variables
        self.parsed: list[_Parser] = []  # those that parse, in the order in which they do
        self.anywhere = _Parser(is_complete=False)
        self.scopes = dict(_scopes(script.tree, ""))  # of all calls
        self.targets = {  # what an expression is assigned to
            node.value: node.targets[0] if isinstance(node, ast.Assign) else node.target
            for node in script.nodes
            if isinstance(node, ast.Assign | ast.AnnAssign)
        }
        for call in script.calls:
            if called_name(call) in (*_MAKERS, *_GROUPS):
                self._note_parser(call)
        for call in script.calls:  # parser = make_parser()
            returned, variable = self._parser_returned_by(call), self._variable(call)
            if returned is not None and variable is not None:
                self.parsers.setdefault(variable, returned)
        for call in script.calls:
            self._note_call(call)

    def all(self) -> list[_Parser]:
        """Return every parser, also those of commands."""
        return [*{id(parser): parser for parser in self.parsers.values()}.values(), self.anywhere]

    def command_line(self) -> CommandLine:
        """Return what the script takes, of several commands with the options of the one that trials run."""
        root = self._root()
        is_complete = root.is_complete and "parse_known_args" not in (root.parses, self.anywhere.parses)
        if not root.commands:
            options = {option.name: option for option in root.options}
            return CommandLine(
                options=[*options.values()], needs=root.needs, is_complete=is_complete, notes=self.notes
            )
        command = chosen_command(root.commands, lambda each: each.command)
        own = {option.name for option in command.options}
        leading = [replace(option, leads=True) for option in root.options if option.name not in own]
        return CommandLine(
            options=[*leading, *command.options],
            command=command.command,
            others=[each.command for each in root.commands if each is not command],
            needs=[*root.needs, *command.needs],
            is_complete=is_complete and command.is_complete,
            notes=self.notes,
        )

    def _root(self) -> _Parser:
        """Return the first parser that parses, with the options of `anywhere` and of those that get what it leaves."""
        roots = [parser for parser in self.all() if not parser.command and parser is not self.anywhere]
        parsed = self.parsed or [parser for parser in roots if not parser.is_parent][:1]
        first = parsed[0] if parsed else _Parser(is_complete=False)
        root = replace(first, options=[*first.options], needs=[*first.needs])
        for other in parsed[1:]:
            if root.parses != "parse_args":
                root.add(other)
            else:
                self.notes.append(f"the script has several parsers: these are the options of {root.name}")
                break
        root.options += self.anywhere.options
        root.needs += self.anywhere.needs
        return root

    def _note_parser(self, call: ast.Call) -> None:
        """Note the variable to which a call assigns a parser, or a part of one."""
        name, variable = called_name(call), self._variable(call)
        if name in _GROUPS:
            if variable is not None and (owner := self._owner(call)) is not None:
                self.parsers[variable] = owner
            return
        parser = _Parser(name=variable[1] if variable is not None else "a parser")
        if name == "add_parser":
            parser.command = str(self.script.value(keyword(call, "name", 0)) or "")
            if parser.command and (owner := self._owner(call)) is not None:
                owner.commands.append(parser)
        elif name == "HfArgumentParser":
            parser.add(transformers_options(self.script, call))
        for parent in getattr(keyword(call, "parents"), "elts", ()):
            known = self._named(parent, call)
            parser.is_complete &= known is not None
            if known is not None:
                known.is_parent = True
                parser.add(known)
        parser.is_complete &= keyword(call, "parents") is None or isinstance(
            keyword(call, "parents"), ast.List
        )
        self.parsers[variable or (self.scopes[call], ast.unparse(call))] = parser

    def _note_call(self, call: ast.Call) -> None:
        name = called_name(call)
        parser = self._owner(call)
        if name == "add_argument":
            self._note_option(call, parser or self.anywhere)
        elif name == "add_arguments" and (found := self.script.class_of(keyword(call, "dataclass", 0))):
            (parser or self.anywhere).add(command_line([*options_of(*found, SIMPLE_PARSING)], SIMPLE_PARSING))
        elif name == "set_defaults" and parser is not None:
            given = {item.arg: plain(self.script.value(item.value)) for item in call.keywords}
            parser.options = [
                replace(option, default=given.get(option.name.replace("-", "_"), option.default))
                for option in parser.options
            ]
        elif name in _PARSES and parser is not None:
            self._note_parsed(parser, name)
        elif name == "parse_known_args":
            self.anywhere.parses = name
        else:
            for argument in (*call.args, *(item.value for item in call.keywords)):
                if (passed := self._named(argument, call)) is not None:
                    self._note_passed(call, passed)

    def _note_option(self, call: ast.Call, parser: _Parser, script: Script | None = None) -> None:
        script = script or self.script
        words = [word for word in map(script.value, call.args) if isinstance(word, str)]
        if len(words) < len(call.args):
            parser.is_complete = False
        if not words:
            return
        dashed = [word for word in words if word.startswith("-")]
        long = [word for word in dashed if word.startswith(_LONG_PREFIX)] or dashed
        is_optional = script.value(keyword(call, "nargs")) in ("?", "*")
        if script.value(keyword(call, "required")) is True or (not long and not is_optional):
            parser.needs.append((long or words)[0].lstrip("-"))
        if long and len(long[0]) > 2:
            parser.options.append(_option(script, call, long[0]))

    def _note_passed(self, call: ast.Call, parser: _Parser) -> None:
        """Note a function that gets a parser: it may add options, also in a module beside the script."""
        name = called_name(call)
        if name == "parse_args":  # of Pitchpipe
            self._note_parsed(parser, name)
        elif any(function.name == name for function in self.script.functions):
            return  # its options are `anywhere`
        elif (found := self.script.definition(call.func)) is not None:
            inner = (node for node in ast.walk(found[1]) if isinstance(node, ast.Call))
            for each in inner:
                if called_name(each) == "add_argument":
                    self._note_option(each, parser, found[0])
        elif name not in _ADD_NOTHING:
            parser.is_complete = False
            self.notes.append(
                f"{name} may add options to the parser, which are not read: add them with --param"
            )

    def _note_parsed(self, parser: _Parser, name: str) -> None:
        if not parser.parses:
            parser.parses = name
            self.parsed.append(parser)

    def _variable(self, call: ast.Call) -> tuple[str, str] | None:
        """Return scope and name of the variable that a call's result is assigned to."""
        target = self.targets.get(call)
        if target is None:
            return None
        return ("" if isinstance(target, ast.Attribute) else self.scopes[call], ast.unparse(target))

    def _owner(self, call: ast.Call) -> _Parser | None:
        """Return the parser whose method is called; that of a group is the parser of the group."""
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if isinstance(owner, ast.Call):
            if called_name(owner) in _GROUPS:
                return self._owner(owner)
            return self._parser_returned_by(owner) or self.parsers.get(
                (self.scopes[call], ast.unparse(owner))
            )
        return self._named(owner, call)

    def _parser_returned_by(self, call: ast.Call) -> _Parser | None:
        """Return the parser of the function that is called, such as `make_parser()`."""
        scope = f".{called_name(call)}"
        return next((parser for (place, _), parser in self.parsers.items() if place == scope), None)

    def _named(self, node: ast.AST | None, at: ast.Call) -> _Parser | None:
        """Return the parser that an expression names, in its function or else in the module."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        text, scope = ast.unparse(node), self.scopes[at]
        while scope and (scope, text) not in self.parsers:
            scope = scope.rpartition(".")[0]
        return self.parsers.get((scope, text))


def _scopes(node: ast.AST, scope: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield each call with the name of the function that it is in."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, scope
        inner = (
            f"{scope}.{child.name}" if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else scope
        )
        yield from _scopes(child, inner)


def _option(script: Script, call: ast.Call, word: str) -> ScriptOption:
    """Return an option of `add_argument`. One that takes no value, or several, has no default that could be tuned."""
    name, dashes = word.lstrip("-"), word[: len(word) - len(word.lstrip("-"))]
    action = script.value(keyword(call, "action")) if keyword(call, "action") is not None else None
    default = plain(script.value(keyword(call, "default")))
    option = ScriptOption(name=name, dashes=dashes)
    if action in ("store_true", "store_false"):
        return replace(
            option, default=False, words=(word, "")
        )  # without it, whatever the script makes of that
    if script.origin(keyword(call, "action")).endswith("BooleanOptionalAction"):
        return replace(option, default=default, words=(word, f"{_LONG_PREFIX}no-{name}"))
    kind = script.origin(keyword(call, "type"))
    takes_one = keyword(call, "action") is None or action == "store"
    if not takes_one or isinstance(script.value(keyword(call, "nargs")), int):
        return option
    if isinstance(default, bool) and kind in ("", "bool"):  # any word is true, except the empty one
        return replace(option, default=default, words=(f"{word}=1", f"{word}="))
    choices = script.listed(keyword(call, "choices")) or script.enum_members(keyword(call, "type"))
    return replace(option, default=_converted(default, kind), choices=tuple(map(plain, choices)))


def _converted(default: Any, kind: str) -> Any:
    """Return a default as the parser converts it: to a number, where the type is one and the text or number allows it.

    >>> _converted(1, "float"), _converted("3", "int"), _converted(1e3, "int"), _converted("a", "str")
    (1.0, 3, 1000, 'a')
    """
    is_number = isinstance(default, int | float | str) and not isinstance(default, bool)
    if kind not in ("int", "float") or not is_number:
        return default
    try:
        number = float(default)
        return int(number) if kind == "int" and number.is_integer() else number
    except (ValueError, OverflowError):
        return default
