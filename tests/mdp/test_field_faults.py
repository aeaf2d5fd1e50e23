# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults from the field on A1 and real engines: one run per engine, in which every env has its own fault."""

import math
from types import SimpleNamespace

import pytest
import torch

pytestmark = pytest.mark.engine

ENGINES = ("newton_mjwarp", "ovphysx")
ONSET, EPISODE = 10, 150
"""Env steps to the faults, and of the episode."""

SCENARIOS = ("normal", "braking", "backlash", "imu_drift", "derating", "imu_frozen")
HEALTHY, BRAKING, LOOSE, TILTING, HOT, FROZEN = range(6)
"""Their order counts: an env's number decides its leg and the axis of its IMU's drift. The bounds are those of a loose
rear leg, and of an axis across gravity."""
BRAKE, CONTINUOUS, PLAY, TILT = 2.0, 0.5, 0.4, 0.2
"""[N*m*s/rad], [N*m], [rad], [rad/s]."""
LEGS = {leg: [f"{leg}_.*"] for leg in ("FL", "FR", "RL", "RR")}


def faults_from_the_field(physics: str, out: str) -> None:
    """A1 in the air swings its legs; one leg of each robot has the fault."""
    import fault_env
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.managers import EventTermCfg
    from umc import mdp
    from umc.mdp.fault_terms import fault_term

    faults = {
        "scenario": SCENARIOS,
        "severity": {"braking": BRAKE, "derating": CONTINUOUS, "backlash": PLAY, "imu_drift": TILT},
        "joint_groups": LEGS,
        "num_joints": (1, 1),
        "onset": ONSET,
        "seed": 4,
    }
    cfg = fault_env.a1_cfg(physics, len(SCENARIOS), EPISODE, faults)
    cfg.events = {
        "reset_faults": cfg.events.reset_faults,
        "place": EventTermCfg(func=lambda env, env_ids: fault_env.place(env, env_ids), mode="reset"),
        "faults": cfg.events.faults,
    }
    cfg.actions.joint_pos.scale = 1.0
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    mdp.add_imu_sensors(cfg)
    cfg.observations.policy.enable_corruption = False
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    robot, state, log = env.scene["robot"], mdp.fault_state(env), fault_env.Log()
    writer = fault_term(env).writer
    assert writer is not None
    for step in range(1, EPISODE):
        if step == EPISODE // 2:  # what stops once the motor pushes no more
            log.once["whole"] = writer._passive.read()
        swing = 0.5 * math.sin(2.0 * math.pi * 1.5 * step * env.step_dt)
        observed = env.step(torch.full((len(SCENARIOS), 12), swing))[0]["policy"]
        limits = state.limits(writer.healthy)
        log.add(
            q=robot.data.joint_pos.torch,
            v=robot.data.joint_vel.torch,
            torque=robot.actuators.applied_effort.torch,
            effort=limits.effort,
            turning=torch.stack((observed[:, 3:6] / 0.25, robot.data.root_ang_vel_b.torch)),
            gravity=torch.stack((observed[:, 6:9], robot.data.projected_gravity_b.torch)),
            sent=env.action_manager.get_term("joint_pos").processed_actions,
        )
    log.once["joints"] = state.joints.clone()
    env.step(torch.zeros(len(SCENARIOS), 12))  # the reset
    log.once["restored"] = [writer._passive.read(), writer.healthy.effort]
    log.save(out)


@pytest.fixture(scope="module")
def logs(run_engine, tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("field"), {}
    for physics in ENGINES:
        run_engine(faults_from_the_field, physics=physics, out=str(folder / physics))
        found[physics] = SimpleNamespace(**torch.load(folder / physics, weights_only=True))
    return found


@pytest.fixture(params=ENGINES)
def log(request, logs):
    return logs[request.param]


def leg(log, env: int) -> torch.Tensor:
    return log.joints[env]


def reach(log, env: int, joints: torch.Tensor) -> torch.Tensor:
    """Range of motion of some joints with the fault [rad]."""
    q = log.q[ONSET + 10 :, env, joints]
    return q.amax(0) - q.amin(0)


def test_a_whole_leg_fails_the_same_one_on_both_engines(logs):
    newton, physx = (logs[physics] for physics in ENGINES)
    assert torch.equal(newton.joints, physx.joints)
    assert newton.joints.unflatten(1, (4, 3)).all(2).sum(1).tolist() == [0, 1, 1, 1, 1, 1]


def test_a_braked_leg_gives_no_torque_and_comes_to_rest(log):
    joints = leg(log, BRAKING)
    assert log.torque[ONSET:, BRAKING, joints].abs().max() == 0.0
    assert log.torque[ONSET:, BRAKING, ~joints].abs().max() > 1.0
    # the trunk moves with the other legs, and its inertia pulls at the braked ones a little
    assert log.v[ONSET + 10 :, BRAKING, joints].abs().max() < 0.3
    assert log.v[ONSET + 10 :, HEALTHY, joints].abs().max() > 2.0
    added = log.whole[BRAKING] - log.whole[HEALTHY]
    assert added[joints, 0].tolist() == pytest.approx([BRAKE] * 3)
    assert added[~joints].abs().max() == 0.0


def test_a_motor_that_works_hard_is_derated_while_it_does(log):
    joints = leg(log, HOT)
    effort, torque = log.effort[:, HOT][:, joints], log.torque[:, HOT][:, joints].abs()
    assert (effort[: ONSET + 1] == 25.0).all()
    assert effort[-1].min() < 5.0
    assert (torque[1:] <= effort[:-1] * 1.001).all()  # the limit of a step is that after the step before
    assert (log.effort[:, HOT][:, ~joints] == 25.0).all()
    # heat of the torques at the end of each env step since the onset, with the documented time constant
    kept = math.exp(-0.02 / 20.0)
    heat = torch.zeros(3)
    for row in range(ONSET, len(torque)):
        heat = kept * heat + (1.0 - kept) * (torque[row] / CONTINUOUS).square()
        expected = 25.0 + (CONTINUOUS - 25.0) * ((heat - 0.5) / 0.5).clamp(0.0, 1.0)
        assert effort[row].tolist() == pytest.approx(expected.tolist(), rel=1e-3)


def test_a_leg_with_worn_gears_is_moved_beyond_the_play_only(log):
    joints = leg(log, LOOSE)
    q, torque, sent = (values[ONSET + 1 :, LOOSE][:, joints] for values in (log.q, log.torque, log.sent))
    # torques are those of the last physics step, positions those after it: 5 ms later
    error, moved = (sent - q).abs(), 0.005 * log.v[ONSET + 1 :, LOOSE][:, joints].abs() + 0.01
    free, held = error < PLAY / 2 - moved, error > PLAY / 2 + moved
    assert free.float().mean() > 0.2
    assert held.float().mean() > 0.2
    assert torque[free].abs().max() < 1e-5
    assert torque[held].abs().min() > 0.0
    assert (reach(log, LOOSE, joints) < reach(log, HEALTHY, joints) - PLAY / 2).all()
    assert (log.torque[ONSET + 1 :, LOOSE][:, ~joints].abs() > 0.0).all()


def test_the_imu_reads_wrong_from_the_onset_on(log):
    """Readings and true values; joints have no fault."""
    others = [env for env in range(len(SCENARIOS)) if env not in (TILTING, FROZEN)]
    for signal in (log.turning, log.gravity):
        assert (signal[:, 0, others] - signal[:, 1, others]).abs().max() < 1e-5
        assert (signal[: ONSET - 1, 0] - signal[: ONSET - 1, 1]).abs().max() < 1e-5
        held = signal[ONSET - 2, 0, FROZEN]
        assert (signal[ONSET - 1 :, 0, FROZEN] - held).abs().max() < 1e-5
    error = (log.turning[ONSET - 1 :, 0, TILTING] - log.turning[ONSET - 1 :, 1, TILTING]).norm(dim=-1)
    assert error.tolist() == pytest.approx([TILT] * len(error), abs=1e-4)
    read, true = log.gravity[ONSET - 1 :, :, TILTING].unbind(1)
    angle = torch.acos((read * true).sum(-1).clamp(-1.0, 1.0))
    assert angle[100].item() == pytest.approx(TILT * 100 * 0.02, rel=0.05)
    assert read.norm(dim=-1).tolist() == pytest.approx([1.0] * len(read), abs=1e-4)
    assert (log.effort[:, [TILTING, FROZEN]] == 25.0).all()


def test_a_reset_restores_to_the_bit(log):
    passive, effort = log.restored
    assert torch.equal(passive, passive[:1].expand_as(passive))
    assert (effort == 25.0).all()
