# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a rollout remembers of its faults."""

import pytest
import torch
from umc.detection import Detector
from umc.diagnosis.effects import still_shown
from umc.diagnosis.rollout import Rollout
from umc.rl.agents import AGENTS
from umc.tasks.task_cfg import resolve_cfgs


def test_a_fault_has_shown_itself_from_its_first_effect_to_its_end():
    label, other, starts = torch.tensor([[4], [4]]), torch.tensor([[5], [4]]), torch.tensor([False, False])
    shown = still_shown(torch.zeros(2, 1, dtype=torch.bool), torch.zeros(2, 1), label, starts)
    assert not shown.any()
    shown = still_shown(shown | torch.tensor([[True], [False]]), label, label, starts)
    assert shown.tolist() == [[True], [False]]
    shown = still_shown(shown, label, label, starts)
    assert shown.tolist() == [[True], [False]]  # it need not do so in every step
    shown = still_shown(shown, label, other, starts)
    assert not shown.any()  # another fault
    shown = still_shown(torch.tensor([[True], [True]]), other, other, torch.tensor([True, False]))
    assert shown.tolist() == [[False], [True]]


def classes_read(physics):
    """Classes of the fault that MT-FTC reads in 8 healthy robots; a detector that reports everything watches half."""
    from isaaclab.envs import ManagerBasedRLEnv
    from umc.mdp.observations import joint_layout

    tokens = [*AGENTS["mt_ftc"].tokens(2), f"physics={physics}", "env.events.faults.params.scenario=normal"]
    cfg, _ = resolve_cfgs("UMC-Solo8-Stage2", None, tokens)
    cfg.scene.num_envs, cfg.sim.device = 8, "cpu"
    env = ManagerBasedRLEnv(cfg)
    detector, read = Detector(joint_layout(env)), []
    detector.thresholds[:] = torch.tensor([0.0, 0.0, 1.0])

    def policy(obs):
        read.append(obs["fault_class"].argmax(dim=1).tolist())
        return torch.zeros(8, 8)

    policy.reset = lambda envs: None
    rollout = Rollout(env, policy, detector)
    rollout.detected_envs[:4] = True
    for _ in range(3):
        rollout.step()
    return read


@pytest.mark.engine
def test_the_class_of_the_fault_comes_from_the_detector_where_mask_and_flag_do(run_engine):
    steps = run_engine(classes_read, physics="ovphysx")
    assert len(steps) == 3
    for classes in steps:
        assert min(classes[:4]) > 0
        assert classes[4:] == [0] * 4
