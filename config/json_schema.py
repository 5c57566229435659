"""The JSON schema of experiment.yml, with which editors complete fields and show what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..protocol import JsonObject, camel_case
from ..search_space import TYPES
from .draft import SHARED_WITH_ROOT
from .root_fields import ConfigFields
from .sections import PLATFORMS

_LINK = re.compile(r"\[([^]]+)\]\([^)]*\)")  # of the pages, where descriptions are shown, too
_TEXT: JsonObject = {"type": "string"}
_NO_SECTION: JsonObject = {"type": ["number", "string", "boolean", "null", "array"]}
_PARAMETER: JsonObject = {"properties": {"_type": {"enum": list(TYPES)}, "_value": {"type": "array"}}}


def config_schema() -> JsonObject:
    """Return the schema: fields, types, bounds and descriptions of the models, and the short forms that are read.

    Fields are offered in snake_case, and taken in camelCase as well. `validate` checks more: what depends on other
    fields, files and plug-ins.

    >>> config_schema()["properties"]["max_trial_number"]["description"]
    'No new trials after this many.'
    """
    schema: JsonObject = ConfigFields.model_json_schema()
    fields = schema["properties"]
    for name in ("tuner", "assessor"):
        fields[name] = _or(fields[name], _TEXT)
    fields["repeats"] = _or(fields["repeats"], {"type": "integer", "minimum": 1})
    priors = fields["priors"]
    priors["additionalProperties"] = _or(priors["additionalProperties"], _NO_SECTION)  # the centre alone
    fields["search_space"] = _or(
        fields["search_space"], {"type": "object", "additionalProperties": _PARAMETER}
    )
    for model in PLATFORMS.values():
        service = schema["$defs"][model.__name__]["properties"]
        service |= {name: fields[name] for name in SHARED_WITH_ROOT if name not in service}
    for part in (schema, *schema["$defs"].values()):
        _take_camel_case(part)
    schema["patternProperties"]["^advisor$"] = fields["tuner"]
    for part in _parts(schema):
        part.pop("title", None)
        if isinstance(part.get("description"), str):
            part["description"] = _LINK.sub(r"\1", part["description"])
        if isinstance(part.get("default"), dict):
            part["default"] = {name: value for name, value in part["default"].items() if value is not None}
        elif "default" in part and part["default"] is None:
            del part["default"]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "experiment.yml of Pitchpipe"}
    return {**head, **schema}


def _or(field: JsonObject, other: JsonObject) -> JsonObject:
    """Return a field that takes another form, too; its description and its default stay."""
    kept = {name: value for name, value in field.items() if name in ("default", "description")}
    own = {name: value for name, value in field.items() if name not in kept}
    forms = own["anyOf"] if own.keys() <= {"anyOf", "title"} else [own]
    plain = [form for form in forms if form != {"type": "object", "additionalProperties": True}]
    return {**kept, "anyOf": [*plain, other]}


def _take_camel_case(section: JsonObject) -> None:
    names = {camel_case(name): name for name in section.get("properties", {}) if camel_case(name) != name}
    if names:
        section["patternProperties"] = {
            f"^{camel}$": section["properties"][name] for camel, name in names.items()
        }


def _parts(schema: Any) -> Iterator[JsonObject]:
    """Yield each schema within a schema, but not the objects of names: a field may be called `title`."""
    if isinstance(schema, list):
        for part in schema:
            yield from _parts(part)
    elif isinstance(schema, dict):
        yield schema
        for name, inner in schema.items():
            if name in ("properties", "patternProperties", "$defs"):
                yield from _parts(list(inner.values()))
            elif name not in ("default", "enum", "required"):
                yield from _parts(inner)
