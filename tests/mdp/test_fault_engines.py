# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What faults do to A1 on real engines: one run per engine, in which every env has its own fault."""

import math
from types import SimpleNamespace

import pytest
import torch

pytestmark = [pytest.mark.engine, pytest.mark.core]

ENGINES = ("newton_mjwarp", "ovphysx")

ONSET = 20
EPISODE = 240
AGAIN = 22
"""Physics steps to the fault, of the episode, and of the second episode that is watched."""

EFFORT_LIMIT, VELOCITY_LIMIT, ROM_FRACTION = 1.0, 3.0, 0.3

TWIN = 4
"""Moving slowly in the air with a speed limit that it never reaches and dead sensors."""
FAST, WEAK, BASELINE = 1, 2, 7
"""Swinging in the air with less speed; with less torque; healthy."""
SHORT = 3
"""Less range of motion in the air: slow until STIR, then a sine over the full range."""
RUNNER, STUMBLER = 5, 6
"""On the ground under random actions: less speed; less range of motion and dead sensors."""
SCENARIOS = (8, 7, 6, 5, 4, 7, 2, 8)
STIR = ONSET + 20
PARTS = ("on", "severity", "onset")
"""What is compared between engines of each kind of fault."""
DEAD, SENSED = (TWIN, STUMBLER), (FAST, WEAK, SHORT, RUNNER)
"""Envs with dead sensors, and with joint faults that nobody detects."""

AFTER = slice(ONSET, EPISODE - 1)
"""Rows with the fault: row i holds what step i + 1 left behind; the last one is reset."""


def faults_in_all_envs(physics: str, out: str) -> None:
    """Eight A1 go through one episode and the start of the next."""
    from functools import partial

    import fault_env
    from isaaclab.actuators.newton import read_group_parameter
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.managers import EventTermCfg
    from umc import mdp

    faults = {
        "num_joints": (4, 4),
        "severity": {"rom": ROM_FRACTION, "effort": EFFORT_LIMIT, "velocity": {".*": VELOCITY_LIMIT}},
        "onset": ONSET,
        "scenario": SCENARIOS,
        "seed": 3,
    }
    cfg = fault_env.a1_cfg(physics, len(SCENARIOS), EPISODE, faults)
    cfg.episode_length_s, cfg.decimation = cfg.episode_length_s / cfg.decimation, 1
    cfg.actions.joint_pos.scale = 1.0
    to_start = partial(fault_env.place, on_ground=(RUNNER, STUMBLER))
    cfg.events = {
        "reset_faults": cfg.events.reset_faults,
        "place": EventTermCfg(func=lambda env, env_ids: to_start(env, env_ids), mode="reset"),
        "faults": cfg.events.faults,
    }
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    robot, state = env.scene["robot"], mdp.fault_state(env)
    data = robot.data

    def properties():
        shown = (data.joint_pos_limits, data.soft_joint_pos_limits, data.default_joint_pos, data.joint_vel_limits)
        efforts = read_group_parameter(robot.actuators, "legs", "clamping", "max_effort")
        return [*(array.torch.clone() for array in shown), efforts.clone()]

    log, generator = fault_env.Log(), torch.Generator().manual_seed(0)
    limits, default = data.joint_pos_limits.torch.clone(), data.default_joint_pos.torch.clone()
    middle, half = limits.mean(-1), (limits[..., 1] - limits[..., 0]) / 2
    log.once["healthy"] = properties()
    wander = torch.zeros(len(SCENARIOS), 12)
    for number in range(EPISODE + AGAIN):
        time = number * cfg.sim.dt
        target = torch.full((len(SCENARIOS), 12), 0.2 * math.sin(2 * math.pi * time))
        target[[FAST, WEAK, BASELINE]] = 0.5 * math.sin(4 * math.pi * time)
        if number >= STIR:
            target[SHORT] = (middle + half * math.sin(6 * math.pi * time) - default)[SHORT]
        if number % 4 == 0:
            wander = 0.8 * wander + 0.3 * torch.randn(len(SCENARIOS), 12, generator=generator)
        target[[RUNNER, STUMBLER]] = wander[[RUNNER, STUMBLER]]
        observed = env.step(target)[0]
        log.add(
            q=data.joint_pos.torch,
            v=data.joint_vel.torch,
            torque=robot.actuators.applied_effort.torch,
            readings=observed["policy"][:, 12:48].unflatten(-1, (3, 12)),
            mask=observed["joint_mask"],
            flag=observed["fault_flag"],
            active=state.active,
            limits=data.joint_pos_limits.torch,
        )
        if number == ONSET:
            kinds = {name: state.live_fault(name) for name in ("dead", "rom", "effort", "velocity")}
            plan = {f"{name}.{part}": getattr(live, part).clone() for name, live in kinds.items() for part in PARTS}
            log.once |= {"joints": state.joints.clone(), "plan": plan, "broken": properties()}
        if number == EPISODE - 1:
            log.once["restored"] = properties()
    log.save(out)


@pytest.fixture(scope="module")
def logs(run_engine, tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("faults"), {}
    for physics in ENGINES:
        run_engine(faults_in_all_envs, physics=physics, out=str(folder / physics))
        found[physics] = SimpleNamespace(**torch.load(folder / physics, weights_only=True), engine=physics)
    return found


@pytest.fixture(params=ENGINES)
def log(request, logs):
    return logs[request.param]


def test_engines_break_the_same_joints(logs):
    newton, physx = (logs[physics] for physics in ENGINES)
    assert torch.equal(newton.joints, physx.joints)
    assert newton.joints.sum(1).tolist() == [0 if scenario == 8 else 4 for scenario in SCENARIOS]
    assert newton.plan.keys() == physx.plan.keys()
    for name, value in newton.plan.items():
        torch.testing.assert_close(value, physx.plan[name], rtol=0.0, atol=0.0, equal_nan=True, msg=name)
    assert all(newton.plan[f"{kind}.on"].any() for kind in ("dead", "rom", "effort", "velocity"))


def test_faults_set_in_at_their_step_and_again_in_the_next_episode(log):
    assert all(getattr(log, name).isfinite().all() for name in ("q", "v", "readings"))
    has_fault = torch.tensor([scenario != 8 for scenario in SCENARIOS])
    again = EPISODE - 1
    for first in (0, again):  # the reset comes at the end of step EPISODE
        assert not log.active[first : first + ONSET - (first == 0)].any()
    assert torch.equal(log.active[ONSET - 1], has_fault)
    assert torch.equal(log.active[again + ONSET], has_fault)


def test_torque_stays_below_the_fault_limit(log):
    torque, joints = log.torque[AFTER].abs(), log.joints[WEAK]
    assert torque[:, WEAK, joints].max() <= EFFORT_LIMIT * 1.001
    assert torque[:, BASELINE, joints].max() > 1.5 * EFFORT_LIMIT
    assert torque[:, WEAK, ~joints].max() > 1.5 * EFFORT_LIMIT


def test_a_joint_stays_inside_its_reduced_range(log):
    lower, upper = log.limits.unbind(-1)
    joints, width = log.joints[SHORT], (upper - lower)[:, SHORT]
    assert (width[ONSET] / width[0])[joints].tolist() == pytest.approx([ROM_FRACTION] * 4, rel=1e-4)
    over = torch.maximum(log.q - upper, lower - log.q)[AFTER]
    for env in (SHORT, STUMBLER):
        assert over[:, env, log.joints[env]].max() < (0.05 if log.engine == "newton_mjwarp" else 0.005)
    q = log.q[AFTER, SHORT][:, joints]
    assert (q.amax(0) - q.amin(0)).min() > 0.2  # it does move


def test_speed_stays_below_its_limit(log):
    speed = log.v[AFTER].abs()
    # the same motion without the fault
    assert speed[:, BASELINE, log.joints[FAST]].amax(0).min() > 1.5 * VELOCITY_LIMIT
    for env in (FAST, RUNNER):
        faulty = speed[:, env, log.joints[env]]
        assert (faulty > 1.1 * VELOCITY_LIMIT).float().mean() < 0.01
        assert faulty.max() < 1.5 * VELOCITY_LIMIT
    faulty = speed[:, FAST, log.joints[FAST]]
    assert faulty[faulty > 0.8 * VELOCITY_LIMIT].median() > 0.85 * VELOCITY_LIMIT  # it limits, it does not stop


@pytest.mark.parametrize("env", DEAD)
def test_a_dead_sensor_reads_exactly_0_from_onset_on(log, env):
    """Of position, velocity and last action."""
    joints = log.joints[env]
    readings = log.readings[:, env]
    assert (readings[ONSET - 2][:, joints] != 0.0).all()
    assert (readings[ONSET - 1 : EPISODE - 1][..., joints] == 0.0).all()
    assert (readings[AFTER][..., ~joints].abs().amax(0) > 0.0).all()
    assert (readings[EPISODE - 1][:2, joints] != 0.0).all()  # after the reset


def test_mask_and_flag_show_detected_faults_from_their_onset_and_no_others(log):
    assert (log.mask[:, SENSED] == 0.0).all()
    assert (log.flag[:, SENSED] == -1.0).all()
    assert (log.mask[: ONSET - 1] == 0.0).all()
    for row in (ONSET - 1, EPISODE - 2):
        assert torch.equal(log.mask[row, DEAD].bool(), log.joints[list(DEAD)])
    assert (log.flag[ONSET - 2, TWIN] == -1.0).all()
    assert (log.flag[ONSET - 1, TWIN] == 1.0).all()


def test_reset_restores_to_the_bit(log):
    assert all(map(torch.equal, log.restored, log.healthy))
    kept = [torch.equal(*pair) for pair in zip(log.broken, log.healthy, strict=True)]
    # position limits, soft position limits, default pose, velocity limits, effort
    assert kept == [False, False, True, log.engine == "newton_mjwarp", False]
