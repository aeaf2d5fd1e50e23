# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Every block of Python in docs/faults.md runs, and does what the page says."""

import inspect
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fault_env import events_with
from isaaclab.managers import CurriculumTermCfg
from isaaclab_tasks.core.velocity.config.go2.flat_env_cfg import UnitreeGo2FlatEnvCfg
from umc import mdp
from umc.faults import FaultSchedule, FaultState
from umc.faults.apply import SensorChannel
from umc.faults.kinds import KINDS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "faults.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def run(marker: str) -> dict:
    """Runs the one block that holds a text, on a stock task."""
    (block,) = [block for block in BLOCKS if marker in block]
    names = {"mdp": mdp, "cfg": UnitreeGo2FlatEnvCfg(), "CurriculumTermCfg": CurriculumTermCfg}
    exec(compile(block, "docs/faults.md", "exec"), names)
    return names


@pytest.fixture
def no_new_kinds():
    before = dict(KINDS)
    yield
    KINDS.clear()
    KINDS.update(before)


def test_the_blocks_make_tasks():
    assert run("num_joints=(1, 3)")["cfg"].events.faults.params["num_joints"] == (1, 3)
    cfg = run('scenarios={"stiff"')["cfg"]  # all parameters
    assert cfg.events.faults.params["asset_cfg"].joint_names == [".*_calf_joint", ".*_thigh_joint"]
    assert list(vars(cfg.actions))[-1] == "command_faults"
    groups = run("joint_groups")["cfg"].events.faults.params["joint_groups"]
    assert groups == {leg: [f"{leg}_.*"] for leg in ("FL", "FR", "RL", "RR")}
    schedule = FaultSchedule(["hip", "knee"], severity={"rom": 0.3, "effort": 5.0, "velocity": 3.0}, num_joints=(1, 2))
    env = SimpleNamespace(event_manager=events_with(SimpleNamespace(schedule=schedule)))
    mdp.fault_curriculum(run("fault_curriculum")["cfg"].curriculum.faults, env)


@pytest.mark.usefixtures("no_new_kinds")
def test_the_kind_of_the_page_is_drawn_and_read():
    run("class Backwards")
    schedule = FaultSchedule(["hip", "knee"], scenario="backwards", num_joints=(1, 1), onset=3, seed=5)
    state = FaultState(schedule, 4)
    state.reset(torch.arange(4))
    signal = torch.arange(1.0, 9.0).view(4, 2)
    for step in (1, 2, 3):
        state.advance(torch.full((4,), step), signal)
        live = state.live_fault("backwards")
        assert live.on.sum(1).tolist() == [step == 3] * 4
    for quantity, sign in (("position", -1.0), ("velocity", -1.0), ("action", 1.0)):
        read = SensorChannel(quantity, 0.02).read(state, signal)
        assert torch.equal(read, torch.where(live.on, sign * signal, signal))


def test_every_kind_and_parameter_is_on_the_page():
    for kind in KINDS:
        assert f"`{kind}`" in PAGE
    for parameter in list(inspect.signature(mdp.joint_faults.__call__).parameters)[3:]:
        assert parameter == "asset_cfg" or re.search(rf"\b{parameter}\b", PAGE), parameter
