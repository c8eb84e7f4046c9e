"""A page as its tests read it: which elements there are, what text, whether it is well formed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "input", "link", "meta"}


@dataclass
class Read(HTMLParser):
    """A page, read; wrong nesting is an error."""

    tags: list[str] = field(default_factory=list)
    attributes: list[tuple[str, str, str]] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    raw: dict[str, list[str]] = field(default_factory=dict)
    _open: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = {name: value or "" for name, value in attrs}
        assert len(found) == len(attrs), f"an attribute twice: {attrs}"
        self.attributes += [(tag, name, value) for name, value in found.items()]
        name = found.get("id", "")
        assert name not in self.ids, name
        if name:
            self.ids[name] = ""
        if tag not in VOID:
            self._open.append((tag, name))

    def handle_endtag(self, tag: str) -> None:
        opened, _ = self._open.pop()
        assert opened == tag, f"<{opened}> ended by </{tag}>"

    def handle_data(self, data: str) -> None:
        around = self._open[-1][0] if self._open else ""
        if around in ("script", "style"):
            self.raw.setdefault(around, []).append(data)
            return
        self.texts.append(data)
        for _, name in self._open:
            if name:
                self.ids[name] += data

    @property
    def text(self) -> str:
        """All that is seen."""
        return "".join(self.texts)


def read(page: bytes) -> Read:
    """The page, whose every element ends where it should."""
    found = Read()
    found.feed(page.decode("utf-8"))
    found.close()
    assert not found._open, found._open
    return found
