# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Lets a policy act in a running environment and hands the recorders what they need."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from isaaclab.managers import SceneEntityCfg
from tensordict import TensorDict
from tqdm import tqdm

from umc.mdp import fault_state, foot_contact

from .gait import GaitRecorder, GaitReport
from .metrics import EpisodeRecorder, Episodes
from .protocol import Protocol

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv

NON_FINITE_TERM = "non_finite_state"
"""Termination term of every UMC task that catches broken physics."""

CONTACT_SENSOR = "contact_forces"
"""Contact sensor of every UMC task."""

HEARTBEAT = 10.0
"""Seconds between progress lines where there is no terminal."""

Policy = Callable[[TensorDict], torch.Tensor]
"""From observation groups to actions."""


@dataclass(frozen=True)
class Step:
    """State of all envs after one env step; envs that ended have been reset already."""

    number: int
    """Counted from 1."""
    position: torch.Tensor
    """Horizontal position of the trunk [m]. Shape is (num_envs, 2)."""
    forward_velocity: torch.Tensor
    """Velocity along the robot's own forward axis [m/s]. Shape is (num_envs,)."""
    height: torch.Tensor
    """Height of the trunk above the env's origin [m]. Shape is (num_envs,)."""
    fell: torch.Tensor
    """Envs that ended other than by time or broken physics. Shape is (num_envs,)."""
    non_finite: torch.Tensor
    """Envs whose physics broke. Shape is (num_envs,)."""
    timed_out: torch.Tensor
    """Envs whose time ran out. Shape is (num_envs,)."""


@dataclass(frozen=True)
class FaultRun:
    """An evaluation under faults; tensors live on the CPU."""

    episodes: Episodes
    scenario: torch.Tensor
    """Scenario of every env. Shape is (num_envs,)."""
    onset: torch.Tensor
    """Onset of every env [env steps]. Shape is (num_envs,)."""
    joints: torch.Tensor
    """Faulty joints of every env. Shape is (num_envs, num_joints)."""


def drive(env: ManagerBasedRLEnv, policy: Policy, obs: Any, steps: int, title: str) -> Iterator[Step]:
    """Steps an environment that has just been reset.

    Args:
        env: The environment.
        policy: Chooses the actions.
        obs: Observations of the reset.
        steps: Number of env steps.
        title: What the progress bar says.

    Yields:
        The state after every step.
    """
    robot = env.scene["robot"]
    interval = 0.2 if sys.stderr.isatty() else HEARTBEAT
    for number in tqdm(range(1, steps + 1), desc=title, unit="step", mininterval=interval, dynamic_ncols=True):
        actions = policy(TensorDict(obs, batch_size=[env.num_envs]))
        obs, _, terminated, truncated, _ = env.step(actions)
        broken = env.termination_manager.get_term(NON_FINITE_TERM)
        position = robot.data.root_pos_w.torch - env.scene.env_origins
        yield Step(
            number=number,
            position=position[:, :2].clone(),
            forward_velocity=robot.data.root_lin_vel_b.torch[:, 0].clone(),
            height=position[:, 2].clone(),
            fell=terminated & ~broken,
            non_finite=broken.clone(),
            timed_out=truncated & ~terminated,
        )


def run_faults(env: ManagerBasedRLEnv, policy: Policy, protocol: Protocol) -> FaultRun:
    """One episode of every env under the protocol's scenarios, all side by side.

    Args:
        env: The environment, made with :func:`umc.evaluation.conditions.set_faults`.
        policy: Chooses the actions.
        protocol: The conditions.

    Returns:
        What happened.
    """
    obs, _ = env.reset()
    state = fault_state(env)
    # the plan of this episode; a fallen env draws another one, which does not count
    joints, onset = state.joints.clone(), state.onset.clone()
    number = torch.arange(env.num_envs, device=onset.device)
    # where nothing breaks, the distance still counts from somewhere: the onsets are dealt out in turn
    turn = (number // len(protocol.scenarios)) % len(protocol.onset)
    dealt = torch.tensor(protocol.onset, device=onset.device)[turn]
    onset = torch.where(joints.any(1), onset, dealt)
    recorder = EpisodeRecorder(onset)
    for step in drive(env, policy, obs, protocol.steps, "evaluating"):
        recorder.record(step.position, step.forward_velocity, step.height, step.fell, step.non_finite, step.timed_out)
        if not recorder.open.any():
            break
    return FaultRun(recorder.episodes().cpu(), protocol.scenario_of_env(env.num_envs), onset.cpu(), joints.cpu())


def run_healthy(
    env: ManagerBasedRLEnv, policy: Policy, feet: tuple[str, ...], command: float, steps: int
) -> GaitReport:
    """How the healthy robots walk.

    Args:
        env: The environment, made with :func:`umc.evaluation.conditions.set_healthy`.
        policy: Chooses the actions.
        feet: Bodies that carry the feet.
        command: Commanded forward speed [m/s].
        steps: Number of env steps.

    Returns:
        The figures.
    """
    obs, _ = env.reset()
    sensor_cfg = SceneEntityCfg(CONTACT_SENSOR, body_names=list(feet), preserve_order=True)
    sensor_cfg.resolve(env.scene)
    recorder = GaitRecorder(env.num_envs, feet, env.device)
    for step in drive(env, policy, obs, steps, "walking"):
        contact = foot_contact(env, sensor_cfg)
        recorder.record(step.position, step.forward_velocity, step.height, contact, step.fell, step.non_finite)
    return recorder.report(command, env.step_dt, steps)
