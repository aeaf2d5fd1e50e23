# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Scene, engine presets and fault terms that every UMC task shares."""

from dataclasses import MISSING

from isaaclab.assets import ArticulationCfg, AssetBaseCfg
from isaaclab.envs import ManagerBasedRLEnvCfg
from isaaclab.managers import EventTermCfg, SceneEntityCfg
from isaaclab.scene import InteractiveSceneCfg
from isaaclab.sensors import ContactSensorCfg
from isaaclab.sim import DomeLightCfg
from isaaclab.terrains import TerrainImporterCfg
from isaaclab.utils import configclass
from isaaclab_newton.physics import MJWarpSolverCfg, NewtonCfg, NewtonShapeCfg
from isaaclab_ov.physics import OvPhysxCfg
from isaaclab_physx.physics import PhysxCfg
from isaaclab_tasks.utils import PresetCfg, preset

from umc import mdp
from umc.faults import paper_settings, training_faults
from umc.tasks.device import DEFAULT_DEVICE
from umc.terrains import FLAT_GROUND_CFG

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


def physics_presets(njmax: int, nconmax: int, num_substeps: int = 1) -> PresetCfg:
    """Return the three engines, chosen by ``physics=<name>`` on the command line; the default is Newton."""
    newton = NewtonCfg(
        solver_cfg=MJWarpSolverCfg(
            njmax=njmax, nconmax=nconmax, cone="pyramidal", impratio=1.0, integrator="implicitfast"
        ),
        num_substeps=num_substeps,
        default_shape_cfg=NewtonShapeCfg(margin=0.0),
    )
    return preset(newton_mjwarp=newton, ovphysx=OvPhysxCfg(), isaacsim_physx=PhysxCfg(), default=newton)


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
class FaultEventsCfg:
    """The fault terms; a robot's events follow them, so that ``begin_faults`` restores limits before others reset."""

    begin_faults = EventTermCfg(func=mdp.begin_fault_episode, mode="reset")
    # every step: switches due faults on
    faults = EventTermCfg(
        func=mdp.joint_faults, mode="interval", interval_range_s=(0.0, 0.0), is_global_time=True, params=MISSING
    )


@configclass
class LeggedEnvCfg(ManagerBasedRLEnvCfg):
    """Timing and scene of every UMC task."""

    scene: LeggedSceneCfg = LeggedSceneCfg(num_envs=4096, env_spacing=2.5)

    def __post_init__(self) -> None:
        """Set the timing that the public tasks share, and the device."""
        self.decimation = DECIMATION
        self.episode_length_s = EPISODE_LENGTH
        self.sim.dt = PHYSICS_DT
        self.sim.device = DEFAULT_DEVICE
        self.sim.render_interval = DECIMATION

    def set_robot(self, name: str, robot: ArticulationCfg) -> None:
        """Put a robot in the scene, with the paper's number of envs and the faults of its training table, all healthy.

        Both stages keep the fault terms, so that they share one layout; Stage 2 changes their odds.
        """
        self.scene.robot = robot
        self.scene.num_envs = paper_settings(name, "training")["num_envs"]
        self.events.faults.params = {
            "asset_cfg": SceneEntityCfg("robot"),
            **training_faults(name),
            "ratios": HEALTHY_RATIOS,
        }
