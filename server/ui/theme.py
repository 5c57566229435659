"""Light and dark: the user's choice is in one cookie, the preference of the system in another."""

from __future__ import annotations

from nicegui import ui

from ..figures import ThemeName

__all__ = ["SYSTEM_THEME_SCRIPT", "theme_button", "theme_name", "use_theme"]

_CHOSEN = "pitchpipe-theme"
_SYSTEM = "pitchpipe-system-theme"
_LASTING = "path=/; max-age=31536000; SameSite=Strict"
# The server cannot see the preference of the browser's system: each page stores it for the next.
SYSTEM_THEME_SCRIPT = (
    f"document.cookie = '{_SYSTEM}=' + (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')"
    f" + '; {_LASTING}'"
)


def use_theme() -> None:
    """Show the page in the chosen theme, else in that of the system."""
    chosen = _cookie(_CHOSEN)
    ui.dark_mode({"light": False, "dark": True}.get(chosen))


def theme_name() -> ThemeName:
    """Return the theme of the figures."""
    return "dark" if (_cookie(_CHOSEN) or _cookie(_SYSTEM)) == "dark" else "light"


def theme_button() -> None:
    """Make a button that switches the page's theme and remembers it."""
    other = "light" if theme_name() == "dark" else "dark"
    script = f"() => {{ document.cookie = '{_CHOSEN}={other}; {_LASTING}'; location.reload() }}"
    button = ui.button(icon="contrast").on("click", js_handler=script).props("flat round dense color=grey")
    button.props(f'aria-label="Show in {other} colours"').tooltip(f"Show in {other} colours")


def _cookie(name: str) -> str:
    request = ui.context.client.request
    return "" if request is None else request.cookies.get(name, "")
