# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A policy that remembers forgets at the start of a rollout, and in every env whose episode ends."""

from types import SimpleNamespace

import torch
from umc.evaluation import rollout

ENDS = [(False, False, False), (True, False, False), (False, True, False)]
"""Envs that fall in each step; those that time out are the same, turned around."""


def test_policies_forget_at_first_and_with_each_episode(monkeypatch):
    envs, steps = 3, []

    def step(actions):
        steps.append(actions)
        fell = torch.tensor(ENDS[len(steps) - 1])
        return {}, None, fell, fell.flip(0), {}

    values = SimpleNamespace(torch=torch.zeros(envs, 3))
    data = SimpleNamespace(root_pos_w=values, root_lin_vel_b=values, root_ang_vel_b=values, joint_vel=values)
    robot = SimpleNamespace(data=data, actuators=SimpleNamespace(applied_effort=values))

    class Scene(dict):
        env_origins = torch.zeros(envs, 3)

    class Remembers:
        resets = []

        def __call__(self, obs):
            return torch.zeros(envs, 3)

        def reset(self, envs):
            self.resets.append(None if envs is None else envs.tolist())

    env = SimpleNamespace(
        num_envs=envs,
        cfg=None,
        step=step,
        step_dt=0.02,
        scene=Scene(robot=robot),
        termination_manager=SimpleNamespace(get_term=lambda name: torch.zeros(envs, dtype=torch.bool)),
        command_manager=SimpleNamespace(get_command=lambda name: torch.zeros(envs, 3)),
    )
    monkeypatch.setattr(rollout, "parts_of", lambda cfg: SimpleNamespace(non_finite="", command=""))
    monkeypatch.setattr(rollout, "height_above_ground", lambda env: torch.zeros(envs))
    policy = Remembers()
    assert len(list(rollout.step_policy(env, policy, {}, 3))) == 3
    assert policy.resets == [None, [False, False, False], [True, False, True], [False, True, False]]
