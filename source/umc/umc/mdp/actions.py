# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Action terms: joint position targets, and command faults that change them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.actuators import DelayedPDActuatorCfg, ImplicitActuatorCfg
from isaaclab.envs import mdp as lab
from isaaclab.managers import ActionTerm, ActionTermCfg
from isaaclab.utils import configclass

from umc.faults.apply import CommandChannel
from umc.faults.kinds import CommandKind, FaultKind
from umc.mdp.fault_terms import fault_term
from umc.mdp.observations import entries
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv

LAST_ACTION = "command_faults: umc.mdp.CommandFaultsCfg = umc.mdp.CommandFaultsCfg()"
"""The line that a task with command faults adds to its actions."""


class CommandFaults(ActionTerm):
    """Action term that replaces the targets of faulty commands after the other terms; takes no action itself.

    A message holds position, velocity and effort target of a joint and is sent once per env step
    (:class:`~umc.faults.apply.CommandChannel`): a faulty one stays the same over the physics steps of its env step,
    unless what of it acts on the joint depends on the joint's motion, as with backlash.
    """

    cfg: "CommandFaultsCfg"
    _asset: "Articulation"

    def __init__(self, cfg: "CommandFaultsCfg", env: "ManagerBasedRLEnv") -> None:
        super().__init__(cfg, env)
        self._export_IO_descriptor = False  # a robot has no such input
        self._no_action = torch.zeros(self.num_envs, 0, device=self.device)
        self._channel = CommandChannel(fault_term(env).state)
        self._last: torch.Tensor | None = None
        """Targets of the env step before, until those of this one have been sent."""
        self._delivered: tuple[torch.Tensor, torch.Tensor] | None = None
        self._arrived: torch.Tensor | None = None
        """Targets that arrived in this env step, where faults change them in every physics step."""
        self._acting: tuple[torch.Tensor, torch.Tensor] | None = None
        """Joints whose targets were changed in the last physics step, and what was written there."""

    @property
    def action_dim(self) -> int:
        """Width of the term's action: none."""
        return 0

    @property
    def raw_actions(self) -> torch.Tensor:
        """Shape is (num_envs, 0)."""
        return self._no_action

    @property
    def processed_actions(self) -> torch.Tensor:
        """Shape is (num_envs, 0)."""
        return self._no_action

    def reset(self, env_ids: Sequence[int] | torch.Tensor | slice | None = None) -> None:
        """Forget the targets sent to some envs, by default to all."""
        self._channel.reset(slice(None) if env_ids is None else env_ids)

    def process_actions(self, actions: torch.Tensor) -> None:
        """Remember which targets arrived in the env step before."""
        self._restore()
        if self._channel.depends_on_motion:
            step_physics_one_by_one(self._env)
        if self._channel.can_fail:
            self._last = self._targets()

    def apply_actions(self) -> None:
        """Overwrite the targets of faulty commands, in every physics step."""
        is_first = self._last is not None
        if self._last is not None:
            self._delivered = self._channel.send(self._targets(), self._last)
            self._last = None
        if self._delivered is not None:
            self._write(*self._delivered)
        if is_first:
            self._arrived = self._targets() if self._channel.depends_on_motion else None
        if self._arrived is None:  # a manual fault may come in the middle of an env step: it acts in the next
            return
        data = self._asset.data
        self._acting = self._channel.transmit(self._arrived, data.joint_pos.torch, data.joint_vel.torch)
        if self._acting is not None:
            self._write(*self._acting)

    def _restore(self) -> None:
        """Put back the targets that arrived, where nobody else has written: terms write some of the three only."""
        if self._acting is None or self._arrived is None:
            return
        joints, acting = self._acting
        for buffer, written, arrived in zip(self._buffers(), acting, self._arrived, strict=True):
            buffer.copy_(torch.where(joints & (buffer == written), arrived, buffer))
        self._acting = None

    def _write(self, joints: torch.Tensor, targets: torch.Tensor) -> None:
        """Write the targets of some joints, shape (num_envs, num_joints), into the buffers themselves.

        The asset submits them before the physics step, and its setters would do so a second time (5 ms a call on
        PhysX, 1,024 envs on a CPU).
        """
        for buffer, target in zip(self._buffers(), targets, strict=True):
            buffer.copy_(torch.where(joints, target, buffer))

    def _buffers(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the asset's position, velocity and effort targets. Shapes are (num_envs, num_joints)."""
        command = self._asset.actuators.target_command
        return command.position.torch, command.velocity.torch, command.effort.torch

    def _targets(self) -> torch.Tensor:
        """Return a copy of the targets. Shape is (3, num_envs, num_joints)."""
        return torch.stack(self._buffers())


def step_physics_one_by_one(env: Any) -> None:
    """Have Newton take the physics steps of an env step one by one, so that action terms are applied in each."""
    if env._physics_handles_decimation:
        env._physics_handles_decimation = False
        env.sim.physics_manager.set_decimation(1)


@configclass
class CommandFaultsCfg(ActionTermCfg):
    """Cfg of the term for command faults; has to be the last of a robot's action terms."""

    class_type: type[ActionTerm] = CommandFaults
    asset_name: str = "robot"


def check_command_faults(env_cfg: Any, kinds: Iterable[FaultKind], asset: Any, asset_name: str) -> None:
    """Raise UmcError if command faults are planned that the robot's last action term or its motors do not apply."""
    broken = [kind for kind in kinds if isinstance(kind, CommandKind)]
    terms = [term for term in entries(env_cfg.actions).values() if isinstance(term, ActionTermCfg)]
    terms = [term for term in terms if term.asset_name == asset_name]
    if broken and not (terms and isinstance(terms[-1], CommandFaultsCfg)):
        names = ", ".join(kind.name for kind in broken)
        raise UmcError(
            f"commands of '{asset_name}' can fail ({names}), but its last action term does not apply that; add as the"
            f" last one: {LAST_ACTION}"
        )
    moving = [kind.name for kind in broken if kind.depends_on_motion]
    # between two calls of the action terms the engine computes its own motors' torques; a delay uses older positions
    refused = {ImplicitActuatorCfg: "are the engine's", DelayedPDActuatorCfg: "delay their commands"}
    for motor, why in refused.items() if moving else ():
        if any(isinstance(cfg, motor) for cfg in asset.cfg.actuators.values()):
            raise UmcError(
                f"'{moving[0]}' needs motors that Isaac Lab computes without a delay, and some of '{asset_name}' {why};"
                " leave it out, or make them an IdealPDActuatorCfg"
            )


class JointTargets(lab.JointPositionAction):
    """Joint targets from actions, as Isaac Lab's own action makes them.

    Isaac Lab's setter also writes every target to PhysX's drives, in every physics step, although the robot then
    submits all commands itself and explicit motors do not use those drives: a quarter of the env step with 256 A1 on
    ovphysx on a CPU. This term writes the buffer that the robot submits.
    """

    cfg: "JointTargetsCfg"

    def apply_actions(self) -> None:
        """Set the targets; the robot submits them right afterwards."""
        targets = self._asset.actuators.target_command.position.torch
        targets[:, self._joint_ids] = self.processed_actions


@configclass
class JointTargetsCfg(lab.JointPositionActionCfg):
    """Cfg of :class:`JointTargets`; fields as of Isaac Lab's."""

    class_type: type[ActionTerm] | str = JointTargets
