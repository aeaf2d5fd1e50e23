# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every test has a folder of its own to train in; `fake_umc` stands in for the command umc."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FAKE = str(Path(__file__).parents[1] / "support" / "fake_umc.py")


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def fake_umc(monkeypatch) -> list[str]:
    """Trainings of recipes and sweeps are `fake_umc.py`; return the command that starts one as another process."""
    monkeypatch.setattr("umc.utils.process.UMC", (FAKE,))
    monkeypatch.setattr(
        "umc.training.recipe_runner.check_recipe", lambda *_, **__: None
    )  # is tested in test_recipes.py
    monkeypatch.setattr("umc.training.sweep.check_trainings", lambda _: None)  # in tests/cli/bad_command_lines.txt
    return [sys.executable, FAKE, "train"]
