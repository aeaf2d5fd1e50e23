# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The panel as data and commands, on an injector of its own; its window is in test_extension.py."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
from fake_injector import FakeInjector
from umc.kit.panel import FaultPanel, color_of, find_env, task_name
from umc.mdp import events
from umc.rendering.colors import COMMAND_COLOR, FAULT_COLOR, SENSOR_COLOR
from umc.utils.errors import UmcError


@pytest.fixture
def env() -> SimpleNamespace:
    return SimpleNamespace(spec=SimpleNamespace(id="UMC-A1-Stage2"), injector=FakeInjector())


@pytest.fixture
def panel(env) -> FaultPanel:
    panel = FaultPanel(find=lambda: env, make_injector=lambda one: one.injector)
    panel.refresh()
    return panel


@pytest.mark.parametrize(
    ("joint", "severity", "words"),
    [
        ("hip", "nan", "severity 'nan' is not a number; leave it empty"),
        ("hip", "1e400", "severity '1e400' is not a number"),
        ("wing", "", "no joint 'wing'"),  # an error of the injector
    ],
)
def test_mistakes_become_a_message_until_the_next_command(panel, env, joint, severity, words):
    panel.inject(joint, severity)
    assert panel.is_error
    assert words in panel.message
    assert not env.injector.faults[0]
    panel.inject("hip")
    assert not panel.is_error


def test_the_panel_waits_for_a_task_and_drops_a_closed_one(env):
    found: list[SimpleNamespace] = []
    panel = FaultPanel(find=lambda: found[0] if found else None, make_injector=lambda one: one.injector)
    panel.refresh()
    assert (panel.title, panel.rows, panel.kinds, panel.num_envs) == ("no task with UMC's faults is running", [], (), 0)
    panel.inject("hip")
    assert panel.is_error
    panel.select_env(7)
    found.append(env)
    panel.refresh()
    panel.select_env(3)
    assert (panel.title, panel.env_id, panel.kind) == ("UMC-A1-Stage2", 3, "dead")
    found[0] = SimpleNamespace(spec=None, cfg=object(), injector=FakeInjector(num_envs=2))
    panel.refresh()
    assert (panel.title, panel.env_id) == ("object", 1)
    found.clear()
    panel.refresh()
    assert (panel.env, panel.rows) == (None, [])


def test_a_board_that_cannot_be_made_is_reported_once(env):
    tries = []

    def refuse(one):
        tries.append(one)
        raise UmcError("its joints cannot be limited")

    panel = FaultPanel(find=lambda: env, make_injector=refuse)
    panel.refresh()
    panel.refresh()
    assert len(tries) == 1
    assert (panel.is_error, panel.message) == (True, "its joints cannot be limited")


def test_the_worst_kind_gives_the_color():
    assert [color_of(kinds) for kinds in ((), ("dropped",), ("dropped", "bias"), ("dead", "rom"))] == [
        *(None, COMMAND_COLOR, SENSOR_COLOR, FAULT_COLOR)
    ]


def test_a_fault_of_the_imu_colors_its_row_and_no_link(panel, env):
    env.injector.inject(0, "hip", "imu_bias", 0.2)
    env.injector.inject(0, "knee", "imu_bias", 0.2)
    env.injector.inject(0, "knee", "dropped")
    panel.refresh()
    assert {row.joint: row.color for row in panel.rows} == {"hip": SENSOR_COLOR, "knee": SENSOR_COLOR}
    assert panel.link_colors == {"shin": COMMAND_COLOR}


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
    code = f"import sys, umc.kit.panel; umc.kit.panel.find_env(); sys.exit({check})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
