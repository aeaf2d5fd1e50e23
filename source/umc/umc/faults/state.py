# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The faults of all envs: the only copy, which terms, recorders and evaluations read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Protocol

import torch

from umc.faults.kinds import FaultKind, JointKind, JointLimits, OnsetState, SensorKind
from umc.faults.plan import NEVER, FaultPlan, empty_plan, widen_plan
from umc.faults.random import Word, philox, philox_pair, uniform
from umc.faults.scenarios import Scenario
from umc.faults.schedule import RandomKey, named_stream

FAULT_FLAG_WIDTH = 3
"""Width of the fault flag F in {-1, 1}^(1x3): three, so that no single input decides (paper, section "Actor Model")."""

FAULT_CLASSES = ("healthy", "power_loss", "locked")
"""Classes of joint faults that MT-FTC has a policy for each: none, those that leave the joint its range, and those that
narrow it. A robot with both is in the last."""


class PlanSource(Protocol):
    """Source of fault plans: a schedule draws them, cases assign them, a ledger replays them."""

    joint_names: tuple[str, ...]
    kinds: tuple[FaultKind, ...]
    scenarios: tuple[Scenario, ...]
    joint_ids: torch.Tensor
    """Number of each joint in random draws. Shape is (J,)."""
    device: torch.device
    seed: int

    @property
    def num_faults(self) -> int:
        """Most faults of an episode."""
        ...

    def draw(self, env_ids: torch.Tensor, episode: torch.Tensor) -> FaultPlan:
        """See :meth:`FaultSchedule.draw`."""
        ...

    def random_key(self, env_ids: torch.Tensor, episode: torch.Tensor) -> RandomKey:
        """See :meth:`FaultSchedule.random_key`."""
        ...


@dataclass(frozen=True)
class LiveFault:
    """One kind of fault as it is now; every shape is (E, J)."""

    on: torch.Tensor
    """Joints that have it."""
    severity: torch.Tensor
    """How hard it hits, in the kind's unit."""
    step: torch.Tensor
    """Env step of the episode. Shape is (E, 1)."""
    onset: torch.Tensor
    """Env step of its last onset."""

    @property
    def age(self) -> torch.Tensor:
        """Env steps since its onset; 0 in the first step that shows it, and where it is off."""
        return torch.where(self.on, self.step - self.onset, 0)


class FaultState:
    """Plans and live faults of E envs with J joints, M faults an episode and K kinds.

    A plan is drawn at reset and changes only then, or manually (:mod:`umc.faults.manual`); live tensors follow it step
    by step. Where several faults give one kind to one joint, the last of the plan counts. ``first_env`` is the number
    of env 0 in random draws: where processes share a training, its number among all their envs.
    """

    def __init__(self, source: PlanSource, num_envs: int, first_env: int = 0) -> None:
        self.source = source
        self.num_envs = num_envs
        self.first_env = first_env
        self.joint_names = source.joint_names
        self.kinds = source.kinds
        self.device = source.device
        envs, faults, kinds, joints = num_envs, source.num_faults, len(source.kinds), len(source.joint_names)
        self._places = list(range(kinds))
        self._sort_kinds()

        self.episode = self._full((envs,), -1)
        """Episode of each env, counted from 0; -1 before the first reset. Shape is (E,)."""
        self.plan = empty_plan(envs, faults, kinds, joints, self.device)
        """Faults of this episode."""
        self.live = self._full((envs, kinds, joints), False)
        """Faults that are on. Shape is (E, K, J)."""
        self.severity = self._full((envs, kinds, joints), 0.0)
        """Their severities. Shape is (E, K, J)."""
        self.detected = self._full((envs, joints), False)
        """Faulty joints that have been detected. Shape is (E, J)."""
        self.step = self._full((envs,), 0)
        """Env step of the episode up to which faults have been switched. Shape is (E,)."""
        self.num_manual = [0] * envs
        """Number of manual faults in each env's plan; they follow those that the source planned."""
        self.faults_on = self._full((envs, faults), False)
        """Faults of the plan that are on now. Shape is (E, M)."""
        self._switched_at: tuple[torch.Tensor, int] | None = None
        """Env steps that :meth:`advance` took last, and torch's count of their changes; None after a reset. Manual
        changes take effect in the next step."""
        self.version = 0
        """Grows with every :meth:`reset` and :meth:`advance`; the host knows it without waiting for a GPU."""
        self._onset_step = self._full((envs, kinds, joints), 0)
        self._onset_position = self._full((envs, kinds, joints), 0.0)
        self._placement = self._full((envs, kinds, joints), 0.0)
        self._memory = self._full((envs, kinds, joints), 0.0)

    @property
    def live_planned(self) -> torch.Tensor:
        """Faults that are on, of the kinds that the source plans, whatever is injected. Shape is (E, K, J)."""
        return self.live[:, self._places] if len(self._places) < len(self.kinds) else self.live

    @property
    def active(self) -> torch.Tensor:
        """Envs that have a fault now. Shape is (E,)."""
        return self.faults_on.any(dim=1)

    @property
    def joints(self) -> torch.Tensor:
        """Joints that fail at any time of this episode. Shape is (E, J)."""
        return self.plan.joints.any(dim=1)

    @property
    def onset(self) -> torch.Tensor:
        """First onset of this episode [env steps]; :data:`NEVER` in healthy ones. Shape is (E,)."""
        return self.plan.onset.amin(dim=1)

    @property
    def joint_onset(self) -> torch.Tensor:
        """First onset of the faults that a joint has now [env steps]; :data:`NEVER` without one. Shape is (E, J)."""
        if not self.kinds:
            return torch.full_like(self.detected, NEVER, dtype=torch.long)
        return torch.where(self.live, self._onset_step, NEVER).amin(dim=1)

    @property
    def has_joint_fault(self) -> torch.Tensor:
        """Joints that have a joint fault now. Shape is (E, J)."""
        return self.live[:, self._breaking].any(dim=1)

    @property
    def range_reduced(self) -> torch.Tensor:
        """Joints with a joint fault that reduces their range now. Shape is (E, J)."""
        return self.live[:, self._reducing].any(dim=1)

    @property
    def joint_mask(self) -> torch.Tensor:
        """Joints that the policy has to mask, since their sensor is dead (True = masked). Shape is (E, J)."""
        return self.live[:, self._masking].any(dim=1)

    @property
    def fault_flag(self) -> torch.Tensor:
        """+1 in envs where a fault is detected, else -1. Shape is (E, 3)."""
        flag = self.detected.any(dim=1, keepdim=True).float() * 2.0 - 1.0
        return flag.expand(-1, FAULT_FLAG_WIDTH)

    def live_fault(self, kind: str) -> LiveFault:
        """One kind of fault as it is now, by its name; off everywhere if no fault of this kind is ever planned."""
        index = self._index.get(kind)
        if index is None:
            nothing = torch.zeros_like(self.detected)
            return LiveFault(nothing, nothing.float(), self.step[:, None], nothing.long())
        return LiveFault(self.live[:, index], self.severity[:, index], self.step[:, None], self._onset_step[:, index])

    def reset(self, env_ids: torch.Tensor) -> None:
        """End all faults of some envs, int64 of shape (N,) without repeats, and plan their next episode."""
        self.version += 1
        self.episode[env_ids] += 1
        plan = self.source.draw(env_ids + self.first_env, self.episode[env_ids])
        if self._is_wide:
            plan = widen_plan(plan, self.plan.onset.shape[1], len(self.kinds), self._places)
            for env in env_ids.tolist():
                self.num_manual[env] = 0
        for field in fields(FaultPlan):
            getattr(self.plan, field.name)[env_ids] = getattr(plan, field.name)
        # not live[env_ids] = False: that uploads the number, and a GPU makes the host wait for it
        for live in (self.live, self.detected, self.faults_on, self.step):
            live.index_fill_(0, env_ids, 0)
        self._switched_at = None

    @torch.inference_mode(False)  # resets outside inference mode change what is made here
    def make_room(self, num_faults: int, kinds: Iterable[FaultKind] = ()) -> None:
        """Make room for so many faults in an episode and for more kinds; plans and live faults stay as they are."""
        num_faults = max(num_faults, self.plan.onset.shape[1])
        known = {kind.name: kind for kind in (*self.kinds, *kinds)}
        if num_faults == self.plan.onset.shape[1] and len(known) == len(self.kinds):
            return
        before, rows = self.kinds, self.num_envs
        self.kinds = tuple(sorted(known.values(), key=lambda kind: (kind.rank, kind.name)))
        self._sort_kinds()
        places = [self._index[kind.name] for kind in before]
        self._places = [places[place] for place in self._places]
        self.plan = widen_plan(self.plan, num_faults, len(self.kinds), places)
        faults_on = self._full((rows, num_faults), False)
        faults_on[:, : self.faults_on.shape[1]] = self.faults_on
        self.faults_on = faults_on
        for name in ("live", "severity", "_onset_step", "_onset_position", "_placement", "_memory"):
            old: torch.Tensor = getattr(self, name)
            new = torch.zeros((rows, len(self.kinds), old.shape[2]), dtype=old.dtype, device=self.device)
            new[:, places] = old
            setattr(self, name, new)

    def has_advanced(self, step: torch.Tensor) -> bool:
        """Return whether :meth:`advance` has taken these env steps already, without reading them.

        Only changes that torch has made to the tensor are noticed.
        """
        known = self._switched_at
        return known is not None and known[0] is step and known[1] == step._version

    def advance(self, step: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """Switch faults on and off; return the envs whose live faults have changed, shape (E,).

        Takes env steps since the episode's start, int64 of shape (E,), and joint positions [rad] of shape (E, J). A
        second call in the same env step changes nothing. A fault whose onset was passed over (rsl_rl starts training
        in the middle of episodes) sets in at once.
        """
        self._switched_at = None if step.is_inference() else (step, step._version)  # such tensors have no count
        self.version += 1
        self.step.copy_(step)
        plan = self.plan
        faults_on = plan.is_on(step)
        changed = (faults_on != self.faults_on).any(dim=1)
        if known_empty(changed):
            return changed
        self.faults_on.copy_(faults_on)
        live = torch.zeros_like(self.live)
        severity, placement = self.severity, self._placement
        detected = torch.zeros_like(self.detected)
        for number in range(faults_on.shape[1]):
            joints = plan.joints[:, number] & faults_on[:, number, None]
            hit = joints[:, None, :] & plan.kinds[:, number, :, None]
            live |= hit
            severity = torch.where(hit, plan.severity[:, number], severity)
            placement = torch.where(hit, plan.placement[:, number, None, :], placement)
            detected |= joints & plan.detected[:, number, None]
        fresh = live & ~self.live
        self._onset_step.copy_(torch.where(fresh, step[:, None, None], self._onset_step))
        # a window of another width is a new one, though the joint has had a window since the old one's onset
        placed = fresh | (live & (severity != self.severity))
        self._onset_position.copy_(torch.where(placed, position[:, None, :], self._onset_position))
        self._placement.copy_(torch.where(placed, placement, self._placement))
        self._memory.masked_fill_(fresh | ~live, 0.0)
        self.severity.copy_(severity)
        self.live.copy_(live)
        self.detected.copy_(detected)
        return changed

    @property
    def depends_on_torque(self) -> bool:
        """Whether limits of joints depend on torques: :meth:`update_memory` has to be called in every env step."""
        return any(isinstance(kind, JointKind) and kind.depends_on_torque for kind in self.kinds)

    def update_memory(self, effort: torch.Tensor, step_dt: float) -> torch.Tensor:
        """Take the torques of an env step [N*m], shape (E, J), of ``step_dt`` [s]; return whose limits move, (E,)."""
        moving = torch.zeros_like(self.step, dtype=torch.bool)
        for index, kind in enumerate(self.kinds):
            if isinstance(kind, JointKind) and kind.depends_on_torque:
                on, memory = self.live[:, index], self._memory[:, index]
                # the torques of the step that shows the onset were given before it
                loaded = on & (self.step[:, None] > self._onset_step[:, index])
                warmer = kind.remember(memory, effort, self.severity[:, index], step_dt)
                memory.copy_(torch.where(loaded, warmer, memory))
                moving |= on.any(dim=1)
        return moving

    def limits(self, healthy: JointLimits) -> JointLimits:
        """Return the limits of the joints now, given those without faults."""
        limits = healthy
        for index, kind in enumerate(self.kinds):
            if isinstance(kind, JointKind):
                onset = OnsetState(self._onset_position[:, index], self._placement[:, index], self._memory[:, index])
                limits = kind.limit(limits, self.live[:, index], self.severity[:, index], onset)
        return limits

    def uniform(
        self, stream: str, every_step: bool = True, ago: torch.Tensor | int = 0, shared: bool = False
    ) -> torch.Tensor:
        """Uniform numbers in [0, 1), from (seed, env, episode, step, joint) by the name of a stream.

        They are the same in all steps of an episode unless ``every_step``, those of ``ago`` env steps before, int64 of
        shape (E, J), and the same for all joints of an env if ``shared``. Shape is (E, J). For :class:`FaultCases`,
        seed and env are the case's seed and the member.
        """
        return uniform(philox(*self._key(stream, every_step, ago, shared)))

    def normal(self, stream: str) -> torch.Tensor:
        """Standard normal numbers of this step (Box and Muller's), as :meth:`uniform`. Shape is (E, J)."""
        return _normal(*philox_pair(*self._key(stream)))

    def direction(self, stream: str) -> torch.Tensor:
        """Random unit vectors, the same in all steps of an episode, as :meth:`uniform`. Shape is (E, 3)."""
        seed, (env, episode, number, _) = self._key(stream, every_step=False)
        words = philox_pair(seed, (env, episode, number, torch.arange(3, device=self.device)[None, :]))
        return torch.nn.functional.normalize(_normal(*words), dim=1)

    def _key(
        self, stream: str, every_step: bool = True, ago: torch.Tensor | int = 0, shared: bool = False
    ) -> tuple[Word, tuple[torch.Tensor, torch.Tensor, int, torch.Tensor]]:
        """Seed and counter of Philox."""
        env = torch.arange(self.num_envs, device=self.device) + self.first_env
        seed, env, episode = self.source.random_key(env, self.episode)
        step = self.step if every_step else torch.zeros_like(self.step)
        joints = torch.zeros_like(self.source.joint_ids) if shared else self.source.joint_ids
        moment = (step[:, None] - ago).clamp(min=0) * len(self.joint_names) + joints
        column = seed if isinstance(seed, int) else seed[:, None]
        return column, (env[:, None], episode[:, None], named_stream(stream), moment)

    @property
    def _is_wide(self) -> bool:
        """Whether there is more room than the source needs."""
        return self.plan.onset.shape[1] > self.source.num_faults or len(self.kinds) > len(self.source.kinds)

    def _sort_kinds(self) -> None:
        self._index = {kind.name: number for number, kind in enumerate(self.kinds)}
        self._breaking = self._numbers(lambda kind: isinstance(kind, JointKind))
        self._reducing = self._numbers(lambda kind: isinstance(kind, JointKind) and kind.reduces_range)
        self._masking = self._numbers(lambda kind: isinstance(kind, SensorKind) and kind.masks_joint)

    def _numbers(self, belongs: Callable[[FaultKind], bool]) -> torch.Tensor:
        """Numbers of some kinds, on the device: indexing with a list would make the host wait for it."""
        numbers = [number for number, kind in enumerate(self.kinds) if belongs(kind)]
        return torch.tensor(numbers, dtype=torch.long, device=self.device)

    def _full(self, shape: tuple[int, ...], value: float) -> torch.Tensor:
        return torch.full(shape, value, device=self.device)


def known_empty(mask: torch.Tensor) -> bool:
    """Return whether a mask is known to be empty: a CUDA device is not asked, since the answer would wait for it."""
    return mask.device.type == "cpu" and not bool(mask.any())


def _normal(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Turn two random words each into a standard normal number."""
    # in 64 bits: the last bit of a float32 logarithm or cosine differs between CPUs
    distance, angle = uniform(first).double(), uniform(second).double()
    return ((-2.0 * (1.0 - distance).log()).sqrt() * (2.0 * math.pi * angle).cos()).float()
