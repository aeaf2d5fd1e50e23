# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Steps a policy in a running environment and passes what every step measures to the recorders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from isaaclab.managers import SceneEntityCfg
from tensordict import TensorDict
from tqdm import tqdm

from umc.evaluation.conditions import tracks_of
from umc.evaluation.detections import DetectionRecorder
from umc.evaluation.gait import GaitRecorder, GaitReport, JointLoad, LoadRecorder
from umc.evaluation.metrics import EpisodeRecorder, Step
from umc.evaluation.protocol import Protocol
from umc.evaluation.starts import starts_of
from umc.evaluation.study import EnvAssignment, EpisodeBatch, assign_envs, faulty_joints, severities
from umc.faults import FaultCases
from umc.mdp import foot_contact, height_above_ground
from umc.mdp.fault_terms import fault_term
from umc.rl.policy import Policy
from umc.tasks.parts import parts_of
from umc.terrains.tracks import tracks_in
from umc.utils.console import progress_bar

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedRLEnv


def step_policy(
    env: ManagerBasedRLEnv, policy: Policy, obs: Any, steps: int, bar: tqdm | None = None
) -> Iterator[Step]:
    """Step an environment that has just been reset, and yield what every step measures."""
    robot = env.scene["robot"]
    parts = parts_of(env.cfg)
    policy.reset(None)
    for number in range(1, steps + 1):
        actions = policy(TensorDict(obs, batch_size=[env.num_envs]))
        obs, _, terminated, truncated, _ = env.step(actions)
        policy.reset(terminated | truncated)
        broken = env.termination_manager.get_term(parts.non_finite)
        position = robot.data.root_pos_w.torch - env.scene.env_origins
        height = height_above_ground(env)
        velocity = robot.data.root_lin_vel_b.torch
        command = env.command_manager.get_command(parts.command)
        effort, joint_velocity = robot.actuators.applied_effort.torch, robot.data.joint_vel.torch
        power = (effort * joint_velocity).clamp(min=0.0).sum(dim=1)
        yield Step(
            number=number,
            position=position[:, :2].clone(),
            forward_velocity=velocity[:, 0].clone(),
            height=height.clone(),
            fell=terminated & ~broken,
            non_finite=broken.clone(),
            timed_out=truncated & ~terminated,
            velocity_error=(command[:, :2] - velocity[:, :2]).norm(dim=1),
            sideward_velocity=velocity[:, 1].clone(),
            turning_rate=robot.data.root_ang_vel_b.torch[:, 2].clone(),
            effort=effort.clone(),
            joint_velocity=joint_velocity.clone(),
            work=power * env.step_dt,
        )
        if bar is not None:
            bar.update()


def reset_batch(env: ManagerBasedRLEnv, protocol: Protocol, assignment: EnvAssignment | None = None) -> Any:
    """Reset all envs to the starts and faults of a batch, and return the observations."""
    assignment = assignment or assign_envs(protocol, env.num_envs)
    source = fault_term(env).source
    assert isinstance(source, FaultCases)
    source.assign(assignment.cell, assignment.member)
    seed = torch.tensor([setting.seed for setting, _ in protocol.cells])
    starts_of(env).prepare(seed[assignment.cell], assignment.member)
    tracks = tracks_in(env.scene)
    if tracks is not None and protocol.track and protocol.perlin_seeds:  # the tracks of set_track
        tracks.place(tracks_of(protocol, assignment).to(env.device))
    obs, _ = env.reset()
    return obs


def run_faults(
    env: ManagerBasedRLEnv,
    policy: Policy,
    protocol: Protocol,
    assignment: EnvAssignment | None = None,
    feet: SceneEntityCfg | None = None,
    bar: tqdm | None = None,
) -> EpisodeBatch:
    """Run one episode in every env, all cells of the protocol side by side; with ``feet``, record their stance."""
    assignment = assignment or assign_envs(protocol, env.num_envs)
    obs = reset_batch(env, protocol, assignment)
    state = fault_term(env).state
    joints, severity = faulty_joints(state), severities(state)
    onset = assignment.onset.to(env.device)
    recorder = EpisodeRecorder(onset)
    num_feet = 0 if feet is None else len(cast(torch.Tensor, feet.body_ids))
    stance = torch.zeros(env.num_envs, num_feet, dtype=torch.bool, device=env.device)
    onsets = set(assignment.onset.tolist())
    detector = fault_term(env).detector
    reports = None if detector is None else DetectionRecorder(onset, joints, state.joints.any(dim=1))
    for step in step_policy(env, policy, obs, protocol.steps, bar):
        if feet is not None and step.number in onsets:
            stance = torch.where((onset == step.number)[:, None], foot_contact(env, feet), stance)
        recorder.record(step)
        if reports is not None and detector is not None:
            reports.record(step.number, detector.reported.any(dim=2), recorder.open)
        if recorder.has_ended:
            if bar is not None:
                bar.update(protocol.steps - step.number)
            break
    found = EpisodeBatch(
        recorder.episodes(),
        assignment.cell,
        assignment.member,
        assignment.onset,
        joints,
        severity,
        None if feet is None else stance,
        None if reports is None else reports.detections(),
    )
    return EpisodeBatch.from_tensors({name: value.cpu() for name, value in found.tensors().items()})


def feet_sensor(env: ManagerBasedRLEnv, feet: Sequence[str]) -> tuple[SceneEntityCfg, tuple[str, ...]]:
    """Return the contact sensor at some bodies, and their names in its order."""
    sensor = parts_of(env.cfg).contact_sensor
    sensor_cfg = SceneEntityCfg(sensor, body_names=list(feet), preserve_order=True)
    sensor_cfg.resolve(env.scene)
    bodies: Any = env.scene[sensor]
    names = tuple(bodies.body_names[index] for index in cast(list[int], sensor_cfg.body_ids))
    sensor_cfg.finalize(env.device)  # a list would be uploaded in every step
    return sensor_cfg, names


def run_healthy(
    env: ManagerBasedRLEnv, policy: Policy, feet: tuple[str, ...], protocol: Protocol, steps: int
) -> tuple[GaitReport, tuple[JointLoad, ...]]:
    """Measure how healthy robots walk, and how it loads their joints."""
    obs, _ = env.reset()
    sensor_cfg, names = feet_sensor(env, feet)
    recorder = GaitRecorder(env.num_envs, names, env.device)
    loads = LoadRecorder(env.scene["robot"].joint_names)
    with progress_bar(steps, "walking") as bar:
        for step in step_policy(env, policy, obs, steps, bar):
            recorder.record(step, foot_contact(env, sensor_cfg))
            loads.record(step.effort, step.joint_velocity, recorder.up)
    return recorder.report(protocol.command, env.step_dt, steps), loads.report(protocol.severity)
