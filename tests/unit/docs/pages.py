"""The repository's pages, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
)

_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\S*) *(?P<title>[^\n]*)\n(?P<text>.*?)^ *```$", re.M | re.S)
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced piece of a page, without its indent."""

    page: Path
    language: str
    title: str
    text: str


def blocks(page: Path) -> Iterator[Block]:
    for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        text = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.M)
        yield Block(page, found["language"], found["title"].strip(), text)


def prose(page: Path) -> str:
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    for found in _LINK.finditer(prose(page)):
        if "://" not in found["target"]:
            yield found["target"]


def anchors(page: Path) -> set[str]:
    """As GitHub makes them from headings."""
    headings = _HEADING.findall(prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def sections(page: Path) -> dict[str, str]:
    """Second-level headings with what stands under them, code included."""
    parts = re.split(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def first_column(table_in: str) -> list[str]:
    """The backticked words of a table's first column."""
    return re.findall(r"^\| `([^`]+)`", table_in, re.M)
