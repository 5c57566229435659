"""The user's code that a process has loaded, and the versions of its packages: what made the results of a trial.

A file counts as it is when the process is first seen to have loaded it: a process keeps what it loaded, although the
file changes. So the first look should come early. For the SDK: standard library only, a millisecond for a thousand
modules.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

CodeFacts = dict[str, dict[str, str]]
"""`files`: digests by path in the code directory; `packages`: versions by name."""

MAX_NAMES = 300  # files, and packages: a line of the spool is bounded
_MAX_NAME = 200  # characters
_MAX_BYTES = 4 << 20  # of a file; code is smaller
_NOT_OWN = ("site-packages", "dist-packages", "__pycache__")


class LoadedCode:
    """What this process has loaded from one directory.

    >>> import pathlib, tempfile
    >>> directory = tempfile.mkdtemp()
    >>> LoadedCode(directory).news()["files"]
    {}
    """

    def __init__(self, directory: str) -> None:
        # A module's file may be spelled with or without the symbolic links above it.
        spellings = _absolute(directory), _absolute(directory, os.path.realpath)
        self._roots = {os.path.join(root, "") for root in spellings}
        self._known: set[str] = set()
        self._count = 0  # of the modules at the last look
        self._names = {"files": 0, "packages": 0}
        self._news: CodeFacts = {"files": {}, "packages": {"python": sys.version.split()[0]}}

    def news(self) -> CodeFacts | None:
        """Return what was loaded since the last call, None if nothing was."""
        self.look()
        news, self._news = self._news, {"files": {}, "packages": {}}
        return news if news["files"] or news["packages"] else None

    def look(self) -> None:
        """Note what was loaded since the last look."""
        if self._count == len(sys.modules):
            return
        for name, module in list(sys.modules.items()):
            if name not in self._known:
                self._known.add(name)
                self._note(name, module)
        self._count = len(sys.modules)

    def _note(self, name: str, module: object) -> None:
        try:
            # Not `getattr`: modules that load themselves when they are used would do it here.
            contents = object.__getattribute__(module, "__dict__")
            file, version = contents.get("__file__"), contents.get("__version__")
        except (AttributeError, TypeError):
            return  # a program may put anything there
        path = self._own_path(file) if isinstance(file, str) else None
        if path is not None:
            self._add("files", path, file_digest(file))
        elif isinstance(version, str) and "." not in name and name not in sys.stdlib_module_names:
            self._add("packages", name, version[:_MAX_NAME])

    def _add(self, kind: str, name: str, value: str | None) -> None:
        # The name of a file need not be text that JSON can hold.
        if (
            value is not None
            and self._names[kind] < MAX_NAMES
            and len(name) <= _MAX_NAME
            and name.isprintable()
        ):
            self._news[kind][name] = value
            self._names[kind] += 1

    def _own_path(self, file: str) -> str | None:
        """Return the path of a file in the code directory; None for files elsewhere, and for installed ones."""
        file = _absolute(file)
        root = next((root for root in self._roots if file.startswith(root)), None)
        if root is None or any(f"{os.sep}{part}{os.sep}" in file for part in _NOT_OWN):
            return None
        return file[len(root) :]


def _absolute(path: str, absolute: Callable[[str], str] = os.path.abspath) -> str:
    """Return an absolute path, or the path as it is where the working directory was deleted or is closed."""
    try:
        return absolute(path)
    except OSError:
        return path


def file_digest(path: str) -> str | None:
    """Return a short digest of the contents of a file; None if it cannot be read.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "train.py")
    >>> file_digest(path) is None
    True
    >>> _ = open(path, "w").write("x = 1")
    >>> file_digest(path)
    '59705646f73aad2b'
    """
    from hashlib import blake2b

    try:
        with open(path, "rb") as file:
            contents = file.read(_MAX_BYTES)
        size = os.stat(path).st_size
    except OSError:
        return None
    if size > len(contents):
        contents += b"%d" % size
    return blake2b(contents, digest_size=8).hexdigest()


def code_digest(facts: CodeFacts) -> str:
    """Return a digest of all that was loaded.

    >>> code_digest({"files": {"a.py": "01", "b.py": "02"}}) == code_digest({"files": {"b.py": "02", "a.py": "01"}})
    True
    """
    from hashlib import blake2b

    return blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=8).hexdigest()


def merged_code(several: Iterable[Mapping[str, object]]) -> CodeFacts | None:
    """Return the facts of several processes of an attempt, None if there are none; anything else is left out.

    >>> merged_code([{"files": {"a.py": "01"}}, {"files": {"b.py": "02", "c.py": 3}, "packages": "none"}])
    {'files': {'a.py': '01', 'b.py': '02'}, 'packages': {}}
    >>> merged_code([]) is None
    True
    """
    facts: CodeFacts = {"files": {}, "packages": {}}
    for one in several:
        for kind in ("files", "packages"):
            names = one.get(kind)
            if not isinstance(names, dict):
                continue
            for name, value in names.items():
                is_text = all(isinstance(text, str) and text.isprintable() for text in (name, value))
                has_room = name in facts[kind] or len(facts[kind]) < MAX_NAMES
                if is_text and has_room and len(name) + len(value) <= 2 * _MAX_NAME:
                    facts[kind][name] = value
    return facts if facts["files"] or facts["packages"] else None
