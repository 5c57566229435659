"""The form of a new trial: one field per parameter of the search space, nested ones below their choice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from nicegui import html, ui

from ...search_space import SearchSpace, SearchSpaceError, identity
from ...store.reading import escaped, option_text, visible
from .actions import result_of
from .elements import attributed

__all__ = ["TrialForm"]

Value = Callable[[], Any]


class TrialForm:
    """Asks for the parameters of a trial, filled in with those of another, and runs it.

    It stays open, with what was typed, until `run` returns that the trial was taken, or the user cancels or presses
    Escape.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        filled: Mapping[str, Any],
        run: Callable[[dict[str, Any]], Awaitable[bool]],
    ) -> None:
        self._space: Mapping[str, Any] = config.get("searchSpace") or {}
        self._constraints = config.get("constraints") or ()
        self._filled = filled
        self._run = run
        self._problems: Any = None

    async def ask(self) -> dict[str, Any]:
        """Show the form until the trial is taken or the form closed; return what Escape left unfinished."""
        with (
            ui.dialog().props("no-backdrop-dismiss") as dialog,
            ui.card().style("min-width: min(30rem, 92vw)"),
        ):
            html.h2("Add a trial")
            html.p("It runs with exactly these parameters, before those from the tuner.").classes("pp-dim")
            with html.div().classes("pp-stack").style("width: 100%; gap: .4rem"):
                read = _Fields(self._space, self._filled).read
            self._problems = html.div().classes("pp-bad").props("role=alert")
            with html.div().classes("pp-row").style("align-self: flex-end"):
                ui.button("Cancel", on_click=lambda: dialog.submit({})).props("flat no-caps")
                ui.button("Run it", on_click=lambda: self._send(dialog, read)).props("unelevated no-caps")
        is_closed = await result_of(dialog) is None
        return read() if is_closed else {}

    async def _send(self, dialog: Any, read: Value) -> None:
        parameters = read()
        self._problems.clear()
        problems = self._problems_of(parameters)
        with self._problems:
            for problem in problems:
                html.p(escaped(problem))
        if not problems and await self._run(parameters):
            dialog.submit({})

    def _problems_of(self, parameters: dict[str, Any]) -> list[str]:
        """Return the problems of the parameters, as sentences."""
        try:
            space = SearchSpace.parse(self._space, self._constraints)
        except SearchSpaceError:
            return []  # only the user's tuner reads this search space
        if faults := space.validate(parameters):
            return [str(fault) for fault in faults]
        return [f"the constraint {text} is not met" for text in space.violations(parameters)]


class _Fields:
    """The fields of one level of the search space."""

    def __init__(self, space: Mapping[str, Any], filled: Mapping[str, Any]) -> None:
        self._values: dict[str, Value] = {}
        for name, parameter in space.items():
            if name != "_name":
                spec = (
                    parameter
                    if isinstance(parameter, Mapping)
                    else {"_type": "choice", "_value": [parameter]}
                )
                self._values[name] = _field(name, spec, filled.get(name))

    def read(self) -> dict[str, Any]:
        """Return what has been filled in."""
        return {name: value() for name, value in self._values.items()}


def _field(name: str, parameter: Mapping[str, Any], filled: Any) -> Value:
    if parameter.get("_type") == "choice":
        options = list(parameter.get("_value", ()))
        if options and all(isinstance(option, Mapping) and "_name" in option for option in options):
            return _nested_field(name, options, filled)
        return _choice_field(name, options, filled)
    return _number_field(name, parameter, filled)


def _number_field(name: str, parameter: Mapping[str, Any], filled: Any) -> Value:
    arguments = ", ".join(map(str, parameter.get("_value", ())))
    field = ui.input(visible(name), value="" if filled is None else str(filled)).style("width: 100%")
    field.props("outlined dense inputmode=decimal autocomplete=off")
    attributed(field, hint=escaped(f"{parameter.get('_type')} {arguments}"))
    return lambda: _number(field.value)


def _number(text: Any) -> Any:
    """Return the number that was typed, or the text if it is not one, for the search space to refuse.

    >>> _number("16"), _number(" 1e-3"), _number("many")
    (16, 0.001, 'many')
    """
    for kind in (int, float):
        try:
            return kind(str(text).strip())
        except ValueError:
            pass
    return text


def _choice_field(name: str, options: list[Any], filled: Any) -> Value:
    field = _select(name, options, filled)
    return lambda: options[field.value]


def _select(name: str, options: Sequence[Any], filled: Any) -> Any:
    """Make a field whose value is the place of an option."""
    words = [option_text(option) for option in options]
    places = {identity(option): place for place, option in enumerate(options)}
    chosen = places.get(identity(filled), 0)
    field = ui.select(dict(enumerate(words)), label=visible(name), value=chosen)
    return field.props("outlined dense options-dense").style("width: 100%")


def _nested_field(name: str, options: list[Mapping[str, Any]], filled: Any) -> Value:
    names = [option["_name"] for option in options]
    before: Mapping[str, Any] = filled if isinstance(filled, Mapping) else {}
    field = _select(name, names, before.get("_name"))
    parts: list[tuple[Any, _Fields]] = []
    for option in options:
        group = attributed(html.fieldset(), aria_label=escaped(f"{name}: {option['_name']}")).classes(
            "pp-nested"
        )
        with group:
            parts.append((group, _Fields(option, before)))

    def show() -> None:
        for place, (group, fields) in enumerate(parts):
            group.set_visibility(place == field.value and bool(fields.read()))

    show()
    field.on_value_change(show)
    return lambda: {"_name": names[field.value], **parts[field.value][1].read()}
