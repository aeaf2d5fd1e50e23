# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What mask and flag report without a detector: the faults of an oracle with a detector's errors, or none."""

from __future__ import annotations

import torch

from umc.faults.plan import NEVER
from umc.faults.state import FAULT_FLAG_WIDTH, FaultState

SOURCES = ("oracle", "corrupted_oracle", "detector", "none")
"""Where mask and flag come from: the simulator, the simulator with the errors of a detector, a detector, or nowhere."""

SECONDS_PER_MINUTE = 60.0


class CorruptedOracle:
    """Joint mask and fault flag as a detector with known errors would give them.

    The errors are those of :class:`umc.mdp.DetectionCfg`; ``step_dt`` is the length of an env step [s]. All are
    functions of (seed, env, episode, step, joint): policies under the same faults get the same.
    """

    def __init__(
        self,
        state: FaultState,
        step_dt: float,
        delay: int = 0,
        missed: float = 0.0,
        false_alarms: float = 0.0,
        alarm_steps: int = 50,
    ) -> None:
        self._state = state
        self._delay, self._missed, self._alarm_steps = delay, missed, alarm_steps
        self._chance = false_alarms * step_dt / SECONDS_PER_MINUTE / len(state.joint_names)
        shape = (state.num_envs, len(state.joint_names))
        self._alarm_end = torch.zeros(shape, dtype=torch.long, device=state.device)
        """Env step at which a joint's false alarm ends."""
        self._since = torch.full(shape, NEVER, dtype=torch.long, device=state.device)
        """First onset of a joint's faults without a pause between them [env steps]; NEVER without one."""
        self._at = torch.full((2, state.num_envs), -1, dtype=torch.long, device=state.device)
        """Episode and env step of the last :meth:`update`."""
        self._seen = -1
        """Version of the state then."""

    def update(self) -> None:
        """Draw the false alarms of this env step; a second call in the same step changes nothing."""
        if self._seen == self._state.version:
            return
        self._seen = self._state.version
        state, now = self._state, torch.stack((self._state.episode, self._state.step))
        new = (now != self._at).any(dim=0)[:, None]
        other = (now[0] != self._at[0])[:, None]
        self._at.copy_(now)
        onset = state.joint_onset
        since = torch.where(other, onset, torch.minimum(self._since, onset))
        self._since.copy_(torch.where(onset == NEVER, NEVER, since))
        if self._chance == 0.0:
            return
        self._alarm_end.masked_fill_(other, 0)
        starts = new & (state.uniform("detection/alarm") < self._chance)
        self._alarm_end.copy_(torch.where(starts, state.step[:, None] + self._alarm_steps, self._alarm_end))

    @property
    def joint_mask(self) -> torch.Tensor:
        """Joints that the policy has to mask. Shape is (E, J)."""
        return (self._state.joint_mask & self._found) | self._alarms

    @property
    def has_joint_fault(self) -> torch.Tensor:
        """Joints with a reported joint fault. Shape is (E, J)."""
        return (self._state.has_joint_fault & self._found) | self._alarms

    @property
    def range_reduced(self) -> torch.Tensor:
        """Those whose range it reduces; false alarms do not. Shape is (E, J)."""
        return self._state.range_reduced & self._found

    @property
    def fault_flag(self) -> torch.Tensor:
        """+1 in envs where a fault is reported, else -1. Shape is (E, 3)."""
        reported = (self._state.detected & self._found) | self._alarms
        flag = reported.any(dim=1, keepdim=True).float() * 2.0 - 1.0
        return flag.expand(-1, FAULT_FLAG_WIDTH)

    @property
    def _found(self) -> torch.Tensor:
        """Faulty joints that have been found. Shape is (E, J)."""
        found = self._state.step[:, None] - self._since >= self._delay
        if self._missed > 0.0:
            found &= self._state.uniform("detection/missed", every_step=False) >= self._missed
        return found

    @property
    def _alarms(self) -> torch.Tensor:
        """Joints with a false alarm. Shape is (E, J)."""
        return self._state.step[:, None] < self._alarm_end


class NoDetection:
    """Joint mask and fault flag that report no fault."""

    def __init__(self, state: FaultState) -> None:
        shape = (state.num_envs, len(state.joint_names))
        self.joint_mask = torch.zeros(shape, dtype=torch.bool, device=state.device)
        self.has_joint_fault = self.range_reduced = self.joint_mask
        self.fault_flag = torch.full((state.num_envs, FAULT_FLAG_WIDTH), -1.0, device=state.device)

    def update(self) -> None:
        """Change nothing."""


def class_columns(broken: torch.Tensor, reduced: torch.Tensor) -> torch.Tensor:
    """Return 1 in the column of each env's class of joint faults, in the order of FAULT_CLASSES, else 0.

    Takes joints with a reported joint fault and those whose range it reduces, (num_envs, J).
    """
    is_broken, is_reduced = broken.any(dim=1), reduced.any(dim=1)
    return torch.stack((~is_broken, is_broken & ~is_reduced, is_broken & is_reduced), dim=1).float()
