# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The joint position action of UMC's tasks: Isaac Lab's, without the way that its targets take twice on PhysX."""

from isaaclab.envs import mdp as lab
from isaaclab.managers import ActionTerm
from isaaclab.utils import configclass


class JointTargets(lab.JointPositionAction):
    """Joint targets from actions, as Isaac Lab's own action makes them.

    Isaac Lab's setter also hands every target to PhysX's drives, in every physics step, and the robot then submits all
    commands itself; explicit motors do not even use those drives. With 256 A1 on ovphysx on a CPU that was a quarter of
    the env step. The targets therefore go where the robot takes them from.
    """

    cfg: "JointTargetsCfg"

    def apply_actions(self) -> None:
        """Set the targets; the robot submits them right afterwards."""
        targets = self._asset.actuators.target_command.position.torch
        targets[:, self._joint_ids] = self.processed_actions


@configclass
class JointTargetsCfg(lab.JointPositionActionCfg):
    """As Isaac Lab's cfg, for :class:`JointTargets`."""

    class_type: type[ActionTerm] | str = JointTargets
