# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Random faults and pushes in a task of Isaac Lab."""

from __future__ import annotations

from typing import Any

from isaaclab.envs import mdp as lab
from isaaclab.managers import EventTermCfg

from umc.diagnosis.faults import LEARNED, PUSH, PUSH_EVERY, RandomFaults, random_settings
from umc.evaluation.conditions import add_command_faults, drop_events, replace_faults
from umc.faults import CommandKind, FaultsCfg, find_kind
from umc.mdp.fault_terms import FAULTS_TERM
from umc.mdp.observations import entries


def add_random_faults(env_cfg: Any, seed: int, push: bool = True, faults: RandomFaults = LEARNED) -> None:
    """Let half of the robots of a task fail in random ways, and push them in place of the task's own pushes."""
    steps = int(env_cfg.episode_length_s / (env_cfg.sim.dt * env_cfg.decimation))
    term = entries(env_cfg.events).get(FAULTS_TERM)
    # a cfg of add_faults leaves out what is the default
    most = (term.params if term else {}).get("num_joints", FaultsCfg().num_joints)[1]
    replace_faults(env_cfg, **random_settings(faults, seed, steps, most))
    if any(isinstance(find_kind(kind), CommandKind) for name in faults.odds for kind in name.split("+")):
        add_command_faults(env_cfg)
    env_cfg.curriculum = None
    drop_events(env_cfg, "interval")  # the task's own pushes
    if push:
        speed = {"x": (-PUSH, PUSH), "y": (-PUSH, PUSH)}
        env_cfg.events.push = EventTermCfg(
            func=lab.push_by_setting_velocity,
            mode="interval",
            interval_range_s=PUSH_EVERY,
            params={"velocity_range": speed},
        )
