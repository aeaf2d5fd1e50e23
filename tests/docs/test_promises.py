# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every promise of docs/promises.md names the tests that hold it."""

from __future__ import annotations

import re
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def test_every_promise_names_tests_that_exist():
    page = (REPOSITORY / "docs/promises.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 15
    for row in rows:
        file, named = "", re.findall(r"`([\w/.]*)::(\w+)`", row)
        assert named, f"no test holds: {row}"
        for path, test in named:
            file = path or file
            assert f"def {test}(" in (REPOSITORY / file).read_text(), f"{file} has no {test}"
