# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A task that UMC knows nothing of: Isaac Lab's Go2 velocity task, broken by examples/go2_faults.py."""

import copy
import importlib.util
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from isaaclab_tasks.core.velocity.config.anymal_d.flat_env_cfg import AnymalDFlatEnvCfg
from isaaclab_tasks.core.velocity.config.go2.flat_env_cfg import UnitreeGo2FlatEnvCfg
from isaaclab_tasks.core.velocity.config.go2.rough_env_cfg import UnitreeGo2RoughEnvCfg
from isaaclab_tasks.utils import resolve_presets
from umc import mdp
from umc.tasks.bodies import check_robot
from umc.tasks.offline import _strings, make_offline
from umc.utils.errors import UmcError

REPOSITORY = Path(__file__).resolve().parents[2]

DEAD, WEAK, SLOW, SHORT, LOST, FINE = range(6)
"""Fault of each env: all sensors dead and the joints locked; less torque; less speed; less range of motion; commands
that are lost; nothing."""
SCENARIOS = ["dead+locked", "effort", "velocity", "rom", "dropped", 8]

ONSET, STEPS = 5, 40
TORQUE, SPEED, RANGE = 0.1, 2.0, 0.1
"""Part of the healthy torque [-], speed [rad/s] and part of the range [-] that are left."""

MOTORS = [23.7] * 8 + [45.43] * 4
"""Torque of Isaac Lab's Go2: hips, thighs, calves [N*m]."""


def load(path: str):
    """A module that belongs to no package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, REPOSITORY / path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def a_stock_task_with_faults(physics: str, out: str) -> None:
    """Six Go2 act at random; then rsl_rl trains on what is left of them, with its own network and with UMC's."""
    import fault_env
    from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper, handle_deprecated_rsl_rl_cfg
    from isaaclab_tasks.core.velocity.config.go2.agents.rsl_rl_ppo_cfg import UnitreeGo2FlatPPORunnerCfg
    from rsl_rl.runners import OnPolicyRunner
    from umc.rl.model_cfg import UmcMlpModelCfg

    torch.set_num_threads(1)
    example, cfg = load("examples/go2_faults.py"), UnitreeGo2FlatEnvCfg()
    make_offline(cfg)
    cfg.scene.robot.joint_ordering = "physx"  # one order of joints on every engine
    cfg.terminations.base_contact = None  # the robots stay where they fall
    severity = {"effort": {"fraction": TORQUE}, "velocity": SPEED, "rom": RANGE}
    mdp.add_faults(cfg, severity=severity, num_joints=(12, 12), scenario=SCENARIOS, onset=ONSET, seed=7)
    env = example.make(cfg, physics, len(SCENARIOS))
    env.reset()
    robot, log = env.scene["robot"], fault_env.Log()
    generator = torch.Generator().manual_seed(0)
    action = torch.zeros(len(SCENARIOS), 12)
    for _ in range(STEPS):
        action = 0.5 * action + torch.randn(action.shape, generator=generator)
        log.add(
            **env.step(action.clone())[0],
            q=robot.data.joint_pos.torch,
            v=robot.data.joint_vel.torch,
            torque=robot.actuators.applied_effort.torch,
            limits=robot.data.joint_pos_limits.torch,
            target=robot.actuators.target_command.position.torch,
        )
    log.once |= {"faulty": mdp.fault_state(env).joints.sum(1).tolist(), "trained": []}
    wrapped = RslRlVecEnvWrapper(env)
    for masked in (False, True):
        agent = UnitreeGo2FlatPPORunnerCfg()
        agent.num_steps_per_env, agent.device = 4, env.device
        agent.obs_groups = {"actor": ["policy", "joint_mask", "fault_flag"], "critic": ["policy"]}
        if masked:
            noise = agent.actor.distribution_cfg
            agent.actor = UmcMlpModelCfg(joint_names=robot.joint_names, joint_start=12, distribution_cfg=noise)
        settings = handle_deprecated_rsl_rl_cfg(agent, version("rsl-rl-lib")).to_dict()
        runner = OnPolicyRunner(wrapped, settings, log_dir=None, device=agent.device)
        weights = torch.nn.utils.parameters_to_vector(runner.alg.actor.parameters()).clone()
        runner.learn(1)
        learnt = torch.nn.utils.parameters_to_vector(runner.alg.actor.parameters())
        log.once["trained"].append(bool(learnt.isfinite().all()) and not torch.equal(weights, learnt))
    log.save(out)


@pytest.fixture(scope="module", params=["newton_mjwarp", "ovphysx"])
def log(request, run_engine, tmp_path_factory):
    out = tmp_path_factory.mktemp("go2") / "log.pt"
    run_engine(a_stock_task_with_faults, physics=request.param, out=str(out))
    return SimpleNamespace(**torch.load(out, weights_only=True), engine=request.param)


@pytest.mark.engine
def test_a_stock_task_has_the_planned_faults_and_trains(log):
    assert all(value.isfinite().all() for value in vars(log).values() if isinstance(value, torch.Tensor))
    assert log.faulty == [12, 12, 12, 12, 12, 0]
    assert log.trained == [True, True]


@pytest.mark.engine
def test_dead_sensors_read_0_through_the_stock_noise_and_only_they(log):
    joints = log.policy[..., 12:48]
    assert (joints[: ONSET - 1, DEAD] != 0.0).all()
    assert (joints[ONSET - 1 :, DEAD] == 0.0).all()
    assert (joints[ONSET - 1 :, WEAK] != 0.0).all()
    assert (log.joint_mask[: ONSET - 1] == 0.0).all()
    assert (log.joint_mask[ONSET - 1 :, DEAD] == 1.0).all()
    assert (log.fault_flag[ONSET - 1 :, DEAD] == 1.0).all()
    assert (log.fault_flag[ONSET - 1 :, FINE] == -1.0).all()


@pytest.mark.engine
def test_torque_range_and_speed_stay_within_the_faults_limits_and_lost_commands_do_not_arrive(log):
    for weak, fine, motor in zip(*log.torque[ONSET:, [WEAK, FINE]].abs().amax(0), MOTORS, strict=True):
        assert weak <= TORQUE * motor * 1.001 < fine
    lower, upper = log.limits.unbind(-1)
    width = (upper - lower)[:, SHORT]
    assert (width[-1] / width[0]).max() == pytest.approx(RANGE, rel=1e-3)
    outside = torch.maximum(log.q - upper, lower - log.q)[ONSET:, SHORT]
    # with the stock robot's own iterations a fast joint got 0.04 rad behind its window on PhysX
    assert outside.max() < (0.005 if log.engine == "newton_mjwarp" else 0.02)
    assert (log.q[ONSET:, DEAD] - log.q[ONSET - 1, DEAD]).abs().max() < 0.02  # locked
    fast = (log.v[ONSET:].abs() > 1.1 * SPEED).float().mean((0, 2))
    assert fast[SLOW] < 0.1 < fast[FINE]
    changes = (log.target[ONSET:].diff(dim=0) != 0).sum((0, 2))
    assert changes[LOST] == 0 < changes[FINE]


def test_the_example_adds_faults_to_the_stock_task_and_nothing_else():
    stock, faulty = UnitreeGo2FlatEnvCfg(), load("examples/go2_faults.py").faulty_go2()
    make_offline(stock)
    stock, faulty = stock.to_dict(), faulty.to_dict()
    changed = {name for name in stock if stock[name] != faulty[name]}
    assert changed == {"observations", "events", "scene"}
    # of the scene, what PhysX needs to hold limits
    robots = [cfg["scene"].pop("robot") for cfg in (stock, faulty)]
    assert stock["scene"] == faulty["scene"]
    solvers = [robot["spawn"].pop("articulation_props") for robot in robots]
    assert robots[0] == robots[1]
    assert solvers[0] != solvers[1]


def test_the_training_of_the_tutorial_fits_the_stock_task(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples"))
    example, stock = load("examples/go2_train.py"), UnitreeGo2FlatEnvCfg()
    cfg = resolve_presets(example.for_two_cores(example.faulty_go2()), ["ovphysx"])
    check_robot(cfg)  # feet of the gait reward
    assert set(vars(cfg.rewards)) - set(vars(stock.rewards)) == {"alive", "progress", "trot"}
    assert set(vars(cfg.observations.policy)) == set(vars(stock.observations.policy))


@pytest.mark.parametrize("task", [UnitreeGo2FlatEnvCfg, UnitreeGo2RoughEnvCfg])
def test_a_stock_task_reads_no_server_offline_and_keeps_all_else(task):
    stock, cfg = task(), task()
    changes = make_offline(cfg)
    for physics in ("newton_mjwarp", "ovphysx"):
        check_robot(resolve_presets(copy.deepcopy(cfg), [physics]))
    assert not [value for _, value in _strings(cfg.scene) if "://" in value]
    assert "rewards.feet_air_time.sensor_cfg.body_names: .*_foot becomes .*_calf" in changes
    before, after = stock.to_dict(), cfg.to_dict()
    assert {name for name in before if before[name] != after[name]} == {"scene", "commands", "rewards"}
    assert before == task().to_dict()  # the robot's cfg is shared by other tasks


def test_bodies_that_a_list_names_have_their_place_offline_too():
    cfg = UnitreeGo2FlatEnvCfg()
    feet = cfg.rewards.feet_air_time.params["sensor_cfg"]
    feet.body_names = ["trunk", ".*_foot"]
    make_offline(cfg)
    assert feet.body_names == ["trunk", ".*_calf"]
    assert make_offline(cfg) == []


def test_joints_that_the_robot_does_not_have_are_refused_without_a_simulation():
    with pytest.raises(UmcError, match=r"no joint is named \.\*_knee; the joints are FL_hip_joint"):
        load("examples/go2_faults.py").faulty_go2(joint_names=[".*_hip_joint", ".*_knee"])


def test_another_stock_robot_is_refused_and_the_file_to_get_is_named():
    with pytest.raises(UmcError, match=r"anymal_d.* no local counterpart; download it once and set scene\.robot"):
        make_offline(AnymalDFlatEnvCfg())
