"""The page of all routes, from the OpenAPI document: text, which works from a folder and is found by the search."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["routes_page"]

Schema = Mapping[str, Any]
_HEAD = """\
# All routes and fields

[HTTP API](http.md) explains them. A server describes them at `/api/v1/openapi.json`.
"""
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}


def routes_page(document: Schema) -> str:
    """Return the page in Markdown."""
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = next(iter(operation.get("tags") or ["other"]))
            by_tag.setdefault(tag, []).append("\n".join(_operation(method.upper(), path, operation)))
    lines = [_HEAD]
    for tag, entries in by_tag.items():
        lines += [f"## {tag[0].upper()}{tag[1:]}\n", *entries]
    lines.append("## Objects\n")
    for name, schema in document["components"]["schemas"].items():
        lines += _object(name, schema)
    return "\n".join(lines)


def _operation(method: str, path: str, operation: Schema) -> Iterator[str]:
    yield f"### {method} `{path}`\n"
    yield f"{operation.get('description') or operation.get('summary', '')}\n"
    if parameters := operation.get("parameters"):
        yield "| parameter | in | type | |\n|---|---|---|---|"
        for one in parameters:
            needed = "required. " if one.get("required") and one["in"] != "path" else ""
            said = f"{needed}{one.get('description', '')}"
            yield f"| `{one['name']}` | {one['in']} | {_type(one['schema'])} | {_cell(said)} |"
        yield ""
    body = operation.get("requestBody", {}).get("content", {})
    for content in body.values():
        yield f"Body: {_type(content.get('schema', {}))}\n"
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            kinds = [_type(one.get("schema", {})) for one in response.get("content", {}).values()]
            yield f"{status}: {' or '.join(filter(None, kinds)) or response.get('description', '')}\n"


def _object(name: str, schema: Schema) -> Iterator[str]:
    yield f"### {name} {{ #{_anchor(name)} }}\n"
    if "description" in schema:
        yield f"{schema['description']}\n"
    if "properties" not in schema:
        yield f"{_type(schema)}\n"
        return
    yield "| field | type | |\n|---|---|---|"
    for field, inner in schema["properties"].items():
        yield f"| `{field}` | {_type(inner)} | {_cell(inner.get('description', ''))} |"
    yield ""


def _type(schema: Schema) -> str:
    """Return the type that a schema describes, with links to objects.

    >>> _type({"anyOf": [{"type": "array", "items": {"$ref": "#/components/schemas/Trial"}}, {"type": "null"}]})
    'list of [Trial](#object-trial) or null'
    >>> _type({"type": "integer", "minimum": 1}), _type({"enum": ["json", "csv"]})
    ('integer, at least 1', '`json`, `csv`')
    """
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{_anchor(name)})"
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(filter(None, map(_type, schema[several]))))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    kind = schema.get("type", "anything" if not schema else "")
    if kind == "array":
        kind = f"list of {_type(schema.get('items', {}))}"
    elif kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        kind = f"object of {_type(schema['additionalProperties'])}"
    bounds = [f"{words} {schema[name]:g}" for name, words in _BOUNDS.items() if name in schema]
    return _cell(", ".join([str(kind), *bounds]))


def _anchor(name: str) -> str:
    return f"object-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"


def _cell(text: str) -> str:
    """Return a text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
