"""Texts of users in a report, in a notebook and in the tools for agents: nothing in them is markup, or another text."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.cli.app import run
from pitchpipe.results import _line, result_of
from pitchpipe.telling import escaped, visible

from .hostile_texts import TEXTS, hostile_experiment, stored_text
from .html_page import Page
from .lazy import Lazy

mcp_client, mcp_tools = Lazy("mcp.client.client"), Lazy("pitchpipe.cli.verbs.mcp_tools")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("hostile")
    hostile_experiment(directory / "made1234").store.close()
    return directory / "made1234"


@pytest.fixture
def same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the same two views each time: drawing takes most of the time, and no text of a figure is in the HTML."""
    import plotly.graph_objects as go

    from pitchpipe.server import figures

    usual, other = go.Figure(go.Scatter(y=[1])), go.Figure(go.Scatter(y=[2]))
    for name in ("history", "pareto", "importance", "curves", "parallel", "slice", "contour", "timeline"):
        monkeypatch.setattr(figures, f"plot_{name}", lambda *_, **options: other if options else usual)


@pytest.mark.usefixtures("same_figures")
def test_report_holds_every_text_and_runs_none(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    assert run(["report", "made1234", "--dir", str(folder.parent), "-o", str(file)]) == 0
    html = file.read_text()
    page = Page(html)
    assert list(page.dangers()) == []
    assert html.count("<script") == html.count("</script>") == page.count("script") == 3
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
