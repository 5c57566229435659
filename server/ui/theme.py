"""Light and dark: the browser knows the system's theme; a cookie keeps what the user chose instead."""

from __future__ import annotations

import json

from nicegui import ui

from ..figures import template_layout

__all__ = ["figure_themes_script", "theme_button", "use_theme"]

_CHOSEN = "pitchpipe-theme"
# Takes effect at once; the page is not loaded again, so nothing that was typed is lost.
_TURN = f"""() => {{
  const theme = document.body.classList.contains("body--dark") ? "light" : "dark";
  document.cookie = `{_CHOSEN}=${{theme}}; path=/; max-age=31536000; SameSite=Strict`;
  setDark(theme === "dark");
}}"""
_WHAT = "Switch between light and dark colours"


def use_theme() -> None:
    """Show the page in the chosen theme, else in that of the system."""
    request = ui.context.client.request
    chosen = "" if request is None else request.cookies.get(_CHOSEN, "")
    ui.dark_mode({"light": False, "dark": True}.get(chosen))


def figure_themes_script() -> str:
    """Return the script with the templates of the figures: they are drawn in the browser, in the theme it shows."""
    templates = {name: {"layout": template_layout(name)} for name in ("light", "dark")}
    return f"pitchpipe.templates = {json.dumps(templates)}"


def theme_button() -> None:
    """Make a button that switches the page's theme and remembers it."""
    button = ui.button(icon="contrast").on("click", js_handler=_TURN).props("flat round dense color=grey")
    button.props(f'aria-label="{_WHAT}"').tooltip(_WHAT)
