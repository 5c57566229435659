"""A script as a syntax tree: what its names stand for, and what its expressions are worth without running it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_NOT_WORTH_ANYTHING = (
    ValueError,
    TypeError,
    LookupError,
    SyntaxError,
    ArithmeticError,
    MemoryError,
    RecursionError,
)
_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_MOST_BITS = 256  # of the integers that are computed with
_LARGEST_MODULE = 1_000_000
_LISTED = frozenset({"list", "tuple", "sorted", "set"})


class EnumMember(NamedTuple):
    """A member of an enum, such as `Optimizer.ADAM`."""

    name: str
    value: Any


def plain(value: Any, part: str = "value") -> Any:
    """Return the value or the name of a member of an enum, anything else as it is."""
    return getattr(value, part) if isinstance(value, EnumMember) else value


class Script:
    """A script that is read and never run. `folder` has the modules beside it; without one, no import is followed."""

    def __init__(self, tree: ast.Module, folder: Path | None = None) -> None:
        self.tree = tree
        self.folder = folder
        self.nodes = list(ast.walk(tree))
        self.body = list(_flat(tree.body))
        self.definitions = {node.name: node for node in self.body if isinstance(node, Definition)}
        self._modules: dict[str, Script | None] = {}

    @cached_property
    def calls(self) -> list[ast.Call]:
        """All calls, in the order of their lines."""
        found = (node for node in self.nodes if isinstance(node, ast.Call))
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """All functions, also those inside others."""
        return [node for node in self.nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    @cached_property
    def imports(self) -> dict[str, str]:
        """What the imported names stand for: `Option` for `typer.Option`."""
        origins: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    origins[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                origins |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names}
        return origins

    @cached_property
    def modules(self) -> frozenset[str]:
        """The first parts of the names of all modules that the script imports."""
        return frozenset(origin.partition(".")[0] for origin in self.imports.values())

    @cached_property
    def constants(self) -> dict[str, ast.Assign | ast.AnnAssign]:
        """The variables of the module that are assigned once, outside all functions, classes and loops."""
        stores: dict[str, int] = {}
        for node in _module_nodes(self.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stores[node.id] = stores.get(node.id, 0) + 1
        elsewhere = {name for node in self.nodes if isinstance(node, ast.Global) for name in node.names}
        return {
            name: node
            for node in self.body
            for name in assigned_names(node)
            if stores.get(name) == 1
            and name not in elsewhere
            and isinstance(node, ast.Assign | ast.AnnAssign)
        }

    def origin(self, node: ast.AST | None) -> str:
        """Return the full name of what an expression names or calls, such as `typer.Option`; empty if it has none."""
        node = node.func if isinstance(node, ast.Call) else node
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if isinstance(node, ast.Call):  # `click.group().command`
            return ".".join(["", *reversed(names)])
        return (
            ".".join([self.imports.get(node.id, node.id), *reversed(names)])
            if isinstance(node, ast.Name)
            else ""
        )

    def definition(self, node: ast.AST | None) -> tuple[Script, Definition] | None:
        """Return the class or function that an expression names, and the script or the module beside it that has it."""
        origin = self.origin(node)
        if origin in self.definitions:
            return self, self.definitions[origin]
        module, _, name = origin.rpartition(".")
        other = self._beside(module.lstrip(".")) if module else None
        return (other, other.definitions[name]) if other is not None and name in other.definitions else None

    def stands_for(self, node: ast.expr) -> ast.expr:
        """Return the expression that a variable of the module stands for, or the expression itself."""
        assignment = self.constants.get(node.id) if isinstance(node, ast.Name) else None
        return node if assignment is None or assignment.value is None else assignment.value

    def class_of(self, node: ast.AST | None) -> tuple[Script, ast.ClassDef] | None:
        """Return the class that an expression names, with its script."""
        found = self.definition(node)
        return (found[0], found[1]) if found is not None and isinstance(found[1], ast.ClassDef) else None

    def value(self, node: ast.AST | None) -> Any:
        """Return what an expression is worth; None if only running the script could tell.

        >>> script = Script(ast.parse("WIDTH = 2**6; RATES = {'adam': 1e-3}; a = f()"))
        >>> [script.value(ast.parse(text).body[0].value) for text in ("WIDTH * 4", "RATES['adam']", "a")]
        [256, 0.001, None]
        """
        try:
            return self._value(node)
        except _NOT_WORTH_ANYTHING:
            return None

    def number(self, node: ast.AST | None) -> float | None:
        """Return the number that an expression is worth; None if it is none, or unknown."""
        value = self.value(node)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def listed(self, node: ast.AST | None) -> list[Any]:
        """Return the items of a list, a range, an enum or the keys of a dict; none if they are unknown."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys":
            return self.listed(node.func.value)
        if isinstance(node, ast.Call) and self.origin(node) in _LISTED and len(node.args) == 1:
            return self.listed(node.args[0])
        if isinstance(node, ast.Call) and self.origin(node) == "range":
            bounds = [self.value(argument) for argument in node.args]
            is_known = 1 <= len(bounds) <= 3 and all(type(bound) is int for bound in bounds)
            return list(range(*bounds)[:100]) if is_known and bounds[-1] else []
        if members := self.enum_members(node):
            return list(members)
        value = self.value(node)
        items = list(value) if isinstance(value, list | tuple | dict) else []
        return [] if None in items else items

    def enum_members(self, node: ast.AST | None) -> tuple[EnumMember, ...]:
        """Return the members of the enum that an expression names; none if it is no enum, or not known."""
        found = self.class_of(node)
        if found is None or not any(
            base.endswith(("Enum", "Flag")) for base in map(found[0].origin, found[1].bases)
        ):
            return ()
        script, definition = found
        is_text = any(script.origin(base).endswith("StrEnum") for base in definition.bases)
        members: list[EnumMember] = []
        for statement in definition.body:
            if isinstance(statement, ast.Assign):
                is_auto = script.origin(statement.value).endswith("auto")
                for name in assigned_names(statement):
                    own = name.lower() if is_text else len(members) + 1
                    members.append(EnumMember(name, own if is_auto else script.value(statement.value)))
        return tuple(members)

    def _value(self, node: ast.AST | None) -> Any:
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str()):
                return node.value
            case ast.Name() if (assignment := self.constants.get(node.id)) is not None:
                return self._value(assignment.value)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Subscript():
                return self._value(node.value)[self._value(node.slice)]
            case ast.UnaryOp():
                return _computed(node.op, self._value(node.operand))
            case ast.BinOp():
                return _computed(node.op, self._value(node.left), self._value(node.right))
            case ast.List():
                return [self.value(item) for item in node.elts]
            case ast.Tuple():
                return tuple(self.value(item) for item in node.elts)
            case ast.Dict():
                pairs = zip(node.keys, node.values, strict=True)
                return {self._value(key): self.value(item) for key, item in pairs if key is not None}
            case ast.Call() if self.origin(node) in ("float", "int") and len(node.args) == 1:
                return {"float": float, "int": int}[self.origin(node)](self._value(node.args[0]))
        raise ValueError("unknown without running the script")

    def _attribute(self, node: ast.Attribute) -> Any:
        """Return the value of a member of an enum (`Color.RED`, `Color.RED.value`) or of a constant in a class."""
        if node.attr in ("value", "name") and isinstance(inner := self.value(node.value), EnumMember):
            return getattr(inner, node.attr)
        for member in self.enum_members(node.value):
            if member.name == node.attr:
                return member
        found = self.class_of(node.value)
        if found is None:
            raise ValueError("unknown without running the script")
        return found[0]._value(dict(assigned_values(found[1].body))[node.attr])

    def _beside(self, module: str) -> Script | None:
        """Return a module from the script's folder; None if there is none, or if it cannot be read."""
        if self.folder is None or not module:
            return None
        if module not in self._modules:
            path = self.folder.joinpath(*module.split("."))
            candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
            self._modules[module] = next(filter(None, map(self._read, candidates)), None)
        return self._modules[module]

    def _read(self, path: Path) -> Script | None:
        try:
            if not path.is_file() or path.stat().st_size > _LARGEST_MODULE:
                return None
            return Script(ast.parse(path.read_bytes()), self.folder)
        except (OSError, SyntaxError, ValueError, MemoryError, RecursionError):
            return None


def assigned_names(node: ast.AST) -> list[str]:
    """Return the names that a statement assigns one whole value to."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def assigned_values(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that statements assign, each with the expression; a later one counts."""
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            yield from ((name, node.value) for name in assigned_names(node))


def keyword(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """Return an argument of a call, by its keyword or else by its position."""
    named = next((item.value for item in call.keywords if item.arg == name), None)
    if named is None and position is not None and position < len(call.args):
        return call.args[position]
    return named


def called_name(node: ast.AST) -> str:
    """Return the last part of the name of what is called: `add_argument` for `parser.add_argument(...)`."""
    function = node.func if isinstance(node, ast.Call) else node
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def is_ellipsis(node: ast.AST | None) -> bool:
    """Return whether an expression is `...`, by which some libraries mark what is required."""
    return isinstance(node, ast.Constant) and node.value is ...


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those under `if`, `try` and `with`."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _flat(node.body)
            yield from _flat(getattr(node, "orelse", ()))
            yield from _flat(getattr(node, "finalbody", ()))


def _module_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all nodes outside functions and classes."""
    queue: list[ast.AST] = [tree]
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, Definition | ast.Lambda):
            queue += ast.iter_child_nodes(node)


def _computed(sign: ast.operator | ast.unaryop, *numbers: Any) -> Any:
    """Return what an operator makes of numbers that are not too large for it."""
    if not all(type(number) in (int, float) for number in numbers):
        raise TypeError("no numbers")
    bits = sum(number.bit_length() for number in numbers if isinstance(number, int))
    is_power = isinstance(sign, ast.Pow) and abs(numbers[-1]) > _MOST_BITS
    if is_power or bits > _MOST_BITS:
        raise ValueError("too large")
    return _OPERATORS[type(sign)](*numbers)
