# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Puts the fakes of this folder, and the extension, where tests can import them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


@pytest.fixture
def extension_folder() -> Path:
    """Folder of the Kit extension."""
    return HERE.parents[1] / "exts" / "umc"
