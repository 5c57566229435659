"""Command lines that libraries make from a dataclass or from the arguments of a function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .script_options import CommandLine, ScriptOption
from .script_syntax import Definition, Script, called_name, is_ellipsis, keyword, plain

Field = tuple[str, ast.expr, ast.expr | None]  # name, annotation, default
_FIELDS = frozenset({"field", "Field", "ib", "attrib", "mutable_field", "flag"})
_CONTAINERS = frozenset({"list", "tuple", "sequence", "iterable", "dict", "mapping", "set"})
_DEEPEST = 5
# Options of the class that most scripts of transformers have beside their own.
_TRAINING_ARGUMENTS: dict[str, Any] = {
    "learning_rate": 5e-5,
    "weight_decay": 0.0,
    "per_device_train_batch_size": 8,
    "num_train_epochs": 3.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """How a library spells options: with hyphens or not, nested names with a dot or flat, enums by name or by value.

    `off` stands before the name in the word for false, `--no-fast`; without it a boolean is `--fast=true`, or with
    capitals `--fast=True`.
    """

    hyphens: bool = False
    nested: bool = True
    enum_values: bool = False
    off: str = ""
    has_capitals: bool = False
    is_positional: bool = False  # what has no default

    def option(self, prefix: str, name: str, value: Value) -> ScriptOption:
        """Return the option of a field or an argument; `prefix` is the path to it, with a dot at its end."""
        spelled = name.replace("_", "-") if self.hyphens else name
        prefix = prefix if self.nested else ""
        words = None
        if value.is_boolean and isinstance(value.default, bool) and self.has_capitals:
            words = (f"--{prefix}{spelled}=True", f"--{prefix}{spelled}=False")
        elif value.is_boolean and isinstance(value.default, bool) and self.off:
            words = (f"--{prefix}{spelled}", f"--{prefix}{self.off}{spelled}")
        return ScriptOption(
            name=f"{prefix}{spelled}",
            default=self.spelled(value.default),
            choices=tuple(map(self.spelled, value.choices)),
            words=words,
            is_required=value.is_required,
        )

    def spelled(self, value: Any) -> Any:
        """Return a default or a choice as the command line spells it."""
        return plain(value, "value" if self.enum_values else "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """What a field of a class or an argument of a function may be."""

    default: Any = None
    choices: tuple[Any, ...] = ()
    is_boolean: bool = False
    is_required: bool = False


TYRO = Style(hyphens=True, off="no-")
FIRE = Style(nested=False, off="no")
JSONARGPARSE = Style(is_positional=True)
SIMPLE_PARSING = Style(nested=False)
TRANSFORMERS = Style(nested=False, enum_values=True)
_MAKERS = {
    "tyro.cli": TYRO,
    "fire.Fire": FIRE,
    "jsonargparse.CLI": JSONARGPARSE,
    "jsonargparse.auto_cli": JSONARGPARSE,
    "simple_parsing.parse": SIMPLE_PARSING,
    "simple_parsing.helpers.parse": SIMPLE_PARSING,
}


def class_options(script: Script) -> CommandLine | None:
    """Return the command line that tyro, fire, jsonargparse or simple_parsing makes of a class or a function.

    >>> script = Script(ast.parse('''
    ... @dataclass
    ... class Config:
    ...     data: str
    ...     batch_size: int = 32
    ... config = tyro.cli(Config)
    ... '''))
    >>> line = class_options(script)
    >>> [(option.name, option.default) for option in line.options], line.needs
    ([('data', None), ('batch-size', 32)], ['data'])
    """
    for call in script.calls:
        style = _MAKERS.get(script.origin(call))
        found = script.definition(keyword(call, "config_class", 0)) if style is not None else None
        if style is None or found is None:
            continue
        text = ast.unparse(call)
        if "OmitArgPrefixes" in text:
            style = replace(style, nested=False)
        if "FlagConversionOff" in text:
            style = replace(style, has_capitals=True)
        options = [*options_of(*found, style, given=_overrides(keyword(call, "default")))]
        return command_line(options, style)
    return None


def command_line(options: Sequence[ScriptOption], style: Style, *, is_complete: bool = True) -> CommandLine:
    """Return the command line with these options, without those that share a name: they need a longer one."""
    names = [option.name for option in options]
    single = [option for option in options if names.count(option.name) == 1]
    needs = [option.name for option in single if option.is_required]
    kept = [option for option in single if not (style.is_positional and option.is_required)]
    return CommandLine(options=kept, needs=needs, is_complete=is_complete and len(single) == len(names))


def options_of(
    script: Script,
    definition: Definition,
    style: Style,
    *,
    prefix: str = "",
    given: Mapping[str, ast.expr] | None = None,
    depth: int = 0,
) -> Iterator[ScriptOption]:
    """Yield the options for the fields of a class or the arguments of a function, also those of nested classes."""
    if depth > _DEEPEST:
        return
    for name, annotation, default in _members(script, definition):
        default = (given or {}).get(name, default)
        nested = script.class_of(bare_annotation(annotation))
        if nested is not None and not script.enum_members(bare_annotation(annotation)):
            if isinstance(default, ast.Constant):
                continue  # it is None, and a command would choose the class
            path = f"{prefix}{name.replace('_', '-') if style.hyphens else name}."
            overrides = _overrides(_factory(default))
            yield from options_of(*nested, style, prefix=path, given=overrides, depth=depth + 1)
        else:
            yield style.option(prefix, name, value_of(script, annotation, default))


def class_fields(script: Script, definition: ast.ClassDef) -> Iterable[Field]:
    """Return name, annotation and default (None: none) of the fields of a dataclass, those of its bases first."""
    return {field[0]: field for field in _declared(script, definition, 0)}.values()


def _declared(script: Script, definition: ast.ClassDef, depth: int) -> Iterator[Field]:
    """Yield the fields that a class and its bases declare; of two with one name, the later counts."""
    for base in definition.bases if depth < _DEEPEST else ():
        if (found := script.class_of(base)) is not None:
            yield from _declared(*found, depth + 1)
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            made = keyword(node.value, "init") if isinstance(node.value, ast.Call) else None
            if "ClassVar" not in ast.unparse(node.annotation) and script.value(made) is not False:
                yield node.target.id, node.annotation, node.value


def arguments_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Field]:
    """Yield name, annotation and default (None: none) of the arguments of a function."""
    positional = [*function.args.posonlyargs, *function.args.args]
    missing = [None] * (len(positional) - len(function.args.defaults))
    defaults = [*missing, *function.args.defaults, *function.args.kw_defaults]
    for argument, default in zip([*positional, *function.args.kwonlyargs], defaults, strict=True):
        if argument.arg not in ("self", "cls"):
            yield argument.arg, argument.annotation or ast.Constant(None), default


def value_of(script: Script, annotation: ast.expr, default: ast.expr | None) -> Value:
    """Return what the annotation and the default of a field say about it.

    >>> script = Script(ast.parse("class A: a: float = 1; b: Literal['x', 'y'] = field(default='x'); c: bool"))
    >>> [value_of(script, *rest).default for name, *rest in class_fields(script, script.definitions["A"])]
    [1.0, 'x', None]
    """
    bare = bare_annotation(annotation)
    name = ast.unparse(bare)
    known = _factory(default)
    value = script.value(known)
    if name == "float" and type(value) is int:
        value = float(value)
    choices = [*script.enum_members(bare)] or _literals(script, bare)
    if isinstance(default, ast.Call) and called_name(default) == "choice":  # simple_parsing
        choices = [script.value(argument) for argument in default.args]
    is_listed = name.partition("[")[0].rpartition(".")[2].lower() in _CONTAINERS
    return Value(
        default=None if is_listed else value,
        choices=() if is_listed else tuple(choice for choice in choices if choice is not None),
        is_boolean=name == "bool" or isinstance(value, bool),
        is_required=default is None or is_ellipsis(default) or _is_field_without_default(default),
    )


def _members(script: Script, definition: Definition) -> Iterable[Field]:
    """Return the fields of a dataclass or the arguments of a function, of a plain class those of its `__init__`."""
    if not isinstance(definition, ast.ClassDef):
        return arguments_of(definition)
    made = (node for node in definition.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")
    constructor = next(made, None)
    return class_fields(script, definition) if constructor is None else arguments_of(constructor)


def bare_annotation(annotation: ast.expr) -> ast.expr:
    """Return an annotation without quotes, `Annotated`, `Optional` and `| None`."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return annotation
    if isinstance(annotation, ast.BinOp):
        sides = (annotation.left, annotation.right)
        some = [side for side in sides if not (isinstance(side, ast.Constant) and side.value is None)]
        return bare_annotation(some[0]) if len(some) == 1 else annotation
    if isinstance(annotation, ast.Subscript):
        name = called_name(annotation.value)
        if name == "Annotated" and isinstance(annotation.slice, ast.Tuple):
            return bare_annotation(annotation.slice.elts[0])
        if name in ("Optional", "Final"):
            return bare_annotation(annotation.slice)
    return annotation


def _literals(script: Script, annotation: ast.expr) -> list[Any]:
    """Return the values of `Literal["adam", "sgd"]`; none for another annotation."""
    if not isinstance(annotation, ast.Subscript) or called_name(annotation.value) != "Literal":
        return []
    inner = annotation.slice
    return [script.value(item) for item in (inner.elts if isinstance(inner, ast.Tuple) else [inner])]


def _factory(default: ast.expr | None) -> ast.expr | None:
    """Return the default itself, or what is in `field(default=...)` or `field(default_factory=lambda: ...)`."""
    if not isinstance(default, ast.Call):
        return default
    if called_name(default) == "choice":
        return keyword(default, "default")
    if called_name(default) not in _FIELDS:
        return default
    factory = keyword(default, "default_factory") or keyword(default, "factory")
    if isinstance(factory, ast.Lambda):
        return factory.body
    return keyword(default, "default", 0) if factory is None else factory


def _is_field_without_default(default: ast.expr | None) -> bool:
    is_field = isinstance(default, ast.Call) and called_name(default) in _FIELDS | {"choice"}
    return is_field and _factory(default) is None


def _overrides(default: ast.expr | None) -> dict[str, ast.expr]:
    """Return the arguments by keyword in a default such as `OptimizerConfig(lr=0.1)`."""
    keywords = default.keywords if isinstance(default, ast.Call) else []
    return {item.arg: item.value for item in keywords if item.arg is not None}


def transformers_options(script: Script, call: ast.Call) -> CommandLine:
    """Return the command line of `HfArgumentParser((ModelArguments, TrainingArguments))`."""
    given = keyword(call, "dataclass_types", 0)
    types = given.elts if isinstance(given, ast.Tuple | ast.List) else [given]
    options: list[ScriptOption] = []
    is_complete = True
    for each in types:
        if (found := script.definition(each)) is not None:
            options += options_of(*found, TRANSFORMERS)
            continue
        is_complete = False
        if script.origin(each).endswith("TrainingArguments"):
            options += (ScriptOption(name=name, default=value) for name, value in _TRAINING_ARGUMENTS.items())
    return command_line(options, TRANSFORMERS, is_complete=is_complete)
