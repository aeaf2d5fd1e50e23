# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What faulty sensors report of a real robot, step by step, to policies, recorders and in terminal observations."""

import pytest

pytestmark = pytest.mark.engine

SCENARIOS = (
    "normal",
    "dead",
    "frozen",
    "bias",
    "drift",
    "noise",
    "noise",
    "noise",
    "noise",
    "dead",
    "dead",
    "bias+frozen",
    "frozen+rom",
)
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


def what_sensors_say(physics: str) -> dict:
    """A1 stand on the ground and move a little, while a recorder reads their observations."""
    import copy

    import torch
    import umc.tasks  # noqa: F401
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab.envs import mdp as lab
    from isaaclab.managers import (
        DatasetExportMode,
        RecorderManagerBaseCfg,
        RecorderTerm,
        RecorderTermCfg,
        RewardTermCfg,
        TerminationTermCfg,
    )
    from isaaclab_tasks.utils import resolve_presets
    from umc import mdp
    from umc.faults.kinds import NOISE_RATE
    from umc.tasks.a1 import A1Stage1EnvCfg
    from umc.terrains import FLAT_GROUND_CFG

    torch.set_num_threads(1)
    num_envs = len(SCENARIOS)

    def at_a_step(env, env_id, step):
        return (env.episode_length_buf == step) & (torch.arange(num_envs) == env_id)

    recorded = []

    class Recorder(RecorderTerm):
        def record_post_step(self):
            recorded.append({name: value.clone() for name, value in self._env.obs_buf.items()})
            return None, None

    cfg = resolve_presets(A1Stage1EnvCfg(), [physics, "flat"])
    cfg.scene.terrain = FLAT_GROUND_CFG
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = num_envs, "cpu", 3
    cfg.episode_length_s = EPISODE * cfg.sim.dt * cfg.decimation
    cfg.compute_final_obs = True
    cfg.rewards = {"alive": RewardTermCfg(func=lab.is_alive, weight=1.0)}
    cfg.terminations = {
        "time_out": TerminationTermCfg(func=lab.time_out, time_out=True),
        "at_onset": TerminationTermCfg(func=at_a_step, params={"env_id": ENDS_AT_ONSET, "step": ONSET}),
        "before": TerminationTermCfg(func=at_a_step, params={"env_id": ENDS_BEFORE, "step": ONSET - 1}),
        "non_finite_state": TerminationTermCfg(func=mdp.non_finite_state),
    }
    cfg.recorders = RecorderManagerBaseCfg(dataset_export_mode=DatasetExportMode.EXPORT_NONE)
    cfg.recorders.watch = RecorderTermCfg(class_type=Recorder)
    groups = cfg.observations
    groups.critic = None
    groups.clean = copy.deepcopy(groups.policy)
    groups.clean.enable_corruption = False
    groups.history = copy.deepcopy(groups.clean)
    for term in ("base_lin_vel", "base_ang_vel", "projected_gravity", "command", "joint_vel", "last_action"):
        setattr(groups.history, term, None)
    groups.history.joint_pos.history_length, groups.history.joint_pos.flatten_history_dim = 3, False
    cfg.events.faults.params = {
        "scenario": SCENARIOS,
        "severity": {
            "dead": {"choice": MASK_VALUES},
            "bias": BIAS_BY,
            "drift": DRIFT_BY,
            "noise": NOISE_STD,
            "rom": 0.3,
        },
        "onset": ONSET,
        "duration": DURATION,
        "period": PERIOD,
        "duty": DUTY,
        "num_joints": (5, 5),
        "seed": 4,
    }
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    robot, state = env.scene["robot"], mdp.fault_state(env)
    default, healthy = robot.data.default_joint_pos.torch.clone(), robot.data.joint_pos_limits.torch.clone()
    generator = torch.Generator().manual_seed(2)
    log, said, final = [], {"finite": True, "broken": {}}, {}
    joints = state.joints.clone()
    mask_value = state.plan.severity[:, 0, [kind.name for kind in state.kinds].index("dead")].clone()
    for step in range(1, STEPS + 1):
        if step == BREAK:
            velocity = robot.data.joint_vel.torch.clone()
            velocity[BROKEN, 3] = float("nan")
            robot.write_joint_velocity_to_sim_index(velocity=velocity)
        action = 0.3 * torch.randn(num_envs, 12, generator=generator)
        env.extras.pop("final_obs", None)
        observed = env.step(action)[0]
        said["finite"] &= all(bool(torch.isfinite(value).all()) for value in observed.values())
        if "final_obs" in env.extras:
            final[step] = {name: value.clone() for name, value in env.extras["final_obs"].items()}
        entry = {name: value.clone() for name, value in observed.items()}
        entry["q"] = robot.data.joint_pos.torch - default
        entry["v"] = robot.data.joint_vel.torch.clone()
        entry["action"] = action
        entry["active"] = state.active.clone()
        log.append(entry)
        if step in (BREAK - 1, BREAK):
            limits = robot.data.joint_pos_limits.torch[BROKEN]
            said["broken"][f"limited in step {step - BREAK}"] = not torch.equal(limits, healthy[BROKEN])
            said["broken"][f"live in step {step - BREAK}"] = bool(state.live[BROKEN].any())
    log = {name: torch.stack([entry[name] for entry in log]) for name in log[0]}
    seen = {name: torch.stack([entry[name] for entry in recorded]) for name in recorded[0]}

    # row i is step i + 1; columns: position, velocity, last action
    on = [step - 1 for step in ON]
    off = [row for row in range(EPISODE - 1) if row not in on]
    position, velocity, action = (log["clean"][..., start : start + 12] for start in (12, 24, 36))
    velocity = velocity / 0.05  # the term's scale
    position_error, velocity_error = position - log["q"], velocity - log["v"]

    def error(signal, rows, env_id):
        return float(signal[rows, env_id].abs().max())

    first_episode = [e for e in range(num_envs) if e not in (ENDS_AT_ONSET, ENDS_BEFORE, BROKEN)]
    said["on"] = {
        str(e): [step for step in range(1, EPISODE) if bool(log["active"][step - 1, e])] for e in first_episode
    }
    said["healthy error"] = max(error(position_error, off, e) for e in first_episode)
    said["healthy error"] = max(said["healthy error"], error(position_error, slice(0, EPISODE - 1), NORMAL))
    said["healthy columns"] = max(
        float(position_error[:, e, ~joints[e]].abs().max()) for e in first_episode if e != NORMAL
    )

    dead = {name: log[name][:, DEAD][:, 12:48].view(STEPS, 3, 12)[:, :, joints[DEAD]] for name in ("policy", "clean")}
    values = mask_value[DEAD, joints[DEAD]]
    wanted = torch.stack((values, 0.05 * values, values)).expand(len(on), 3, -1)
    said["dead"] = {
        "values": sorted({round(value, 4) for value in values.tolist()}),
        "reads its value": all(torch.equal(signal[on], wanted) for signal in dead.values()),
        "reads something else when off": float((dead["policy"][off][:, 0] - values).abs().min()) > 0.0,
    }
    frames = log["history"][:, DEAD][..., joints[DEAD]]
    said["dead"]["history"] = all(
        bool((frames[row, frame] == values).all()) == (row - 2 + frame in on)
        for row in range(25, EPISODE - 1)
        for frame in range(3)
    )

    def held(name, env_id):
        """Whether position and velocity repeat the step before in every step of the fault."""
        signal = log[name][:, env_id, 12:36].view(STEPS, 2, 12)[..., joints[env_id]]
        return all(torch.equal(signal[row], signal[row - 1]) for row in on)

    said["frozen"] = {
        "held with noise": held("policy", FROZEN),
        "held without": held("clean", FROZEN),
        "the noise differs": not torch.equal(log["policy"][on[0], FROZEN, 12:24], log["clean"][on[0], FROZEN, 12:24]),
        "what it misses": float(position_error[on, FROZEN][:, joints[FROZEN]].abs().amax(0).min()),
        "action": torch.equal(action[: EPISODE - 1, FROZEN], log["action"][: EPISODE - 1, FROZEN]),
        "held": held("clean", SLIPPED_AND_FROZEN),
    }
    said["bias"] = {
        "position": (position_error[on, BIAS][:, joints[BIAS]] - BIAS_BY).abs().max().item(),
        "velocity": error(velocity_error, on, BIAS),
    }
    age = torch.tensor([(step - ONSET) % PERIOD for step in ON]).unsqueeze(1) * env.step_dt
    said["drift"] = {
        "position": (position_error[on, DRIFT][:, joints[DRIFT]] - DRIFT_BY * age).abs().max().item(),
        "velocity": (velocity_error[on, DRIFT][:, joints[DRIFT]] - DRIFT_BY).abs().max().item(),
    }
    picked = joints[NOISE].expand(len(on), -1, -1)
    noise = {"position": position_error[on][:, NOISE][picked], "velocity": velocity_error[on][:, NOISE][picked]}
    said["noise"] = {
        "count": picked.sum().item(),
        "position std": noise["position"].std().item() / NOISE_STD,
        "velocity std": noise["velocity"].std().item() / NOISE_STD / NOISE_RATE,
        "mean": noise["position"].mean().item() / NOISE_STD,
        "correlation": torch.corrcoef(torch.stack(tuple(noise.values())))[0, 1].item(),
    }

    same = torch.ones(STEPS, num_envs, dtype=torch.bool)  # where no reset came between recorder and policy
    same[EPISODE - 1] = False
    for env_id, step in ((ENDS_AT_ONSET, ONSET), (ENDS_BEFORE, ONSET - 1), (BROKEN, BREAK)):
        for end in range(step, STEPS + 1, step if env_id != BROKEN else EPISODE):
            same[end - 1, env_id] = False
    said["recorded"] = {
        name: torch.equal(seen[name][same], log[name][same]) for name in ("clean", "joint_mask", "fault_flag")
    }
    said["recorded"]["frozen with noise"] = torch.equal(
        seen["policy"][on, FROZEN, 12:36].view(-1, 2, 12)[..., joints[FROZEN]],
        log["policy"][on, FROZEN, 12:36].view(-1, 2, 12)[..., joints[FROZEN]],
    )

    last = {"at onset": (ENDS_AT_ONSET, ONSET), "before": (ENDS_BEFORE, ONSET - 1)}
    for name, (env_id, step) in last.items():
        values = mask_value[env_id, joints[env_id]]
        said[f"terminal, {name}"] = {
            "dead": torch.equal(final[step]["policy"][env_id, 12:24][joints[env_id]], values),
            "mask": torch.equal(final[step]["joint_mask"][env_id].bool(), joints[env_id]),
            "next": bool(log["active"][step - 1, env_id]),
        }
    said["final finite"] = all(
        bool(torch.isfinite(value[torch.arange(num_envs) != BROKEN]).all())
        for entry in final.values()
        for value in entry.values()
    )
    active = log["active"][:, BROKEN]
    said["broken"]["active"] = [step for step in range(1, STEPS + 1) if bool(active[step - 1])]
    said["broken"]["healthy again"] = error(position_error, slice(BREAK - 1, BREAK + ONSET - 2), BROKEN)
    said["broken"]["episode"] = int(state.episode[BROKEN])
    return said


@pytest.fixture(scope="module")
def said(run_engine):
    return run_engine(what_sensors_say)


def test_faults_are_on_in_their_steps_and_a_clean_group_reads_the_true_values(said):
    assert said["on"] == {key: [] if key == str(NORMAL) else list(ON) for key in said["on"]}
    assert said["healthy error"] < 1e-6
    assert said["healthy columns"] < 1e-6


def test_a_dead_sensor_reads_its_mask_value_in_every_group_and_frame(said):
    assert said["dead"] == {
        "values": MASK_VALUES,
        "reads its value": True,
        "reads something else when off": True,
        "history": True,
    }


def test_a_frozen_sensor_repeats_its_last_noisy_reading(said):
    missed = said["frozen"].pop("what it misses")
    assert said["frozen"] == dict.fromkeys(said["frozen"], True)
    assert missed > 1e-3  # the joints do move


def test_bias_and_drift_have_their_severity(said):
    assert max(said["bias"].values()) < 1e-5
    assert max(said["drift"].values()) < 1e-4


def test_noise_has_its_standard_deviation(said):
    noise = said["noise"]
    assert noise["count"] == 4 * 5 * len(ON)
    # 300 numbers: 4 % is one standard error of the standard deviation, 6 % of the mean and of the correlation
    assert noise["position std"] == pytest.approx(1.0, abs=0.15)
    assert noise["velocity std"] == pytest.approx(1.0, abs=0.15)
    assert abs(noise["mean"]) < 0.2
    assert abs(noise["correlation"]) < 0.2


def test_a_recorder_sees_what_the_policy_sees_and_changes_nothing(said):
    assert said["recorded"] == dict.fromkeys(said["recorded"], True)


def test_the_terminal_observation_shows_a_fault_that_sets_in_with_it(said):
    assert said["terminal, at onset"] == {"dead": True, "mask": True, "next": False}
    assert said["terminal, before"] == {"dead": False, "mask": False, "next": False}


def test_non_finite_physics_is_reset_and_its_faults_start_again(said):
    assert said["finite"]
    assert said["final finite"]
    assert said["broken"] == {
        "limited in step -1": True,
        "live in step -1": True,
        "limited in step 0": False,
        "live in step 0": False,
        "active": [step for step in ON if step < BREAK] + [BREAK + step for step in ON if BREAK + step <= STEPS],
        "healthy again": pytest.approx(0.0, abs=1e-6),
        "episode": 1,
    }
