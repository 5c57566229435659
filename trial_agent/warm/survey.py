"""Finds, in the trial's own Python, what a script imports before it does anything else; then becomes its zygote.

Nothing but imports can have an effect on an import at the very top of a script: such a one may be done before the
script starts. The survey ends at the first statement that does more. The user's own modules are read in the same way,
and never imported.

Standard library only, for Python 3.9 and newer. `run` is called by `hook/sitecustomize.py`.
"""

from __future__ import annotations

import ast
import os
import site
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from socket import socket
from types import ModuleType
from typing import NoReturn

_HARMLESS_CLASSES = (ast.Pass, ast.Global, ast.Nonlocal)


class _Refused(Exception):
    """A sentence that says why trials of this script are started cold."""


class _End(Exception):
    """The first statement that is more than an import."""


def run(hook: str, load: Callable[[str], ModuleType]) -> NoReturn:
    """Replace this process by the zygote of the command in the environment."""
    environment = dict(os.environ)
    sys.path[:] = [entry for entry in sys.path if entry != hook]
    command = environment["PITCHPIPE_WARM_COMMAND"].split("\x1f")
    try:
        survey = _survey_of(command[-2:], load("side_effects").is_installed)
    except _Refused as why:
        with socket(fileno=int(environment["PITCHPIPE_WARM_SOCKET"])) as agent:
            agent.send(b"note " + str(why).encode("utf-8", "replace"))
        os._exit(0)
    environment["PITCHPIPE_WARM"] = "zygote"
    environment["PITCHPIPE_WARM_FOLDER"] = survey.folder or ""
    environment["PITCHPIPE_WARM_MODULES"] = " ".join(survey.imports)
    environment["PITCHPIPE_WARM_FILES"] = "\x1f".join(survey.files)
    os.execve(command[0], command, environment)


def _survey_of(target: Sequence[str], is_installed: Callable[[str], bool]) -> Survey:
    """Return the survey of `["-m", module]` or `[..., script]`."""
    if sys.implementation.name != "cpython" or sys.version_info < (3, 9):
        raise _Refused(f"{sys.executable} is not CPython 3.9 or newer")
    if site.ENABLE_USER_SITE and PathFinder.find_spec("usercustomize") is not None:
        raise _Refused("a usercustomize module runs before each script")
    is_module = target[0] == "-m"
    if not is_module and not os.path.isfile(target[1]):
        raise _Refused(f"{target[1]} is not a file")
    folder = os.getcwd() if is_module else os.path.dirname(os.path.realpath(target[1]))
    survey = Survey(None if getattr(sys.flags, "safe_path", False) else folder, is_installed)
    try:
        if is_module:
            survey.module(target[1])
        else:
            survey.source(target[1], "")
    except _End:
        pass
    except (OSError, SyntaxError, ValueError) as error:  # the script itself will say so
        raise _Refused(f"{target[1]} cannot be read: {error}") from error
    return survey


class Survey:
    """What is imported at the top of a script and of the own modules that it imports there.

    `imports` are `module` or `module:name,name`, in their order; `files` are the own source files that were read.
    """

    def __init__(self, folder: str | None, is_installed: Callable[[str], bool]) -> None:
        self.folder = folder
        self.imports: list[str] = []
        self.files: list[str] = []
        self._path = [*([] if folder is None else [folder]), *sys.path]
        self._is_installed = is_installed
        self._seen: set[str] = set()

    def source(self, file: str, package: str) -> None:
        """Survey a source file, whose relative imports start from `package`."""
        self.files.append(os.path.abspath(file))
        with open(file, "rb") as stream:
            self._statements(ast.parse(stream.read(), file).body, package)

    def module(self, name: str) -> None:
        """Survey a module that is run by `python -m`."""
        spec = self._find(name)
        if spec is not None and spec.submodule_search_locations is not None:
            self._find(f"{name}.__main__")

    def _statements(self, statements: Iterable[ast.stmt], package: str) -> None:
        for statement in statements:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    self._find(alias.name)
            elif isinstance(statement, ast.ImportFrom):
                self._find_from(statement, package)
            elif isinstance(statement, ast.Try):
                self._statements([*statement.body, *statement.orelse, *statement.finalbody], package)
            elif not _is_harmless(statement):
                raise _End

    def _find_from(self, statement: ast.ImportFrom, package: str) -> None:
        if statement.module == "__future__":
            return
        names = [alias.name for alias in statement.names]
        module = statement.module or ""
        if statement.level:
            parts = package.split(".")
            parents = parts[: len(parts) - statement.level + 1]
            if not package or not parents:
                raise _End
            module = ".".join([*parents, module] if module else parents)
        spec = self._find(module, names)
        if spec is not None and spec.submodule_search_locations is not None:
            for name in names:
                if PathFinder.find_spec(f"{module}.{name}", spec.submodule_search_locations) is not None:
                    self._find(f"{module}.{name}")

    def _find(self, module: str, names: Sequence[str] = ()) -> ModuleSpec | None:
        """Note an import: an installed module by its name, an own one by what it imports. Return an own one's spec."""
        path: Sequence[str] | None = self._path
        spec = None
        parts = module.split(".")
        if parts[0] in sys.builtin_module_names:
            return None
        for number in range(1, len(parts) + 1):
            name = ".".join(parts[:number])
            spec = None if path is None else PathFinder.find_spec(name, path)
            if spec is None:
                raise _End
            if any(map(self._is_installed, _places(spec))):
                self.imports.append(f"{module}:{','.join(names)}" if names else module)
                return None
            if name not in self._seen:
                self._seen.add(name)
                self._own(spec)
            path = spec.submodule_search_locations
        return spec

    def _own(self, spec: ModuleSpec) -> None:
        if spec.origin is None:  # a namespace package
            return
        if not spec.origin.endswith(".py"):
            raise _End
        is_package = spec.submodule_search_locations is not None
        self.source(spec.origin, spec.name if is_package else spec.name.rpartition(".")[0])


def _places(spec: ModuleSpec) -> list[str]:
    return [spec.origin] if spec.origin is not None else list(spec.submodule_search_locations or ())


def _is_harmless(statement: ast.stmt) -> bool:
    """Return whether a statement has no effect but to bind a name."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        are_names = all(isinstance(target, ast.Name) for target in statement.targets)
        return are_names and _is_plain(statement.value)
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
        defaults = (*statement.args.defaults, *statement.args.kw_defaults)
        return not statement.decorator_list and all(map(_is_plain, filter(None, defaults)))
    if isinstance(statement, ast.ClassDef):
        is_simple = not statement.decorator_list and not statement.keywords
        return is_simple and all(map(_is_plain, statement.bases)) and all(map(_is_harmless, statement.body))
    if isinstance(statement, ast.If):
        return ast.unparse(statement.test).rpartition(".")[2] == "TYPE_CHECKING" and not statement.orelse
    return isinstance(statement, _HARMLESS_CLASSES)


def _is_plain(value: ast.expr) -> bool:
    """Return whether an expression only names things or builds plain values of them."""
    allowed = (ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Dict, ast.Set, ast.UnaryOp)
    kinds = (*allowed, ast.expr_context, ast.unaryop)
    return all(isinstance(node, kinds) for node in ast.walk(value))
