# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site is built without a warning, no link in it leads nowhere, and the errors it explains exist."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"


class Page(HTMLParser):
    """Collects what a page links to and what can be linked to in it."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.anchors = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        self.links += [attributes[name] for name in ("href", "src") if attributes.get(name)]


def dead_links(site: Path) -> list[str]:
    """Links from pages of a site to files or anchors of it that are not there."""
    files = [path for path in site.rglob("*.html") if "_static" not in path.parts]  # the theme's templates lie there
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in files}
    dead = []
    for path, page in pages.items():
        for link in set(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            there = target.is_file() and (not anchor or target not in pages or anchor in pages[target].anchors)
            if not there:
                dead.append(f"{path.relative_to(site)}: {link}")
    return sorted(dead)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "doctrees")]
    done = subprocess.run([*command, str(DOCS), str(folder / "html")], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


@pytest.mark.slow
def test_every_page_is_built_and_no_link_is_dead(site):
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md") if "_build" not in path.parts}
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert pages <= built
    assert dead_links(site) == []
    assert 'id="umc.mdp.add_faults"' in (site / "api/mdp.html").read_text()


def test_a_dead_link_would_be_found(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there"></a><a href="b.html#not"></a><img src="c.png">')
    (tmp_path / "b.html").write_text('<p id="there"></p>')
    assert dead_links(tmp_path) == ["a.html: b.html#not", "a.html: c.png"]


def test_errors_of_the_faq_are_errors_of_the_code():
    page = (DOCS / "faq.md").read_text().split("## What Isaac Lab and the engines say")[0]
    messages = re.findall(r"^### `(.*)`$", page, re.MULTILINE)
    assert len(messages) > 15
    code = "\n".join(path.read_text() for path in (REPOSITORY / "source/umc/umc").rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # messages over several lines are one
    for message in messages:
        for part in message.split("…"):
            assert part.strip("' ") in code, (message, part)
