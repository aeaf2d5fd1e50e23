# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Conditions of an evaluation: no noise, one command, the assigned scenario, and ground that depends on the robot."""

from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from umc.evaluation.conditions import TRACKS, set_healthy, set_track, tracks_of
from umc.evaluation.protocol import Setting, protocol_for
from umc.evaluation.study import EnvAssignment, assign_envs
from umc.faults import FaultsCfg, draw_source
from umc.terrains import FLAT_GROUND_CFG, perlin_tracks
from umc.terrains.track_importer import needed_grid
from umc.utils.errors import UmcError

STEPS = 9
ONSETS = (4, 6)
ENVS = 32


def evaluate_g1(physics, folder):
    """G1, since its training has everything that has to be switched off: noise, pushes, turning commands."""
    from fresh_policy import write_fresh
    from umc.evaluation.arguments import parse
    from umc.evaluation.conditions import set_protocol
    from umc.evaluation.protocol import Setting, protocol_for
    from umc.evaluation.rollout import reset_batch, run_faults, step_policy
    from umc.evaluation.session import open_session, prepare
    from umc.evaluation.study import EnvAssignment, assign_envs
    from umc.mdp import fault_state

    checkpoint = write_fresh(Path(folder), task="UMC-G1-Stage2", model="mlp")
    options, overrides = parse(["--checkpoint", str(checkpoint), f"physics={physics}"], lambda _: None)
    session = prepare(options, overrides)
    protocol = replace(protocol_for("g1"), settings=tuple(Setting(3, onset) for onset in ONSETS), steps=STEPS)
    set_protocol(session.env_cfg, protocol, ENVS)
    with open_session(session) as (env, (policy,)):
        assignment = assign_envs(protocol, ENVS)
        obs = reset_batch(env, protocol, assignment)
        state = fault_state(env)
        again = [env.observation_manager.compute()["policy"].clone() for _ in range(2)]
        result = {
            "noise": float((again[0] - again[1]).abs().max()),
            "intervals": list(env.event_manager.active_terms["interval"]),
            "onset": state.onset.tolist(),
            "assigned": [
                (setting.onset, scenario) for setting, scenario in (protocol.cells[cell] for cell in assignment.cell)
            ],
            "commands": [],
            "dead": [],
            "flag": [],
            "seen_mask": [],
        }
        for _ in step_policy(env, policy, obs, STEPS):
            result["commands"].append(env.command_manager.get_command("base_velocity").tolist())
            result["dead"].append(state.joint_mask.sum(1).tolist())
            result["flag"].append(env.obs_buf["fault_flag"].tolist())
            result["seen_mask"].append(env.obs_buf["joint_mask"].sum(1).tolist())
        # the same robots in other envs: half of them in reverse order, which replaces the other half
        first = run_faults(env, policy, protocol, assignment)
        order = torch.cat([torch.arange(ENVS // 2).flip(0), torch.arange(ENVS // 2)])
        other = EnvAssignment(assignment.cell[order], assignment.member[order], assignment.onset[order])
        second = run_faults(env, policy, protocol, other)
        result["moved"] = {
            field.name: float(
                (getattr(first.episodes, field.name)[order] - getattr(second.episodes, field.name)).abs().max()
            )
            for field in fields(first.episodes)
        }
        result["joints moved"] = torch.equal(first.joints[order], second.joints)
        result["spread"] = float(first.episodes.speed_before_onset.std())
    return result


@pytest.mark.engine
def test_commands_observations_and_faults_of_an_evaluation(run_engine, tmp_path):
    seen = run_engine(evaluate_g1, folder=str(tmp_path))
    assert seen["noise"] == 0.0
    assert seen["intervals"] == ["faults"]
    for commands in seen["commands"]:
        assert all(command == pytest.approx([0.5, 0.0, 0.0]) for command in commands)
    for env, (onset, scenario) in enumerate(seen["assigned"]):
        assert scenario == env % 8 + 1
        assert onset == ONSETS[env // 8 % len(ONSETS)]
        for index in range(STEPS):
            broken = scenario != 8 and index + 1 >= seen["onset"][env]
            dead = seen["dead"][index][env]
            assert (2 <= dead <= 4) if broken and scenario <= 4 else dead == 0
            assert seen["seen_mask"][index][env] == dead
            flag = 1.0 if broken and scenario in (2, 3, 4) else -1.0
            assert seen["flag"][index][env] == [flag] * 3
        if scenario != 8:
            assert seen["onset"][env] == onset
    # a robot's outcome does not depend on who is simulated beside it
    assert seen["joints moved"]
    assert seen["spread"] > 1e-3
    assert max(seen["moved"].values()) < 1e-4


def break_commands_and_imu(physics, folder):
    """What A1 reads of its IMU, the targets that arrive, and pushes, none of which its task has."""
    from fresh_policy import write_fresh
    from umc.evaluation.arguments import parse
    from umc.evaluation.conditions import set_protocol
    from umc.evaluation.pushes import PUSH_EVERY, pushes
    from umc.evaluation.rollout import reset_batch, step_policy
    from umc.evaluation.session import open_session, prepare
    from umc.evaluation.study import assign_envs

    checkpoint = write_fresh(Path(folder), task="UMC-A1-Stage2", model="mlp")
    options, overrides = parse(["--checkpoint", str(checkpoint), f"physics={physics}"], lambda _: None)
    session = prepare(options, overrides)
    scenarios = ("imu_dead", "dropped", 8)
    protocol = replace(
        protocol_for("a1", scenarios), settings=(Setting(3, ONSETS[0]),), steps=STEPS, track={}, push=1.5
    )
    set_protocol(session.env_cfg, protocol, len(scenarios))
    rates, targets = [], []
    with open_session(session) as (env, (policy,)):
        terms = env.observation_manager.active_terms["policy"]
        before = sum(
            size[0] for size in env.observation_manager.group_obs_term_dim["policy"][: terms.index("base_ang_vel")]
        )
        obs = reset_batch(env, protocol, assign_envs(protocol, len(scenarios)))
        for _ in step_policy(env, policy, obs, STEPS):
            rates.append(env.obs_buf["policy"][:, before : before + 3].abs().amax(1).tolist())
            arrived = env.scene["robot"].actuators.target_command.position.torch
            targets.append(arrived.clone())
        robot, everyone, pushed = env.scene["robot"], torch.arange(len(scenarios)), []
        for step in range(2 * PUSH_EVERY):
            env.episode_length_buf[:] = step
            before_push = robot.data.root_vel_w.torch.clone()
            env.event_manager.apply("interval", dt=env.step_dt)
            changes = robot.data.root_vel_w.torch - before_push
            whom, how = pushes(torch.full((len(scenarios),), 3), everyone * 0, torch.full_like(everyone, step), 1.5)
            expected = torch.zeros_like(changes)
            expected[whom, :2] = how[whom]
            pushed.append((int(whom.sum()), float((changes - expected).abs().max())))
    changed = [(now != last).sum(1).tolist() for last, now in pairwise(targets)]
    return {"rates": rates, "changed": changed, "pushed": pushed}


@pytest.mark.engine
def test_an_evaluation_breaks_imu_and_commands_and_pushes_robots_of_a_task_without_them(run_engine, tmp_path):
    seen = run_engine(break_commands_and_imu, folder=str(tmp_path))
    after = ONSETS[0] + 1
    for rates in seen["rates"][after:]:
        assert rates[0] == 0.0
        assert min(rates[1:]) > 1e-4
    for changed in seen["changed"][after:]:
        assert changed[1] in (7, 8)  # four or five joints of twelve get no commands
        assert changed[0] == changed[2] == 12
    # all three are the first robot of the same seed; each is pushed twice
    assert sum(count for count, _ in seen["pushed"]) == 6
    assert max(error for _, error in seen["pushed"]) < 1e-5


def test_a_healthy_robot_has_no_fault_of_its_tasks_cases_or_replay():
    params = {"asset_cfg": None, "cases": [{"scenario": "rom"}], "replay": "x.jsonl", "num_joints": (1, 2)}
    cfg = SimpleNamespace(events={"faults": SimpleNamespace(params=params)})
    set_healthy(cfg)
    faults = FaultsCfg(**{name: value for name, value in params.items() if name != "asset_cfg"})
    assert faults.replay is None
    assert not draw_source(["a", "b"], faults, 4, episode_length=100).has_faults


def test_the_ground_under_a_robot_depends_on_its_setting_and_member_only():
    from umc.tasks.a1 import A1Stage2EnvCfg

    protocol, cfg = protocol_for("a1"), A1Stage2EnvCfg()
    cfg.scene.terrain = FLAT_GROUND_CFG
    set_track(cfg, protocol)
    assert cfg.scene.terrain is FLAT_GROUND_CFG
    cfg.scene.terrain = perlin_tracks(**protocol.track, seeds=1)
    set_track(cfg, protocol)
    small, large = (needed_grid(cfg.scene.terrain.replace(num_envs=num_envs)) for num_envs in (24, 100))
    assert [small.seed_of(column) for column in range(6)] == [100, 25, 75] * 2
    assert small.num_cols == large.num_cols == TRACKS
    assert small.num_rows == large.num_rows
    # 750 steps of 0.02 s at 0.5 m/s are 7.5 m
    assert small.num_rows * small.size[0] > 1.5 * 7.5
    assignment = assign_envs(protocol, 200)
    tracks = tracks_of(protocol, assignment)
    seeds = [small.seed_of(column) for column in tracks.tolist()]
    assert seeds == [protocol.cells[cell][0].perlin_seed for cell in assignment.cell.tolist()]
    order = torch.arange(len(tracks)).flip(0)
    other = EnvAssignment(assignment.cell[order], assignment.member[order], assignment.onset[order])
    assert torch.equal(tracks_of(protocol, other), tracks[order])
    assert set(tracks.tolist()) == set(range(TRACKS))
    many = tuple(Setting(1, onset, onset) for onset in range(75, 75 + TRACKS + 1))
    with pytest.raises(UmcError, match="13 terrain seeds; at most 12"):
        set_track(cfg, replace(protocol, settings=many))
