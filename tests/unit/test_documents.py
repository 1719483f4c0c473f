"""The documents lead where they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)[^)]*\)")
ANCHORED = re.compile(r"\]\(([^)\s#:]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def relative_links(text: str) -> list[str]:
    """Return the targets of links and pictures that lie in the repository, without their anchors."""
    targets = (target.partition("#")[0] for target in LINK.findall(FENCED.sub("", text)))
    return [target for target in targets if target and "://" not in target and not target.startswith("mailto:")]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file(document: Path) -> None:
    """Pictures count as well; addresses of others are not asked."""
    broken = [target for target in relative_links(document.read_text()) if not (document.parent / target).exists()]
    assert broken == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_into_a_page_leads_to_a_heading(document: Path) -> None:
    """As GitHub names headings: lower case, without punctuation, a dash for each space."""
    broken = []
    for path, anchor in ANCHORED.findall(FENCED.sub("", document.read_text())):
        page = document.parent / path if path else document
        headings = HEADING.findall(FENCED.sub("", page.read_text())) if page.suffix == ".md" else []
        if anchor not in {anchor_of(heading) for heading in headings}:
            broken.append(f"{path}#{anchor}")
    assert broken == []


def anchor_of(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_index_has_every_page() -> None:
    """So a page that nobody is led to is not written."""
    listed = set(relative_links((ROOT / "docs" / "README.md").read_text()))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages - {link.partition("#")[0] for link in listed} == set()


def test_links_are_found() -> None:
    """What the other test looks at: no address, no anchor, nothing inside code."""
    text = "[a](docs/a.md#b) ![p](img/p.png) [w](https://x.example) [c](#c)\n```\n[no](no.md)\n```\n"
    assert relative_links(text) == ["docs/a.md", "img/p.png"]
