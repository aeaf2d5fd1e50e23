# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Solo8 walks straight ahead: A1-Walk's terms with the figures of solo_gym (WASABI, CASSI) and of the paper."""

from isaaclab.envs import mdp as lab
from isaaclab.managers import ObservationGroupCfg, SceneEntityCfg
from isaaclab.managers import ObservationTermCfg as ObsTerm
from isaaclab.utils import configclass
from isaaclab.utils.noise import UniformNoiseCfg as Noise
from isaaclab_tasks.utils import PresetCfg, preset

from umc import mdp
from umc.robots import SOLO8_CFG
from umc.robots.solo8 import EFFORT_LIMIT, RESET_SCALE
from umc.tasks.base import ActorTermsCfg, FaultyJoints, friction_event, payload_event
from umc.tasks.bodies import BodyNamesCfg
from umc.tasks.ppo import RobotAgents
from umc.tasks.quadruped import QuadrupedEnvCfg, QuadrupedEventsCfg, QuadrupedObservationsCfg, forward_command

STANDING_HEIGHT = 0.24
"""Height of the base that the height term asks for [m] (solo_gym); that of the default pose."""

BODIES_THAT_MUST_NOT_TOUCH = ["base_link", ".*_UPPER_LEG"]
"""A contact of theirs ends the episode (solo_gym)."""


@configclass
class CommandsCfg:
    """Straight ahead at up to 1 m/s, a new speed every 5 s (solo_gym)."""

    base_velocity = forward_command(0.0, 1.0, seconds=5.0)


@configclass
class OrientationCfg(ObservationGroupCfg):
    """Orientation of the base."""

    orientation = ObsTerm(func=lab.root_quat_w, noise=Noise(n_min=-0.05, n_max=0.05))


@configclass
class MtFtcPolicyCfg(ActorTermsCfg, OrientationCfg):  # the columns of the last base come first
    """What the baseline MT-FTC observes: orientation 4, command 2, then as all actors 3 columns per joint."""

    command = ObsTerm(func=mdp.forward_and_turn, params={"command_name": "base_velocity"}, scale=(2.0, 0.25))

    def __post_init__(self) -> None:
        super().__post_init__()
        self.base_ang_vel = self.projected_gravity = None


@configclass
class ObservationsCfg(QuadrupedObservationsCfg):
    """What actor and critic observe; ``mt_ftc`` is what the agent of this name reads."""

    policy: PresetCfg = preset(default=QuadrupedObservationsCfg.PolicyCfg(), mt_ftc=MtFtcPolicyCfg())
    fault_class: PresetCfg = preset(default=None, mt_ftc=mdp.FaultClassCfg())


@configclass
class EventsCfg(QuadrupedEventsCfg):
    """Faults, then randomisation of physics and of the start."""

    # legged_gym draws 0.5..1.25 and Isaac Gym averages it with the ground's 1; here the foot's friction alone counts
    friction = friction_event(0.75, 1.125)
    # the same part of its weight (2.18 kg) as A1 carries of its own (13.74 kg)
    trunk_mass = payload_event(0.16, 0.48)


@configclass
class Solo8Stage1EnvCfg(QuadrupedEnvCfg):
    """Stage 1: the healthy robot learns to walk."""

    bodies: BodyNamesCfg = BodyNamesCfg(
        trunk="base_link", feet=["FL_LOWER_LEG", "FR_LOWER_LEG", "HL_LOWER_LEG", "HR_LOWER_LEG"]
    )
    commands: CommandsCfg = CommandsCfg()
    observations: ObservationsCfg = ObservationsCfg()
    events: EventsCfg = EventsCfg()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.set_robot("solo8", SOLO8_CFG)
        self.events.reset_joints.params["position_range"] = RESET_SCALE
        self.rewards.torque_limits.params["limit"] = EFFORT_LIMIT
        self.rewards.base_height.params["target_height"] = STANDING_HEIGHT
        self.terminations.trunk_contact.params["sensor_cfg"] = SceneEntityCfg(
            "contact_forces", body_names=BODIES_THAT_MUST_NOT_TOUCH
        )


@configclass
class Solo8Stage2EnvCfg(FaultyJoints, Solo8Stage1EnvCfg):
    """Stage 2: the same task with faults."""


ROBOT_AGENTS = RobotAgents(
    robot="solo8",
    articulation=SOLO8_CFG,
    actor_joint_start=12,
    init_std=0.5,  # as A1
)

__getattr__ = ROBOT_AGENTS.cfg
