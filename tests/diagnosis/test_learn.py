# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a detector learns from stretches of walks."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from umc.cli import train_detector
from umc.detection import JOINT_KINDS, SENSOR_KINDS, Detector, DetectorFile, read_detector
from umc.detection.labels import Labels
from umc.diagnosis.faults import LEARNED
from umc.diagnosis.learn import IGNORED, LEAST_SIZE, Learner, Stretch, calibrate
from umc.diagnosis.rollout import RolloutStep
from umc.diagnosis.thresholds import Threshold
from umc.diagnosis.train import (
    FILE,
    NUM_ENVS,
    DetectorRun,
    detected_share,
    part_of_training,
    prepare_rollout,
    require_resumable,
    settle,
    train,
)
from umc.evaluation.checkpoints import External, read_externals
from umc.models import JointLayout
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.errors import UmcError
from umc.utils.process import lock_folder

JOINTS = ("a", "b")
LAYOUT = JointLayout.term_major(JOINTS, 2 + 6, 2)
ENVS, STEPS = 16, 20
DEAD, WEAK = 1 + SENSOR_KINDS.index("dead"), 1 + JOINT_KINDS.index("effort")


def stretch(detector, seed, shown=True):
    """Robots whose dead sensors read 0, and whose weak joints do not follow their last action."""
    torch.manual_seed(seed)
    dead, weak = torch.rand(ENVS, 2) < 0.3, torch.rand(ENVS, 2) < 0.3
    steps, state, starts = [], detector.start(ENVS), torch.ones(ENVS, dtype=torch.bool)
    for _ in range(STEPS):
        action = torch.randn(ENVS, 2)
        position = torch.where(weak, 0.1, 1.0) * action
        columns = torch.cat([x.masked_fill(dead, 0.0) for x in (position, torch.randn(ENVS, 2), action)], dim=1)
        obs = torch.cat((torch.randn(ENVS, 2), columns), dim=1)
        with torch.no_grad():
            predicted = detector(obs, state)
        label = Labels(dead * DEAD, weak * WEAK, torch.stack((torch.zeros(ENVS, 2), 0.25 * weak), dim=-1))
        steps.append(RolloutStep(obs, starts, state, predicted, label, weak & shown, weak, torch.zeros(ENVS)))
        state, starts = predicted.state, torch.zeros(ENVS, dtype=torch.bool)
    return Stretch.of(steps)


@pytest.fixture(scope="module")
def taught():
    torch.manual_seed(0)
    detector = Detector(LAYOUT).eval()
    learner = Learner(detector, learning_rate=5e-3, updates=10, robots=ENVS)
    losses = [learner.learn(stretch(detector, seed), seed / 25) for seed in range(25)]
    return detector, losses


def test_it_learns_which_joint_has_what(taught):
    detector, losses = taught
    assert losses[-1]["sensor"] < 0.3 * losses[0]["sensor"]
    new = stretch(detector, 1000)
    sensor, joint = (predicted[-1].argmax(dim=-1) for predicted in new.log_probabilities)
    dead, weak = new.labels[-1, ..., 0] == DEAD, new.labels[-1, ..., 1] == WEAK
    assert torch.equal(sensor == DEAD, dead)
    seen = ~dead  # of a joint whose sensor is dead nothing is known
    assert ((joint == WEAK) == weak)[seen].float().mean() > 0.9


def test_it_learns_severities(taught):
    detector, _ = taught
    new = stretch(detector, 1001)
    state = new.state
    with torch.no_grad():
        for obs in new.obs:
            found = detector(obs, state)
            state = found.state
    weak = (new.labels[-1, ..., 1] == WEAK) & (new.labels[-1, ..., 0] == 0)
    guess = found.severity[..., len(SENSOR_KINDS) + JOINT_KINDS.index("effort")][weak]
    assert (guess - 0.25).abs().mean() < 0.1


def test_what_dead_sensors_read_stays_zero(taught):
    detector, _ = taught
    assert (detector.scale > 0).all()
    columns = torch.tensor(LAYOUT.joint_columns)
    assert all(len(detector.scale[columns[:, feature]].unique()) == 1 for feature in range(3))


def part_of(one, steps, state):
    """Some steps of a stretch, with another memory before them."""
    sensor, joint = one.log_probabilities
    named = {name: getattr(one, name)[steps].clone() for name in ("obs", "starts", "labels", "severity")}
    return Stretch(state=state, log_probabilities=(sensor[steps], joint[steps]), **named)


def test_an_episode_starts_without_memory():
    detector = Detector(LAYOUT)
    learner, one = Learner(detector), stretch(detector, 3)
    later = part_of(one, slice(STEPS // 2, None), torch.randn_like(one.state))
    later.starts[0] = True
    envs = torch.arange(ENVS)
    fresh = replace(later, state=torch.zeros_like(one.state))
    assert float(learner.losses(later, envs)["sensor"]) == float(learner.losses(fresh, envs)["sensor"])


def test_a_joint_fault_teaches_nothing_before_it_changes_the_motion():
    detector = Detector(LAYOUT)
    hidden, seen = stretch(detector, 5, shown=False), stretch(detector, 5)
    weak = seen.labels[..., 1] == WEAK
    assert weak.any()
    assert torch.equal(hidden.labels[..., 1] == IGNORED, weak)
    assert torch.equal(hidden.labels[..., 0], seen.labels[..., 0])  # sensor faults count at once
    assert float(seen.severity.abs().max()) > 0.0
    assert not hidden.severity.any()
    learner, envs = Learner(detector), torch.arange(ENVS)
    with torch.no_grad():  # whatever is predicted for those joints, the loss is that of the others
        losses = learner.losses(hidden, envs)
        logits = detector.step(hidden.obs[0], hidden.state)[0][1]
        detector.head[-1].bias[6 + WEAK] += 3.0
        assert float(learner.losses(hidden, envs)["joint"]) > float(losses["joint"])
    healthy = hidden.labels[0, ..., 1] == 0
    one = part_of(hidden, slice(1), hidden.state)
    expected = -logits.log_softmax(dim=-1)[..., 0][healthy].mean()
    detector.head[-1].bias.data[6 + WEAK] -= 3.0
    torch.testing.assert_close(learner.losses(one, envs)["joint"], expected)


def test_a_column_that_hardly_changes_is_not_blown_up():
    detector = Detector(LAYOUT)
    one = stretch(detector, 6)
    one.obs[..., 0] = 0.0  # a command that was always 0
    Learner(detector, updates=1).learn(one, 0.0)
    assert float(detector.scale[0]) == pytest.approx(1.0 / LEAST_SIZE)


def test_what_is_said_too_boldly_is_calibrated():
    torch.manual_seed(0)
    detector = Detector(LAYOUT)
    truth = torch.rand(4000, 2)
    label = (torch.rand(4000, 2) < truth).long()
    logits = torch.full((4000, 2, 6), -30.0)
    logits[..., 0], logits[..., 1] = 0.0, 2.0 * (truth / (1.0 - truth)).log()
    label = torch.cat((label, torch.full_like(label, IGNORED)))  # of these nothing is known
    logits = torch.cat((logits, logits))
    assert calibrate(detector, logits.log_softmax(dim=-1), label, 1) == pytest.approx(2.0, rel=0.1)
    assert detector.temperature.tolist() == [1.0, pytest.approx(2.0, rel=0.1)]


def test_the_end_sets_thresholds(taught):
    detector, _ = taught
    unseen = [stretch(detector, 2000 + number, shown=number > 0).outputs() for number in range(3)]
    figures = settle(detector, unseen, 0.02, most=0.0)
    assert figures["minutes"] == pytest.approx(3 * STEPS * ENVS * 0.02 / 60)
    for number, name in enumerate(("sensor", "joint")):
        assert figures[name]["false_alarms"] == 0.0
        expected = [figures[name][field] for field in ("on", "off", "steps")]
        torch.testing.assert_close(detector.thresholds[number], torch.tensor(expected))


def test_a_robot_whose_fault_has_not_shown_itself_gives_no_false_alarm():
    detector = Detector(LAYOUT)
    one = stretch(detector, 3).outputs()
    sure, unsure = (
        torch.tensor([p, *[(1.0 - p) / 5] * 5]).log().expand_as(one.log_probabilities[1]) for p in (0.99, 0.05)
    )
    healthy = replace(one, labels=torch.zeros_like(one.labels), log_probabilities=(sure, sure))
    hidden = replace(one, labels=torch.full_like(one.labels, IGNORED), log_probabilities=(sure, unsure))
    assert settle(detector, [healthy, hidden], 0.02, most=0.0)["joint"]["on"] < 0.5


@pytest.mark.parametrize(("most", "lines"), [(2.0, 0), (1.0, 2)])
def test_false_alarms_that_no_threshold_keeps_are_told(monkeypatch, capsys, most, lines):
    monkeypatch.setattr("umc.diagnosis.thresholds.choose", lambda *_: Threshold(0.99, 0.5, 2.0))
    detector = Detector(LAYOUT)
    settle(detector, [stretch(detector, 3).outputs()], 0.02, most)
    words = "no threshold keeps --false_alarms 1; 0.99 has 2 per minute"
    assert capsys.readouterr().out.splitlines() == [f"sensors: {words}", f"joints: {words}"][:lines]


def test_the_simulator_tells_at_first_and_the_detector_later():
    assert [detected_share(done) for done in (0.0, 0.25, 0.375, 0.5, 1.0)] == [0.0, 0.0, 0.5, 1.0, 1.0]
    assert [part_of_training(done, goes_on=False) for done in (0.0, 0.3, 1.0)] == [0.0, 0.3, 1.0]
    assert [part_of_training(done, goes_on=True) for done in (0.0, 0.5, 1.0)] == [0.5, 0.75, 1.0]


def test_a_training_is_resumed_by_its_own_command_line():
    about = {"policy": {"sha256": "a"}, "task": "UMC-A1-Stage2", "network": "gru", "hold_out": ["rom"]}
    about["overrides"] = ["physics=newton_mjwarp", "env.scene.terrain=flat"]
    stopped = DetectorFile(
        Detector(LAYOUT), "a1", about, Path("d.pt"), resume={"done": 3, "optimizer": {}, "episode": torch.zeros(2)}
    )
    require_resumable(stopped, {**about, "overrides": about["overrides"][::-1]}, 3)
    other = {"sha256": "b"}
    for changed, iterations, words in (
        (about, 2, "has 3 iterations already"),
        ({**about, "hold_out": []}, 3, "another hold_out"),
        ({**about, "detector": other}, 3, "another detector"),
        ({**about, "num_envs": 8}, 3, "another num_envs"),
        ({**about, "pushes": True}, 3, "another pushes"),
        ({**about, "overrides": ["physics=ovphysx"]}, 3, "another overrides"),
    ):
        with pytest.raises(UmcError, match=words):
            require_resumable(stopped, changed, iterations)
    started = replace(stopped, about={**about, "detector": other})
    require_resumable(started, started.about, 3)
    with pytest.raises(UmcError, match="another detector"):
        require_resumable(started, about, 3)
    with pytest.raises(UmcError, match="does not hold episode"):
        require_resumable(replace(stopped, resume={"done": 3, "optimizer": {}}), about, 3)
    with pytest.raises(UmcError, match="is finished"):
        require_resumable(replace(stopped, resume=None), about, 3)


def test_a_resumed_training_goes_on_with_the_episodes_that_follow(monkeypatch, tmp_path):
    """Faults are drawn from (seed, env, episode): those of the first episodes have been learned."""
    episode, begun = torch.full((2,), -1), []
    env = SimpleNamespace(num_envs=2, device="cpu", step_dt=0.02)

    class FakeRollout:
        def __init__(self, *_):
            begun.append(episode.clone())
            episode.add_(1)  # the reset

        def step(self):
            raise KeyboardInterrupt

    monkeypatch.setattr("umc.evaluation.session.open_session", lambda _: nullcontext((env, (None,))))
    monkeypatch.setattr("umc.mdp.fault_state", lambda _: SimpleNamespace(episode=episode))
    monkeypatch.setattr("umc.diagnosis.rollout.Rollout", FakeRollout)
    monkeypatch.setattr("umc.diagnosis.train._begin", lambda run, _: run.start.detector)
    detector = Detector(LAYOUT)
    resume = {"done": 3, "optimizer": Learner(detector).optimizer.state_dict(), "episode": torch.tensor([56, 57])}
    about = {"iterations": 5, "seed": 1}
    start = DetectorFile(detector, "a1", about, tmp_path / "d.pt", resume=resume)
    session = SimpleNamespace(info=SimpleNamespace(robot="a1"))
    with pytest.raises(KeyboardInterrupt):
        train(DetectorRun(session, tmp_path, start, about))
    assert begun[0].tolist() == [56, 57]
    assert read_detector(tmp_path / FILE, unfinished=True).resume["episode"].tolist() == [57, 58]


@pytest.mark.parametrize(
    ("given", "overrides", "wanted"),
    [(None, [], NUM_ENVS), (None, ["env.scene.num_envs=64"], 64), (8, ["env.scene.num_envs=64"], 8)],
)
def test_the_number_of_envs_is_the_typed_one(monkeypatch, given, overrides, wanted):
    cfg = SimpleNamespace(scene=SimpleNamespace(num_envs=64 if overrides else 4096), observations={})
    session = SimpleNamespace(checkpoints=[object.__new__(External)], env_cfg=cfg)
    monkeypatch.setattr("umc.evaluation.session.prepare", lambda *_: session)
    monkeypatch.setattr("umc.diagnosis.task.add_random_faults", lambda *_: None)
    options = SimpleNamespace(num_envs=given, seed=0, no_push=True)
    assert prepare_rollout(options, overrides, None).env_cfg.scene.num_envs == options.num_envs == wanted


@pytest.mark.parametrize("noisy", [True, False])
def test_what_a_described_policy_reads_is_as_noisy_as_what_the_detector_reads(monkeypatch, tmp_path, noisy):
    torch.jit.script(torch.nn.Linear(12, 12)).save(str(tmp_path / "p.pt"))
    (tmp_path / "p.yaml").write_text("file: p.pt\nobservations: [joint_pos]\n")
    cfg, _ = resolve_cfgs("UMC-Go2-Stage2", None, [f"env.observations.policy.enable_corruption={noisy}"])
    found = read_externals([str(tmp_path / "p.yaml")], "UMC-Go2-Stage2", cfg, trust=True)
    monkeypatch.setattr("umc.evaluation.session.prepare", lambda *_: SimpleNamespace(checkpoints=found, env_cfg=cfg))
    prepare_rollout(SimpleNamespace(num_envs=8, seed=0, no_push=True), [], LEARNED)
    assert cfg.observations.external_policy_0.enable_corruption is noisy


def test_two_trainings_do_not_write_into_one_folder(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(train_detector, "plan", lambda *_: SimpleNamespace(folder=tmp_path))
    monkeypatch.setattr(train_detector, "train", lambda run: run.folder / FILE)
    argv = ["--checkpoint", "pretrained:a1_mlp_stage2"]
    assert train_detector.main(argv) == 0
    with lock_folder(tmp_path, "trains"), pytest.raises(UmcError, match=f"trains a detector into {tmp_path}"):
        train_detector.main(argv)
