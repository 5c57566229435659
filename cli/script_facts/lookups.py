"""Which parameters a script looks up in what `get_next_parameter()` returns, and their defaults."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from .script_syntax import Script, assigned_names, called_name

_ASKS = frozenset({"get_next_parameter", "get_next_parameters"})


def asks(script: Script) -> bool:
    """Return whether a script gets its parameters by a call of Pitchpipe."""
    return any(_asks(call) or _is_our_parse_args(call) for call in script.calls)


def looked_up(script: Script) -> dict[str, Any]:
    """Return the parameters that a script looks up, with their defaults (None: no default).

    >>> looked_up(Script(ast.parse("p = {'lr': 0.1}; p.update(get_next_parameter()); print(p['lr'], p['units'])")))
    {'lr': 0.1, 'units': None}
    """
    return _Lookups(script).parameters


class _Lookups:
    """One reading of a script; `holders` are the variables that hold the parameters."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.holders = _holders(script)
        self.literals = {
            name: node.value
            for node in script.nodes
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict)
            for name in assigned_names(node)
        }
        self.parameters = self._variables()
        for name, literal in self.literals.items():
            if name in self.holders:
                self._note_defaults(literal, self.literals)
        for node in script.nodes:
            if isinstance(node, ast.Call):
                self._note_get(node)
            elif isinstance(node, ast.Subscript) and self._is_holder(node.value):
                self._note(node.slice)
            elif isinstance(node, ast.Dict) and any(map(_asks, node.values)):
                self._note_defaults(node, self.literals)

    def _variables(self) -> dict[str, Any]:
        """Return the numbers among the module's variables before `globals().update(get_next_parameter())`."""
        numbers: dict[str, Any] = {}
        for node in self.script.tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) else None
            if isinstance(value, ast.Call) and ast.unparse(value.func) == "globals().update":
                return numbers if any(map(_asks, value.args)) else {}
            if isinstance(self.script.value(value), int | float):
                numbers.update(dict.fromkeys(assigned_names(node), self.script.value(value)))
        return {}

    def _is_holder(self, node: ast.AST) -> bool:
        return _asks(node) or (isinstance(node, ast.Name) and node.id in self.holders)

    def _note_get(self, call: ast.Call) -> None:
        """Note `parameters.get("lr", 0.1)`."""
        is_get = (
            isinstance(call.func, ast.Attribute)
            and call.func.attr == "get"
            and self._is_holder(call.func.value)
        )
        if is_get and call.args:
            self._note(call.args[0], self.script.value(call.args[1]) if len(call.args) > 1 else None)

    def _note(self, key: ast.AST, default: Any = None) -> None:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            known = self.parameters.get(key.value)
            self.parameters[key.value] = default if known is None else known

    def _note_defaults(self, literal: ast.Dict, literals: Mapping[str, ast.Dict]) -> None:
        """Note the defaults in `{"lr": 0.1, **DEFAULTS, **get_next_parameter()}` or a dict that is updated later."""
        for key, default in zip(literal.keys, literal.values, strict=True):
            if key is not None:
                self._note(key, self.script.value(default))
            elif isinstance(default, ast.Name) and literals.get(default.id, literal) is not literal:
                self._note_defaults(literals[default.id], {})


def _holders(script: Script) -> frozenset[str]:
    """Return the names of variables that hold the parameters: assigned from the call, or updated with it."""
    names: set[str] = set()
    for node in script.nodes:
        if assigned := assigned_names(node):
            names.update(assigned if any(map(_asks, ast.walk(node))) else ())
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr == "update"
            and any(_asks(argument) for argument in node.args)
        ):
            names.add(node.func.value.id)
    return frozenset(names)


def _asks(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called_name(node) in _ASKS


def _is_our_parse_args(node: ast.Call) -> bool:
    """Return whether a call is `pitchpipe.parse_args(...)` or `parse_args(...)`, and not that of a parser."""
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return called_name(node) == "parse_args" and (owner is None or getattr(owner, "id", "") == "pitchpipe")
