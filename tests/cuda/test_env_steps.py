# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What runs in each env step and at each reset leaves the host free and its tensors on the GPU."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fake_cuda import CUDA, fake_cuda
from fake_scene import BASE_DOFS, task_cfg
from isaaclab.managers import CurriculumTermCfg, ManagerTermBaseCfg
from umc import mdp
from umc.detection import Detector, DetectorCfg, DetectorFile, write_detector
from umc.faults.plan import FaultPlan
from umc.mdp import observations, rewards, terminations
from umc.mdp.curricula import failure_sampling, fault_curriculum
from umc.mdp.fault_log import LOG_EVERY
from umc.models import JointLayout
from umc.terrains.track_importer import TrackImporter

ROBOTS = ("A1", "Go2", "H1", "G1", "Solo8")
MAY_WAIT = {
    "mdp/fault_log.py FaultLog.entry": "one read in LOG_EVERY env steps",
    "faults/schedule.py FaultSchedule._set_odds": "where a curriculum changes the odds",
}
KINDS = ("rom", "effort", "velocity", "locked", "power_loss", "dead", "frozen", "bias", "drift", "noise", "dropped")
KINDS += ("delayed", "braking", "friction", "derating", "burst_loss", "growing_delay", "backlash")
SEVERITY = {
    "rom": {"uniform": [0.2, 0.4]},
    "effort": {"fraction": {"choice": [0.2, 0.4]}},
    "velocity": {"log_uniform": [2.0, 4.0]},
    **dict.fromkeys(("bias", "drift", "noise"), 0.1),
    "dropped": 0.5,
    "delayed": {"choice": [1, 3, 10]},
    "braking": 0.5,
    "friction": 1.0,
    "derating": {"fraction": 0.5},
    "burst_loss": 5.0,
    "growing_delay": 0.1,
    "backlash": 0.1,
}


def all_faults(cfg):
    """Every kind, several faults of an episode, and all that they may depend on."""
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    cfg.events.faults.params |= {
        "ratios": {"+".join(KINDS): 1.0, "normal": 1.0},
        "severity": SEVERITY,
        "num_faults": (1, 3),
        "onset_range": (1, 20),
        "duration": (5, 10),
        "period": (3, 4),
    }
    cfg.events.faults.params.pop("onset", None)
    cfg.observations.live_faults = mdp.LiveFaultsCfg()


def unsure(cfg):
    """A detector that errs."""
    cfg.detection = mdp.DetectionCfg(source="corrupted_oracle", delay=3, missed=0.2, false_alarms=5.0)


def unseen(cfg):
    """No detector."""
    cfg.detection = mdp.DetectionCfg(source="none")


def watched_by(path):
    """A detector in the loop."""

    def change(cfg):
        cfg.detection = mdp.DetectionCfg(source="detector", file=str(path))

    return change


def curriculum(cfg):
    """Odds and severity change with every step."""
    stages = [(LOG_EVERY + step, (1.0, 1.0, 1.0, step)) for step in range(10)]
    params = {"stages": stages, "level_ramp": (0, 100)}
    cfg.curriculum = SimpleNamespace(faults=CurriculumTermCfg(func=fault_curriculum, params=params))


def sampled(cfg):
    """Odds follow the falls in every step."""
    term = CurriculumTermCfg(func=failure_sampling, params={"interval": 1})
    cfg.curriculum = SimpleNamespace(faults=term)


@pytest.fixture
def walk(make_env):
    """Take steps in which episodes end, and return env and what stands in for Warp; then knows a step's operators."""

    def walk(cfg, steps=2):
        with fake_cuda(MAY_WAIT) as gpu:
            env, warp = make_env(gpu, cfg)
            actions = torch.zeros(env.num_envs, env.action_manager.total_action_dim, device=CUDA)
            env.step(actions)  # what is allocated once
            env.common_step_counter += LOG_EVERY
            warp.launches.clear()
            ids = torch.zeros(2, dtype=torch.int32, device=CUDA)
            with gpu.watched():
                for _ in range(steps):
                    env.step(actions)
                    env.reset(ids)
        walk.operators = gpu.operators / steps
        return env, warp

    return walk


@pytest.mark.parametrize("robot", ROBOTS)
def test_terms_of_a_task(robot, walk):
    walk(task_cfg(robot))


def test_faults_are_switched_once_in_an_env_step(walk, monkeypatch):
    calls = []
    monkeypatch.setattr(FaultPlan, "is_on", lambda self, step: calls.append(1) or self.onset == step[:, None])
    walk(task_cfg("A1", all_faults), steps=5)
    assert len(calls) == 2 + 5  # the first two: terms are measured, and what is allocated once


@pytest.mark.parametrize(("change", "most"), [(lambda cfg: None, 560), (all_faults, 1260)], ids=["task", "all faults"])
def test_a_step_with_resets_takes_few_operators(change, most, walk):
    """Each takes the host as long as a small kernel takes the GPU, which waits for it (docs/benchmarks.md)."""
    walk(task_cfg("A1", change))
    assert walk.operators <= most


@pytest.mark.parametrize("change", [unsure, unseen, curriculum, sampled])
def test_terms_of_faults(change, walk):
    walk(task_cfg("A1", change))


@pytest.mark.parametrize("change", [all_faults, unsure, unseen])
def test_terms_of_mt_ftc(change, walk):
    env, _ = walk(task_cfg("Solo8", change, "mt_ftc"))
    assert env.obs_buf["fault_class"].device.type == "cuda"


def test_a_detector_in_the_loop(walk, tmp_path):
    cfg = task_cfg("A1")
    names = list(cfg.scene.robot.joint_ordering)
    # torch's fused cell of a GRU has no fake form
    detector = Detector(JointLayout.term_major(names, 12 + 3 * len(names), 12), DetectorCfg(network="tcn"))
    write_detector(tmp_path / "detector.pt", DetectorFile(detector, "a1"))
    env, _ = walk(task_cfg("A1", watched_by(tmp_path / "detector.pt")))
    assert mdp.joint_mask(env).device.type == "cuda"


def test_terms_of_all_faults_and_their_launches_of_kernels(walk):
    """Types and shapes of the launches are those of the kernels."""
    env, warp = walk(task_cfg("A1", all_faults))
    envs, joints = env.num_envs, env.scene["robot"].num_joints
    dofs, solver = (envs * (BASE_DOFS + joints),), (envs, joints + 1)
    common = {"dim": solver, "slot": dofs, "newton_dof": solver, "envs": (envs,)}
    assert dict(warp.launches) == {
        "write_position_limits": {
            **common,
            **dict.fromkeys(("faulty", "lower", "upper"), (envs, joints)),
            **dict.fromkeys(("model_lower", "model_upper", "bound_lower", "bound_upper"), dofs),
            "joint_range": (*solver, 2),
        },
        "write_effort_limits": {
            **common,
            "effort": (envs, joints),
            "model_effort": dofs,
            "joint_force_range": (*solver, 2),
        },
        "write_passive": {
            **common,
            **dict.fromkeys(("dim", "newton_dof", "friction"), (envs, BASE_DOFS + joints)),
            "faulty": (envs, joints),
            "values": (envs, joints, 3),
            "timestep": (envs,),
            **dict.fromkeys(("healthy_reference", "reference"), (envs, BASE_DOFS + joints, 2)),
            **dict.fromkeys(("healthy_impedance", "impedance"), (envs, BASE_DOFS + joints, 5)),
            **dict.fromkeys(("healthy_damping", "damping", "model_friction"), dofs),
        },
    }


def terms_in(cfg: Any) -> Iterator[str]:
    """Names of the functions and classes of a cfg's terms."""
    for value in vars(cfg).values():
        if isinstance(value, ManagerTermBaseCfg):
            yield value.func.__name__
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            yield from terms_in(value)


def test_the_tasks_have_every_term_of_ours():
    walked = {"live_faults", "gait_phase", "foot_contact", "height_above_ground"}  # all_faults; called by others
    walked |= {"joint_layout", "entries", "group_terms", "without_sensor"}  # once, before an env steps
    walked |= {"imu_sensor"}  # no task has it
    for cfg in (*(task_cfg(robot) for robot in ROBOTS), task_cfg("Solo8", lambda _: None, "mt_ftc")):
        walked.update(*(terms_in(getattr(cfg, part)) for part in ("observations", "rewards", "terminations")))
    for module in (observations, rewards, terminations):
        ours = {
            name for name, value in inspect.getmembers(module) if getattr(value, "__module__", "") == module.__name__
        }
        assert {name for name in ours if not name.startswith("_")} <= walked


def test_height_of_tracks():
    with fake_cuda() as gpu:
        tracks = object.__new__(TrackImporter)
        tracks._ground, tracks._corner, tracks._step = torch.zeros(30, 40, device=CUDA), (-1.0, -2.0), 0.1
        position = torch.zeros(4, 3, device=CUDA)
        with gpu.watched():
            tracks.height_at(position)
