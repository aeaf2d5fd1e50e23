# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A policy that walks under random faults, and the detector that watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from tensordict import TensorDict
from torch import Tensor

from umc.detection import Detection, Detector, mask_and_flag
from umc.detection.labels import Labeller, Labels
from umc.diagnosis.effects import limits_act, still_shown
from umc.faults.detection import class_columns
from umc.mdp.detection import reported_joints
from umc.mdp.fault_terms import fault_term

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.rl.policy import Policy


@dataclass(frozen=True)
class RolloutStep:
    """What one env step showed a detector."""

    obs: Tensor
    """What it read. Shape is (E, D)."""
    starts: Tensor
    """Envs whose episode begins with this step, bool. Shape is (E,)."""
    before: Tensor
    """What it remembered before this step. Shape is (E, J, S)."""
    detection: Detection
    """What it predicted."""
    labels: Labels
    """What it should have predicted."""
    shown: Tensor
    """Joints whose motion their joint fault has changed before this step, bool. Shape is (E, J)."""
    hinders: Tensor
    """Joints whose motion their joint fault changed in the step that followed, bool. Shape is (E, J)."""
    speed: Tensor
    """Speed of the trunk over ground [m/s]. Shape is (E,)."""


class Rollout:
    """A policy in a running environment, with a detector that watches it, whose report may replace the simulator's."""

    def __init__(self, env: ManagerBasedRLEnv, policy: Policy, detector: Detector) -> None:
        self.env, self.policy, self.detector = env, policy, detector
        term = fault_term(env)
        term.prepare_limits()
        assert term.writer is not None
        self._healthy, self._robot, self._faults = term.writer.healthy, term.asset, term.state
        self.labeller = Labeller(term.state, term.writer.nominal)
        policy.reset(None)
        self._obs, _ = env.reset()
        self.state = detector.start(env.num_envs, env.device)
        self._starts = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        self._shown = torch.zeros(env.num_envs, len(term.state.joint_names), dtype=torch.bool, device=env.device)
        self._label = self._shown.long()
        self.detected_envs = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        """Envs whose mask, flag and fault class come from the detector, not the simulator. Shape is (E,)."""

    def step(self) -> RolloutStep:
        """Let the detector look, the policy act and the robots move on; return what the detector read and predicted."""
        obs: dict[str, Any] = dict(self._obs)
        before = self.state * (~self._starts)[:, None, None]
        with torch.no_grad():
            detection = self.detector(obs["policy"], before)
        mask, flag = mask_and_flag(detection.reported)
        by_detector = self.detected_envs[:, None]
        obs["joint_mask"] = torch.where(by_detector, mask.float(), obs["joint_mask"])
        obs["fault_flag"] = torch.where(by_detector, flag, obs["fault_flag"])
        if "fault_class" in obs:
            found = class_columns(*reported_joints(detection))
            obs["fault_class"] = torch.where(by_detector, found, obs["fault_class"])
        labels, limits, starts = self.labeller(), self._faults.limits(self._healthy), self._starts
        shown = still_shown(self._shown, self._label, labels.joint, starts)
        read = obs["policy"].clone()
        actions = self.policy(TensorDict(obs, batch_size=[self.env.num_envs]))
        self._obs, _, terminated, truncated, _ = self.env.step(actions)
        self._starts = terminated | truncated
        data, demanded = self._robot.data, self._robot.actuators.computed_effort.torch
        acts = limits_act(limits, self._healthy, data.joint_pos.torch, data.joint_vel.torch, demanded)
        hinders = (acts & (labels.joint > 0)) | (labels.joint > self.labeller.limiting)
        hinders &= ~self._starts[:, None]
        self._shown, self._label = shown | hinders, labels.joint
        speed = data.root_lin_vel_b.torch[:, :2].norm(dim=1)
        step = RolloutStep(read, starts, before, detection, labels, shown, hinders, speed)
        self.policy.reset(self._starts)
        self.state = detection.state
        return step
