# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The cfg that chooses what a policy is told about faults, and the observation terms that read it."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from isaaclab_tasks.contrib.velocity.config.a1.flat_env_cfg import UnitreeA1FlatEnvCfg
from umc.detection import Detection, Detector, DetectorFile, read_detector, write_detector
from umc.detection.network import JOINT_KINDS
from umc.faults import FAULT_CLASSES, FaultSchedule, FaultState
from umc.faults.detection import CorruptedOracle, NoDetection
from umc.mdp import DetectionCfg, add_faults, detection, fault_class
from umc.mdp.detection import make_detection, reported_joints
from umc.models import JointLayout
from umc.tasks.task_cfg import resolve_cfgs
from umc.training.recipe import read_recipe
from umc.utils.errors import UmcError

JOINTS = ("a", "b")


def env_with(obs=None, **fields):
    """What a detection knows of an env."""
    cfg = SimpleNamespace(detection=DetectionCfg(**fields))
    return SimpleNamespace(cfg=cfg, step_dt=0.02, device="cpu", obs_buf={} if obs is None else obs)


def made(**fields):
    state = FaultState(FaultSchedule(JOINTS, scenario="dead", onset=1, num_joints=(1, 1)), 4)
    return make_detection(env_with(**fields), state)


def test_the_cfg_chooses_the_source():
    assert made() is None
    assert make_detection(SimpleNamespace(cfg=SimpleNamespace()), None) is None  # a cfg of before there was a choice
    for none in ("none", None):  # the override env.detection.source=none is read as None
        assert isinstance(made(source=none), NoDetection)
    errors = {"delay": 3, "missed": 0.1, "alarm_steps": 7}
    found = made(source="corrupted_oracle", false_alarms=6.0, **errors)
    assert isinstance(found, CorruptedOracle)
    assert {name: getattr(found, f"_{name}") for name in errors} == errors
    assert found._chance == pytest.approx(6.0 * 0.02 / 60.0 / len(JOINTS))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"source": "guess"},
            "env.detection.source is 'guess'; choose one of oracle, corrupted_oracle, detector, none",
        ),
        ({"delay": 3}, "env.detection.delay needs env.detection.source=corrupted_oracle"),
        ({"source": "none", "missed": 0.1}, "env.detection.missed needs env.detection.source=corrupted_oracle"),
        ({"file": "x.pt"}, "env.detection.file needs env.detection.source=detector"),
        ({"source": "none", "any_fault": True}, "env.detection.any_fault needs env.detection.source=detector"),
        ({"source": "detector"}, "needs env.detection.file, which umc train-detector writes"),
        ({"source": "detector", "file": "x.pt"}, "x.pt is missing; train one with umc train-detector"),
    ],
)
def test_errors_without_effect_are_refused(fields, words):
    with pytest.raises(UmcError, match=words):
        made(**fields)


LAYOUT = JointLayout.term_major(JOINTS, 2 + 6, 2)


@pytest.fixture
def detector(tmp_path, monkeypatch):
    """A detector that reports what reads 0 at once, and its file; envs have the observation that it reads."""
    monkeypatch.setattr(detection, "joint_layout", lambda env, group: LAYOUT)
    torch.manual_seed(0)
    one = Detector(LAYOUT).eval()
    one.thresholds[:] = torch.tensor([0.5, 0.4, 1.0])
    write_detector(tmp_path / "detector.pt", DetectorFile(one, "a1"))
    return str(tmp_path / "detector.pt")


def test_a_detector_reports_what_it_saw_a_step_before(detector, monkeypatch):
    state = FaultState(FaultSchedule(JOINTS, scenario="dead", onset=500, num_joints=(1, 1)), 3)
    env = env_with(source="detector", file=detector)
    found = make_detection(env, state)
    alone = read_detector(Path(detector)).detector
    memory = alone.start(3)
    state.reset(torch.arange(3))
    for step in range(6):
        state.advance(torch.full((3,), step), torch.zeros(3, 2))
        found.update()
        assert torch.equal(found.faulty, torch.zeros(3, 2, 2)) if step == 0 else found.faulty.any()
        if step > 0:  # of the observation of the step before
            said = alone(env.obs_buf["policy"], memory)
            memory = said.state
            assert torch.equal(found.faulty[..., 0], 1.0 - said.sensor[..., 0])
            assert torch.equal(found.joint_mask, said.reported[..., 0])
            assert all(map(torch.equal, (found.has_joint_fault, found.range_reduced), reported_joints(said)))
        kept = found.faulty.clone()
        with monkeypatch.context() as on_gpu:  # which tells nothing of its tensors, and need not
            on_gpu.setattr(detection, "known_empty", lambda _: False)
            on_gpu.setattr(found, "_detector", None)
            found.update()  # every observation term asks
        assert torch.equal(found.faulty, kept)
        env.obs_buf = {"policy": torch.randn(3, 8)}


def test_an_episode_starts_without_a_report(detector):
    state = FaultState(FaultSchedule(JOINTS, scenario="dead", onset=500, num_joints=(1, 1)), 2)
    env = env_with(source="detector", file=detector)
    found = make_detection(env, state)
    state.reset(torch.arange(2))
    for step in range(3):
        state.advance(torch.full((2,), step), torch.zeros(2, 2))
        found.update()
        env.obs_buf = {"policy": torch.randn(2, 8)}
    assert found.faulty.any(dim=2).any(dim=1).all()
    state.reset(torch.tensor([0]))
    state.advance(torch.tensor([0, 3]), torch.zeros(2, 2))
    found.update()
    assert not found.faulty[0].any()
    assert not found.joint_mask[0].any()
    assert found.fault_flag[0].tolist() == [-1.0] * 3
    assert found.faulty[1].any()
    state.advance(torch.tensor([1, 4]), torch.zeros(2, 2))
    found.update()
    alone = read_detector(Path(detector)).detector
    said = alone(env.obs_buf["policy"][:1], alone.start(1))  # of an episode's first observation
    assert torch.equal(found.faulty[0, :, 0], 1.0 - said.sensor[0, :, 0])


def test_a_detector_of_other_joints_is_refused(detector):
    state = FaultState(FaultSchedule(("b", "a"), scenario="dead", onset=1, num_joints=(1, 1)), 4)
    with pytest.raises(UmcError, match="other joints or another joint order"):
        make_detection(env_with(source="detector", file=detector), state)


@pytest.mark.parametrize("columns", [(8, 1), (10, 2)])  # with the same width, and with another
def test_a_detector_of_another_observation_is_refused(detector, monkeypatch, columns):
    monkeypatch.setattr(detection, "joint_layout", lambda env, group: JointLayout.term_major(JOINTS, *columns))
    state = FaultState(FaultSchedule(JOINTS, scenario="dead", onset=500, num_joints=(1, 1)), 2)
    state.reset(torch.arange(2))
    state.advance(torch.ones(2, dtype=torch.long), torch.zeros(2, 2))
    found = make_detection(env_with({"policy": torch.zeros(2, columns[0])}, source="detector", file=detector), state)
    with pytest.raises(
        UmcError, match=f"reads another observation, of 8 columns, not these {columns[0]}; train it beside"
    ):
        found.update()


@pytest.fixture
def class_of(monkeypatch):
    """What the observation term says of a source of reports: the class of each env."""

    def name(found):
        monkeypatch.setattr("umc.mdp.observations.fault_term", lambda _: SimpleNamespace(detect=lambda: found))
        columns = fault_class(None)
        assert columns.sum(dim=1).tolist() == [1.0] * len(columns)
        return [FAULT_CLASSES[column] for column in columns.argmax(dim=1)]

    return name


def faulty(scenario, step=1):
    """Robots whose faults set in at the first step."""
    severity = {"rom": 0.3, "effort": 5.0, "velocity": 3.0, "friction": 1.0}
    state = FaultState(FaultSchedule(JOINTS, scenario=scenario, severity=severity, onset=1, num_joints=(1, 1)), 4)
    state.reset(torch.arange(4))
    state.advance(torch.full((4,), step), torch.zeros(4, 2))
    return state


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        *((number, "healthy") for number in (1, 8)),
        *((number, "power_loss") for number in (3, 4, 6, 7)),
        *((number, "locked") for number in (2, 5)),
        ("power_loss", "power_loss"),
        ("friction", "power_loss"),
        ("locked", "locked"),
        ("locked+power_loss", "locked"),
        ("dropped", "healthy"),
    ],
)
def test_every_joint_fault_has_a_class_for_which_mt_ftc_has_a_head(class_of, scenario, said):
    assert class_of(faulty(scenario)) == [said] * 4
    assert class_of(faulty(scenario, step=0)) == ["healthy"] * 4


def test_the_class_is_the_one_that_is_reported(class_of):
    state = faulty("locked")
    late, silent = CorruptedOracle(state, 0.02, delay=3), NoDetection(state)
    late.update()
    assert class_of(late) == class_of(silent) == ["healthy"] * 4
    state.advance(torch.full((4,), 4), torch.zeros(4, 2))
    late.update()
    assert class_of(late) == ["locked"] * 4
    for scenario in ("normal", "locked"):  # the alarm is false, and the lock is missed
        alarmed = CorruptedOracle(faulty(scenario), 0.02, missed=1.0, false_alarms=6000.0)
        alarmed.update()
        assert class_of(alarmed) == ["power_loss"] * 4


def test_a_detector_reports_the_class_of_the_most_probable_fault(class_of):
    """A robot for each kind, and one more whose lock is not reported."""
    probable = torch.eye(len(JOINT_KINDS))[[*range(len(JOINT_KINDS)), JOINT_KINDS.index("locked")]]
    joint = torch.cat((torch.full((len(probable), 1), 0.6), 0.4 * probable), dim=1)[:, None]
    reported = torch.ones(len(probable), 1, 2, dtype=torch.bool)
    reported[-1] = False
    broken, reduced = reported_joints(Detection(None, joint, None, reported, None))
    assert reduced.flatten().tolist() == [False, True, True, False, False, False]
    found = SimpleNamespace(has_joint_fault=broken, range_reduced=reduced)
    assert class_of(found) == ["power_loss", "locked", "locked", "power_loss", "power_loss", "healthy"]


def test_every_task_takes_it_on_the_command_line():
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, ["env.detection.source=corrupted_oracle", "env.detection.delay=10"])
    assert (cfg.detection.source, cfg.detection.delay, cfg.detection.missed) == ("corrupted_oracle", 10, 0.0)
    with pytest.raises(UmcError, match=r"env.detection.missed.* at most 1"):
        resolve_cfgs("UMC-A1-Stage2", None, ["env.detection.missed=2"])


def test_add_faults_gives_a_task_the_choice():
    cfg = UnitreeA1FlatEnvCfg()
    add_faults(cfg, severity={"rom": 0.3, "effort": 5.0, "velocity": 3.0})
    cfg.from_dict({"detection": {"source": "none"}})  # as Hydra does
    assert cfg.detection == DetectionCfg(source="none")


def train_with(physics, overrides):
    """Return how often a sensor is dead, and what the actor and a privileged critic are told of it in a rollout."""
    from isaaclab.envs import ManagerBasedRLEnv
    from umc.rl.critics import LIVE_GROUP, add_privileged_faults

    assert f"physics={physics}" in overrides
    cfg, agent = resolve_cfgs("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point", overrides)
    add_privileged_faults(cfg, agent)
    cfg.scene.num_envs, cfg.sim.device = 4, "cpu"
    cfg.events.faults.params |= {"ratios": None, "scenario": "dead+rom", "onset": 3}
    env = ManagerBasedRLEnv(cfg)
    obs, _ = env.reset()
    assert {"joint_mask", "fault_flag"} <= set(agent.obs_groups["actor"])
    assert LIVE_GROUP in agent.obs_groups["critic"]
    seen = []
    for _ in range(12):
        obs, *_ = env.step(torch.zeros(4, 12))
        true = bool(obs[LIVE_GROUP].any())
        seen.append([true, float(obs["joint_mask"].mean()), float(obs["fault_flag"].max())])
    return seen


@pytest.mark.engine
@pytest.mark.parametrize(("threshold", "mask", "flag"), [(2.0, 0.0, -1.0), (0.0, 1.0, 1.0)])
def test_the_third_stage_learns_from_what_the_detector_reports(run_engine, tmp_path, threshold, mask, flag):
    """A detector that never reports, and one that always does: the oracle would report dead sensors only."""
    (phase,) = read_recipe("a1_mlp_detector_cpu").phases
    names = resolve_cfgs(phase.task, None, ["physics=ovphysx"])[0].scene.robot.joint_ordering
    one = Detector(JointLayout.term_major(tuple(names), 12 + 3 * len(names), 12)).eval()
    one.thresholds[:] = torch.tensor([threshold, threshold, 1.0])
    write_detector(tmp_path / "detector.pt", DetectorFile(one, "a1"))
    file = f"env.detection.file={tmp_path / 'detector.pt'}"
    seen = run_engine(train_with, physics="ovphysx", overrides=[*phase.overrides, file])
    assert not seen[0][0]
    assert seen[-1][0]  # the critic knows
    assert [one[1:] for one in seen[1:]] == [[mask, flag]] * 11
