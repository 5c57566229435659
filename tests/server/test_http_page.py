"""docs/reference/http.md names every route of the API, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from pitchpipe.server.application import create_app
from pitchpipe.server.experiments import Experiments

ROOT = "/api/v1/experiments"


def test_routes_of_the_page_are_those_of_the_api(tree: Path) -> None:
    page = (tree / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    section = page.partition("<!-- routes -->")[2].partition("<!-- end of routes -->")[0]
    named = {
        (method, path if path.startswith("/api") else f"{ROOT}/{{experiment}}{path.rstrip('/')}")
        for method, path in re.findall(r"^\| ([A-Z]+) `([^`|]+)` \|", section, re.MULTILINE)
    }
    document = create_app(Experiments(tree), pages=False).openapi()
    there = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        if path.startswith("/api")
        for method in operations
    }
    assert named == there
