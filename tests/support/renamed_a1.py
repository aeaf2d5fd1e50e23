# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A package with a task of its own: Isaac Lab's A1 on rough ground, with other names and a file on this machine."""

import gymnasium as gym
from isaaclab.utils import configclass
from isaaclab_tasks.contrib.velocity.config.a1.rough_env_cfg import UnitreeA1RoughEnvCfg
from umc.robots.spawn import DATA
from umc.tasks.bodies import selections


@configclass
class RenamedA1EnvCfg(UnitreeA1RoughEnvCfg):
    """The command is called ``walk`` and the contact sensor ``touch``; there is one engine, and no fall."""

    def __post_init__(self):
        super().__post_init__()
        self.scene.robot.spawn = self.scene.robot.spawn.replace(usd_path=str(DATA / "a1.usda"))
        self.scene.terrain.visual_material = None
        self.scene.sky_light.spawn.texture_file = None
        self.scene.terrain.terrain_generator.num_rows = self.scene.terrain.terrain_generator.num_cols = 2
        self.sim.physics = self.sim.physics.ovphysx
        self.terminations.base_contact = None
        self.rewards.feet_air_time.params["sensor_cfg"].body_names = ".*_calf"
        self.commands.walk, self.commands.base_velocity = self.commands.base_velocity, None
        self.commands.walk.debug_vis = False
        self.scene.touch, self.scene.contact_forces = self.scene.contact_forces, None
        for _, entity in selections(self):
            if entity.name == "contact_forces":
                entity.name = "touch"
        self.observations.policy.velocity_commands.params["command_name"] = "walk"
        for term in vars(self.rewards).values():
            if term is not None and "command_name" in term.params:
                term.params["command_name"] = "walk"


gym.register(
    id="Renamed-A1",
    entry_point="isaaclab.envs:ManagerBasedRLEnv",
    disable_env_checker=True,
    kwargs={"env_cfg_entry_point": f"{__name__}:RenamedA1EnvCfg"},
)
