# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The action term that loses and delays what other action terms command."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.managers import ActionTerm, ActionTermCfg
from isaaclab.utils import configclass

from umc.faults.kinds import LONGEST_DELAY, CommandKind, Delivery, FaultKind
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.assets import Articulation
    from isaaclab.envs import ManagerBasedRLEnv

LAST_ACTION = "command_faults: umc.mdp.CommandFaultsCfg = umc.mdp.CommandFaultsCfg()"
"""What a task with command faults adds to its actions."""


class CommandFaults(ActionTerm):
    """Replaces the joint targets of faulty commands after the other terms have set them; takes no action itself.

    A message holds position, velocity and effort target of a joint and is sent once per env step: a faulty one stays
    the same over the physics steps of its env step. A fault that the observation of step ``t`` shows concerns the
    action that answers it, of step ``t + 1``, first. The first message of an episode always arrives.
    """

    cfg: "CommandFaultsCfg"
    _asset: "Articulation"

    def __init__(self, cfg: "CommandFaultsCfg", env: "ManagerBasedRLEnv") -> None:
        from umc.mdp.events import joint_faults_of

        super().__init__(cfg, env)
        self._export_IO_descriptor = False  # a robot has no such input
        self._no_action = torch.zeros(self.num_envs, 0, device=self.device)
        self._state = joint_faults_of(env).state
        self._kinds: list[CommandKind] = []
        self._look_for_kinds()

    def _look_for_kinds(self) -> None:
        """Keeps what was sent from the moment on in which commands can fail; a fault made by hand may be the first."""
        self._known = self._state.kinds
        had, self._kinds = self._kinds, [kind for kind in self._known if isinstance(kind, CommandKind)]
        if had or not self._kinds:
            return
        # what was sent in each of the last env steps; targets are (position, velocity, effort) x envs x joints
        shape = (LONGEST_DELAY + 1, 3, self.num_envs, len(self._state.joint_names))
        self._sent = torch.zeros(shape, device=self.device)
        self._newest = 0
        self._num_sent = torch.zeros(self.num_envs, dtype=torch.long, device=self.device)  # in this episode
        self._last = self._targets()
        self._delivered: torch.Tensor | None = None
        self._is_new = False

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
        """Forgets what was sent.

        Args:
            env_ids: The envs that start anew; all without it.
        """
        if self._kinds:
            self._num_sent[slice(None) if env_ids is None else env_ids] = 0

    def process_actions(self, actions: torch.Tensor) -> None:
        """Takes down which targets arrived in the env step before.

        Args:
            actions: Nothing. Shape is (num_envs, 0).
        """
        if self._known is not self._state.kinds:
            self._look_for_kinds()
        if self._kinds:
            self._last = self._targets()
            self._is_new = True

    def apply_actions(self) -> None:
        """Overwrites the targets of faulty commands, in every physics step."""
        if not self._kinds:
            return
        if self._is_new:
            self._deliver()
        if self._delivered is None:
            return
        # The buffers themselves: the asset submits them before the physics step, and its setters would do so a second
        # time (5 ms a call on PhysX, 1,024 envs on a CPU).
        for buffer, delivered in zip(self._buffers(), self._delivered, strict=True):
            buffer.copy_(torch.where(self._on, delivered, buffer))

    def _buffers(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Where the asset keeps position, velocity and effort targets. Shapes are (num_envs, num_joints)."""
        command = self._asset.actuators.target_command
        return command.position.torch, command.velocity.torch, command.effort.torch

    def _targets(self) -> torch.Tensor:
        """A copy of the targets. Shape is (3, num_envs, num_joints)."""
        return torch.stack(self._buffers())

    def _deliver(self) -> None:
        """Sends the targets of an env step and works out which arrive."""
        self._is_new = False
        targets = self._targets()
        self._newest = (self._newest + 1) % len(self._sent)
        self._sent[self._newest] = targets
        live = [(kind, self._state.of(kind.name)) for kind in self._kinds]
        self._on = torch.stack([fault.on for _, fault in live if fault is not None]).any(dim=0)
        self._delivered = None
        if self.device != "cpu" or self._on.any():
            last = torch.where((self._num_sent == 0)[:, None], targets, self._last)
            arriving = targets
            for kind, fault in live:
                assert fault is not None  # kinds of this state
                delivery = Delivery(fault.on, fault.severity, fault.age, self._sent_before, last, self._state.uniform)
                arriving = kind.deliver(arriving, delivery)
            self._delivered = arriving
        self._num_sent += 1

    def _sent_before(self, steps: torch.Tensor) -> torch.Tensor:
        """The targets sent a number of env steps ago, or the episode's first if there were fewer."""
        steps = torch.minimum(steps, self._num_sent[:, None])
        slot = ((self._newest - steps) % len(self._sent)).expand(1, *self._last.shape)
        return self._sent.gather(0, slot).squeeze(0)


@configclass
class CommandFaultsCfg(ActionTermCfg):
    """Lets command faults (``dropped``, ``delayed``) come true; has to be the last of a robot's action terms."""

    class_type: type[ActionTerm] = CommandFaults
    asset_name: str = "robot"
    """The robot that breaks."""


def check_command_faults(env_cfg: Any, kinds: Iterable[FaultKind], asset_name: str) -> None:
    """Refuses a task that plans command faults and has nobody to carry them out.

    Args:
        env_cfg: The environment's cfg.
        kinds: Kinds of faults that are planned.
        asset_name: The robot that breaks.

    Raises:
        UmcError: If the last action term of the robot is no :class:`CommandFaults`.
    """
    broken = [kind.name for kind in kinds if isinstance(kind, CommandKind)]
    terms = [term for term in vars(env_cfg.actions).values() if isinstance(term, ActionTermCfg)]
    terms = [term for term in terms if term.asset_name == asset_name]
    if broken and not (terms and isinstance(terms[-1], CommandFaultsCfg)):
        raise UmcError(
            f"commands of '{asset_name}' can fail ({', '.join(broken)}), but its last action term does not carry that"
            f" out; add as the last one: {LAST_ACTION}"
        )
