"""The manual as a site: what is made from the code, and the search of a site that was opened from a folder."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pitchpipe.server.application import create_app
from pitchpipe.server.experiments import Experiments

from .server.conftest import chromium

__all__ = ["chromium"]

PAGE = """<!doctype html><title>Page</title>
<script src="iframe-worker.js"></script>
<script>
  const worker = new Worker("worker.js");
  worker.addEventListener("message", (event) => { document.title = event.data; });
  worker.postMessage("asked");
</script>"""
WORKER = """addEventListener("message", async (event) => {
  await importScripts("more.js");
  postMessage(event.data + more);
});"""


@pytest.fixture(scope="module")
def routes_page(tree: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("routes_page", tree / "docs" / "site" / "routes_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_of_routes_has_every_route_object_and_field(routes_page: Any, tmp_path: Path) -> None:
    document = create_app(Experiments(tmp_path), pages=False).openapi()
    page = routes_page.routes_page(document)
    for path, operations in document["paths"].items():
        for method in operations:
            assert f"### {method.upper()} `{path}`" in page
    fields = {
        field
        for schema in document["components"]["schemas"].values()
        for field in schema.get("properties", ())
    }
    assert {field for field in fields if f"| `{field}` |" not in page} == set()
    anchors = set(re.findall(r"\{ #([\w-]+) \}", page))
    linked = set(re.findall(r"\]\(#([\w-]+)\)", page))
    assert linked
    assert linked <= anchors
    assert "None" not in page


def test_types_are_words(routes_page: Any) -> None:
    several = {
        "anyOf": [{"type": "array", "items": {"$ref": "#/components/schemas/Trial"}}, {"type": "null"}]
    }
    assert routes_page._type(several) == "list of [Trial](#object-trial) or null"
    assert routes_page._type({"type": "integer", "minimum": 1}) == "integer, at least 1"
    assert routes_page._type({"enum": ["json", "csv"]}) == "`json`, `csv`"


def test_site_asks_no_other_machine(tree: Path) -> None:
    config = (tree / "mkdocs.yml").read_text(encoding="utf-8")
    assert "polyfills: [docs/site/iframe-worker.js]" in config  # else the plug-in adds one of unpkg.com
    assert "font: false" in config


def test_search_of_a_folder_has_a_worker(tree: Path, tmp_path: Path, chromium: Any) -> None:
    (tmp_path / "page.html").write_text(PAGE)
    (tmp_path / "worker.js").write_text(WORKER)
    (tmp_path / "more.js").write_text("var more = ' and answered';")
    script = tree / "docs" / "site" / "iframe-worker.js"
    (tmp_path / "iframe-worker.js").write_text(script.read_text(encoding="utf-8"))
    page = chromium.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("document.title === 'asked and answered'")
    page.close()
