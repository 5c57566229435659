"""What a browser would find in a page."""

from collections.abc import Iterator
from html.parser import HTMLParser

# Elements whose content is no text of the page.
SCRIPTS = ("script", "style")


class Page(HTMLParser):
    """The elements of a page with their attributes, and its texts without those of scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._inside: list[str] = []
        self.feed(html)
        self.close()
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in SCRIPTS:
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.texts.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    def dangers(self) -> Iterator[str]:
        """Yield what a text of a user would have made, had it been markup."""
        for tag, attributes in self.elements:
            for name, value in attributes.items():
                if name.startswith(("on", ":", "@", "v-")):
                    yield f"{tag} has {name}"
                if name in ("href", "src") and "javascript:" in (value or ""):
                    yield f"{tag} leads to {value}"
            if tag in ("b", "br", "iframe", "img"):
                yield f"{tag} of a user"
