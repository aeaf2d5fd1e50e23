# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A policy that walks under random faults, and the detector that watches it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.envs import mdp as lab
from isaaclab.managers import EventTermCfg
from tensordict import TensorDict
from torch import Tensor

from umc.detection import Detection, Detector
from umc.detection.labels import Labeller, Labels
from umc.detection.report import mask_and_flag
from umc.faults import JointLimits
from umc.mdp.fault_terms import FAULTS_TERM, fault_term
from umc.rl.policy import RecurrentPolicy
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

    from umc.rl.policy import Policy

FAULTS: Mapping[str, float] = {
    "dead": 2.0,
    "frozen": 2.0,
    "bias": 1.0,
    "drift": 1.0,
    "noise": 1.0,
    "power_loss": 2.0,
    "locked": 2.0,
    "rom": 2.0,
    "effort": 2.0,
    "velocity": 2.0,
    "dead+rom": 1.0,
    "dead+effort": 1.0,
    "dead+velocity": 1.0,
}
"""Odds of the faults; as many episodes are healthy as all of them."""

SEVERITY: Mapping[str, Any] = {
    "rom": {"uniform": [0.05, 0.6]},
    "effort": {"fraction": {"uniform": [0.05, 0.6]}},
    "velocity": {"fraction": {"uniform": [0.02, 0.5]}},
    "bias": {"uniform": [-0.5, 0.5]},
    "drift": {"uniform": [-1.0, 1.0]},
    "noise": {"log_uniform": [0.02, 0.3]},
}
"""Severities, from hardly noticeable on."""

MOST_JOINTS = 4
"""Most faulty joints of a robot."""

LONGEST_WAIT = 0.75
"""Latest onset, as part of an episode [-]."""

SHORTEST_FAULT = 0.1
"""Shortest fault, as part of an episode [-]; the longest lasts for the rest of it."""

NEAR = 0.01
"""How close to the end of its range a joint is held by it [rad]."""

NEARLY = 0.95
"""Part of its largest speed at which a joint is held by it [-]."""

LEAST_PUSH = 0.02
"""Torque, as part of the healthy limit, below which a motor hardly pushes [-]."""

PUSH = 0.5
"""Largest change of the trunk's velocity by a push, forward and sideways [m/s]."""

PUSH_EVERY = (5.0, 10.0)
"""Time from push to push [s]."""


def add_random_faults(env_cfg: Any, seed: int, push: bool = True) -> None:
    """Let the robots of a task fail in all ways that a detector tells apart, and push them, in place."""
    term = getattr(env_cfg.events, FAULTS_TERM, None)
    if term is None:
        raise UmcError(f"{type(env_cfg).__name__} has no fault terms; give another --task")
    steps = int(env_cfg.episode_length_s / (env_cfg.sim.dt * env_cfg.decimation))
    term.params = {
        **{name: value for name, value in term.params.items() if name in ("asset_cfg", "num_joints")},
        "ratios": {"normal": sum(FAULTS.values()), **FAULTS},
        "severity": dict(SEVERITY),
        "onset_range": (1, max(int(LONGEST_WAIT * steps), 1)),
        "duration": (max(int(SHORTEST_FAULT * steps), 1), steps),
        "seed": seed,
    }
    term.params["num_joints"] = (1, min(MOST_JOINTS, term.params["num_joints"][1]))
    env_cfg.curriculum = None
    if push:
        speed = {"x": (-PUSH, PUSH), "y": (-PUSH, PUSH)}
        env_cfg.events.push = EventTermCfg(
            func=lab.push_by_setting_velocity,
            mode="interval",
            interval_range_s=PUSH_EVERY,
            params={"velocity_range": speed},
        )


@dataclass(frozen=True)
class Seen:
    """What one env step showed a detector."""

    obs: Tensor
    """What it read. Shape is (E, D)."""
    starts: Tensor
    """Envs whose episode begins with this step, bool. Shape is (E,)."""
    before: Tensor
    """What it remembered before this step. Shape is (E, J, S)."""
    detection: Detection
    """What it said."""
    labels: Labels
    """What it should have said."""
    hinders: Tensor
    """Joints whose motion their joint fault changed in the step that followed, bool. Shape is (E, J)."""
    speed: Tensor
    """Speed of the trunk over ground [m/s]. Shape is (E,)."""


class Walk:
    """A policy in a running environment, with a detector that watches it, and may tell the policy what is broken.

    Args:
        env: The environment, with the faults of :func:`add_random_faults`.
        policy: The policy.
        detector: The detector.
        any_fault: Whether the flag goes up for every joint fault (:func:`umc.detection.report.mask_and_flag`).
    """

    def __init__(self, env: ManagerBasedRLEnv, policy: Policy, detector: Detector, any_fault: bool = False) -> None:
        self.env, self.policy, self.detector = env, policy, detector
        self.any_fault = any_fault
        term = fault_term(env)
        term.prepare_limits()
        assert term.writer is not None
        self._healthy, self._robot, self._faults = term.writer.healthy, term.asset, term.state
        self._labels = Labeller(term.state, JointLimits(*(value[0] for value in vars(self._healthy).values())))
        if isinstance(policy, RecurrentPolicy):
            policy.reset(None)
        self._obs, _ = env.reset()
        self.state = detector.start(env.num_envs, env.device)
        self._starts = torch.ones(env.num_envs, dtype=torch.bool, device=env.device)
        self.detected_envs = torch.zeros(env.num_envs, dtype=torch.bool, device=env.device)
        """Envs whose mask and flag come from the detector, not from the simulator. Shape is (E,)."""

    def step(self) -> Seen:
        """Let the detector look, the policy act and the robots move on; return what the detector saw and said."""
        obs: dict[str, Any] = dict(self._obs)
        before = self.state * (~self._starts)[:, None, None]
        with torch.no_grad():
            detection = self.detector(obs["policy"], before)
        mask, flag = mask_and_flag(detection.reported, self.any_fault)
        told = self.detected_envs[:, None]
        obs["joint_mask"] = torch.where(told, mask.float(), obs["joint_mask"])
        obs["fault_flag"] = torch.where(told, flag, obs["fault_flag"])
        labels, limits, starts = self._labels(), self._faults.limits(self._healthy), self._starts
        read = obs["policy"].clone()
        actions = self.policy(TensorDict(obs, batch_size=[self.env.num_envs]))
        self._obs, _, terminated, truncated, _ = self.env.step(actions)
        self._starts = terminated | truncated
        hinders = self._hinders(limits) & (labels.joint > 0) & ~self._starts[:, None]
        seen = Seen(read, starts, before, detection, labels, hinders, self._speed())
        if isinstance(self.policy, RecurrentPolicy):
            self.policy.reset(self._starts)
        self.state = detection.state
        return seen

    def _hinders(self, limits: JointLimits) -> Tensor:
        """Return joints that are at a limit which is lower than the healthy one, and would go beyond."""
        data, healthy = self._robot.data, self._healthy
        demanded = self._robot.actuators.computed_effort.torch
        position, speed = data.joint_pos.torch, data.joint_vel.torch
        pushes = demanded.abs() > LEAST_PUSH * healthy.effort
        upper = (limits.upper < healthy.upper) & (position >= limits.upper - NEAR) & (demanded > 0.0)
        lower = (limits.lower > healthy.lower) & (position <= limits.lower + NEAR) & (demanded < 0.0)
        weak = (limits.effort < healthy.effort) & (demanded.abs() > limits.effort)
        slow = (limits.velocity < healthy.velocity) & (speed.abs() >= NEARLY * limits.velocity)
        return ((upper | lower | weak) & pushes) | slow

    def _speed(self) -> Tensor:
        return self._robot.data.root_lin_vel_b.torch[:, :2].norm(dim=1)
