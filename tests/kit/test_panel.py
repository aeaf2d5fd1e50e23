# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The panel as data and commands, on a board of its own."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from fake_board import FakeBoard
from umc.kit import COMMAND_COLOR, FAULT_COLOR, SENSOR_COLOR, FaultPanel, packed
from umc.kit.colors import color_of
from umc.kit.panel import find_env, task_name
from umc.mdp import events


@pytest.fixture
def env() -> SimpleNamespace:
    return SimpleNamespace(spec=SimpleNamespace(id="UMC-A1-Stage2"), board=FakeBoard())


@pytest.fixture
def panel(env) -> FaultPanel:
    panel = FaultPanel(find=lambda: env, make_board=lambda one: one.board)
    panel.refresh()
    return panel


def test_shows_the_task_and_a_line_per_joint(panel):
    assert panel.title == "UMC-A1-Stage2"
    assert [row.joint for row in panel.rows] == list(panel.joints)
    assert all(row.cells[1:] == ("", "", "", "") and row.color is None for row in panel.rows)
    assert panel.link_colors == {}


def test_a_fault_is_seen_in_its_line_and_on_its_link(panel):
    panel.select_kind(panel.kinds.index("rom"))
    panel.inject("knee", " 0.25 ")
    assert "knee gets 'rom'" in panel.message
    panel.refresh()
    (row,) = [row for row in panel.rows if row.color]
    assert row.cells == ("knee", "rom", "0.25", "no", "1.50 s")
    assert panel.link_colors == {"shin": FAULT_COLOR}
    panel.color_links = False
    assert panel.link_colors == {}
    panel.clear("knee")
    panel.refresh()
    assert not any(row.color for row in panel.rows)


def test_commands_concern_the_selected_env(panel, env):
    panel.select_env(2)
    panel.inject("hip")
    assert [bool(row.color) for row in panel.rows] == [False, False]
    panel.refresh()
    assert [bool(row.color) for row in panel.rows] == [True, False]
    panel.select_env(0)
    assert not any(row.color for row in panel.rows)
    panel.clear()
    assert env.board.faults[2]
    for number, shown in ((-3, 0), (1, 1), (99, 3)):  # numbers past the ends mean the last env there
        panel.select_env(number)
        assert panel.env_id == shown
    panel.select_env(2)
    panel.clear()
    assert not env.board.faults[2]


@pytest.mark.parametrize("text", ["much", "nan", "inf", "1e400"])
def test_a_severity_that_is_no_number_and_an_unknown_joint_are_refused(panel, env, text):
    panel.inject("hip", text)
    assert panel.is_error
    assert f"severity '{text}' is not a number; leave it empty" in panel.message
    assert not env.board.faults[0]
    panel.inject("wing")  # an error of the board
    assert panel.is_error
    assert "no joint 'wing'" in panel.message
    panel.inject("hip")
    assert not panel.is_error


def test_waits_for_a_task_and_lets_go_of_a_closed_one(env):
    found: list[SimpleNamespace] = []
    panel = FaultPanel(find=lambda: found[0] if found else None, make_board=lambda one: one.board)
    panel.refresh()
    assert (panel.title, panel.rows, panel.kinds, panel.num_envs) == ("no task with UMC's faults is running", [], (), 0)
    panel.inject("hip")
    assert panel.is_error
    panel.clear()
    panel.select_env(7)
    found.append(env)
    panel.refresh()
    panel.select_env(3)
    assert (panel.title, panel.env_id, panel.kind) == ("UMC-A1-Stage2", 3, "dead")
    found[0] = SimpleNamespace(spec=None, cfg=object(), board=FakeBoard(num_envs=2))
    panel.refresh()
    assert (panel.title, panel.env_id) == ("object", 1)
    found.clear()
    panel.refresh()
    assert (panel.env, panel.rows) == (None, [])


def test_a_board_that_cannot_be_made_is_reported_once(env):
    tries = []

    def refuse(one):
        tries.append(one)
        return FakeBoard(refuses="its joints cannot be limited")

    panel = FaultPanel(find=lambda: env, make_board=refuse)
    panel.refresh()
    panel.refresh()
    assert len(tries) == 1
    assert panel.is_error
    assert panel.message == "its joints cannot be limited"


@pytest.mark.parametrize(
    ("kinds", "color"),
    [
        ((), None),
        (("dead",), SENSOR_COLOR),
        (("dead", "rom"), FAULT_COLOR),
        (("dropped",), COMMAND_COLOR),
        (("dropped", "bias"), SENSOR_COLOR),
    ],
)
def test_the_worst_kind_gives_the_color(kinds, color):
    assert color_of(kinds) == color
    assert packed((1.0, 0.0, 0.2), alpha=1.0) == 0xFF3300FF  # alpha, blue, green, red


def test_finds_the_newest_env_only_while_it_is_ready(monkeypatch):
    env = SimpleNamespace(_is_closed=False)
    monkeypatch.setattr(events, "newest_env", lambda: env)
    assert find_env() is None  # still being made
    env.curriculum_manager = object()
    assert find_env() is env
    monkeypatch.setattr(events, "newest_env", lambda: None)
    assert find_env() is None
    assert task_name(SimpleNamespace(spec=None, cfg=env)) == "SimpleNamespace"


def test_loads_neither_isaac_lab_nor_torch():
    check = "any(name in sys.modules for name in ('isaaclab', 'torch', 'omni'))"
    code = f"import sys, umc.kit; umc.kit.find_env(); sys.exit({check})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
