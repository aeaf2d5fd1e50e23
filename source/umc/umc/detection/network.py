# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The detector: a causal network that tells for each joint which fault it has, if any, and decides what to report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from umc.faults.state import FAULT_FLAG_WIDTH
from umc.models.layout import JointColumns, JointLayout
from umc.utils.errors import UmcError

SENSOR_KINDS = ("dead", "frozen", "bias", "drift", "noise")
"""Sensor faults that the detector tells apart."""

JOINT_KINDS = ("power_loss", "locked", "rom", "effort", "velocity")
"""Joint faults that the detector tells apart. Of several on one joint, the first of this list is its label."""

NETWORKS = ("gru", "tcn")
"""What remembers the past: a recurrent cell, or a convolution over a window."""

SENSOR, JOINT = 0, 1
"""Index of sensor and joint faults in probabilities, thresholds and reports."""

STEP_GAIN = 100.0
"""Gain of the change of a reading from step to step [-], so that no change at all stands out from a small one."""

_READINGS = 2
_FEATURES = 5
"""Per joint: position, velocity, last action, and the changes of the first two."""


@dataclass(frozen=True)
class DetectorCfg:
    """Options of a detector."""

    network: str = "gru"
    """One of NETWORKS."""
    hidden_dim: int = 64
    """Width H of what it remembers of each joint."""
    embedding_dim: int = 8
    """Width of what tells the joints apart; all other weights are shared by them."""
    dilations: tuple[int, ...] = (1, 2, 4, 8)
    """Env steps between the two inputs of each layer of the tcn, which sees their sum and one more."""

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            raise UmcError(f"unknown network {self.network!r} of a detector; choose one of {', '.join(NETWORKS)}")
        if min(self.hidden_dim, self.embedding_dim, *self.dilations, len(self.dilations)) < 1:
            raise UmcError("the sizes of a detector must be positive")


class Detection(NamedTuple):
    """What a detector says of B robots with J joints."""

    sensor: Tensor
    """Probability of no sensor fault, and of each of SENSOR_KINDS. Shape is (B, J, 1 + 5)."""
    joint: Tensor
    """Probability of no joint fault, and of each of JOINT_KINDS. Shape is (B, J, 1 + 5)."""
    severity: Tensor
    """Severity of each of SENSOR_KINDS and JOINT_KINDS if the joint has it: of rom, effort and velocity the part of the
    healthy value [-], of others in the kind's unit. Shape is (B, J, 5 + 5)."""
    reported: Tensor
    """Whether a sensor fault and a joint fault are reported, bool. Shape is (B, J, 2)."""
    state: Tensor
    """What it remembers for the next step. Shape is (B, J, S)."""


class Detector(nn.Module):
    """Tells for each joint which fault it has, from the observation of a policy, env step by env step.

    It reads neither mask nor flag. A robot's state is zero at the start of an episode (:meth:`start`).
    """

    def __init__(self, layout: JointLayout, cfg: DetectorCfg = DetectorCfg()) -> None:
        super().__init__()
        self.layout, self.cfg = layout, cfg
        self.columns = JointColumns(layout)
        width, features = cfg.hidden_dim, _FEATURES + layout.base_dim + cfg.embedding_dim
        self.embedding = nn.Parameter(0.1 * torch.randn(layout.num_joints, cfg.embedding_dim))
        self.encoder = nn.Sequential(nn.Linear(features, width), nn.ELU())
        self.memory = GruMemory(2 * width, width) if cfg.network == "gru" else TcnMemory(2 * width, width, cfg)
        sensors, joints = len(SENSOR_KINDS), len(JOINT_KINDS)
        self._outputs = [1 + sensors, 1 + joints, sensors + joints]
        self.head = nn.Sequential(nn.Linear(2 * width, width), nn.ELU(), nn.Linear(width, sum(self._outputs)))
        self.scale: Tensor
        self.temperature: Tensor
        self.thresholds: Tensor
        self.register_buffer("scale", torch.ones(layout.obs_dim))
        self.register_buffer("temperature", torch.ones(2))
        # probability from which on a fault is reported, below which no longer, and for how many steps in a row
        self.register_buffer("thresholds", torch.tensor([[0.9, 0.5, 3.0], [0.9, 0.5, 3.0]]))
        # what it remembers, the readings before, whether there were any, and for both faults count and report
        self._state_parts = [self.memory.state_dim, _READINGS, 1, 4]
        self.state_dim = sum(self._state_parts)

    def start(self, robots: int, device: torch.device | str = "cpu") -> Tensor:
        """Return the state before the first step of an episode, (B, J, S)."""
        return torch.zeros(robots, self.layout.num_joints, self.state_dim, device=device)

    def forward(self, obs: Tensor, state: Tensor) -> Detection:
        """Take in the observations (B, D) of an env step; ``state`` is what was remembered before it."""
        logits, severity, state = self.step(obs, state)
        sensor = (logits[0] / self.temperature[SENSOR]).softmax(dim=-1)
        joint = (logits[1] / self.temperature[JOINT]).softmax(dim=-1)
        faulty = 1.0 - torch.stack((sensor[..., 0], joint[..., 0]), dim=-1)
        kept, count, reported = state.split([self.state_dim - 4, 2, 2], dim=-1)
        count = torch.where(faulty >= self.thresholds[:, 0], count + 1.0, torch.zeros_like(count))
        held = (reported > 0.5) & (faulty >= self.thresholds[:, 1])
        now = held | (count >= self.thresholds[:, 2])
        state = torch.cat((kept, count, now.to(state.dtype)), dim=-1)
        return Detection(sensor, joint, severity, now, state)

    def step(self, obs: Tensor, state: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        """Return logits of sensor and joint faults, severities, and the state, with gradients."""
        base, joints = self.columns.split(obs * self.scale)
        known, before, started, decided = state.split(self._state_parts, dim=-1)
        readings = joints[..., :_READINGS]
        step = STEP_GAIN * (readings - before)
        change = step.sign() * torch.log(1.0 + step.abs()) * started
        shared = base.unsqueeze(1).expand(-1, joints.shape[1], -1)
        own = self.embedding.unsqueeze(0).expand(joints.shape[0], -1, -1)
        seen = self.encoder(torch.cat((joints, change, shared, own), dim=-1))
        known, remembered = self.memory(self._with_mean(seen), known)
        sensor, joint, severity = self.head(self._with_mean(remembered)).split(self._outputs, dim=-1)
        state = torch.cat((known, readings, torch.ones_like(started), decided), dim=-1)
        return (sensor, joint), severity, state

    def _with_mean(self, joints: Tensor) -> Tensor:
        """Append the mean over the robot's joints to what is known of each, (B, J, C) to (B, J, 2 C)."""
        return torch.cat((joints, joints.mean(dim=1, keepdim=True).expand_as(joints)), dim=-1)


class GruMemory(nn.Module):
    """A recurrent cell, shared by the joints."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.state_dim = width
        self.cell = nn.GRUCell(inputs, width)

    def forward(self, seen: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state after a step and what is remembered, both (B, J, H)."""
        rows = self.cell(seen.flatten(0, 1), state.flatten(0, 1)).view_as(state)
        return rows, rows


class TcnMemory(nn.Module):
    """Dilated causal convolutions over a window of the past, shared by the joints."""

    def __init__(self, inputs: int, width: int, cfg: DetectorCfg) -> None:
        super().__init__()
        self.inputs, self.width, self.dilations = inputs, width, cfg.dilations
        widths = [inputs, *[width] * (len(cfg.dilations) - 1)]
        self.layers = nn.ModuleList(nn.Linear(2 * one, width) for one in widths)
        self.sizes = [one * dilation for one, dilation in zip(widths, cfg.dilations, strict=True)]
        self.state_dim = sum(self.sizes)

    def forward(self, seen: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Return the state after a step, (B, J, S), and what is remembered, (B, J, H)."""
        kept: list[Tensor] = []
        now, first = seen, 0
        for layer, size in zip(self.layers, self.sizes, strict=True):
            past = state[..., first : first + size]  # the inputs of this layer, oldest first
            width = now.shape[-1]
            kept.append(torch.cat((past[..., width:], now), dim=-1))
            now = nn.functional.elu(layer(torch.cat((past[..., :width], now), dim=-1)))
            first += size
        return torch.cat(kept, dim=-1), now


def mask_and_flag(reported: Tensor, any_fault: bool = False) -> tuple[Tensor, Tensor]:
    """Return the joint mask (B, J), bool, and the fault flag (B, 3), -1 or +1, of reports (B, J, 2).

    Joints with a reported sensor fault are masked. The flag is up where one joint has both faults, as the paper's is;
    with ``any_fault`` wherever a joint fault is reported.
    """
    sensor, joint = reported[..., SENSOR], reported[..., JOINT]
    raised = (joint if any_fault else joint & sensor).any(dim=1, keepdim=True)
    return sensor, (2.0 * raised.to(torch.float) - 1.0).expand(-1, FAULT_FLAG_WIDTH)
