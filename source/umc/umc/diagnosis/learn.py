# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How a detector learns: from stretches of rollouts; its temperature and thresholds from new rollouts."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from umc.detection import Detector
from umc.detection.labels import severity_of
from umc.detection.network import JOINT
from umc.diagnosis.rollout import RolloutStep

BURN_IN = 10
"""First env steps of a replayed stretch that teach nothing: what was remembered before it is of older weights."""

SEVERITY_WEIGHT = 0.1
"""Weight of the error of severities in the loss [-]."""

IGNORED = -100
"""Label of a joint fault that has not changed the joint's motion yet: nobody can see it, and it teaches nothing."""

LEAST_SIZE = 0.05
"""Size of columns that hardly change in the training [-]: a command that is always 0 there must not count for more than
others where it is not."""

STRETCHES = 24
"""Newest stretches to learn from."""

LEAST_LEARNING_RATE = 0.02
"""Learning rate at the end, of that at the start [-]."""


@dataclass(frozen=True)
class Stretch:
    """T env steps in a row of E envs."""

    obs: Tensor
    """Shape is (T, E, D)."""
    starts: Tensor
    """Where episodes begin, bool. Shape is (T, E)."""
    state: Tensor
    """What was remembered before it. Shape is (E, J, S)."""
    labels: Tensor
    """Labels of sensor and joint faults, int64, or IGNORED. Shape is (T, E, J, 2)."""
    severity: Tensor
    """Severities of these, 0 where they are ignored. Shape is (T, E, J, 2)."""
    log_probabilities: tuple[Tensor, Tensor]
    """Logarithms of the probabilities of sensor and joint faults as they were predicted, (T, E, J, 6) each."""

    @classmethod
    def of(cls, steps: Sequence[RolloutStep]) -> Stretch:
        """Put steps together."""
        pairs = [(one.detection.sensor, one.detection.joint) for one in steps]
        labels = torch.stack([torch.stack((one.labels.sensor, one.labels.joint), dim=-1) for one in steps])
        hidden = (labels[..., JOINT] > 0) & ~torch.stack([one.shown for one in steps])
        labels[..., JOINT].masked_fill_(hidden, IGNORED)
        severity = torch.stack([one.labels.severity for one in steps])
        return cls(
            torch.stack([one.obs for one in steps]),
            torch.stack([one.starts for one in steps]),
            steps[0].before,
            labels,
            severity * (labels != IGNORED),
            (_log([pair[0] for pair in pairs]), _log([pair[1] for pair in pairs])),
        )

    def outputs(self) -> Stretch:
        """Return it on the CPU, without what only learning needs, which is most of it."""
        nothing = {name: getattr(self, name)[..., :0].clone() for name in ("obs", "state", "severity")}
        sensor, joint = self.log_probabilities
        return replace(
            self,
            **nothing,
            starts=self.starts.cpu(),
            labels=self.labels.cpu(),
            log_probabilities=(sensor.cpu(), joint.cpu()),
        )


def _log(probabilities: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(probabilities)).clamp(min=1e-7).log()


class Learner:
    """Adam on cross entropies of both labels and errors of severities, from the newest stretches.

    The learning rate falls linearly; ``updates`` gradient steps, of ``robots`` each, follow each new stretch.
    """

    def __init__(self, detector: Detector, learning_rate: float = 2.0e-3, updates: int = 12, robots: int = 128) -> None:
        self.detector, self.learning_rate = detector, learning_rate
        self._updates, self._robots = updates, robots
        self._memory: deque[Stretch] = deque(maxlen=STRETCHES)
        self.optimizer = torch.optim.Adam(detector.parameters(), lr=learning_rate)

    def learn(self, stretch: Stretch, done: float) -> dict[str, float]:
        """Learn from a new stretch and older ones; ``done`` is the part of the training that is over."""
        if not self._memory and bool((self.detector.scale == 1.0).all()):
            self._set_scale(stretch.obs)
        self._memory.append(stretch)
        rate = self.learning_rate * max(1.0 - done, LEAST_LEARNING_RATE)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.detector.train()
        losses = [self._update() for _ in range(self._updates)]
        self.detector.eval()
        return {name: sum(one[name] for one in losses) / len(losses) for name in losses[0]}

    def _update(self) -> dict[str, float]:
        chosen = self._memory[int(torch.randint(len(self._memory), ()))]
        envs = torch.randperm(chosen.obs.shape[1], device=chosen.obs.device)[: self._robots]
        losses = self.losses(chosen, envs)
        self.optimizer.zero_grad()
        (losses["sensor"] + losses["joint"] + SEVERITY_WEIGHT * losses["severity"]).backward()
        nn.utils.clip_grad_norm_(self.detector.parameters(), 1.0)
        self.optimizer.step()
        return {name: loss.item() for name, loss in losses.items()}

    def losses(self, stretch: Stretch, envs: Tensor) -> dict[str, Tensor]:
        """Return the mean losses of some robots, with gradients through the whole stretch."""
        state = stretch.state[envs]
        sums: dict[str, Any] = {"sensor": 0.0, "joint": 0.0, "severity": 0.0}
        steps = stretch.obs.shape[0]
        first = min(BURN_IN, steps - 1)
        for step in range(steps):
            state = state * (~stretch.starts[step, envs])[:, None, None]
            logits, severity, state = self.detector.step(stretch.obs[step, envs], state)
            if step < first:
                continue
            label, true = stretch.labels[step, envs], stretch.severity[step, envs]
            sensors = logits[0].shape[-1] - 1
            for name, number, kinds in (
                ("sensor", 0, severity[..., :sensors]),
                ("joint", 1, severity[..., sensors:]),
            ):
                mine = label[..., number]
                loss = nn.functional.cross_entropy(logits[number].flatten(0, 1), mine.flatten(), ignore_index=IGNORED)
                sums[name] = sums[name] + loss
                error = nn.functional.huber_loss(severity_of(kinds, mine), true[..., number])
                sums["severity"] = sums["severity"] + error
        return {name: total / (steps - first) for name, total in sums.items()}

    def _set_scale(self, obs: Tensor) -> None:
        """Bring the columns to a size of 1 without moving their zero, which dead sensors read; joints share theirs."""
        size = obs.square().mean(dim=(0, 1))
        for columns in zip(*self.detector.layout.joint_columns, strict=True):
            size[list(columns)] = size[list(columns)].mean()
        self.detector.scale.copy_(1.0 / size.sqrt().clamp(min=LEAST_SIZE))


def calibrate(detector: Detector, log_probabilities: Tensor, label: Tensor, fault: int) -> float:
    """Set the temperature of sensor (0) or joint (1) faults by log-probabilities (..., 6) and labels.

    Those that are :data:`IGNORED` do not count.

    Return the temperature relative to the one before.
    """
    candidates = torch.logspace(-0.5, 0.5, 41, device=log_probabilities.device)
    log_probabilities, label = log_probabilities.flatten(0, -2), label.flatten()
    losses = [nn.functional.cross_entropy(log_probabilities / one, label, ignore_index=IGNORED) for one in candidates]
    best = float(candidates[int(torch.stack(losses).argmin())])
    detector.temperature[fault] *= best
    return best
