"""Small elements of several pages: badges, lists of facts, panels, tables, named buttons."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from nicegui import html, ui
from nicegui.element import Element

from ...protocol import Json
from ...store.reading import flat
from ...telling import escaped, number_text, visible

E = TypeVar("E", bound=Element)

# The tones of statuses are classes of style.css; other statuses have none.
TRIAL_TONES: Mapping[str, str] = {
    "RUNNING": "move",
    "SUCCEEDED": "good",
    "EARLY_STOPPED": "warn",
    "FAILED": "bad",
}
EXPERIMENT_TONES: Mapping[str, str] = {
    **dict.fromkeys(("RUNNING", "NO_MORE_TRIAL", "TUNER_NO_MORE_TRIAL"), "move"),
    "DONE": "good",
    "ERROR": "bad",
    "STOPPING": "warn",
    "STOPPED": "warn",
}


def attributed(element: E, **attributes: object) -> E:
    """Set attributes of an element as they are; `aria_label` is the attribute `aria-label`. Return the element.

    `.props(text)` parses its text: only constants go there, and whatever a user may have written comes here.
    """
    for name, value in attributes.items():
        element.props[name.replace("_", "-")] = value
    return element


def scripted(code: str, **values: object) -> str:
    """Return JavaScript with the values, as JSON, in the place of their names in capitals; `code` is a constant.

    >>> print(scripted("say(TEXT, 3)", TEXT="'); alert('"))
    say("'); alert('", 3)
    """
    names = re.compile(rf"\b({'|'.join(values)})\b")
    return names.sub(lambda match: json.dumps(values[match[0]]), code)


def badge(text: str, tone: str = "") -> Element:
    """Make a coloured pill around a word; the word says everything, the colour helps."""
    return html.span(text).classes("pp-status").classes(tone)


def set_badge(label: ui.label, text: str, tone: str = "") -> None:
    """Change the word and the tone of a badge."""
    label.set_text(text)
    label.classes(replace="pp-status").classes(tone)


@contextmanager
def panel(title: str, *, classes: str = "") -> Iterator[Element]:
    """Make a framed section with a heading, which also names it for screen readers."""
    with html.section().classes("pp-panel").classes(classes) as section:
        yield attributed(section, aria_labelledby=html.h2(title).html_id)


class Place:
    """A part of a page that is drawn again when what it shows has changed, and else keeps what the user selected."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._contents: object = None

    def show(self, contents: object, draw: Callable[[], None]) -> None:
        """Call `draw` inside the emptied element if the contents are not those at the last time."""
        if contents != self._contents:
            self._contents = contents
            self._element.clear()
            with self._element:
                draw()


def named_values(pairs: Iterable[tuple[str, object]]) -> Element:
    """Show names with values, one per line; leave out pairs without a value. Return the list."""
    with html.dl().classes("pp-facts") as described:
        for name, value in pairs:
            if value not in (None, ""):
                html.dt(escaped(name))
                html.dd(escaped(str(value)))
    return described


def parameter_list(parameters: Json) -> None:
    """Show the parameters of a trial, one per line: nested ones with dots, a nested choice by its name."""
    named_values(_named(parameters))


def parameter_columns(parameters: Json) -> None:
    """Show the parameters of a trial as `parameter_list` does, in as many columns as there is room for."""
    with html.dl().classes("pp-pairs"):
        for name, text in _named(parameters):
            with html.div():
                html.dt(name)
                html.dd(text)


def _named(parameters: Json) -> Iterator[tuple[str, str]]:
    for name, value in flat(parameters).items():
        yield visible(name.removesuffix("._name")), number_text(value)


def boxes(names: Iterable[str]) -> Mapping[str, ui.label]:
    """Make a row of boxes, each with a name and a value set later; return the value labels by name.

    A box whose label is hidden is hidden with it.
    """
    labels = dict[str, ui.label]()
    with html.dl().classes("pp-figures"):
        for name in names:
            with html.div() as box:
                html.dt(name)
                with html.dd():
                    labels[name] = ui.label("–")
            box.bind_visibility_from(labels[name])
    return labels


def metric_field(
    names: Sequence[str],
    chosen: str | Sequence[str],
    choose: Callable[..., object],
    *,
    multiple: bool = False,
) -> ui.select:
    """Make the field that chooses a metric, or several, of those with these names."""
    words = {name: "result" if name == "default" else visible(name) for name in names}
    field = ui.select(
        words, label="Metrics" if multiple else "Metric", value=chosen, multiple=multiple, on_change=choose
    )
    field.props("outlined dense options-dense").style("min-width: 11rem; max-width: 100%; align-self: start")
    return field.props("use-chips") if multiple else field


def table(heads: Iterable[str], caption: str = "", numbers: Container[str] = ()) -> Element:
    """Make an HTML table with its head and return the element for the rows; `numbers` are the heads on the right."""
    with html.div().classes("pp-scroll"), html.table().classes("pp-table") as element:
        if caption:
            attributed(element, aria_label=caption)
        with html.thead(), html.tr():
            for head in heads:
                html.th(escaped(head)).props("scope=col").classes("number" if head in numbers else "")
        return html.tbody()


def action(
    text: str,
    handler: Callable[..., object],
    *,
    icon: str = "",
    kind: str = "flat",
    color: str = "",
    tip: str = "",
) -> ui.button:
    """Make a button; `kind` is Quasar's (flat, outline, unelevated), as is `color`."""
    button = ui.button(text, on_click=handler, icon=icon or None)
    button.props("dense no-caps padding='2px 10px'")
    attributed(button, aria_label=text, **{kind: True}, **({"color": color} if color else {}))
    if tip:
        button.tooltip(tip)
    return button
