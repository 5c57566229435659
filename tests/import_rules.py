"""Checks, over the syntax trees, who imports whom, and a few rules on what modules contain.

    python tests/import_rules.py [ROOT]

prints one line `file:line: message` for each violation and ends with 1 when there are any. The rules:

- A room imports only the rooms below it (`MAY_IMPORT`), and libraries only from its list (`LIBRARIES`).
- A folder is entered through its `__init__`, and from outside: `from ..store import Store`, never `from ..store.store`.
- What a room offers, by its `__all__` or its imports, other folders import; one in `PUBLIC` may offer users more.
- `runner/` is pure: it imports none of `IMPURE`.
- Inside the project imports are relative, so that checkers resolve them from the tree.
- Only `executors/ray/` and `executors/private_ray/` import ray.
- A dataclass with more than four fields takes them by keyword (`POSITIONAL` lists the others).
- What a page parses (`PARSED`: attributes, styles, HTML, JavaScript) is a constant, or `scripted` from one: a user's
  text never goes there.
- A task or callback of an event loop has an owner who learns of its failure: `executors/tasks.py` starts it, or `OWNED`
  says who waits for it, or why it cannot fail.
- Nothing that lives at module level is changed by a function (`HOLDERS` lists what may be).

import-linter looks for cycles (`pyproject.toml`), ruff for `global`, ruff and basedpyright for what `__all__` lists.
"""

import ast
import re
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path

BASE = frozenset({"protocol", "search_space"})
CORE = BASE | {"sdk", "trial_agent", "runner", "store"}
PROCESS = CORE | {"config", "executors", "telling", "manager"}
MAY_IMPORT: dict[str, frozenset[str]] = {
    "protocol": frozenset(),
    "search_space": frozenset({"protocol"}),
    "numerics": frozenset({"protocol"}),  # for `lazy_names`
    "plugins": BASE,
    "sdk": frozenset({"protocol"}),
    "tuners": BASE | {"numerics", "plugins"},
    "assessors": BASE | {"numerics", "plugins"},
    "trial_agent": BASE | {"sdk"},
    "testing": BASE | {"numerics", "tuners", "assessors"},
    "runner": BASE | {"numerics"},
    "dispatcher": BASE | {"plugins", "tuners", "assessors"},
    "store": BASE | {"numerics", "sdk", "trial_agent", "runner"},
    "config": BASE | {"runner"},
    "executors": CORE,
    "telling": CORE | {"numerics"},
    "manager": CORE | {"numerics", "config", "executors", "telling", "dispatcher"},  # telling: for its log
    "server": PROCESS | {"numerics"},
    # The face gives the names of all of them; that the heavy ones load lazily is measured by another test.
    "pitchpipe": PROCESS | {"tuners", "assessors", "server"},
    "integrations": PROCESS | {"tuners", "assessors", "server", "pitchpipe"},
    "cli": PROCESS | {"numerics", "dispatcher", "server", "pitchpipe"},
    # Above all others, which reach it by `protocol.foreign` only.
    "compat": PROCESS | {"plugins", "tuners", "assessors", "dispatcher", "server", "cli", "pitchpipe"},
}
# Rooms whose `__init__` is a public interface; what it offers beyond the needs of other rooms is documented.
PUBLIC = frozenset(
    {"pitchpipe", "protocol", "search_space", "tuners", "assessors", "dispatcher", "server", "sdk", "testing"}
    | {"server/figures", "compat/nni", "compat/nni/alias", "compat/tune"}
)
IMPURE = frozenset({"asyncio", "os", "time", "sqlite3", "threading", "pathlib", "logging"})
# Not of the package: a script, its interpreter or Hydra finds these modules by folders of its search path.
OUTSIDE = ("compat/nni/alias/path", "trial_agent/warm/hook", "integrations/hydra_plugins")
RAY_FOLDERS = ("executors/ray/", "executors/private_ray/")
# Single files that may import more than their package.
FILE_MAY_IMPORT: dict[str, frozenset[str]] = {
    "tuners/conformance.py": frozenset({"testing"}),  # its former name
    "assessors/conformance.py": frozenset({"testing"}),
    "pitchpipe/__init__.py": frozenset({"compat"}),  # TuneServer
    "pitchpipe/__main__.py": frozenset({"cli"}),  # python -m pitchpipe
    "pitchpipe/nni.py": frozenset({"compat"}),  # python -m pitchpipe.nni
}
LIBRARIES: dict[str, frozenset[str]] = {
    "protocol": frozenset({"orjson", "json_tricks", "numpy"}),
    "search_space": frozenset({"numpy", "scipy"}),
    "numerics": frozenset({"numpy", "scipy"}),
    "plugins": frozenset(),
    # schema: where it is installed, for the checks of a plug-in's arguments
    "compat": frozenset({"schema", "click", "fastapi", "pydantic", "numpy"}),
    "tuners": frozenset({"numpy", "scipy", "cmaes", "optuna"}),
    "assessors": frozenset({"numpy", "scipy"}),
    "testing": frozenset({"numpy", "pytest", "cloudpickle"}),
    "sdk": frozenset({"cloudpickle"}),  # for what only it can save
    "trial_agent": frozenset({"psutil", "orjson", "cloudpickle"}),
    "runner": frozenset(),
    "dispatcher": frozenset({"cloudpickle", "orjson", "psutil", "numpy", "threadpoolctl"}),
    "store": frozenset({"orjson", "psutil", "fsspec", "filelock", "numpy"}),  # numpy: for `keep_close` only
    "config": frozenset({"pydantic", "pydantic_core", "ruamel"}),
    "executors": frozenset({"psutil", "orjson", "filelock"}),
    "telling": frozenset(),
    "manager": frozenset(
        {"cloudpickle", "orjson", "psutil", "optuna"}
    ),  # optuna: for a study, where installed
    "server": frozenset({"fastapi", "starlette", "uvicorn", "pydantic", "anyio", "nicegui"})
    | frozenset({"plotly", "jinja2", "markupsafe", "numpy", "orjson", "psutil"}),
    "cli": frozenset({"click", "rich", "psutil", "orjson", "optuna", "mcp"}),  # the last two where installed
    # The libraries themselves are imported by `required`, which says what to install.
    "integrations": frozenset({"numpy"}),
    # pandas: where it is installed, for a table; plotly: for the types of figures.
    # IPython: where it runs, for the progress in a cell.
    "pitchpipe": frozenset({"cloudpickle", "pandas", "plotly", "rich", "IPython"}),
}
# Holders of state that has to be per process, each explained where it is: (file, name).
HOLDERS = frozenset(
    {
        ("sdk/current_trial.py", "current"),
        ("pitchpipe/registry.py", "registered"),
        ("compat/nni/alias/dispatching.py", "_files"),
    }
)
# Methods of NiceGUI that parse their arguments, as does the keyword `js_handler`.
PARSED = frozenset(
    {"props", "style", "classes", "run_javascript", "html", "markdown"}
    | {"add_head_html", "add_body_html", "add_css", "add_sass", "add_scss"}
)
# Files that pass on what is a constant elsewhere: (file, method).
PASSED_ON = frozenset(
    {
        ("server/pages/elements.py", "classes"),
        ("server/pages/frame.py", "add_head_html"),
    }
)
# Dataclasses with many fields that may be given by position: (file, name).
POSITIONAL = frozenset(
    {
        # Public, and documented with positional arguments.
        ("search_space/parameter.py", "Parameter"),
        ("server/figures/tables.py", "TrialRecord"),
        # Faster this way, and made once for each result.
        ("runner/effects.py", "MetricRow"),
        ("trial_agent/agent_events.py", "Report"),
    }
)
MOST_POSITIONAL = 4

# What starts a task or a callback, whose error asyncio only logs if no caller awaits it.
STARTERS = frozenset(
    {"create_task", "ensure_future", "run_in_executor", "add_done_callback"}
    | {"call_soon", "call_soon_threadsafe", "call_later", "call_at"}
)
# Functions that use them directly, and who learns of a failure: (file, function).
OWNED: Mapping[tuple[str, str], str] = {
    ("executors/tasks.py", "start"): "the owner",
    ("executors/tasks.py", "soon"): "the owner",
    ("executors/tasks.py", "later"): "the owner",
    ("executors/tasks.py", "when_done"): "the owner",
    ("executors/tasks.py", "settle_later"): "sets a future, which a caller awaits",
    ("executors/tasks.py", "_wait"): "its callbacks write to a transport or start owned tasks",
    ("executors/private_ray/lease.py", "_start_supervisor"): "awaits it",
    ("executors/private_ray/supervisor.py", "__init__"): "next_message awaits it",
    ("executors/private_ray/supervisor.py", "forget"): "nothing waits for a peer that has left",
    ("executors/private_ray/supervisor.py", "next_message"): "the next call awaits it",
    ("executors/private_ray/supervisor.py", "serve"): "awaits them; an error ends the supervisor",
    ("executors/private_ray/supervisor.py", "_watch_ray"): "sets an event",
    ("executors/private_ray/supervisor.py", "unless_it_leaves"): "awaits it",
    ("executors/ray/actor_calls.py", "result_of"): "sets a future, which a caller awaits",
    ("executors/ray/ray_executor.py", "_spawn_all"): "each member that waits for its group awaits it",
    ("manager/dispatcher_link/dispatcher_process.py", "_reap"): "sets a future, which a caller awaits",
    ("manager/dispatcher_link/dispatcher_process.py", "_process_ended"): "posts an event",
    ("manager/dispatcher_link/numbered_commands.py", "write"): "writes to a transport",
    ("manager/manager.py", "_open"): "awaits it",
    ("manager/manager.py", "open"): "wait awaits it",
    ("manager/timers.py", "set"): "posts events, or its failure ends the experiment",
    ("manager/timers.py", "_kill_agents"): "its failure ends the experiment",
    ("manager/turn.py", "_schedule"): "its failure ends the experiment",
    ("manager/disk_space.py", "attempt"): "its failure ends the experiment",
    ("server/serving.py", "pause_writing"): "closes a connection",
    ("server/serving.py", "_set_deadline"): "closes a connection",
    ("cli/foreground.py", "_main"): "the display only",
    ("cli/foreground.py", "_limit_patience"): "its timer kills this process, whatever else fails",
    ("cli/foreground.py", "_kill_processes"): "a timer kills this process, whatever else fails",
    ("pitchpipe/experiment.py", "stop"): "posts an event",
    ("pitchpipe/experiment.py", "add_trial"): "sets a future, for which it waits",
}

MUTATORS = frozenset(
    {"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft"}
    | {"remove", "reverse", "setdefault", "sort", "update"}
)
EMPTY_CONTAINERS = frozenset({"list", "dict", "set", "defaultdict", "deque", "OrderedDict", "Counter"})


@dataclass(frozen=True, slots=True)
class Violation:
    """One line that breaks a rule."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module: its absolute name, and the names that are taken from it."""

    module: str
    line: int
    relative: bool
    names: tuple[str, ...] = ()


def check_tree(root: Path) -> list[Violation]:
    """Return the violations of all packages under the root of a checkout, in the order of the files."""
    files = sorted(path for package in MAY_IMPORT for path in (root / package).rglob("*.py"))
    files = [path for path in files if not any(path.is_relative_to(root / folder) for folder in OUTSIDE)]
    sources = {
        path.relative_to(root).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in files
    }
    modules = {module_name(file): file for file in sources}
    found: list[Violation] = []
    edges: dict[str, list[Import]] = {}
    for file, tree in sources.items():
        imports = list(imports_of(tree, module_name(file), is_face(file), modules))
        found += check_imports(file, imports)
        found += check_entries(file, imports, modules)
        found += check_dataclasses(file, tree)
        found += check_state(file, tree)
        found += check_pages(file, tree)
        found += check_tasks(file, tree)
        edges[module_name(file)] = [item for item in imports if item.module in modules]
    return found + check_faces(sources, edges)


def is_face(file: str) -> bool:
    """Tell whether a file is the `__init__` of a folder."""
    return file.endswith("__init__.py")


def module_name(file: str) -> str:
    """Return the name a file is imported by.

    >>> module_name("protocol/frames.py"), module_name("pitchpipe/__init__.py")
    ('pitchpipe.protocol.frames', 'pitchpipe')
    """
    parts = file.removesuffix(".py").split("/")
    if parts[0] != "pitchpipe":
        parts.insert(0, "pitchpipe")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@lru_cache(maxsize=256)  # the rules look at a file one after another
def nodes_of(node: ast.AST) -> Sequence[ast.AST]:
    """Return a node and all nodes below it."""
    return tuple(ast.walk(node))


def imports_of(tree: ast.Module, name: str, is_package: bool, modules: Container[str]) -> Iterator[Import]:
    """Yield every import of a module, also those inside functions and `import_module("...")` of a literal."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, False)
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(node.module or "", node.level, name, is_package)
            for alias in node.names:
                full = f"{origin}.{alias.name}"
                if full in modules:
                    yield Import(full, node.lineno, node.level > 0)
                else:
                    yield Import(origin, node.lineno, node.level > 0, (alias.name,))
        elif isinstance(node, ast.Call) and (target := literal_import(node)):
            level = len(target) - len(target.lstrip("."))
            yield Import(absolute(target[level:], level, name, is_package), node.lineno, level > 0)


def absolute(target: str, level: int, name: str, is_package: bool) -> str:
    """Resolve a relative import.

    >>> absolute("protocol", 2, "pitchpipe.tuners.tpe", False), absolute("tpe", 1, "pitchpipe.tuners", True)
    ('pitchpipe.protocol', 'pitchpipe.tuners.tpe')
    """
    if level == 0:
        return target
    parts = name.split(".")
    kept = parts[: len(parts) - (level - 1 if is_package else level)]
    return ".".join([*kept, target] if target else kept)


def literal_import(node: ast.Call) -> str | None:
    """Return what `import_module("x")` or `__import__("x")` names, when it is written out."""
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if function not in ("import_module", "__import__") or not node.args:
        return None
    first = node.args[0]
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def check_imports(file: str, imports: Iterable[Import]) -> list[Violation]:
    """Return the imports of one file that its package must not have."""
    package = file.split("/")[0]
    messages = ((item.line, import_problem(file, package, item)) for item in imports)
    return [Violation(file, line, message) for line, message in dict.fromkeys(messages) if message]


def import_problem(file: str, package: str, item: Import) -> str | None:
    """Say what is wrong with one import, or None."""
    top, _, rest = item.module.partition(".")
    if top in MAY_IMPORT and top != "pitchpipe":
        return f"imports {item.module}: inside the project it is pitchpipe.{item.module}, imported relatively"
    if top == "pitchpipe":
        if not item.relative:
            return f"imports {item.module} absolutely; write it relatively"
        target = rest.split(".")[0] if rest.split(".")[0] in MAY_IMPORT else "pitchpipe"
        allowed = MAY_IMPORT[package] | FILE_MAY_IMPORT.get(file, frozenset()) | {package}
        return None if target in allowed else f"{package} must not import {target}"
    if package == "runner" and top in IMPURE:
        return f"runner is pure and must not import {top}"
    if top in sys.stdlib_module_names:
        return None
    if top == "ray":
        return None if file.startswith(RAY_FOLDERS) else f"only {' and '.join(RAY_FOLDERS)} import ray"
    return None if top in LIBRARIES[package] else f"{package} must not import the library {top}"


def check_entries(file: str, imports: Iterable[Import], modules: Mapping[str, str]) -> list[Violation]:
    """Return the imports of one file that go round the `__init__` of another folder, or through that of its own."""
    here = folder_of(module_name(file), file)
    entered = ((item, folder_of(item.module, modules.get(item.module, ""))) for item in imports)
    return [
        Violation(
            file, item.line, f"imports {item.module}: enter {folder} through its __init__, from outside"
        )
        for item, folder in entered
        if item.module in modules
        and (folder != "pitchpipe" or here == "pitchpipe")
        and (item.module == folder) == f"{here}.".startswith(f"{folder}.")
    ]


def folder_of(module: str, file: str) -> str:
    """Return the folder of a module, by its dotted name.

    >>> folder_of("pitchpipe.store.folder", "store/folder.py"), folder_of("pitchpipe.store", "store/__init__.py")
    ('pitchpipe.store', 'pitchpipe.store')
    """
    return module if is_face(file) else module.rpartition(".")[0]


def check_faces(sources: Mapping[str, ast.Module], edges: Mapping[str, list[Import]]) -> list[Violation]:
    """Return the names that the `__init__` of a folder offers but no folder imports, or that it hides."""
    used: dict[str, set[str]] = {}
    for importer, imports in edges.items():
        for item in imports:
            if not f"{importer}.".startswith(f"{item.module}."):
                used.setdefault(item.module, set()).update(item.names)
    found: list[Violation] = []
    for file in filter(is_face, sources):
        offered, taken = exported(sources[file]), used.get(module_name(file), set())
        if file.removesuffix("/__init__.py") not in PUBLIC:
            found += [
                Violation(file, 1, f"offers `{name}`, which no other folder imports")
                for name in sorted(offered - taken)
            ]
        found += [
            Violation(file, 1, f"`{name}` is imported by others and missing in __all__")
            for name in sorted(taken - offered)
        ]
    return found


def exported(tree: ast.Module) -> set[str]:
    """Return the names that a package offers: its `__all__`, or else what it defines or takes from its modules."""
    listed = [node.value for node in tree.body if ast.unparse(node).startswith(("__all__ = ", "__all__ += "))]
    if listed:
        return {name for value in listed for name in ast.literal_eval(value)}
    own = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    eager = {name for node in tree.body for name in imported_names(node)}
    return {name for name in own if not name.startswith("_")} | eager | {*lazy_imports(tree)}


def lazy_imports(tree: ast.Module) -> list[str]:
    """Return the names that a package loads on first use: they are imported where only type checkers look."""
    lazy = (node for node in tree.body if isinstance(node, ast.If) and "lazy_names(" in ast.unparse(node))
    return [name for node in lazy for item in node.body for name in imported_names(item)]


def imported_names(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a package takes from one of its modules."""
    is_own = isinstance(node, ast.ImportFrom) and node.level == 1 and node.module is not None
    return [alias.name for alias in node.names] if is_own else []


def check_dataclasses(file: str, tree: ast.Module) -> list[Violation]:
    """Return the dataclasses of one file that take many fields by position."""
    return [
        Violation(file, node.lineno, f"{node.name} has more than {MOST_POSITIONAL} fields and is not kw_only")
        for node in nodes_of(tree)
        if isinstance(node, ast.ClassDef)
        and (file, node.name) not in POSITIONAL
        and is_positional_dataclass(node)
        and sum(map(is_field, takewhile(is_before_keywords, node.body))) > MOST_POSITIONAL
    ]


def is_positional_dataclass(node: ast.ClassDef) -> bool:
    """Tell whether a class is a dataclass whose fields can be given by position."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    return any(
        re.match(r"(dataclasses\.)?dataclass\b", text) and "kw_only=True" not in text for text in decorators
    )


def is_before_keywords(node: ast.stmt) -> bool:
    """Tell whether a statement of a dataclass is not the mark `_: KW_ONLY`."""
    return not (isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "KW_ONLY")


def is_field(node: ast.stmt) -> bool:
    """Tell whether a statement of a dataclass declares a field."""
    return isinstance(node, ast.AnnAssign) and not ast.unparse(node.annotation).startswith("ClassVar")


def check_pages(file: str, tree: ast.Module) -> list[Violation]:
    """Return the places of one file where what a page parses is made of variables."""
    if not file.startswith("server/"):
        return []
    return [
        Violation(file, text.lineno, f"`{ast.unparse(text)}` goes where `{name}` parses it: see `attributed`")
        for node in nodes_of(tree)
        if isinstance(node, ast.Call)
        for name, text in parsed_arguments(node)
        if (file, name) not in PASSED_ON and not is_constant(text)
    ]


def parsed_arguments(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments of a call that NiceGUI parses, each with the name of what parses it."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    for argument in node.args:
        if name in PARSED:
            yield name, argument
    for keyword in node.keywords:
        if keyword.arg == "js_handler" or (name in PARSED and keyword.arg in ("add", "remove", "replace")):
            yield keyword.arg if keyword.arg == "js_handler" else name, keyword.value


def is_constant(text: ast.expr) -> bool:
    """Tell whether a text is a constant, a choice between constants, or JavaScript made by `scripted` from one."""
    if isinstance(text, ast.Name):
        return text.id.isupper()
    if isinstance(text, ast.IfExp):
        return is_constant(text.body) and is_constant(text.orelse)
    if isinstance(text, ast.BinOp):
        return is_constant(text.left) and is_constant(text.right)
    if isinstance(text, ast.Call) and ast.unparse(text.func) == "scripted":
        return bool(text.args) and is_constant(text.args[0])
    return isinstance(text, ast.Constant)


def check_state(file: str, tree: ast.Module) -> list[Violation]:
    """Return the places of one file where a module keeps state that changes."""
    variables = module_variables(tree)
    found = [
        Violation(file, node.lineno, f"`{name}` starts empty at module level and can only be there to change")
        for name, node in variables.items()
        if is_empty_container(node.value) and not is_read_only(node)
    ]
    for function in functions_of(tree):
        local = local_names(function)
        for node in nodes_of(function):
            found += (
                Violation(file, line, message) for line, message in changes(node, file, variables, local)
            )
    return list(dict.fromkeys(found))


def check_tasks(file: str, tree: ast.Module) -> list[Violation]:
    """Return the tasks and callbacks of one file that have no owner."""
    return [
        Violation(file, node.lineno, f"{name} in {function.name}: nothing learns of a failure; use `Tasks`")
        for function in functions_of(tree)
        for node in nodes_of(function)
        if isinstance(node, ast.Call)
        and (name := getattr(node.func, "attr", getattr(node.func, "id", ""))) in STARTERS
        and (file, function.name) not in OWNED
    ]


def changes(
    node: ast.AST, file: str, variables: Container[str], local: Container[str]
) -> Iterator[tuple[int, str]]:
    """Yield the line and the message for what a node inside a function changes at module level."""
    for line, name in changed_names(node):
        if name in variables and name not in local and (file, name) not in HOLDERS:
            yield line, f"changes `{name}`, which lives at module level"


def module_variables(tree: ast.Module) -> dict[str, ast.Assign | ast.AnnAssign]:
    """Return the variables that are assigned at module level, by name."""
    variables: dict[str, ast.Assign | ast.AnnAssign] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            variables |= {target.id: node for target in targets if isinstance(target, ast.Name)}
    return variables


def is_empty_container(value: ast.expr | None) -> bool:
    """Tell whether an expression makes a container with nothing in it."""
    if isinstance(value, ast.List | ast.Set):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    if not isinstance(value, ast.Call):
        return False
    name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    return name in EMPTY_CONTAINERS and not value.keywords and (not value.args or name == "defaultdict")


def is_read_only(node: ast.Assign | ast.AnnAssign) -> bool:
    """Tell whether a variable is annotated with a type that has no way to change, as a table without rows."""
    return isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation).startswith(
        ("Mapping", "Sequence")
    )


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the outermost functions and methods of a module."""
    queue: list[ast.AST] = [tree]
    while queue:
        for node in ast.iter_child_nodes(queue.pop()):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node
            else:
                queue.append(node)


def local_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the names that a function binds itself, so that they hide those of the module."""
    nodes = nodes_of(function)
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return bound | {node.arg for node in nodes if isinstance(node, ast.arg)}


def changed_names(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name of what a node changes: `X[...] =`, `X.y =`, `del X[...]`, `X.append(...)`."""
    holder: ast.expr | None = None
    if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        holder = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
        holder = node.func.value
    if isinstance(holder, ast.Name):
        yield holder.lineno, holder.id


def main(arguments: list[str]) -> int:
    """Print the violations of a tree; the exit code is 1 when there are any."""
    violations = check_tree(Path(arguments[0] if arguments else "."))
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
