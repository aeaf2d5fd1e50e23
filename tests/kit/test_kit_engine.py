# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The extension on a running task: a click breaks a joint of the simulated robot and colors its link on the stage."""

from __future__ import annotations

from pathlib import Path

import pytest
from umc.rendering.colors import FAULT_COLOR

pytestmark = pytest.mark.engine

ENV, OTHER = 1, 0
KNEE = "FL_calf_joint"
WEAK = 4.0
"""Torque that is left [N*m]."""


def two_a1(physics: str):
    """Two healthy A1 that no fall resets."""
    import torch
    import umc.tasks  # noqa: F401
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import resolve_presets
    from umc.tasks.a1 import A1Stage1EnvCfg
    from umc.terrains import FLAT_GROUND_CFG

    torch.set_num_threads(1)
    cfg = resolve_presets(A1Stage1EnvCfg(), [physics, "flat"])
    cfg.scene.terrain = FLAT_GROUND_CFG
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = 2, "cpu", 3
    for name in vars(cfg.terminations):
        if name != "time_out":
            setattr(cfg.terminations, name, None)
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    return env


def click(physics: str, tests: str, extension: str) -> dict:
    """Do what a user does in Isaac Sim, on the stand-ins of Kit, and return what was seen."""
    import sys

    env = two_a1(physics)
    sys.path[:0] = [tests, extension]
    import torch
    from fake_kit import FakeKit
    from isaaclab import cloner
    from pxr import UsdGeom
    from umc import mdp

    stage = env.scene.stage
    # Isaac Lab itself does so under Kit; without it, it leaves copies of env 0 to the engine
    cloner.usd_replicate(stage, [env.scene.env_prim_paths[0]], ["/World/envs/env_{}"], [1])
    kit = FakeKit({"/exts/umc/refresh_period": 0.0, "/exts/umc/color_links": True}, stage)
    kit.install(dict.__setitem__)
    from umc_kit import UmcExtension

    def step(action: float = 0.0) -> None:
        env.step(torch.full((2, env.action_manager.total_action_dim), action))
        kit.update()

    def colors() -> list[list[float]]:
        shapes = [stage.GetPrimAtPath(f"{one}/Robot/FL_calf/visual_0") for one in env.scene.env_prim_paths]
        return [list(UsdGeom.Gprim(shape).GetDisplayColorAttr().Get()[0]) for shape in shapes]

    def line() -> list[str]:
        labels = [label.text for label in kit.find("Label")]
        start = labels.index(KNEE)
        return labels[start : start + 5]

    untouched = stage.Flatten().ExportToString()
    faults = UmcExtension()
    faults.on_startup("umc-0.1.0")
    step()
    seen = {"title": kit.find("Label")[0].text, "healthy": [line(), colors()]}
    kit.find("IntField")[0].model.type(1)
    combo = kit.find("ComboBox")[0]
    combo.model.choose(combo.arguments.index("effort") - 1)
    kit.find("StringField")[0].model.type("4")
    joints = mdp.fault_state(env).joint_names
    kit.find("Button", "break")[joints.index("FL_calf_joint")].click()
    step()
    seen["broken"] = [line(), colors(), mdp.fault_state(env).has_joint_fault.sum(dim=1).tolist()]
    robot = env.scene["robot"]
    knee, strongest = robot.joint_names.index("FL_calf_joint"), torch.zeros(2)
    for number in range(6):
        step(2.0 * (-1.0) ** number)
        strongest = torch.maximum(strongest, robot.actuators.applied_effort.torch[:, knee].abs())
    seen["torque"] = strongest.tolist()
    kit.find("Button", "heal")[joints.index("FL_calf_joint")].click()
    step()
    seen["healed"] = [line(), colors()]
    kit.find("Button", "break")[joints.index("FL_calf_joint")].click()
    step()
    faults.on_shutdown()
    step()
    seen["as it was"] = stage.Flatten().ExportToString() == untouched
    env.close()
    seen["closed"] = mdp.newest_fault_injector() is None
    return seen


def test_a_click_breaks_a_joint_of_the_running_robot(run_engine, extension_folder):
    seen = run_engine(click, "ovphysx", tests=str(Path(__file__).resolve().parent), extension=str(extension_folder))
    assert seen["title"] == "A1Stage1EnvCfg"
    line, plain = seen["healthy"]
    assert line == [KNEE, "", "", "", ""]
    line, colors, broken = seen["broken"]
    assert line[:4] == [KNEE, "effort", "4 N*m", "no"]
    assert line[4].endswith(" s")
    assert colors[ENV] == pytest.approx(FAULT_COLOR)
    assert colors[OTHER] == plain[OTHER]
    assert broken[OTHER] == 0
    assert broken[ENV] == 1
    assert seen["torque"][ENV] <= WEAK + 1e-4
    assert seen["torque"][OTHER] > 2.0 * WEAK
    assert seen["healed"] == [[KNEE, "", "", "", ""], plain]
    assert seen["as it was"]
    assert seen["closed"]
