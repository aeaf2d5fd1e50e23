# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A detector that is exported with a policy finds on a robot what it finds in torch."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from fresh_export import export_fresh
from fresh_policy import WIDTHS, write_fresh
from umc.cli.export import main
from umc.deploy.detector_runner import load_session
from umc.deploy.policy_runner import ImplausibleInput, NonFiniteInput, PolicyRunner
from umc.detection import Detector, DetectorCfg, DetectorFile, write_detector
from umc.models import JointLayout
from umc.rl.policy import load_policy
from umc.robots import A1_JOINTS
from umc.sim2sim.rollout import RolloutCfg
from umc.utils.errors import UmcError
from umc.utils.io import sha256

LAYOUT = JointLayout.term_major(A1_JOINTS, 48, 12)
LEVEL = {"angular_velocity": np.zeros(3), "gravity": np.array([0.0, 0.0, -1.0]), "command": np.array([0.5, 0.0, 0.0])}


def make(network="gru", robot="a1", layout=LAYOUT):
    torch.manual_seed(1)
    detector = Detector(layout, DetectorCfg(network=network)).eval()
    detector.thresholds[:] = torch.tensor([0.7, 0.5, 2.0])
    return DetectorFile(detector, robot, path="detector.pt")


@pytest.fixture(scope="module", params=["gru", "tcn"])
def exported(request, tmp_path_factory):
    file = make(request.param)
    _, files = export_fresh(tmp_path_factory.mktemp("exported"), detector=file)
    return files, file.detector


def walk(runner, steps=12):
    """Random readings; yields what the runner was about to mask and to flag at each step."""
    generator = np.random.default_rng(0)
    for _ in range(steps):
        position = runner.default_position + 0.1 * generator.standard_normal(12)
        before = runner.detector.mask.copy(), runner.detector.flag
        runner(position, generator.standard_normal(12), **LEVEL)
        yield before


def test_it_says_on_a_robot_what_it_says_in_torch(exported, monkeypatch):
    files, detector = exported
    runner, state, seen = PolicyRunner(files.description), detector.start(1), []
    call = type(runner.detector).__call__

    def look(self, obs):
        seen.append(obs.copy())
        call(self, obs)

    monkeypatch.setattr(type(runner.detector), "__call__", look)
    for _ in walk(runner):
        with torch.no_grad():
            found = detector(torch.tensor(seen[-1][None], dtype=torch.float32), state)
        state = found.state
        said = runner.detector.diagnosis
        for number, name in enumerate(A1_JOINTS):
            assert said[name].sensor == pytest.approx(1.0 - float(found.sensor[0, number, 0]), abs=1e-4)
            assert said[name].joint == pytest.approx(1.0 - float(found.joint[0, number, 0]), abs=1e-4)
        assert np.array_equal(runner.detector.reported, found.reported[0].numpy())
    assert runner.detector.reported.any()  # else nothing was compared
    runner.reset()
    assert not runner.detector.reported.any()


def test_angles_in_degrees_are_refused_although_a_broken_encoder_is_masked(exported):
    runner, degrees, still = PolicyRunner(exported[0].description), np.full(12, 45.8), np.zeros(12)
    one = runner.default_position.copy()
    one[3] = 45.8
    for position in (degrees, one):  # nothing is masked before the first target
        with pytest.raises(ImplausibleInput, match=r"is 45\.8"):
            runner.check_position(position)
    runner.check_position(one, dead=[runner.joint_names[3]])
    with pytest.raises(ImplausibleInput, match=r"is 45\.8"):
        runner(degrees, still, **LEVEL)
    runner(one, still, **LEVEL)
    hanging = np.degrees(runner.default_position) * (np.arange(12) % 2)  # half of them read next to 0
    with pytest.raises(ImplausibleInput):
        runner(hanging, still, **LEVEL)
    runner(np.where(np.arange(12) < 6, np.nan, runner.default_position), still, **LEVEL)  # half of the encoders broke


def test_what_it_reports_is_masked_in_the_next_step(exported, monkeypatch):
    files, _ = exported
    runner, reported, inputs = PolicyRunner(files.description), [], []
    infer = runner._infer
    monkeypatch.setattr(runner, "_infer", lambda signals: inputs.append(signals) or infer(signals))
    for mask, flag in walk(runner):
        assert np.array_equal(inputs[-1]["joint_mask"] > 0.5, mask)
        assert (inputs[-1]["fault_flag"] == (1.0 if flag else -1.0)).all()
        reported.append(int(mask.sum()))
    assert reported[0] == 0 < max(reported)


@pytest.mark.parametrize("model", ["nm_mlp", "mlp"])
def test_a_network_sees_reported_joints_as_in_torch(tmp_path, model):
    """One that reads no mask goes on reading them; one that reads it hides them itself."""
    file = make()
    file.detector.thresholds[:] = torch.tensor([0.0, 0.0, 1.0])  # reports everything
    checkpoint, _ = export_fresh(tmp_path, "UMC-A1-Stage1", file, model=model)
    runner, actor = PolicyRunner(tmp_path, clamp=False), load_policy(checkpoint, WIDTHS["a1"]).actor
    joints = [*np.full(12, 0.1), *np.full(12, 0.05)]
    seen = np.concatenate([np.zeros(5), [-1.0], LEVEL["command"] * [2.0, 2.0, 0.25], joints])
    for masked in (0.0, 1.0):
        obs = torch.tensor([[*np.zeros(3), *seen, *runner._action]], dtype=torch.float32)
        wanted = actor.deterministic(obs, torch.full((1, 12), masked), torch.full((1, 3), 2.0 * masked - 1.0))
        runner(runner.default_position + 0.1, np.ones(12), **LEVEL)
        np.testing.assert_allclose(runner._action, wanted[0].detach(), atol=1e-5)


def test_what_the_driver_knows_adds_to_what_is_reported(exported, monkeypatch):
    """The loop of the docs gives dead and detected in every step."""
    runner = PolicyRunner(exported[0].description)
    runner.detector.reported[0] = True
    given = []
    monkeypatch.setattr(runner, "_infer", lambda signals: given.append(signals) or np.zeros(12))
    for joints, flag in ([], False), ([A1_JOINTS[2]], False):
        runner(runner.default_position, np.zeros(12), **LEVEL, dead=joints, detected=flag)
        runner.reset()
        runner.detector.reported[0] = True
    assert [given[0]["joint_mask"].nonzero()[0].tolist(), given[1]["joint_mask"].nonzero()[0].tolist()] == [[0], [0, 2]]
    assert given[0]["fault_flag"].tolist() == [1.0] * 3
    runner.uses_detector = False
    runner(runner.default_position, np.zeros(12), **LEVEL)
    assert not given[2]["joint_mask"].any()
    assert given[2]["fault_flag"].tolist() == [-1.0] * 3


@pytest.mark.parametrize("oracle", [True, False])
def test_mujoco_replaces_what_the_detector_reports_if_the_simulator_says_what_is_broken(exported, oracle, monkeypatch):
    cfg = SimpleNamespace(policy=exported[0].description, clamp=False, oracle=oracle)
    runner, given = RolloutCfg.runner(cast(Any, cfg)), []
    runner.detector.reported[0] = True
    monkeypatch.setattr(runner, "_infer", lambda signals: given.append(signals) or np.zeros(12))
    runner(runner.default_position, np.zeros(12), **LEVEL)
    assert given[0]["joint_mask"].any() != oracle


def test_a_reading_that_no_sensor_gives_reads_zero(exported):
    files, _ = exported
    runner = PolicyRunner(files.description)
    position = runner.default_position.copy()
    position[3] = np.nan
    target = runner(position, np.zeros(12), **LEVEL)
    assert np.isfinite(target).all()
    other = PolicyRunner(files.description)
    assert np.array_equal(target, other(runner.default_position, np.zeros(12), dead=[A1_JOINTS[3]], **LEVEL))


def test_without_a_detector_it_is_refused_as_before(tmp_path):
    runner = PolicyRunner(export_fresh(tmp_path)[1].description)
    assert runner.detector is None
    with pytest.raises(NonFiniteInput):
        runner(np.full(12, np.nan), np.zeros(12), **LEVEL)


def test_a_detector_of_a_policy_that_is_another_one_is_named(tmp_path, capsys):
    checkpoint, path = write_fresh(tmp_path), tmp_path / "detector.pt"
    for known in (sha256(checkpoint), "0"):
        write_detector(path, replace(make(), about={"policy": {"name": "walk.pt", "sha256": known}}))
        assert main(["--checkpoint", str(checkpoint), "--detector", str(path)]) == 0
        named = "trained beside another policy (walk.pt)" in capsys.readouterr().out
        assert named == (known == "0")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (make(robot="g1"), "detects faults of g1, not of a1"),
        (make(layout=JointLayout.term_major(A1_JOINTS, 47, 11)), "reads another observation"),
    ],
)
def test_a_detector_of_another_policy_is_refused(tmp_path, file, words):
    with pytest.raises(UmcError, match=words):
        export_fresh(tmp_path, detector=file)
    assert [path.name for path in tmp_path.iterdir()] == ["model_0.pt"]


def test_another_file_is_refused(exported, tmp_path):
    files, _ = exported
    for path in files.description.parent.glob("*.*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = json.loads((tmp_path / "policy.json").read_text())
    assert content["detector"]["largest_difference_to_torch"] < 1e-4
    (tmp_path / "detector.onnx").unlink()
    with pytest.raises(UmcError, match=r"detector\.onnx is missing; copy it beside policy\.json"):
        PolicyRunner(tmp_path)
    (tmp_path / "detector.onnx").write_bytes((tmp_path / "policy.onnx").read_bytes())
    with pytest.raises(UmcError, match=r"not the file that policy\.json describes"):
        PolicyRunner(tmp_path)


def test_a_file_that_cannot_be_read_is_one_error(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "detector.onnx").touch()
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UmcError, match=r"detector\.onnx cannot be read \(Permission denied\); make it readable"):
        load_session(tmp_path / "detector.onnx", "")
