# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Scene, engine presets, observation, event and fault terms that every UMC task shares."""

from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any

from isaaclab.assets import ArticulationCfg, AssetBaseCfg
from isaaclab.envs import ManagerBasedRLEnvCfg
from isaaclab.envs import mdp as lab
from isaaclab.managers import EventTermCfg as EventTerm
from isaaclab.managers import ObservationGroupCfg, SceneEntityCfg
from isaaclab.managers import ObservationTermCfg as ObsTerm
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sensors import ContactSensorCfg
from isaaclab.sim import DomeLightCfg, SimulationCfg
from isaaclab.terrains import TerrainImporterCfg
from isaaclab.utils import configclass
from isaaclab.utils.noise import UniformNoiseCfg as Noise
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg, NewtonShapeCfg
from isaaclab_ov.physics import OvPhysxCfg
from isaaclab_physx.physics import PhysxCfg
from isaaclab_tasks.utils import PresetCfg, preset

from umc import mdp
from umc.faults import paper_settings, training_faults
from umc.mdp import FaultEventsCfg as FaultEventsCfg  # tasks take it from here
from umc.tasks.bodies import TRUNK, BodyNamesCfg, check_robot, name_bodies
from umc.tasks.device import DEFAULT_DEVICE
from umc.terrains import FLAT_GROUND_CFG, GROUND_MATERIAL, TrackImporterCfg
from umc.utils.errors import UmcError

PHYSICS_DT = 0.005
"""Physics step [s] of A1-Walk, unitree_rl_gym and solo_gym."""

DECIMATION = 4
"""Physics steps per policy step of the same tasks (50 Hz)."""

HEALTHY_RATIOS = (1.0, 0.0, 0.0, 0.0)
"""Odds of normal, sensor-only, detectable and undetectable episodes in Stage 1."""

EQUAL_RATIOS = (1.0, 1.0, 1.0, 1.0)
"""The same in Stage 2 (the paper's default)."""

EPISODE_LENGTH = 20.0
"""Training episode [s]: the paper's 1,000 steps at 50 Hz."""


def physics_presets(njmax: int, nconmax: int) -> PresetCfg:
    """Return the three engines, chosen by ``physics=<name>`` on the command line; the default is Newton."""
    newton = NewtonCfg(
        solver_cfg=MJWarpSolverCfg(
            njmax=njmax, nconmax=nconmax, cone="pyramidal", impratio=1.0, integrator="implicitfast"
        ),
        num_substeps=1,
        default_shape_cfg=NewtonShapeCfg(margin=0.0),
    )
    return preset(newton_mjwarp=newton, ovphysx=OvPhysxCfg(), isaacsim_physx=PhysxCfg(), default=newton)


def friction_event(low: float, high: float) -> EventTerm:
    """Return the event that draws the friction [-] of each shape of the robot at start-up; the ground adds none."""
    return EventTerm(
        func=lab.randomize_rigid_body_material,
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", body_names=".*"),
            "static_friction_range": (low, high),
            "dynamic_friction_range": (low, high),
            "restitution_range": (0.0, 0.0),
            "num_buckets": 64,
            "make_consistent": True,
        },
    )


def payload_event(low: float, high: float) -> EventTerm:
    """Return the event that adds a mass [kg] to the trunk at start-up."""
    return EventTerm(
        func=lab.randomize_rigid_body_mass,
        mode="startup",
        params={"asset_cfg": TRUNK, "mass_distribution_params": (low, high), "operation": "add"},
    )


def reset_base_event(yaw: float, speed: float) -> EventTerm:
    """Return the event that draws the start: heading up to ``yaw`` [rad], velocities up to ``speed`` [m/s], [rad/s]."""
    return EventTerm(
        func=lab.reset_root_state_uniform,
        mode="reset",
        params={
            "pose_range": {"x": (-0.5, 0.5), "y": (-0.5, 0.5), "yaw": (-yaw, yaw)},
            "velocity_range": dict.fromkeys(("x", "y", "z", "roll", "pitch", "yaw"), (-speed, speed)),
        },
    )


def reset_joints_event() -> EventTerm:
    """Return the event that scales the default joint angles at the start."""
    return EventTerm(
        func=lab.reset_joints_by_scale,
        mode="reset",
        params={"position_range": (0.5, 1.5), "velocity_range": (0.0, 0.0)},
    )


@configclass
class ActorTermsCfg(ObservationGroupCfg):
    """What every actor observes of base and joints, with noise."""

    base_ang_vel = ObsTerm(func=lab.base_ang_vel, scale=0.25, noise=Noise(n_min=-0.2, n_max=0.2))
    projected_gravity = ObsTerm(func=lab.projected_gravity, noise=Noise(n_min=-0.05, n_max=0.05))
    command = ObsTerm(func=lab.generated_commands, params={"command_name": "base_velocity"}, scale=(2.0, 2.0, 0.25))
    joint_pos = ObsTerm(
        func=mdp.joint_sensor, params={"func": lab.joint_pos_rel, "noise": Noise(n_min=-0.01, n_max=0.01)}
    )
    joint_vel = ObsTerm(
        func=mdp.joint_sensor,
        params={"func": lab.joint_vel_rel, "noise": Noise(n_min=-1.5, n_max=1.5)},
        scale=0.05,
    )
    last_action = ObsTerm(func=mdp.joint_sensor, params={"func": lab.last_action})

    def __post_init__(self) -> None:
        self.enable_corruption = True


@configclass
class CriticTermsCfg(ObservationGroupCfg):
    """What every critic observes: true values, and the linear velocity of the base."""

    base_lin_vel = ObsTerm(func=lab.base_lin_vel, scale=2.0)
    base_ang_vel = ObsTerm(func=lab.base_ang_vel, scale=0.25)
    projected_gravity = ObsTerm(func=lab.projected_gravity)
    command = ObsTerm(func=lab.generated_commands, params={"command_name": "base_velocity"}, scale=(2.0, 2.0, 0.25))
    joint_pos = ObsTerm(func=lab.joint_pos_rel)
    joint_vel = ObsTerm(func=lab.joint_vel_rel, scale=0.05)
    last_action = ObsTerm(func=lab.last_action)


@configclass
class LeggedObservationsCfg:
    """Groups of the actor (``policy``, ``joint_mask``, ``fault_flag``) and of the critic (``critic``)."""

    policy: ActorTermsCfg = MISSING
    joint_mask: mdp.JointMaskCfg = mdp.JointMaskCfg()
    fault_flag: mdp.FaultFlagCfg = mdp.FaultFlagCfg()
    critic: CriticTermsCfg = MISSING


@configclass
class LeggedSceneCfg(InteractiveSceneCfg):
    """A robot on a ground, with a contact sensor on every body."""

    # a preset of one, so that env.scene.terrain=flat says the same of every robot
    terrain: TerrainImporterCfg | PresetCfg = preset(flat=FLAT_GROUND_CFG, default=FLAT_GROUND_CFG)
    robot: ArticulationCfg = MISSING
    contact_forces: ContactSensorCfg = ContactSensorCfg(
        prim_path="{ENV_REGEX_NS}/Robot/[^/]*", history_length=3, track_air_time=True, update_period=PHYSICS_DT
    )
    sky_light: AssetBaseCfg = AssetBaseCfg(prim_path="/World/skyLight", spawn=DomeLightCfg(intensity=750.0))


@configclass
class LeggedEnvCfg(ManagerBasedRLEnvCfg):
    """Timing and scene of every UMC task."""

    bodies: BodyNamesCfg = BodyNamesCfg()
    """The robot's trunk and feet, for the terms that act on them."""

    detection: mdp.DetectionCfg = mdp.DetectionCfg()
    """What mask and flag report."""

    scene: LeggedSceneCfg = LeggedSceneCfg(num_envs=4096, env_spacing=2.5)
    sim: SimulationCfg = SimulationCfg(physics=physics_presets(njmax=200, nconmax=40))

    def __post_init__(self) -> None:
        """Set the timing that the public tasks share, and the device."""
        self.decimation = DECIMATION
        self.episode_length_s = EPISODE_LENGTH
        self.sim.dt = PHYSICS_DT
        self.sim.device = DEFAULT_DEVICE
        self.sim.render_interval = DECIMATION
        name_bodies(self)

    def validate_config(self) -> None:
        """Refuse a robot that does not fit the task; Isaac Lab calls this before it starts the simulation."""
        check_robot(self)
        terrain = self.scene.terrain
        # a preset of which nothing has been chosen yet, and no terrain, have no path
        own = isinstance(terrain, TrackImporterCfg) or getattr(terrain, "usd_path", "") == FLAT_GROUND_CFG.usd_path
        if own and terrain.physics_material != GROUND_MATERIAL:
            raise UmcError(
                "env.scene.terrain.physics_material would not act on every engine; change the friction of the feet: "
                "env.events.friction.params.static_friction_range and dynamic_friction_range"
            )

    def set_robot(self, name: str, robot: ArticulationCfg, faults: Mapping[str, Any] | None = None) -> None:
        """Put a robot in the scene, all healthy: with fields of ``faults``, or the paper's training table where None.

        Both stages keep the fault terms, so that they share one layout; Stage 2 changes their odds.
        """
        self.scene.robot = robot
        if faults is None:
            self.scene.num_envs = paper_settings(name, "training")["num_envs"]
            faults = training_faults(name)
        self.events.faults.params = {"asset_cfg": SceneEntityCfg("robot"), **faults, "ratios": HEALTHY_RATIOS}

    def enable_faults(self) -> None:
        """Draw the four subcategories of faults equally often (Stage 2)."""
        self.events.faults.params["ratios"] = EQUAL_RATIOS


class FaultyJoints:
    """Mixin of Stage 2 cfgs; list it before the Stage 1 cfg."""

    def __post_init__(self: Any) -> None:
        super().__post_init__()
        self.enable_faults()
