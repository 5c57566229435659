"""Light and dark: the browser knows the system's theme; a cookie keeps what the user chose instead."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from nicegui import ui

from ..figures import template_layout
from .elements import attributed

__all__ = ["figure_themes_script", "theme_button"]

_CHOSEN = "pitchpipe-theme"
# The page is not loaded again, so nothing that was typed is lost.
_TURN = f"""() => {{
  const theme = document.body.classList.contains("body--dark") ? "light" : "dark";
  document.cookie = `{_CHOSEN}=${{theme}}; path=/; max-age=31536000; SameSite=Strict`;
  emit(theme);
}}"""
_IS_DARK: Mapping[str, bool] = MappingProxyType({"light": False, "dark": True})
_WHAT = "Switch between light and dark colours"


def figure_themes_script() -> str:
    """Return the script with the templates of the figures: they are drawn in the browser, in the theme it shows."""
    templates = {name: {"layout": template_layout(name)} for name in ("light", "dark")}
    return f"pitchpipe.templates = {json.dumps(templates)}"


def theme_button() -> None:
    """Show the page in the chosen theme, else in that of the system; make a button that switches and remembers it."""
    request = ui.context.client.request
    chosen = "" if request is None else request.cookies.get(_CHOSEN, "")
    theme = ui.dark_mode(_IS_DARK.get(chosen))
    button = ui.button(icon="contrast").props("flat round dense color=grey")
    attributed(button, aria_label=_WHAT).tooltip(_WHAT)
    # Each update of the page applies the element's value again: what only the browser knew would be lost.
    button.on("click", lambda event: theme.set_value(_IS_DARK[event.args]), js_handler=_TURN)
