# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Policies that UMC did not train, in plain MuJoCo: one network per robot, fed as Isaac Lab feeds it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from umc.deploy.policy_runner import PolicyRunner, Vector, checked_action
from umc.rl.external_networks import load_network


@dataclass(frozen=True)
class ExternalRobotPolicy:
    """A policy that UMC did not train and its task, as every process of a rollout gets them."""

    network: Path
    activation: str
    """Between the layers of a checkpoint."""
    task: Mapping[str, Any]
    """Joints, control, starts and falls of the task, as in an exported ``policy.json``."""
    reads: Mapping[str, Any]
    """Joints, control and observations of the policy, in its own order of joints."""
    history: int = 1
    """Env steps that it sees, the oldest first."""
    by_step: bool = False
    """Whether columns are all terms of a step, then of the next, instead of all steps of a term."""


class ExternalRunner(PolicyRunner):
    """A policy that UMC did not train, for one simulated robot; see :class:`PolicyRunner`."""

    def __init__(self, policy: ExternalRobotPolicy, clamp: bool) -> None:
        self._policy = policy
        self._network = load_network(policy.network, activation=policy.activation)
        self._past: deque[list[Vector]] = deque(maxlen=policy.history)
        self.linear_velocity: Vector = np.zeros(3)
        """Velocity of the trunk in its own frame [m/s], which only a simulation knows."""
        names = [joint["name"] for joint in policy.task["joints"]]
        self._configure(policy.reads, names, clamp, None, simulated=True)
        self.reset()

    def reset(self) -> None:
        """Start an episode: no last action, no memory."""
        super().reset()
        self._past.clear()
        with torch.inference_mode():
            self._network.reset(None)

    def _infer(self, signals: Mapping[str, Vector]) -> Vector:
        signals = {**signals, "base_lin_vel": self.linear_velocity}
        now = []
        for term in self._terms:
            low, high = term.get("clip", (-np.inf, np.inf))
            now.append(self._signal(term, signals).clip(low, high) * np.asarray(term["scale"]))
        # the first observation fills the history, as in Isaac Lab
        self._past.extend([now] * (1 if self._past else self._policy.history))
        steps = list(self._past)
        columns = [part for step in steps for part in step]
        if not self._policy.by_step:
            columns = [step[number] for number in range(len(now)) for step in steps]
        given = [np.concatenate(columns), *(signals[name] for name in self._network.groups)]
        with torch.inference_mode():
            actions = self._network(*(torch.as_tensor(one, dtype=torch.float32)[None] for one in given))
        return checked_action(actions.numpy(), len(self._names))
