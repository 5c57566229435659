"""Texts of users in a report, in a notebook and in the tools for agents: nothing in them is markup, or another text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run
from pitchpipe.results import _line, result_of
from pitchpipe.store.reading import escaped, visible

from .hostile_texts import TEXTS, hostile_experiment, stored_text
from .lazy import Lazy

mcp_client, mcp_tools = Lazy("mcp.client.client"), Lazy("pitchpipe.cli.mcp_tools")

# Elements whose content is no text of the page.
SCRIPTS = {"script", "style"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and its texts without those of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside not in SCRIPTS:
            self.texts.append(data)

    def dangers(self) -> Iterator[str]:
        """Yield what a text of a user would have made, had it been markup."""
        for tag, attributes in self.elements:
            for name, value in attributes.items():
                if name.startswith(("on", ":", "@", "v-")):
                    yield f"{tag} has {name}"
                if name in ("href", "src") and "javascript:" in (value or ""):
                    yield f"{tag} leads to {value}"
            if tag in ("img", "iframe") and (attributes.get("src") or "") == "nowhere":
                yield f"{tag} of a user"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    hostile_experiment(directory / "made1234").store.close()
    return directory / "made1234"


def test_report_holds_every_text_and_runs_none(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert run(["report", "made1234", "--dir", str(folder.parent), "-o", str(file)]) == 0
    html = file.read_text()
    page = Page(html)
    assert list(page.dangers()) == []
    assert html.count("<script") == html.count("</script>")
    assert escaped(html, keep="\n\t") == html
    shown = "\n".join(page.texts)
    for text in map(stored_text, TEXTS):
        forms = escaped(text), visible(text), escaped(text, keep="\n\t")
        assert any(form.strip()[:40] in shown for form in forms), text[:40]


def test_notebook_shows_every_text_and_runs_none(folder: Path) -> None:
    html = result_of(folder)._repr_html_()
    page = Page(html)
    assert {tag for tag, _ in page.elements} == {"p", "b", "table", "tr", "th", "td"}
    assert [attributes for _, attributes in page.elements if attributes] == []
    assert escaped(html) == html


def test_cells_of_a_notebook_tell_all_texts_apart() -> None:
    texts = [*TEXTS, *map(escaped, TEXTS), *map(visible, TEXTS)]
    cells = {text: _line([text], "td") for text in texts}
    assert len(set(cells.values())) == len(set(texts))
    assert {len(Page(cell).elements) for cell in cells.values()} == {2}


def test_tools_for_agents_have_the_texts_themselves(folder: Path) -> None:
    async def ask() -> tuple[Any, str]:
        async with mcp_client.Client(mcp_tools.mcp_server(folder.parent)) as client:
            explained = await client.call_tool("explain_experiment", {"experiment": "made1234"})
            assert not explained.is_error
            said = "".join(getattr(part, "text", "") for part in explained.content)
            found = await client.call_tool("list_trials", {"experiment": "made1234", "limit": 0})
            assert not found.is_error
            assert found.structured_content is not None
            return found.structured_content["result"], said

    trials, said = asyncio.run(ask())
    assert {*map(stored_text, TEXTS)} <= {one["reason"] for one in trials}
    assert json.loads(said)["id"] == "made1234"
