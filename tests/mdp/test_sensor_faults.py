# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What faulty sensors report of a real robot, step by step, to policies, recorders and in terminal observations."""

from types import SimpleNamespace

import pytest
import torch

pytestmark = pytest.mark.engine

SCENARIOS = ("normal", "dead", "frozen", "bias", "drift", *["noise"] * 4, "dead", "dead", "bias+frozen", "frozen+rom")
NORMAL, DEAD, FROZEN, BIAS, DRIFT, NOISE = 0, 1, 2, 3, 4, slice(5, 9)
ENDS_AT_ONSET, ENDS_BEFORE = 9, 10
"""Dead sensors; their episodes end in the very step of the onset, and in the one before."""
SLIPPED_AND_FROZEN, BROKEN = 11, 12
"""A sensor with two faults, and an env whose physics is broken in the middle of its faults."""

ONSET, PERIOD, DUTY, DURATION, EPISODE, STEPS = 20, 10, 0.5, 26, 60, 66
ON = (*range(20, 25), *range(30, 35), *range(40, 45))
"""Env steps in which these faults are on: 26 steps long, with returns every 10, for half of them."""
BREAK = 33
"""Env step at whose start the physics is broken; the env is reset in it."""

MASK_VALUES, BIAS_BY, DRIFT_BY, NOISE_STD = [0.0, 0.7], 0.2, 0.5, 0.05
"""Severities: [as read], [rad], [rad/s], [rad]."""

ROWS_ON = [step - 1 for step in ON]
ROWS_OFF = [row for row in range(EPISODE - 1) if row not in ROWS_ON]
"""Rows of the log with and without faults; row i is step i + 1."""
COMPLETE = [env for env in range(len(SCENARIOS)) if env not in (ENDS_AT_ONSET, ENDS_BEFORE, BROKEN)]
"""Envs whose first episode takes all its steps."""


def what_sensors_report(physics: str, out: str) -> None:
    """A1 stand on the ground and move a little, while a recorder reads their observations."""
    import copy

    import fault_env
    from isaaclab import managers
    from isaaclab.envs import ManagerBasedRLEnv
    from umc import mdp

    num_envs, log = len(SCENARIOS), fault_env.Log()

    def at_a_step(env, env_id, step):
        return (env.episode_length_buf == step) & (torch.arange(num_envs) == env_id)

    class Recorder(managers.RecorderTerm):
        def record_post_step(self):
            log.add(**{f"recorded_{name}": value for name, value in self._env.obs_buf.items()})
            return None, None

    severity = {"dead": {"choice": MASK_VALUES}, "bias": BIAS_BY, "drift": DRIFT_BY, "noise": NOISE_STD, "rom": 0.3}
    faults = {
        "scenario": SCENARIOS,
        "severity": severity,
        "onset": ONSET,
        "duration": DURATION,
        "period": PERIOD,
        "duty": DUTY,
        "num_joints": (5, 5),
        "seed": 4,
    }
    cfg = fault_env.a1_cfg(physics, num_envs, EPISODE, faults)
    cfg.compute_final_obs = True
    cfg.terminations |= {
        "at_onset": managers.TerminationTermCfg(func=at_a_step, params={"env_id": ENDS_AT_ONSET, "step": ONSET}),
        "before": managers.TerminationTermCfg(func=at_a_step, params={"env_id": ENDS_BEFORE, "step": ONSET - 1}),
        "non_finite_state": managers.TerminationTermCfg(func=mdp.non_finite_state),
    }
    cfg.recorders = managers.RecorderManagerBaseCfg(dataset_export_mode=managers.DatasetExportMode.EXPORT_NONE)
    cfg.recorders.watch = managers.RecorderTermCfg(class_type=Recorder)
    groups = cfg.observations
    groups.clean = copy.deepcopy(groups.policy)
    groups.clean.enable_corruption = False
    groups.history = copy.deepcopy(groups.clean)
    for term in ("base_lin_vel", "base_ang_vel", "projected_gravity", "command", "joint_vel", "last_action"):
        setattr(groups.history, term, None)
    groups.history.joint_pos.history_length, groups.history.joint_pos.flatten_history_dim = 3, False
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    robot, state = env.scene["robot"], mdp.fault_state(env)
    dead = [kind.name for kind in state.kinds].index("dead")
    default, healthy = robot.data.default_joint_pos.torch.clone(), robot.data.joint_pos_limits.torch.clone()
    log.once |= {"joints": state.joints.clone(), "mask_value": state.plan.severity[:, 0, dead].clone(), "final": {}}
    generator = torch.Generator().manual_seed(2)
    for step in range(1, STEPS + 1):
        if step == BREAK:
            velocity = robot.data.joint_vel.torch.clone()
            velocity[BROKEN, 3] = float("nan")
            robot.write_joint_velocity_to_sim_index(velocity=velocity)
        action = 0.3 * torch.randn(num_envs, 12, generator=generator)
        env.extras.pop("final_obs", None)
        observed = env.step(action)[0]
        final = env.extras.get("final_obs", {})
        log.once["final"][step] = {name: value.clone() for name, value in final.items()}
        log.add(
            **observed,
            q=robot.data.joint_pos.torch - default,
            v=robot.data.joint_vel.torch,
            action=action,
            active=state.active,
            limited=(robot.data.joint_pos_limits.torch != healthy).flatten(1).any(1),
        )
    log.once["episode"] = state.episode.clone()
    log.save(out)


@pytest.fixture(scope="module")
def log(run_engine, tmp_path_factory):
    out = tmp_path_factory.mktemp("sensors") / "log.pt"
    run_engine(what_sensors_report, out=str(out))
    log = SimpleNamespace(**torch.load(out, weights_only=True))
    position, velocity, log.last_action = log.clean[..., 12:48].unflatten(-1, (3, 12)).unbind(2)
    log.position_error, log.velocity_error = position - log.q, velocity / 0.05 - log.v  # the term's scale
    return log


def joints_of(log, name: str, env: int) -> torch.Tensor:
    """Position, velocity and last action of the faulty joints in a group. Shape is (STEPS, 3, 5)."""
    return getattr(log, name)[:, env, 12:48].unflatten(-1, (3, 12))[..., log.joints[env]]


def test_faults_are_on_in_their_steps_and_a_clean_group_reads_the_true_values(log):
    for env in COMPLETE:
        on = [step for step in range(1, EPISODE) if log.active[step - 1, env]]
        assert on == ([] if env == NORMAL else list(ON))
        assert log.position_error[ROWS_OFF, env].abs().max() < 1e-6
        healthy = slice(None) if env == NORMAL else ~log.joints[env]
        assert log.position_error[: EPISODE - 1, env, healthy].abs().max() < 1e-6
    noise = (log.policy - log.clean)[: EPISODE - 1, NORMAL, 12:24].abs().max()
    assert 0.005 < noise < 0.01 + 1e-6  # the task's, in the group that wants it


def test_a_dead_sensor_reads_its_mask_value_in_every_group_and_frame(log):
    values = log.mask_value[DEAD, log.joints[DEAD]]
    assert values.unique().tolist() == pytest.approx(MASK_VALUES)
    for name in ("policy", "clean"):
        expected = torch.stack((values, 0.05 * values, values)).expand(len(ON), 3, -1)
        assert torch.equal(joints_of(log, name, DEAD)[ROWS_ON], expected)
    assert (joints_of(log, "policy", DEAD)[ROWS_OFF, 0] != values).all()
    frames = log.history[:, DEAD][..., log.joints[DEAD]]
    for row in range(25, EPISODE - 1):
        reads = [bool((frames[row, frame] == values).all()) for frame in range(3)]
        assert reads == [row - 2 + frame in ROWS_ON for frame in range(3)]


def test_a_frozen_sensor_repeats_its_last_noisy_reading(log):
    for name, env in (("policy", FROZEN), ("clean", FROZEN), ("clean", SLIPPED_AND_FROZEN)):
        signal = joints_of(log, name, env)[:, :2]
        for row in ROWS_ON:
            assert torch.equal(signal[row], signal[row - 1])
    assert not torch.equal(log.policy[ROWS_ON[0], FROZEN, 12:24], log.clean[ROWS_ON[0], FROZEN, 12:24])
    assert torch.equal(log.last_action[: EPISODE - 1, FROZEN], log.action[: EPISODE - 1, FROZEN])
    missed = log.position_error[ROWS_ON, FROZEN][:, log.joints[FROZEN]]
    assert missed.abs().amax(0).min() > 1e-3  # the joints do move


def test_bias_and_drift_have_their_severity(log):
    bias, drift = log.joints[BIAS], log.joints[DRIFT]
    assert (log.position_error[ROWS_ON, BIAS][:, bias] - BIAS_BY).abs().max() < 1e-5
    assert log.velocity_error[ROWS_ON, BIAS].abs().max() < 1e-5
    age = torch.tensor([(step - ONSET) % PERIOD for step in ON]).unsqueeze(1) * 0.02
    assert (log.position_error[ROWS_ON, DRIFT][:, drift] - DRIFT_BY * age).abs().max() < 1e-4
    assert (log.velocity_error[ROWS_ON, DRIFT][:, drift] - DRIFT_BY).abs().max() < 1e-4


def test_noise_has_its_standard_deviation(log):
    from umc.faults.kinds import NOISE_RATE

    picked = log.joints[NOISE].expand(len(ON), -1, -1)
    assert picked.sum() == 4 * 5 * len(ON)
    position, velocity = (error[ROWS_ON][:, NOISE][picked] for error in (log.position_error, log.velocity_error))
    # 300 numbers: 4 % is one standard error of the standard deviation, 6 % of the mean and of the correlation
    assert position.std() / NOISE_STD == pytest.approx(1.0, abs=0.15)
    assert velocity.std() / NOISE_STD / NOISE_RATE == pytest.approx(1.0, abs=0.15)
    assert abs(position.mean()) / NOISE_STD < 0.2
    assert abs(torch.corrcoef(torch.stack((position, velocity)))[0, 1]) < 0.2


def test_a_recorder_sees_what_the_policy_sees_and_changes_nothing(log):
    same = torch.ones(STEPS, len(SCENARIOS), dtype=torch.bool)  # where no reset came between recorder and policy
    same[EPISODE - 1] = False
    for env, ends in (
        (ENDS_AT_ONSET, range(ONSET, STEPS + 1, ONSET)),
        (ENDS_BEFORE, range(ONSET - 1, STEPS + 1, ONSET - 1)),
        (BROKEN, [BREAK]),
    ):
        same[[end - 1 for end in ends], env] = False
    for name in ("clean", "joint_mask", "fault_flag"):
        assert torch.equal(getattr(log, f"recorded_{name}")[same], getattr(log, name)[same])
    frozen = [joints_of(log, name, FROZEN)[ROWS_ON, :2] for name in ("recorded_policy", "policy")]
    assert torch.equal(*frozen)


@pytest.mark.parametrize(("env", "step", "shows"), [(ENDS_AT_ONSET, ONSET, True), (ENDS_BEFORE, ONSET - 1, False)])
def test_the_terminal_observation_shows_a_fault_that_sets_in_with_it(log, env, step, shows):
    final, joints = log.final[step], log.joints[env]
    assert torch.equal(final["policy"][env, 12:24][joints], log.mask_value[env, joints]) == shows
    assert torch.equal(final["joint_mask"][env].bool(), joints) == shows
    assert not log.active[step - 1, env]


def test_non_finite_physics_is_reset_and_its_faults_start_again(log):
    others = [env for env in range(len(SCENARIOS)) if env != BROKEN]
    for name in ("policy", "clean", "history", "joint_mask", "fault_flag"):
        assert getattr(log, name).isfinite().all()
    assert all(value[others].isfinite().all() for final in log.final.values() for value in final.values())
    assert [log.limited[row, BROKEN].item() for row in (BREAK - 2, BREAK - 1)] == [True, False]
    active = [step for step in range(1, STEPS + 1) if log.active[step - 1, BROKEN]]
    assert active == [step for step in ON if step < BREAK] + [BREAK + step for step in ON if BREAK + step <= STEPS]
    assert log.position_error[BREAK - 1 : BREAK + ONSET - 2, BROKEN].abs().max() < 1e-6
    assert log.episode[BROKEN] == 1
