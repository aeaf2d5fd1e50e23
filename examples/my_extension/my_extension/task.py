# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Solo12 walks straight ahead, healthy (Stage 1) and with faults (Stage 2); its agents are all of UMC's but mt_ftc."""

from isaaclab.utils import configclass
from umc.robots.solo8 import EFFORT_LIMIT, RESET_SCALE
from umc.tasks.base import friction_event, payload_event
from umc.tasks.bodies import BodyNamesCfg
from umc.tasks.ppo import RobotAgents
from umc.tasks.quadruped import (
    QuadrupedEnvCfg,
    QuadrupedEventsCfg,
    forward_command,
)

from .robot import SOLO12_CFG

STANDING_HEIGHT = 0.24
"""Target of the height term [m], as Solo8's."""

FAULTS = {
    "severity": {"rom": 0.3, "effort": 0.75, "velocity": 5.0},  # [-], [N*m], [rad/s]: the paper's for Solo8
    "num_joints": (1, 3),
    "seed": 42,
}
"""What breaks in Stage 2; `python -m my_extension.watch` adds this project's own kinds."""


@configclass
class CommandsCfg:
    """Straight ahead at up to 1 m/s, a new speed every 5 s."""

    base_velocity = forward_command(0.0, 1.0, seconds=5.0)


@configclass
class EventsCfg(QuadrupedEventsCfg):
    """Events with the robot's own friction [-] and payload [kg]; the fault terms come with the base class."""

    friction = friction_event(0.75, 1.125)
    trunk_mass = payload_event(0.16, 0.48)


@configclass
class Solo12Stage1EnvCfg(QuadrupedEnvCfg):
    """Stage 1: the healthy robot learns to walk."""

    # the feet are welded to the lower legs: front left, front right, hind left, hind right
    bodies: BodyNamesCfg = BodyNamesCfg(trunk="base_link", feet=[".*_LOWER_LEG"])
    commands: CommandsCfg = CommandsCfg()
    events: EventsCfg = EventsCfg()

    def __post_init__(self) -> None:
        """Put Solo12 in the scene."""
        super().__post_init__()
        self.set_robot("solo12", SOLO12_CFG, FAULTS)
        self.events.reset_joints.params["position_range"] = RESET_SCALE
        self.rewards.torque_limits.params["limit"] = EFFORT_LIMIT
        self.rewards.base_height.params["target_height"] = STANDING_HEIGHT


@configclass
class Solo12Stage2EnvCfg(Solo12Stage1EnvCfg):
    """Stage 2: the four subcategories of faults, equally often."""

    def __post_init__(self) -> None:
        """Let the joints fail."""
        super().__post_init__()
        self.enable_faults()


ROBOT_AGENTS = RobotAgents(
    robot="solo12",
    articulation=SOLO12_CFG,
    actor_joint_start=12,  # velocity, angular velocity, gravity and command come first
    init_std=0.5,  # of the action noise [-], as A1
)

__getattr__ = ROBOT_AGENTS.cfg  # makes the cfg that an entry point names, such as my_extension.task:mlp_stage2
