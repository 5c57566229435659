"""Reads config text as plain data, with the line and column of every part.

YAML 1.2 (so `1e-5` is a number and `on` is text) or JSON. Duplicate keys, tags and keys that are not text are
problems; the data has only dict, list, str, int, float, bool and None.
"""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..protocol import Json, JsonObject, JsonPath, brief_json
from .problems import ConfigError, ConfigProblem

_SLASHES = re.compile(r"(^|[\s,\[{])(//|/\*)")
_TAG = "tag:yaml.org,2002:"
_OLD_BOOLEANS = {
    spelled: word in ("yes", "on")
    for word in ("yes", "no", "on", "off")
    for spelled in (word, word.title(), word.upper())
}
# Aliases may repeat nodes any number of times: this limits what a few lines can expand to.
_MAX_REPEATS = 100_000


@dataclass(slots=True, kw_only=True)
class Source:
    """One file: its plain data, and where each part of it is.

    `nodes` has the nodes of the key and of the value at each path, which know their positions; an item of a list is its
    own key. `overridden` says where values come from that are not the file's. `old_booleans` are the words that YAML
    1.1 takes for booleans.
    """

    file: str
    data: Any
    problems: list[ConfigProblem] = field(default_factory=list)
    text: str = ""
    nodes: dict[JsonPath, tuple[Node, Node]] | None = None
    overridden: dict[JsonPath, str] = field(default_factory=dict)
    old_booleans: dict[JsonPath, bool] = field(default_factory=dict)

    def position(self, path: JsonPath, at_key: bool = False) -> tuple[int, int]:
        """Return line and column of `path`, or of the nearest enclosing part that is in the file."""
        # JSON is read without positions, which is far faster; they are looked up when there is a problem.
        if self.nodes is None:
            self.nodes = _nodes_of_json(self.text)
        for length in range(len(path), -1, -1):
            if path[:length] in self.nodes:
                key, value = self.nodes[path[:length]]
                return _start(key if at_key and length == len(path) else value)
        return (1, 1)

    def turn_old_booleans(self) -> list[JsonPath]:
        """Turn the words that are booleans in YAML 1.1 into booleans, and return where they are."""
        return [path for path, value in self.old_booleans.items() if self._turn(path, value)]

    def _turn(self, path: JsonPath, value: bool) -> bool:
        holder: Any = self.data
        for step in path[:-1]:
            holder = holder[step] if _has(holder, step) else None
        is_there = _has(holder, path[-1]) and isinstance(holder[path[-1]], str)  # no override replaced it
        if is_there:
            holder[path[-1]] = value
        return is_there


def read_source(file: str | os.PathLike[str], name: str | None = None) -> Source:
    """Read a YAML or JSON file; `name` is its own in messages. Raises `ConfigError`."""
    name = os.fspath(file) if name is None else name
    try:
        with open(file, "rb") as stream:
            raw = stream.read()
        return parse_source(raw.decode("utf-8-sig"), name)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _error(name, line, 1, "is not UTF-8 text", "save the file as UTF-8") from None
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise ConfigError([ConfigProblem(file=name, message=message)]) from None


def parse_source(text: str, name: str) -> Source:
    """Parse YAML or JSON text; raises `ConfigError` on a syntax error.

    >>> source = parse_source("lr: 1e-5\\non: off", "a.yml")
    >>> source.data, source.position(("on",))
    ({'lr': 1e-05, 'on': 'off'}, (2, 5))
    """
    try:
        if text.lstrip()[:1] in ("{", "["):
            return _parse_json(text, name)
        return _parse_yaml(text, name)
    except RecursionError:
        raise _error(name, 1, 1, "is nested too deeply") from None
    except YAMLError as error:
        raise _yaml_error(name, error) from None


class _DuplicateKey(ValueError):
    """A JSON object has a key twice; the YAML reader then finds the place."""


def _unique(pairs: list[tuple[str, Json]]) -> JsonObject:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _DuplicateKey
    return result


def _parse_json(text: str, name: str) -> Source:
    try:
        return Source(file=name, data=json.loads(text, object_pairs_hook=_unique), text=text)
    except _DuplicateKey:
        return _parse_yaml(_without_tabs(text), name)
    except json.JSONDecodeError as error:
        if name.endswith(".json"):
            return _parse_almost_json(text, name, error)
    return _parse_yaml(text, name)


def _parse_almost_json(text: str, name: str, error: json.JSONDecodeError) -> Source:
    """Read JSON with a comma at the end, single quotes or comments with #, as NNI does; raise `ConfigError`."""
    try:
        # A comment with // would become a part of the value before it.
        source = None if _SLASHES.search(text) else _parse_yaml(_without_tabs(text), name)
    except YAMLError:
        source = None
    if source is None or source.problems:
        raise _json_error(name, text, error) from None
    return source


def _without_tabs(text: str) -> str:
    # JSON is YAML except for tabs between tokens, and a JSON string cannot contain a raw tab.
    return text.replace("\t", " ")


def _parse_yaml(text: str, name: str) -> Source:
    node = YAML(typ="safe", pure=True).compose(text)
    reader = _NodeReader(name)
    data = None if node is None else reader.read(node, (), node)
    return Source(
        file=name,
        data=data,
        problems=reader.problems,
        text=text,
        nodes=reader.nodes,
        old_booleans=reader.old_booleans,
    )


def _has(holder: Any, step: str | int) -> bool:
    return (
        step in holder
        if isinstance(holder, dict)
        else isinstance(holder, list) and step in range(len(holder))
    )


def _nodes_of_json(text: str) -> dict[JsonPath, tuple[Node, Node]]:
    try:
        return _parse_yaml(_without_tabs(text), "").nodes or {}
    except (YAMLError, RecursionError):
        return {}


class _NodeReader:
    """Turns YAML nodes into plain data, and notes the nodes of each path and problems on the way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nodes: dict[JsonPath, tuple[Node, Node]] = {}
        self.problems: list[ConfigProblem] = []
        self.old_booleans: dict[JsonPath, bool] = {}
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._repeats = 0

    def read(self, node: Node, path: JsonPath, key: Node) -> Any:
        self.nodes[path] = (key, node)
        self._repeats += id(node) in self._seen
        self._seen.add(id(node))
        if self._repeats > _MAX_REPEATS:
            raise _error(self.name, *_start(node), "is too large when its aliases are expanded")
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self._open:
            return self._problem(node, path, "contains itself")
        self._open.add(id(node))
        try:
            return self._collection(node, path)
        finally:
            self._open.discard(id(node))

    def _collection(self, node: Node, path: JsonPath) -> Any:
        if node.tag not in (_TAG + "map", _TAG + "seq"):
            return self._problem(node, path, f"has the tag {node.tag}, which is not supported")
        if isinstance(node, SequenceNode):
            return [self.read(item, (*path, i), item) for i, item in enumerate(node.value)]
        return self._mapping(node, path)

    def _mapping(self, node: Node, path: JsonPath) -> JsonObject:
        merged: JsonObject = {}
        result: JsonObject = {}
        for key, value in node.value:
            if key.tag == _TAG + "merge":
                merged |= self._merge(value, path)
                continue
            name = self._key(key, path, result)
            if name is not None:
                result[name] = self.read(value, (*path, name), key)
        return merged | result

    def _merge(self, value: Node, path: JsonPath) -> JsonObject:
        """Return the fields that `<<: *anchor` adds; in a list of anchors, the first wins."""
        result: JsonObject = {}
        for part in reversed(value.value) if isinstance(value, SequenceNode) else [value]:
            if not isinstance(part, MappingNode):
                self._problem(part, path, "<< must be followed by a mapping")
                continue
            own = dict(self.nodes)
            result |= self.read(part, path, part)
            self.nodes |= own
        return result

    def _key(self, key: Node, path: JsonPath, seen: JsonObject) -> str | None:
        if not isinstance(key, ScalarNode) or key.tag != _TAG + "str":
            name = key.value if isinstance(key, ScalarNode) else "a collection"
            self._problem(key, path, f"the key {name} is not text", "put it in quotes")
            return None
        if key.value in seen:
            line = _start(self.nodes[*path, key.value][0])[0]
            here = _start(key)[0]
            self._problem(key, (*path, key.value), f"duplicate key: on line {line} and again on line {here}")
            return None
        return key.value

    def _scalar(self, node: ScalarNode, path: JsonPath) -> Any:
        kind = str(node.tag).removeprefix(_TAG)
        if path and kind == "str" and node.style is None and node.value in _OLD_BOOLEANS:
            self.old_booleans[path] = _OLD_BOOLEANS[node.value]
        if kind in ("str", "timestamp", "merge", "value"):
            return node.value
        try:
            return _SCALARS[kind](node.value)
        except KeyError:
            return self._problem(node, path, f"has the tag {node.tag}, which is not supported")
        except ValueError:
            return self._problem(node, path, f"{brief_json(node.value)} is not a valid {kind}")

    def _problem(self, node: Node, path: JsonPath, message: str, hint: str = "") -> None:
        line, column = _start(node)
        self.problems.append(
            ConfigProblem(file=self.name, line=line, column=column, path=path, message=message, hint=hint)
        )


def _integer(text: str) -> int:
    text = text.replace("_", "")
    return int(text, 0) if text.lstrip("+-")[:2].lower() in ("0x", "0o", "0b") else int(text)


def _floating(text: str) -> float:
    text = text.replace("_", "").lower()
    if text.endswith(".inf"):
        return -math.inf if text.startswith("-") else math.inf
    return math.nan if text == ".nan" else float(text)


_SCALARS = {
    "int": _integer,
    "float": _floating,
    "bool": lambda text: text.lower() == "true",
    "null": lambda _: None,
}


def _start(node: Node) -> tuple[int, int]:
    mark = node.start_mark
    return (mark.line + 1, mark.column + 1)


def _error(name: str, line: int | None, column: int | None, message: str, hint: str = "") -> ConfigError:
    return ConfigError([ConfigProblem(file=name, line=line, column=column, message=message, hint=hint)])


def _yaml_error(name: str, error: YAMLError) -> ConfigError:
    mark = error.problem_mark or error.context_mark if isinstance(error, MarkedYAMLError) else None
    if mark is None:
        return _error(name, None, None, f"is not valid YAML: {' '.join(str(error).split())}")
    problem = getattr(error, "problem", None) or getattr(error, "context", None)
    hint = (
        "YAML does not allow tabs here: use spaces"
        if "\\t" in str(problem)
        else _hint_about_open_bracket(error, mark.line)
    )
    return _error(name, mark.line + 1, mark.column + 1, f"is not valid YAML: {_in_words(str(problem))}", hint)


# What the parser says, and what is wrong with the text.
_WORDS = (
    (r"mapping values are not allowed here", "a second ': ' on one line, or a line that is indented too far"),
    (r"could not find expected ':'", "this line has no ':' after its key"),
    (r"expected <block end>, but found '-'", "this list item is indented differently from those before it"),
    (r"expected <block end>, but found", "this line is indented differently from those before it"),
    (r"expected ',' or '(.)', but (found|got) '<stream end>'", r"the file ends before the closing '\1'"),
    (r"expected ',' or '(.)', but (found|got) .*", r"a ',' or the closing '\1' is missing before this"),
    (
        r"(found unexpected end of stream|expected the node content, but found '<stream end>')",
        "the file ends too early",
    ),
    (
        r"found unknown escape character .*",
        "an unknown escape after '\\\\'; in single quotes a '\\\\' means itself",
    ),
    (
        r"found character '(.)' that cannot start any token",
        r"'\1' cannot begin a value: put quotes around the value",
    ),
    (r"found character '\\t' that cannot start any token", "a tab"),
    (r"expected '?<document start>'?, but found.*", "this does not belong to the lines before it"),
    (
        r"expected alphabetic or numeric character, but found .*",
        "'*' and '&' have a meaning in YAML: put quotes around the value",
    ),
    (r"found undefined alias .*", "'*' names an anchor that is not there: put quotes around the value"),
    (r"expected the node content, but found '(.*)'", r"a value is missing before '\1'"),
)


def _in_words(problem: str) -> str:
    """Return what is wrong, in the words of a reader instead of the parser.

    >>> _in_words("expected ',' or ']', but got '<stream end>'")
    "the file ends before the closing ']'"
    """
    for pattern, words in _WORDS:
        if match := re.match(pattern, problem):
            return match.expand(words)
    return problem


def _hint_about_open_bracket(error: YAMLError, line: int) -> str:
    """Return where the bracket or quote that is still open began, if that is on another line."""
    begun = getattr(error, "context_mark", None)
    what = {"flow sequence": "'['", "flow mapping": "'{'", "quoted scalar": "quote"}
    opener = next((sign for word, sign in what.items() if word in str(getattr(error, "context", ""))), "")
    return (
        f"is the {opener} on line {begun.line + 1} closed?" if opener and begun and begun.line != line else ""
    )


def _json_error(name: str, text: str, error: json.JSONDecodeError) -> ConfigError:
    before = text[: error.pos].rstrip()
    # Python 3.13 names the comma, earlier versions the bracket after it.
    comma = error.pos if text[error.pos : error.pos + 1] == "," else len(before) - 1
    closing = text[comma + 1 :].lstrip()[:1]
    if text[comma : comma + 1] == "," and closing in ("}", "]"):
        line, column = text.count("\n", 0, comma) + 1, comma - text.rfind("\n", 0, comma)
        return _error(name, line, column, f"is not valid JSON: remove the comma before {closing!r}", "")
    follows = text[error.pos :].lstrip()[:1]
    hint = ""
    if follows in ("/", "#"):
        hint = "JSON has no comments"
    elif follows == "'":
        hint = "JSON needs double quotes"
    message = error.msg[:1].lower() + error.msg[1:]
    return _error(name, error.lineno, error.colno, f"is not valid JSON: {message}", hint)
