# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A1-Walk on Perlin tracks: the figures of the public task (BodyTransformer's fork of ParkourGym) and of the paper."""

from isaaclab.managers import TerminationTermCfg as DoneTerm
from isaaclab.utils import configclass
from isaaclab_tasks.utils import preset

from umc import mdp
from umc.faults import paper_settings
from umc.robots import A1_CFG
from umc.tasks.base import FaultyJoints, friction_event, payload_event
from umc.tasks.bodies import BodyNamesCfg
from umc.tasks.ppo import RobotAgents
from umc.tasks.quadruped import QuadrupedEnvCfg, QuadrupedEventsCfg, QuadrupedTerminationsCfg, forward_command
from umc.terrains import FLAT_GROUND_CFG, TrackImporterCfg, perlin_tracks

TORQUE_LIMIT = 25.0
"""Torque limit of the A1-Walk task [N*m] (facts of the public task; the actuators clip there)."""

STANDING_HEIGHT = 0.3
"""Trunk height that the height term asks for [m]; at the default pose, without payload, A1 stands at 0.28."""


def training_tracks() -> TrackImporterCfg:
    """Return the tracks of the paper's training table."""
    rows = paper_settings("a1", "training")
    return perlin_tracks(rows["track_width"], rows["track_block_length"], rows["border_size"], rows["perlin_seed"])


@configclass
class CommandsCfg:
    """Straight ahead at 0.5 m/s."""

    base_velocity = forward_command(0.5, 0.5, seconds=1.0e6)


@configclass
class EventsCfg(QuadrupedEventsCfg):
    """Faults, then randomisation of physics and of the start."""

    # A1-Walk draws 0..2, IsaacGym averages it with the ground's 1; our ground takes the foot's: (0..2 + 1) / 2 is drawn
    friction = friction_event(0.5, 1.5)
    trunk_mass = payload_event(1.0, 3.0)


@configclass
class TerminationsCfg(QuadrupedTerminationsCfg):
    """A fall, a time-out, or physics gone wrong."""

    orientation = DoneTerm(func=mdp.roll_pitch_beyond, params={"max_roll": 0.8, "max_pitch": 1.6})
    height = DoneTerm(func=mdp.height_below_minimum, params={"minimum_height": 0.15})


@configclass
class A1Stage1EnvCfg(QuadrupedEnvCfg):
    """Stage 1: the healthy robot learns to walk."""

    bodies: BodyNamesCfg = BodyNamesCfg(
        trunk="trunk|base_link",  # as the descriptions of exported policies have it
        feet=["FL_calf", "FR_calf", "RL_calf", "RR_calf"],
    )
    commands: CommandsCfg = CommandsCfg()
    events: EventsCfg = EventsCfg()
    terminations: TerminationsCfg = TerminationsCfg()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.set_robot("a1", A1_CFG)
        self.scene.terrain = preset(flat=FLAT_GROUND_CFG, perlin=training_tracks(), default=training_tracks())
        self.rewards.torque_limits.params["limit"] = TORQUE_LIMIT
        self.rewards.base_height.params["target_height"] = STANDING_HEIGHT


@configclass
class A1Stage2EnvCfg(FaultyJoints, A1Stage1EnvCfg):
    """Stage 2: the same task with faults."""


ROBOT_AGENTS = RobotAgents(
    robot="a1",
    articulation=A1_CFG,
    actor_joint_start=12,
    # ParkourGym's 1.0 throws A1 over within a second; with 0.5 episodes reached 640 of 1,000 steps after 56
    # iterations, with 1.0 138 after 41 (256 envs, ovphysx)
    init_std=0.5,
)

__getattr__ = ROBOT_AGENTS.cfg
