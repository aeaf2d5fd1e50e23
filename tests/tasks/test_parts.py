# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Evaluations of tasks that UMC does not have: what they find in a cfg, what they add, and that faults arrive."""

import argparse
import copy
from dataclasses import replace

import pytest
import torch
from isaaclab.managers import EventTermCfg
from isaaclab_tasks.contrib.velocity.config.a1.flat_env_cfg import UnitreeA1FlatEnvCfg
from isaaclab_tasks.contrib.velocity.config.spot.flat_env_cfg import SpotFlatEnvCfg
from isaaclab_tasks.core.velocity.config.g1.flat_env_cfg import G1FlatEnvCfg
from isaaclab_tasks.core.velocity.config.go2.flat_env_cfg import UnitreeGo2FlatEnvCfg
from isaaclab_tasks.utils import resolve_presets
from umc import mdp
from umc.evaluation.protocol import protocol_for
from umc.rl.external import add_group, read_external
from umc.robots.spawn import DATA
from umc.tasks import parts
from umc.tasks.base import physics_presets
from umc.tasks.bodies import check_robot
from umc.tasks.parts import TaskPartsCfg, feet_of, feet_of_rewards, parts_of, prepare_task, required_feet
from umc.tasks.registry import checked_task_of_any_package
from umc.tasks.task_cfg import check_launch, offers_engine, resolve_cfgs
from umc.utils.errors import UmcError

CALVES = ["FL_calf", "FR_calf", "RL_calf", "RR_calf"]


def go2():
    return resolve_presets(UnitreeGo2FlatEnvCfg(), ["ovphysx"])


@pytest.mark.parametrize(
    ("cfg", "feet"),
    [
        (UnitreeGo2FlatEnvCfg, ".*_foot"),
        (SpotFlatEnvCfg, ".*_foot"),  # "foot", and the robot comes before the sensor
        (G1FlatEnvCfg, ".*_ankle_roll_link"),
    ],
)
def test_the_feet_are_those_of_isaac_labs_rewards(cfg, feet):
    assert feet_of_rewards(cfg(), "contact_forces") == [feet]
    assert feet_of_rewards(cfg(), "other_sensor") is None


@pytest.mark.parametrize("task", [UnitreeGo2FlatEnvCfg, UnitreeA1FlatEnvCfg])
def test_a_stock_task_gets_what_it_lacks_and_says_so(task):
    cfg = resolve_presets(task(), ["ovphysx"])
    lines = prepare_task("Stock", cfg, {}, offline=True)
    assert parts_of(cfg).to_dict() == TaskPartsCfg(feet=CALVES).to_dict()
    assert feet_of(cfg) == tuple(CALVES)
    assert cfg.terminations.non_finite_state.func is mdp.non_finite_state
    assert cfg.observations.policy.joint_pos.func is mdp.joint_sensor
    assert isinstance(cfg.actions.command_faults, mdp.CommandFaultsCfg)
    assert cfg.events.faults.func is mdp.joint_faults
    assert lines[-4:] == [
        "added to the task: termination non_finite_state, for simulations that fail",
        "added to the task: faults of joints, sensors and commands (umc.mdp.add_faults)",
        "group policy: faults of joint sensors reach joint_pos, joint_vel, actions; faults of the IMU reach "
        "base_ang_vel, projected_gravity; none reach base_lin_vel, velocity_commands",
        f"feet: {', '.join(CALVES)}",
    ]


def test_events_of_a_task_that_an_evaluation_leaves_out_or_repeats_are_named():
    cfg = resolve_presets(UnitreeGo2FlatEnvCfg(), ["ovphysx"])
    cfg.events.gait_clock = EventTermCfg(func=lambda *_: None, mode="interval", interval_range_s=(1.0, 1.0))
    cfg.events.heavier = EventTermCfg(func=lambda *_: None, mode="startup")
    assert prepare_task("Stock", cfg, {}, offline=True)[-2:] == [
        "left out, as pushes are: the interval events gait_clock",
        "run anew for each policy and batch, so that they must not add up: startup events heavier",
    ]


def test_a_task_that_names_no_engine_is_told_how_to_offer_both():
    cfg = resolve_presets(UnitreeGo2FlatEnvCfg(), ["ovphysx"])
    cfg.sim.physics = None
    with pytest.raises(UmcError, match=r"not installed; set sim.physics = umc\.tasks\.base\.physics_"):
        check_launch(cfg, argparse.Namespace(visualizer=None))
    cfg.sim.physics = physics_presets(njmax=200, nconmax=40)
    check_launch(resolve_presets(cfg, ["ovphysx"]), argparse.Namespace(visualizer=None))


def test_a_task_of_umc_stays_as_it_is():
    cfg, _ = resolve_cfgs("UMC-G1-Stage2", None, [])
    before = cfg.to_dict()
    assert prepare_task("UMC-G1-Stage2", cfg, {}) == []
    after = cfg.to_dict()
    assert after.pop("parts")["feet"] == cfg.bodies.feet
    assert after == before


def test_a_package_with_a_syntax_error_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "unfinished_tasks.py").write_text("def make(env:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UmcError, match=r"cannot import unfinished_tasks \(.*line 1"):
        checked_task_of_any_package("unfinished_tasks:Walk")


def test_other_names_are_found_and_what_is_not_there_is_not_needed():
    name = checked_task_of_any_package("renamed_a1:Renamed-A1")
    assert name == "Renamed-A1"
    assert not offers_engine(name, "ovphysx")
    assert offers_engine("UMC-A1-Stage2", "ovphysx")
    cfg, _ = resolve_cfgs(name, None, [])
    bare = copy.deepcopy(cfg)
    lines = prepare_task(name, cfg, {})
    assert (parts_of(cfg).command, parts_of(cfg).contact_sensor, parts_of(cfg).feet) == ("walk", "touch", CALVES)
    assert lines[-1] == "falls: the task has no termination by a fall, so that none is counted"
    bare.rewards = bare.scene.touch = None
    check_robot(bare)
    lines = prepare_task(name, bare, {})
    assert feet_of(bare) is None
    assert "feet: unknown" in lines[-2]
    with pytest.raises(UmcError, match=r"feet of the robot are unknown; name them by parts.feet="):
        required_feet(bare)


def test_the_users_names_and_those_of_the_task_count():
    cfg = go2()
    cfg.parts = TaskPartsCfg(feet=["FL_calf"])
    cfg.terminations.broken = cfg.terminations.time_out.replace(func=mdp.non_finite_state, time_out=False)
    prepare_task("Stock", cfg, {}, offline=True)
    assert (parts_of(cfg).feet, parts_of(cfg).non_finite) == (["FL_calf"], "broken")
    assert not hasattr(cfg.terminations, "non_finite_state")
    prepare_task("Stock", cfg, {"feet": "R._calf", "non_finite": "broken"})
    assert parts_of(cfg).feet == CALVES[2:]


def test_two_joints_are_enough_to_fail():
    cfg = go2()
    prepare_task("Stock", cfg, {"joints": [".*L_calf_joint"]}, offline=True)
    assert cfg.events.faults.params["num_joints"] == (1, 2)
    assert cfg.events.faults.params["asset_cfg"].joint_names == ["FL_calf_joint", "RL_calf_joint"]


def test_the_user_chooses_the_joints_that_can_fail():
    cfg = go2()
    prepare_task("Stock", cfg, {"joints": [".*_calf_joint"]}, offline=True)
    calves = [f"{calf}_joint" for calf in CALVES]
    assert cfg.events.faults.params["asset_cfg"].joint_names == parts_of(cfg).joints == calves
    with pytest.raises(UmcError, match=r"parts\.joints is for tasks without faults, and Again has them; change env\."):
        prepare_task("Again", cfg, {"joints": [".*_calf_joint"]})


def test_joints_that_no_actuator_drives_do_not_fail_and_the_screen_says_so():
    cfg = go2()
    cfg.scene.robot.actuators["base_legs"].joint_names_expr = [".*_hip_joint", ".*_thigh_joint"]
    again = copy.deepcopy(cfg)
    lines = prepare_task("Springs", cfg, {}, offline=True)
    joints = cfg.events.faults.params["asset_cfg"].joint_names
    assert len(joints) == 8
    assert not any("calf" in name for name in joints)
    calves = [f"{calf}_joint" for calf in CALVES]
    assert f"no actuator drives {', '.join(calves)}: they do not fail, unless parts.joints has them" in lines
    lines = prepare_task("Springs", again, {"joints": [".*_calf_joint"]}, offline=True)
    assert again.events.faults.params["asset_cfg"].joint_names == calves
    assert not any("no actuator" in line for line in lines)
    cfg = go2()
    prepare_task("Stock", cfg, {}, offline=True)
    assert cfg.events.faults.params["asset_cfg"].joint_names is None


def test_an_actor_that_reads_another_group_is_told_what_to_do_and_that_works(tmp_path):
    cfg = go2()
    cfg.observations.proprio, cfg.observations.policy = cfg.observations.policy, None
    with pytest.raises(UmcError, match=r"no observation group policy.*groups=\['proprio'\]\).* YAML file, as proprio/"):
        prepare_task("Own", copy.deepcopy(cfg), {}, offline=True)
    mdp.add_faults(cfg, groups=["proprio"], severity={"rom": 0.3, "effort": 5.0, "velocity": 3.0})
    prepare_task("Own", cfg, {}, offline=True)
    torch.jit.script(torch.nn.Linear(12, 12)).save(tmp_path / "p.pt")
    (tmp_path / "p.yaml").write_text("file: p.pt\nobservations: [proprio/joint_pos]\n")
    external = read_external(str(tmp_path / "p.yaml"))
    add_group(cfg, external)
    assert getattr(cfg.observations, external.group).term_0_joint_pos.func is mdp.joint_sensor
    with pytest.raises(UmcError, match=r"no observation group policy; it has proprio.*YAML file.*as proprio/TERM"):
        add_group(cfg, read_external(str(tmp_path / "p.pt")))


def test_a_task_that_is_none_of_these_is_refused():
    cfg = go2()
    cfg.commands.base_velocity = None
    with pytest.raises(
        UmcError, match=r"Stock has no uniform velocity command named base_velocity; it has none: make .* UniformVel"
    ):
        prepare_task("Stock", cfg, {}, offline=True)
    cfg = go2()
    cfg.scene.robot = None
    with pytest.raises(UmcError, match="the scene of Stock has no articulation named robot"):
        prepare_task("Stock", cfg, {})


def test_a_robot_on_a_server_is_read_from_a_copy_and_one_that_is_not_there_is_one_line(monkeypatch):
    monkeypatch.setattr(
        parts, "retrieve_file_path", lambda path: str(DATA / path.rpartition("/")[2].replace("usd", "usda"))
    )
    parts._fetched.cache_clear()
    cfg = go2()
    path = cfg.scene.robot.spawn.usd_path
    prepare_task("Stock", cfg, {"feet": [".*_calf"]})
    assert parts_of(cfg).feet == CALVES
    assert cfg.scene.robot.spawn.usd_path == path  # the name of a copy differs from run to run

    def missing(path):
        raise FileNotFoundError(f"Unable to find the file: {path}")

    monkeypatch.setattr(parts, "retrieve_file_path", missing)
    parts._fetched.cache_clear()
    with pytest.raises(
        UmcError, match=r"go2.usd cannot be fetched; give a file of yours by env.scene.robot.spawn"
    ) as error:
        prepare_task("Stock", go2(), {})
    assert "\n" not in str(error.value)


SCENARIOS = ("dead", "effort", "dropped", 8)
DEAD, WEAK, LOST, FINE = range(4)
ONSET, STEPS, FRACTION = 12, 36, 0.1
FIRST_JOINT = 12
"""Column of the first joint position in Isaac Lab's observation."""


def evaluate_a_stock_task(physics, task, width, flags, folder):
    """Two robots of each scenario whose joints all fail; a random policy moves them."""
    from umc.evaluation.arguments import parse
    from umc.evaluation.conditions import set_protocol
    from umc.evaluation.protocol import Setting
    from umc.evaluation.rollout import feet_sensor, reset_batch, run_faults, step_policy
    from umc.evaluation.session import open_session, prepare

    torch.manual_seed(0)
    # bounded, since it reads its own last actions
    network = torch.nn.Sequential(torch.nn.Linear(width, 12), torch.nn.Tanh(), torch.nn.Linear(12, 12, bias=False))
    network[2].weight.data = 4.0 * torch.eye(12)
    torch.jit.script(network).save(f"{folder}/policy.pt")
    argv = ["--task", task, "--policy", f"{folder}/policy.pt", "--trust", "--device", "cpu", *flags]
    session = prepare(*parse(argv, lambda _: None))
    protocol = replace(
        protocol_for(session.info.robot, SCENARIOS),
        settings=(Setting(3, ONSET),),
        steps=STEPS,
        num_joints=(12, 12),
        severity={"effort": {"fraction": FRACTION}},
    )
    count = 2 * len(SCENARIOS)
    set_protocol(session.env_cfg, protocol, count)
    rows: dict[str, list] = {name: [] for name in ("torque", "target", "read", "mask", "command")}
    with open_session(session) as (env, (policy,)):
        obs, robot = reset_batch(env, protocol), env.scene["robot"]
        for _ in step_policy(env, policy, obs, STEPS):
            rows["torque"].append(robot.actuators.applied_effort.torch.abs().clone())
            rows["target"].append(robot.actuators.target_command.position.torch.clone())
            rows["read"].append(env.obs_buf["policy"][:, FIRST_JOINT : FIRST_JOINT + 36].clone())
            rows["mask"].append(env.obs_buf["joint_mask"].clone())
            rows["command"].append(env.command_manager.get_command(parts_of(env.cfg).command).clone())
        seen = {name: torch.stack(values) for name, values in rows.items()}
        feet, names = feet_sensor(env, feet_of(session.env_cfg))
        run = run_faults(env, policy, protocol, feet=feet)
        faulty, curricula = run.joints.sum(1).tolist(), env.curriculum_manager.active_terms
    torch.save(seen, f"{folder}/seen.pt")
    return {"curricula": curricula, "feet": names, "faulty": faulty}


TASKS = {
    "stock": ("Isaac-Velocity-Flat-UnitreeGo2", 48, ["--offline", "env.terminations.base_contact=null"]),
    "renamed": ("renamed_a1:Renamed-A1", 235, []),
}
MOTORS = {"stock": [23.7] * 8 + [45.43] * 4, "renamed": [33.5] * 12}
"""Torque of Isaac Lab's Go2 and A1: hips, thighs, calves [N*m]."""


@pytest.mark.engine
@pytest.mark.parametrize("which", TASKS)
def test_faults_reach_the_physics_and_the_sensors_of_tasks_that_umc_does_not_have(run_engine, tmp_path, which):
    """tests/mdp/test_add_faults_go2.py measures the other limits of such a task."""
    task, width, flags = TASKS[which]
    flags = [*flags, "env.scene.robot.joint_ordering=physx"]  # one order of joints on every engine
    said = run_engine(
        evaluate_a_stock_task, physics="ovphysx", task=task, width=width, flags=flags, folder=str(tmp_path)
    )
    seen = torch.load(tmp_path / "seen.pt", weights_only=True)
    robots = [torch.arange(number, 8, 4) for number in range(4)]
    assert said["faulty"] == [12, 12, 12, 0] * 2
    assert said["feet"] == CALVES
    assert said["curricula"] == []
    assert (seen["command"] == torch.tensor([0.5, 0.0, 0.0])).all()
    # dead sensors read 0, and only they
    read = seen["read"]
    assert (read[ONSET:, robots[DEAD]] == 0.0).all()
    assert (read[: ONSET - 2, robots[DEAD]] != 0.0).float().mean() > 0.9
    assert (read[ONSET:, robots[WEAK]] != 0.0).float().mean() > 0.9
    assert (seen["mask"][ONSET:, robots[DEAD]] == 1.0).all()
    assert (seen["mask"][:, robots[FINE]] == 0.0).all()
    # a tenth of the motor's torque, more of which the healthy robots use
    weak, fine = (seen["torque"][ONSET:, robots[number]].amax((0, 1)) for number in (WEAK, FINE))
    assert (weak <= FRACTION * torch.tensor(MOTORS[which]) * 1.001).all()
    assert (fine > weak).all()
    changes = (seen["target"][ONSET:].diff(dim=0) != 0).sum((0, 2))
    assert (changes[robots[LOST]] == 0).all()
    assert (changes[robots[FINE]] > 0).all()
