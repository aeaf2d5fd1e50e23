# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the documentation site; ``docs/build.sh`` builds it, without a network and without a simulator."""

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "source" / "umc"))  # this checkout, whatever is installed

project = "UMC"
author = "The UMC Developers"
copyright = "2026, The UMC Developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]

# ---------------------------------------------------------------- pages
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# ---------------------------------------------------------------- API reference
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False, "show-inheritance": False}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
add_module_names = False
toc_object_entries_show_parents = "hide"

nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!umc\b).*"), (r"py:class", r"umc\..*\._\w+")]
"""A reference to anything of umc has to lead somewhere; those of other packages are names only (no network), and so are
private base classes."""

# ---------------------------------------------------------------- looks
html_theme = "sphinx_book_theme"
html_title = "UMC"
html_static_path = ["_static"]
html_css_files = ["umc.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "use_download_button": False,
    "use_fullscreen_button": False,
    "show_navbar_depth": 1,
    # the theme's side bar has them; an empty top bar is not drawn (umc.css)
    "navbar_start": [],
    "navbar_persistent": [],
}
html_show_sourcelink = False
html_copy_source = False
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

OUTSIDE = re.compile(r"\]\((\.\./[^)#\s]+)\)")
"""A link from a page to a file of the repository that is no page, as GitHub follows it."""


def link_files(app: Any, docname: str, source: list[str]) -> None:
    """Let such links lead to a copy of the file in the site; a missing file is a warning, so an error."""
    if "/" not in docname:  # from a folder of pages, ../ leads to a page
        source[0] = OUTSIDE.sub(r"](path:\1)", source[0])


def keep_first_line(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep napoleon from reading the words before a colon in a field's first line as its type."""
    if what in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment


def setup(app: Any) -> None:
    """Hook into the build."""
    app.connect("source-read", link_files)
    app.connect("autodoc-process-docstring", keep_first_line, priority=499)  # napoleon's is 500
