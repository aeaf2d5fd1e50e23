# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The pretrained policy walks in plain MuJoCo with any number of workers; the result is a study."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
from fresh_policy import write_fresh
from isaaclab_tasks.utils import load_cfg_from_registry
from umc.cli.main import main
from umc.cli.sim2sim import add_arguments
from umc.deploy.export import export_checkpoint
from umc.evaluation.metrics import NOT_RECOVERED, Episodes, Outcome
from umc.evaluation.protocol import Setting, protocol_for
from umc.evaluation.pushes import PUSH_EVERY, pushes
from umc.evaluation.study import STUDY, EpisodeBatch, PolicyResult, Study, assign_envs, load_study, save_study
from umc.faults import FaultSchedule, FaultState, LedgerWriter, Scenario, find_scenario, read_ledger
from umc.rl.pretrained import pretrained_folder
from umc.sim2sim import rollout
from umc.sim2sim.agreement import (
    agreement,
    agreement_table,
    find_result,
    ledger_agreement,
    pair_up,
    require_same_conditions,
)
from umc.sim2sim.robot import Robot, SolverCfg
from umc.sim2sim.rollout import RolloutCfg, Simulation, run_rollout
from umc.sim2sim.study import _known, about, episode_batch, evaluate, ledger_rollout, protocol_rollout
from umc.utils.errors import UmcError
from umc.utils.naming import load_tasks

CHECKPOINT = pretrained_folder() / "a1_mlp_stage1.pt"


def load_names(policy):
    return [joint["name"] for joint in json.loads(policy.read_text())["joints"]]


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    """The pretrained policy's description."""
    load_tasks()
    folder = tmp_path_factory.mktemp("exported")
    env_cfg = load_cfg_from_registry("UMC-A1-Stage1", "env_cfg_entry_point")
    return export_checkpoint(CHECKPOINT, folder, env_cfg).description


def a1(steps, scenarios, onset=10):
    """The paper's protocol, cut down."""
    protocol = protocol_for("a1", scenarios)
    return replace(protocol, steps=steps, settings=(Setting(seed=1, onset=onset),), radii=(0.1, 0.2))


def test_the_pretrained_policy_walks(policy):
    protocol = a1(150, [8], onset=75)
    cfg = protocol_rollout(protocol, policy, 4, SolverCfg())
    run = episode_batch(cfg, run_rollout(cfg, 1), protocol)
    assert (run.episodes.outcome == Outcome.UP).all()
    # 0.5 m/s are asked for; 0.54 with more robots, at 0.30 m (docs/mujoco.md)
    assert run.episodes.speed_after_onset.mean() == pytest.approx(0.54, abs=0.12)
    assert run.episodes.height_after_onset.mean() == pytest.approx(0.30, abs=0.02)
    assert 0.2 < run.stance.float().mean() < 0.8  # a trot stands on two feet


def test_sensors_are_as_noisy_as_in_the_training_where_the_protocol_says_so(policy):
    """tests/sim2sim/test_diagnosis.py measures how noisy."""
    protocols = a1(20, [8]), replace(a1(20, [8]), noise=True)
    exact, noisy = (protocol_rollout(protocol, policy, 1, SolverCfg()) for protocol in protocols)
    assert [about(cfg, "")["noise"] for cfg in (exact, noisy)] == ["off", "as in the training"]
    traces = [run_rollout(cfg, 1) for cfg in (exact, noisy)]
    assert (traces[0].work != traces[1].work).any()


def test_robots_are_pushed_when_and_as_the_protocol_says(policy):
    """As tests/evaluation/test_conditions.py measures in Isaac Lab."""
    protocol = replace(a1(PUSH_EVERY, [8]), push=0.8)
    cfg = protocol_rollout(protocol, policy, 3, SolverCfg())
    simulation = Simulation(cfg)
    simulation.run(np.arange(3))
    pushed = []
    for step in range(PUSH_EVERY):
        before = [robot.data.qvel.copy() for robot in simulation.robots]
        simulation._push(np.arange(3), step, np.array([True, True, False]))
        changes = np.array([robot.data.qvel - old for robot, old in zip(simulation.robots, before, strict=True)])
        assert not changes[:, 2:].any()
        pushed.append(changes[:, 0] != 0.0)
        whom, how = pushes(torch.ones(3, dtype=torch.int64), torch.arange(3), torch.full((3,), step), 0.8)
        expected = how.numpy() * (whom & torch.tensor([True, True, False])).numpy()[:, None]
        assert changes[:, :2] == pytest.approx(expected, abs=1e-6)
    assert np.sum(pushed, axis=0).tolist() == [1, 1, 0]  # the third robot has fallen
    assert about(cfg, "")["pushes"] == "up to 0.8 m/s along x and y"
    calm, disturbed = (run_rollout(one, 1) for one in (replace(cfg, push_speed=0.0), cfg))
    assert (calm.work != disturbed.work).any()


@pytest.mark.slow
def test_a_robot_moves_the_same_beside_any_others(policy):
    protocol = a1(40, [2, 4])
    cfg = protocol_rollout(protocol, policy, 10, SolverCfg())
    together = run_rollout(cfg, 1)
    again = run_rollout(cfg, 2)
    few = run_rollout(protocol_rollout(protocol, policy, 2, SolverCfg()), 1)
    for name in ("position", "height", "work", "fell", "contact"):
        np.testing.assert_array_equal(getattr(together, name), getattr(again, name))
        np.testing.assert_array_equal(getattr(together, name)[:, :4], getattr(few, name))
    healthy = run_rollout(protocol_rollout(a1(40, [8]), policy, 1, SolverCfg()), 1)
    np.testing.assert_array_equal(together.position[:9, 0], healthy.position[:9, 0])  # until the onset
    assert (together.position[20:, 0] != healthy.position[20:, 0]).any()
    assert (together.position[20:, 0] != together.position[20:, 1]).any()


def test_it_needs_no_isaac_lab():
    names = ("rollout", "study", "agreement", "diagnosis")
    modules = (*(f"umc.sim2sim.{name}" for name in names), "umc.cli.sim2sim", "umc.diagnosis.report")
    code = "; ".join([f"import sys, {', '.join(modules)}", "sys.exit('isaaclab' in sys.modules)"])
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_robot_has_the_faulty_joints_of_the_isaac_lab_run(policy):
    protocol = a1(12, [1, 5, 8])
    cfg = protocol_rollout(protocol, policy, 3, SolverCfg())
    run = episode_batch(cfg, run_rollout(cfg, 1), protocol)
    assigned = assign_envs(protocol, 9)
    assert torch.equal(run.cell, assigned.cell)
    assert torch.equal(run.member, assigned.member)
    for row in range(9):
        case, member = protocol.cases()[int(assigned.cell[row])], assigned.member[row : row + 1]
        plan = FaultSchedule(load_names(policy), **case).draw(member, torch.zeros(1, dtype=torch.long))
        assert torch.equal(run.joints[row], plan.joints[0].any(0))
    has_window = torch.tensor(["rom" in find_scenario(scenario).kinds for scenario in protocol.scenarios])[run.cell]
    assert has_window.any()
    assert torch.equal(run.severity["rom"].isfinite(), has_window)


def test_a_simulation_derates_and_brakes_the_motors_of_its_robots(policy):
    names = load_names(policy)
    severity = {"derating": 1.0, "braking": 3.0}
    case = {"scenario": "derating", "severity": severity, "onset": 1, "num_joints": (12, 12), "seed": 1}
    zero = np.zeros(2, dtype=np.int64)
    one = np.array([0, 1])
    cases = [case, {**case, "scenario": "braking"}]
    cfg = RolloutCfg(policy, (0.5, 0.0, 0.0), 50, one, zero, zero, zero, one, cases)
    simulation = Simulation(cfg)
    simulation.run(one)
    hot, braked = simulation.robots
    assert hot._effort.min() < 2.0 < hot._effort.max()  # motors that held much lose most
    assert (braked._effort == 0.0).all()
    added = braked.model.dof_damping[simulation.kind.qvel] - simulation.kind.model.dof_damping[simulation.kind.qvel]
    np.testing.assert_allclose(added, np.full(len(names), 3.0))


def test_the_knees_of_a_simulation_give_by_their_play(policy):
    severity = {"backlash": 0.4}
    case = {"severity": severity, "onset": 1, "num_joints": (4, 4), "joint_names": [".*_calf_joint"], "seed": 1}
    zero, both = np.zeros(2, dtype=np.int64), np.array([0, 1])
    cases = [{**case, "scenario": "backlash"}, {**case, "scenario": 8}]
    run = run_rollout(RolloutCfg(policy, (0.0, 0.0, 0.0), 50, both, zero, zero, zero, both, cases), 1)
    worn, whole = run.height[20:].mean(0)
    assert not run.fell.any()
    assert whole - worn > 0.02


def test_go2_stands_for_5_s_and_its_faults_are_those_of_its_own_protocol(tmp_path):
    """An export of a policy that has learnt nothing holds all figures of robot and task."""
    checkpoint = write_fresh(tmp_path, "UMC-Go2-Stage2")
    env_cfg = load_cfg_from_registry("UMC-Go2-Stage2", "env_cfg_entry_point")
    path = export_checkpoint(checkpoint, tmp_path / "out", env_cfg).description
    protocol = replace(protocol_for("go2", [6, 8]), steps=8, settings=(Setting(seed=1, onset=4),))
    simulation = Simulation(protocol_rollout(protocol, path, 1, SolverCfg()))
    simulation.run(np.array([0, 1]))
    weak, healthy = (robot._effort for robot in simulation.robots)
    np.testing.assert_allclose(healthy, [23.7, 23.7, 45.43] * 4)
    assert (weak == 10.0).sum() in (4, 5)
    assert (weak[weak != 10.0] == healthy[weak != 10.0]).all()
    robot = Robot(simulation.kind)
    for _ in range(250):
        robot.step(simulation.kind.motors.pose)
    assert robot.data.qpos[2] == pytest.approx(0.26, abs=0.01)  # as on Newton and PhysX (docs/robots.md)
    assert robot.stance.all()
    assert not robot.fallen
    assert robot._forces().sum() == pytest.approx(16.085 * 9.81, rel=0.01)


@pytest.fixture
def ledger(policy, tmp_path):
    """Two episodes of two robots, recorded without a simulator."""
    names = load_names(policy)
    ratios = {"normal": 1.0, "power_loss": 1.0}
    severity = {"rom": 0.1, "effort": 5.0, "velocity": 3.0}
    schedule = FaultSchedule(names, ratios=ratios, num_joints=(12, 12), onset_range=(5, 8), severity=severity)
    state = FaultState(schedule, 2)
    writer = LedgerWriter(tmp_path / "faults.jsonl", state, schedule, robot="a1", step_dt=0.02)
    for length in (0, 60, 30):
        state.reset(torch.arange(2))
        writer.record_plans(torch.arange(2), torch.full((2,), length))
    return tmp_path / "faults.jsonl"


def test_a_ledgers_robots_break_as_recorded(policy, ledger):
    protocol, cfg = ledger_rollout(read_ledger(ledger), protocol_for("a1"), policy, None, None, SolverCfg())
    study = evaluate(cfg, protocol, "umc sim2sim", 1)
    run = study.policies[0].run
    assert len(run.cell) == 6
    assert protocol.steps == 60
    broken = run.cell == protocol.scenarios.index("power_loss")
    assert 0 < broken.sum() < 6
    # without any motor A1 drops within 60 steps
    assert torch.equal(run.episodes.outcome == Outcome.FAILED, broken)
    assert torch.equal(run.joints.all(1), broken)
    # of the recorded episodes two stood for 60 steps, two fell after 30, and two never ended
    *_, every = ledger_agreement(read_ledger(ledger), cfg, study)
    (stood,) = every.rates
    assert (every.scenario, every.pairs, stood.name, stood.first) == ("all", 4, "stood", 0.5)
    assert stood.second == float((~broken)[torch.from_numpy(cfg.episode) < 2].float().mean())


def test_a_ledger_is_of_the_same_robot_whose_file_may_have_any_name(policy, ledger, monkeypatch, capsys):
    def reached(*_):
        raise UmcError("evaluates")

    monkeypatch.setattr("umc.cli.sim2sim._evaluate", reached)
    text = ledger.read_text()
    for old, new, words in (
        ('"robot":"a1"', '"robot":"my_usd"', "evaluates"),
        # Go2's joints have the names of A1's
        ('"robot":"a1"', '"robot":"go2"', "is one of go2, the policy is for a1; give one of that"),
    ):
        ledger.write_text(text.replace(old, new))
        assert ledger.read_text() != text
        assert main(["sim2sim", "--policy", str(policy.parent), "--ledger", str(ledger)]) == 2
        assert words in capsys.readouterr().err


def test_a_scenario_of_ones_own_is_known_by_its_kinds():
    for kinds, name in (((), "normal"), (("dead", "rom"), "dead+rom")):
        assert _known(Scenario("mine", kinds, False)) == name
        find_scenario(name)


def test_a_study_of_mujoco_names_no_tracks(policy, tmp_path, monkeypatch):
    found = []
    monkeypatch.setattr("umc.cli.sim2sim._evaluate", lambda _cfg, protocol, _options: found.append(protocol))
    assert main(["sim2sim", "--policy", str(policy.parent), "--scenarios", "8", "--out", str(tmp_path / "out")]) == 0
    assert found == [found[0].without_track()]


@pytest.mark.slow
def test_the_program_writes_a_study_and_compares(policy, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    flags = ["--policy", str(policy.parent), "--scenarios", "3", "8", "--episodes", "1", "--workers", "1"]
    flags += ["--steps", "130", "--radii", "0.1", "0.2"]
    assert main(["sim2sim", *flags, "--out", str(out)]) == 0
    study = load_study(out / "study.pt")
    assert len(study.policies[0].run.cell) == 6
    assert study.about["physics"].startswith("mujoco 3")
    again = [*flags, "--out", str(tmp_path / "second"), "--against", str(out)]
    assert main(["sim2sim", *again]) == 0
    said = json.loads((tmp_path / "second" / "agreement.json").read_text())
    assert said["scenarios"][-1]["same"]["value"] == 1.0
    assert "same outcome" in capsys.readouterr().out
    monkeypatch.setattr("umc.sim2sim.study.run_rollout", None)  # refused before it
    assert main(["sim2sim", *again, "--seed", "5"]) == 2
    assert "settings" in capsys.readouterr().err


def made_study(outcomes, members=None):
    """A study of scenarios 3 and 8, robots in turn; those that are up got 0.15 m far."""
    protocol, count = a1(100, [3, 8]), len(outcomes)
    assigned, outcome = assign_envs(protocol, count), torch.tensor(outcomes)
    far = torch.where(outcome == Outcome.UP, 0.15, 0.0)
    episodes = Episodes(outcome, far, far.long(), *(far,) * 6, torch.full((count,), NOT_RECOVERED))
    member = assigned.member if members is None else torch.tensor(members)
    run = EpisodeBatch(episodes, assigned.cell, member, assigned.onset, torch.zeros(count, 1, dtype=torch.bool))
    return Study(protocol, 0.02, ("a",), {}, (PolicyResult("one", "one", {"sha256": "x"}, run),))


def test_agreement_of_a_small_example():
    up, failed, before = int(Outcome.UP), int(Outcome.FAILED), int(Outcome.FELL_BEFORE_ONSET)
    # robots in turn: scenario 3, scenario 8
    first = made_study([failed, up, failed, up, up, up, before, up])
    second = made_study([failed, up, up, up, up, up, failed, failed])
    pairs = pair_up(first, first.policies[0], second)
    three, eight, both = agreement(first.protocol, *pairs)
    assert (three.scenario, three.pairs) == ("3", 3)  # the one that fell before onset is no pair
    assert three.same.value == pytest.approx(2 / 3)
    assert three.by_chance == pytest.approx(2 / 3 * 1 / 3 + 1 / 3 * 2 / 3)
    fell = three.rates[-1]
    assert (fell.name, fell.first, fell.second) == ("failed", pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert fell.difference.value == pytest.approx(-1 / 3)
    assert np.isnan([fell.difference.low, fell.difference.high]).all()  # of three robots
    assert eight.same.value == pytest.approx(3 / 4)
    assert both.pairs == 7
    assert both.by_chance == pytest.approx((3 * three.by_chance + 4 * 3 / 4) / 7)
    assert both.same.value == pytest.approx(np.mean([1.0, 0.5, 1.0, 0.0]))  # a robot counts once
    reached = three.rates[0]
    assert (reached.name, reached.first) == ("reached@0.1", pytest.approx(1 / 3))
    assert "67 (" in agreement_table([three, eight, both], ("Newton", "MuJoCo"))


@pytest.mark.parametrize(
    ("steps", "stood"),
    [(150, [True, False, False]), (100, [True, False, False]), (50, [True, True, False])],
)
def test_a_recorded_episode_as_long_as_a_shorter_rollout_counts_as_stood(steps, stood):
    lengths = (100, 60, 30, None)
    ledger = SimpleNamespace(episodes={(env, 0): SimpleNamespace(length=one) for env, one in enumerate(lengths)})
    cfg = SimpleNamespace(env=np.arange(4), episode=np.zeros(4, dtype=int), steps=steps, cell=np.zeros(4, dtype=int))
    outcomes = [int(one) for one in (Outcome.UP, Outcome.NO_ONSET, Outcome.FAILED, Outcome.UP)]
    *_, every = ledger_agreement(ledger, cfg, made_study(outcomes))
    (rate,) = every.rates
    assert (every.pairs, rate.first, rate.second) == (3, pytest.approx(np.mean(stood)), pytest.approx(2 / 3))
    assert every.same.value == pytest.approx(np.mean(np.equal(stood, [True, True, False])))


def made_ledger(first, onsets):
    """A ledger of two envs, whose episodes begin at a number and have a fault each."""
    episodes = {
        (env, first[env] + number): SimpleNamespace(
            length=60, faults=[SimpleNamespace(scenario=find_scenario(6), onset=onset)]
        )
        for env in range(2)
        for number, onset in enumerate(onsets)
    }
    header = SimpleNamespace(seed=1, num_envs=2, joint_names=("a", "b"))
    return SimpleNamespace(path=Path("faults.jsonl"), header=header, episodes=episodes)


def test_the_first_episodes_of_a_resumed_trainings_ledger_are_taken():
    ledger = made_ledger((37, 36), (5, 10, 15))
    _, cfg = ledger_rollout(ledger, protocol_for("a1"), Path("policy.json"), None, 2, SolverCfg())
    assert list(zip(cfg.env, cfg.episode, strict=True)) == [(0, 37), (0, 38), (1, 36), (1, 37)]


@pytest.mark.parametrize(("steps", "onset"), [(None, 40), (20, 19)])
def test_a_rollout_of_a_ledger_may_be_shorter_than_its_median_onset(steps, onset):
    ledger = made_ledger((0, 0), (30, 40, 50))
    protocol, cfg = ledger_rollout(ledger, protocol_for("a1"), Path("policy.json"), steps, None, SolverCfg())
    assert ([one.onset for one in protocol.settings], cfg.steps) == ([onset], steps or 60)


def test_only_the_same_robots_are_compared():
    up = int(Outcome.UP)
    first, second = made_study([up] * 4), made_study([up] * 4, members=[7, 7, 1, 1])
    left, right = pair_up(first, first.policies[0], second)
    assert left.member.tolist() == right.member.tolist() == [1, 1]
    unrelated = made_study([up] * 4, members=[8, 8, 9, 9])
    with pytest.raises(UmcError, match="share no robot"):
        pair_up(first, first.policies[0], unrelated)
    longer = replace(second, protocol=replace(second.protocol, steps=200))
    with pytest.raises(UmcError, match="steps"):
        pair_up(first, first.policies[0], longer)
    own = replace(second, protocol=replace(second.protocol, conditions={"knees": {"scenario": "locked"}}))
    for pair in ((first, own), (own, first)):
        with pytest.raises(UmcError, match="conditions"):
            pair_up(pair[0], pair[0].policies[0], pair[1])


def test_without_a_protocol_each_robot_has_its_own():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    protocols = [protocol_for(robot, name=parser.parse_args([]).protocol).name for robot in ("a1", "go2", "solo12")]
    assert protocols == ["umc_paper", "any_robot", "any_robot"]


def test_a_policy_is_compared_with_its_evaluation_under_the_oracle(tmp_path):
    study = made_study([int(Outcome.UP)] * 4)
    policies = tuple(
        replace(study.policies[0], label=one, about={"sha256": "x", "detection": one}) for one in ("none", "oracle")
    )
    policy = {"checkpoint": {"sha256": "x", "file": "a.pt"}}
    save_study(tmp_path / STUDY, replace(study, policies=policies))
    with pytest.raises(UmcError, match="was evaluated on tracks"):
        find_result(tmp_path, policy)
    flat = study.protocol.without_track()
    save_study(tmp_path / STUDY, replace(study, policies=policies, protocol=flat))
    require_same_conditions(study.protocol, flat)
    assert find_result(tmp_path, policy)[1].about["detection"] == "oracle"


def test_settings_with_one_seed_have_the_same_robots():
    study = made_study([int(Outcome.UP)] * 8)
    one = replace(study.protocol, settings=tuple(Setting(1, onset) for onset in (5, 6)))
    run = replace(study.policies[0].run, cell=torch.arange(4).repeat(2), member=torch.arange(8) // 4)
    assert agreement(one, run, run)[-1].rates[0].difference.count == 2


def test_it_starts_as_many_processes_as_it_may_use(monkeypatch):
    counts = []
    monkeypatch.setattr(rollout, "cores", lambda: 3)
    monkeypatch.setattr(rollout, "_results", lambda runner, groups, count: counts.append(count) or ())
    cfg = SimpleNamespace(episode=np.arange(8), env=np.arange(8))
    for workers in (None, 2, 100):
        assert not [*rollout.simulate(SimpleNamespace(cfg=cfg), workers)]
    assert counts == [3, 2, 8]


def test_ctrl_c_while_the_workers_start_ends_them_first(monkeypatch):
    events = []

    class Pool:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            events.append("wait")

        def submit(self, *_):
            signal.raise_signal(signal.SIGINT)  # os.kill may reach another thread first

        def shutdown(self, **_):
            events.append("shutdown")

    monkeypatch.setattr(rollout, "ProcessPoolExecutor", Pool)
    worker = SimpleNamespace(terminate=lambda: events.append("terminate"))
    monkeypatch.setattr(rollout, "active_children", lambda: [worker])
    with pytest.raises(KeyboardInterrupt):
        list(rollout._results(SimpleNamespace(cfg=None), [np.arange(1)], 2))
    assert events == ["terminate", "shutdown", "wait"]


@pytest.mark.slow
def test_ctrl_c_ends_the_workers_without_their_tracebacks(policy, tmp_path):
    command = ["sim2sim", "--policy", str(policy.parent), "--episodes", "100", "--workers", "2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "umc", *command, "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    for line in process.stdout:
        if line.startswith("protocol "):  # the workers start now
            break
    time.sleep(3.0)
    workers = psutil.Process(process.pid).children()
    for worker in workers:
        worker.send_signal(signal.SIGINT)
    time.sleep(1.0)
    assert all(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers)
    os.killpg(process.pid, signal.SIGINT)
    rest, _ = process.communicate(timeout=120)
    assert process.returncode == 130, rest
    assert "Traceback" not in rest
