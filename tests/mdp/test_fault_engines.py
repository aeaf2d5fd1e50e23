# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What faults do to A1 on real engines: one run per engine, in which every env has its own fault."""

import math

import pytest

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


def a_day_with_faults(physics: str) -> dict:
    """Eight A1 live through one episode and the start of the next."""
    import torch
    import umc.utils.patches
    from isaaclab.assets import ArticulationCfg
    from isaaclab.envs import ManagerBasedRLEnv, ManagerBasedRLEnvCfg
    from isaaclab.envs import mdp as lab
    from isaaclab.managers import (
        EventTermCfg,
        ObservationGroupCfg,
        ObservationTermCfg,
        RewardTermCfg,
        TerminationTermCfg,
    )
    from isaaclab.scene import InteractiveSceneCfg
    from isaaclab.sim import SimulationCfg
    from isaaclab.terrains import TerrainImporterCfg
    from isaaclab.utils import configclass
    from isaaclab.utils.noise import UniformNoiseCfg
    from umc import mdp
    from umc.robots import A1_CFG
    from umc.tasks.base import physics_presets
    from umc.terrains import FLAT_GROUND_CFG

    umc.utils.patches.apply()
    torch.set_num_threads(1)
    step, sky = 0.005, 100.0
    noise = UniformNoiseCfg(n_min=-0.5, n_max=0.5)

    def place_robots(env, env_ids):
        """Default state; all but the two on the ground fall from the sky, which is weightlessness."""
        robot = env.scene["robot"]
        lab.reset_scene_to_default(env, env_ids)
        pose = robot.data.default_root_pose.torch.clone()
        pose[:, :3] += env.scene.env_origins
        pose[:, 2] += sky
        pose[[RUNNER, STUMBLER], 2] -= sky
        robot.write_root_pose_to_sim_index(root_pose=pose)

    @configclass
    class Scene(InteractiveSceneCfg):
        terrain: TerrainImporterCfg = FLAT_GROUND_CFG
        robot: ArticulationCfg = A1_CFG

    @configclass
    class Actions:
        joint_pos = lab.JointPositionActionCfg(asset_name="robot", joint_names=[".*"], use_default_offset=True)

    @configclass
    class Sensed(ObservationGroupCfg):
        pos = ObservationTermCfg(
            func=mdp.joint_sensor,
            params={"func": lab.joint_pos_rel, "noise": noise},
            scale=2.0,
            history_length=3,
            flatten_history_dim=False,
        )

        def __post_init__(self):
            self.enable_corruption = True

    @configclass
    class Clean(ObservationGroupCfg):
        vel = ObservationTermCfg(func=mdp.joint_sensor, params={"func": lab.joint_vel_rel, "noise": noise})
        action = ObservationTermCfg(func=mdp.joint_sensor, params={"func": lab.last_action})

    @configclass
    class Detection(ObservationGroupCfg):
        mask = ObservationTermCfg(func=mdp.joint_mask)
        flag = ObservationTermCfg(func=mdp.fault_flag)

    @configclass
    class Observations:
        sensed: Sensed = Sensed()
        clean: Clean = Clean()
        detection: Detection = Detection()

    @configclass
    class Rewards:
        alive = RewardTermCfg(func=lab.is_alive, weight=1.0)

    @configclass
    class Terminations:
        time_out = TerminationTermCfg(func=lab.time_out, time_out=True)

    @configclass
    class Events:
        reset_faults = EventTermCfg(func=mdp.reset_faults, mode="reset")
        place = EventTermCfg(func=place_robots, mode="reset")
        faults = EventTermCfg(
            func=mdp.joint_faults,
            mode="interval",
            interval_range_s=(0.0, 0.0),
            is_global_time=True,
            params={
                "num_joints": (4, 4),
                "severity": {"rom": ROM_FRACTION, "effort": EFFORT_LIMIT, "velocity": {".*": VELOCITY_LIMIT}},
                "onset": ONSET,
                "scenario": SCENARIOS,
                "seed": 3,
            },
        )

    @configclass
    class Cfg(ManagerBasedRLEnvCfg):
        scene: Scene = Scene(num_envs=len(SCENARIOS), env_spacing=4.0)
        sim: SimulationCfg = SimulationCfg(
            dt=step, device="cpu", physics=getattr(physics_presets(njmax=200, nconmax=40), physics)
        )
        actions: Actions = Actions()
        observations: Observations = Observations()
        rewards: Rewards = Rewards()
        terminations: Terminations = Terminations()
        events: Events = Events()
        decimation: int = 1
        episode_length_s: float = EPISODE * step

    env = ManagerBasedRLEnv(Cfg())
    env.reset()
    robot, state = env.scene["robot"], mdp.fault_state(env)
    data = robot.data

    def properties():
        from isaaclab.actuators.newton import read_group_parameter

        return {
            "position limits": data.joint_pos_limits.torch.clone(),
            "soft position limits": data.soft_joint_pos_limits.torch.clone(),
            "default pose": data.default_joint_pos.torch.clone(),
            "velocity limits": data.joint_vel_limits.torch.clone(),
            "effort": read_group_parameter(robot.actuators, "legs", "clamping", "max_effort").clone(),
        }

    generator = torch.Generator().manual_seed(0)
    healthy, limits = properties(), data.joint_pos_limits.torch.clone()
    middle, half = limits.mean(-1), (limits[..., 1] - limits[..., 0]) / 2
    default = data.default_joint_pos.torch.clone()
    wander = torch.zeros(len(SCENARIOS), 12)
    names = ("q", "v", "torque", "sensed", "vel", "action", "mask", "flag", "active", "limits")
    log = {name: [] for name in names}
    said = {}
    for number in range(EPISODE + AGAIN):
        time = number * step
        target = torch.full((len(SCENARIOS), 12), 0.2 * math.sin(2 * math.pi * time))
        target[[FAST, WEAK, BASELINE]] = 0.5 * math.sin(4 * math.pi * time)
        if number >= STIR:
            target[SHORT] = (middle + half * math.sin(6 * math.pi * time) - default)[SHORT]
        if number % 4 == 0:
            wander = 0.8 * wander + 0.3 * torch.randn(len(SCENARIOS), 12, generator=generator)
        target[[RUNNER, STUMBLER]] = wander[[RUNNER, STUMBLER]]
        observed = env.step(target)[0]
        log["q"].append(data.joint_pos.torch.clone())
        log["v"].append(data.joint_vel.torch.clone())
        log["torque"].append(robot.actuators.applied_effort.torch.clone())
        log["sensed"].append(observed["sensed"].clone())
        log["vel"].append(observed["clean"][:, :12].clone())
        log["action"].append(observed["clean"][:, 12:].clone())
        log["mask"].append(observed["detection"][:, :12].clone())
        log["flag"].append(observed["detection"][:, 12:].clone())
        log["active"].append(state.active.clone())
        log["limits"].append(data.joint_pos_limits.torch.clone())
        if number == ONSET:
            said["faulty joints"] = state.joints.tolist()
            said["broken"] = {name: not torch.equal(was, healthy[name]) for name, was in properties().items()}
            said["default pose kept"] = torch.equal(properties()["default pose"], healthy["default pose"])
            joints = state.joints.clone()
        if number == EPISODE - 1:
            said["restored"] = {name: torch.equal(was, healthy[name]) for name, was in properties().items()}
    log = {name: torch.stack(values) for name, values in log.items()}

    after = slice(ONSET, EPISODE - 1)  # entry i holds what step i + 1 left behind; the last one is reset
    q, v = log["q"][after], log["v"][after]
    said["finite"] = all(bool(torch.isfinite(log[name]).all()) for name in ("q", "v", "sensed"))
    said["first active step"] = [1 + int(env_active.int().argmax()) for env_active in log["active"].T]
    said["active after reset"] = bool(log["active"][EPISODE - 1].any())
    said["active again"] = log["active"][EPISODE - 1 + ONSET].tolist()
    said["active too early again"] = bool(log["active"][EPISODE - 2 + ONSET].any())

    said["torque"] = {str(e): float(log["torque"][after][:, e, joints[e]].abs().max()) for e in (WEAK, FAST, RUNNER)}
    said["torque"]["healthy"] = float(log["torque"][after][:, BASELINE, joints[WEAK]].abs().max())
    said["torque"]["healthy joints"] = float(log["torque"][after][:, WEAK, ~joints[WEAK]].abs().max())

    def beyond(e):
        over = torch.maximum(q[:, e] - log["limits"][after][:, e, :, 1], log["limits"][after][:, e, :, 0] - q[:, e])
        return float(over[:, joints[e]].max())

    said["overshoot"] = {"air": beyond(SHORT), "ground": beyond(STUMBLER)}
    left = log["limits"][ONSET, SHORT]
    width = (left[:, 1] - left[:, 0]) / (limits[SHORT, :, 1] - limits[SHORT, :, 0])
    said["window"] = width[joints[SHORT]].tolist()
    said["swing"] = float((q[:, SHORT].amax(0) - q[:, SHORT].amin(0))[joints[SHORT]].min())

    def speed(e):
        faulty = v[:, e, joints[e]].abs()
        return {
            "max": float(faulty.max()),
            "above 1.1": float((faulty > 1.1 * VELOCITY_LIMIT).float().mean()),
            "median of the fast": float(faulty[faulty > 0.8 * VELOCITY_LIMIT].median()),
        }

    said["speed"] = {"air": speed(FAST), "ground": speed(RUNNER)}
    said["speed"]["healthy"] = float(v[:, BASELINE, joints[FAST]].abs().amax(0).min())

    # sensors: newest frame of the history is the last; entry ONSET - 1 is the first with the fault
    dead = {e: log["sensed"][:, e, :, joints[e]] for e in (TWIN, STUMBLER)}
    said["dead"] = {
        "before": min(float(signal[: ONSET - 1].abs().amin((0, 2))[-1]) for signal in dead.values()),
        "newest": max(float(signal[ONSET - 1 : EPISODE - 1, -1].abs().max()) for signal in dead.values()),
        "history": max(float(signal[ONSET + 1 : EPISODE - 1].abs().max()) for signal in dead.values()),
        "velocity": max(float(log["vel"][after][:, e, joints[e]].abs().max()) for e in dead),
        "action": max(float(log["action"][after][:, e, joints[e]].abs().max()) for e in dead),
        "neighbours": min(float(log["sensed"][after][:, e, -1, ~joints[e]].abs().amax(0).min()) for e in dead),
        "after reset": min(float(log["sensed"][EPISODE - 1, e, -1, joints[e]].abs().min()) for e in dead),
    }
    said["noise"] = float((log["sensed"][5:, BASELINE, -1] / 2.0 - (log["q"] - default)[5:, BASELINE]).abs().max())
    unseen = (FAST, WEAK, SHORT, RUNNER)
    said["unseen"] = {
        "rows": max(float((log["vel"][after][:, e] - v[:, e]).abs().max()) for e in unseen),
        "mask": max(float(log["mask"][:, e].max()) for e in unseen),
        "flag": max(float(log["flag"][:, e].max()) for e in unseen),
    }
    said["detected"] = {
        "mask": all(torch.equal(log["mask"][i, e].bool(), joints[e]) for e in dead for i in (ONSET - 1, EPISODE - 2)),
        "mask before": float(log["mask"][: ONSET - 1].max()),
        "flag": [float(log["flag"][ONSET - 2, TWIN].max()), float(log["flag"][ONSET - 1, TWIN].min())],
    }
    return said


@pytest.fixture(scope="module")
def measured(run_engine):
    return {physics: run_engine(a_day_with_faults, physics=physics) for physics in ENGINES}


@pytest.fixture(params=ENGINES)
def said(request, measured):
    return {"engine": request.param, **measured[request.param]}


def test_engines_break_the_same_joints(measured):
    assert all(seen["finite"] for seen in measured.values())
    newton, physx = (measured[physics]["faulty joints"] for physics in ENGINES)
    assert newton == physx
    assert [sum(joints) for joints in newton] == [0 if scenario == 8 else 4 for scenario in SCENARIOS]


def test_faults_set_in_at_their_step_and_again_in_the_next_episode(said):
    broken = [scenario != 8 for scenario in SCENARIOS]
    assert said["first active step"] == [ONSET if breaks else 1 for breaks in broken]
    assert not said["active after reset"]
    assert not said["active too early again"]
    assert said["active again"] == broken


def test_torque_stays_below_the_fault_limit(said):
    assert said["torque"][str(WEAK)] <= EFFORT_LIMIT * 1.001
    assert said["torque"]["healthy"] > 1.5 * EFFORT_LIMIT
    assert said["torque"]["healthy joints"] > 1.5 * EFFORT_LIMIT


def test_a_joint_stays_inside_its_reduced_range(said):
    assert said["window"] == pytest.approx([ROM_FRACTION] * 4, rel=1e-4)
    assert said["overshoot"]["air"] < (0.05 if said["engine"] == "newton_mjwarp" else 0.005)
    assert said["overshoot"]["ground"] < (0.05 if said["engine"] == "newton_mjwarp" else 0.005)
    assert said["swing"] > 0.2  # it does move


def test_speed_stays_below_its_limit(said):
    assert said["speed"]["healthy"] > 1.5 * VELOCITY_LIMIT  # the same motion without the fault
    for place in ("air", "ground"):
        assert said["speed"][place]["above 1.1"] < 0.01
        assert said["speed"][place]["max"] < 1.5 * VELOCITY_LIMIT
    assert said["speed"]["air"]["median of the fast"] > 0.85 * VELOCITY_LIMIT  # it limits, it does not stop


def test_a_dead_sensor_reads_exactly_0_from_onset_on(said):
    dead = said["dead"]
    assert dead["before"] > 0.0
    assert dead["newest"] == dead["history"] == dead["velocity"] == dead["action"] == 0.0
    assert dead["neighbours"] > 0.0
    assert dead["after reset"] > 0.0


def test_noise_follows_the_group(said):
    assert 0.3 < said["noise"] < 0.5 + 1e-4  # corrupted group
    assert said["unseen"]["rows"] == 0.0  # clean group, same noise in its parameters


def test_mask_and_flag_show_detected_faults_from_their_onset_and_no_others(said):
    assert said["unseen"]["mask"] == 0.0
    assert said["unseen"]["flag"] == -1.0
    assert said["detected"] == {"mask": True, "mask before": 0.0, "flag": [-1.0, 1.0]}


def test_reset_restores_to_the_bit(said):
    assert all(said["restored"].values()), said["restored"]
    assert said["default pose kept"]
    changed = {name for name, broke in said["broken"].items() if broke}
    expected = {"position limits", "soft position limits", "effort"}
    assert changed == (expected if said["engine"] == "newton_mjwarp" else expected | {"velocity limits"})
