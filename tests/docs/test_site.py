# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The documentation site builds without a warning, dead links included, and the errors it explains exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "-d",
        str(tmp_path / "doctrees"),
    ]
    done = subprocess.run([*command, str(DOCS), str(tmp_path / "html")], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md") if "_build" not in path.parts}
    assert pages <= {path.relative_to(tmp_path / "html").with_suffix("") for path in tmp_path.rglob("*.html")}
    assert 'id="umc.mdp.add_faults"' in (tmp_path / "html/api/mdp.html").read_text()


def test_errors_of_the_faq_are_errors_of_the_code():
    page = (DOCS / "faq.md").read_text().split("## What Isaac Lab and the engines say")[0]
    messages = re.findall(r"^### `(.*)`$", page, re.MULTILINE)
    assert len(messages) > 15
    code = "\n".join(path.read_text() for path in (REPOSITORY / "source/umc/umc").rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # messages over several lines are one
    for message in messages:
        for part in message.split("…"):
            assert part.strip("' ") in code, (message, part)
