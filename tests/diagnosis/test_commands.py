# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""umc train-detector and umc diagnose, and a policy that is told by their detector."""

import contextlib
import json
import signal
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
from fresh_policy import write_fresh
from umc.cli.main import main
from umc.deploy.export import export_checkpoint
from umc.detection import JOINT_KINDS, Detector, DetectorFile, read_detector, write_detector
from umc.models import JointLayout
from umc.robots import A1_JOINTS
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.errors import UmcError
from umc.utils.io import sha256
from umc.utils.process import lock_folder

POLICY = ("--checkpoint", "pretrained:a1_mlp_stage2", "--num_envs", 16)
TASK = ("physics=ovphysx", "env.scene.terrain=flat")


def umc(*arguments):
    command = [sys.executable, "-m", "umc", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_detector_that_was_trained_beside_another_policy_is_named_before_the_simulation(
    tmp_path, capsys, monkeypatch
):
    def opened(_session):
        raise UmcError("the simulation starts")

    monkeypatch.setattr("umc.evaluation.session.open_session", opened)
    checkpoint, path = write_fresh(tmp_path), tmp_path / "detector.pt"
    detector = Detector(JointLayout.term_major(A1_JOINTS, 48, 12)).eval()
    for known in (sha256(checkpoint), "0"):
        write_detector(path, DetectorFile(detector, "a1", {"policy": {"name": "walk.pt", "sha256": known}}))
        assert main(["diagnose", "--detector", str(path), "--checkpoint", str(checkpoint), "--device", "cpu"]) == 2
        shown = capsys.readouterr()
        assert "the simulation starts" in shown.err
        assert ("trained beside another policy (walk.pt)" in shown.out) == (known == "0")


@pytest.mark.parametrize("exported", [False, True])
def test_one_process_at_a_time_walks_and_writes_its_report_into_a_folder(tmp_path, capsys, monkeypatch, exported):
    checkpoint, out, done = write_fresh(tmp_path), tmp_path / "out", []
    file = DetectorFile(Detector(JointLayout.term_major(A1_JOINTS, 48, 12)).eval(), "a1", path="detector.pt")
    if exported:
        export_checkpoint(checkpoint, tmp_path / "exported", resolve_cfgs("UMC-A1-Stage2", None, [])[0], file)
        argv = ["--exported", str(tmp_path / "exported")]
    else:
        write_detector(tmp_path / "detector.pt", file)
        argv = ["--detector", str(tmp_path / "detector.pt"), "--checkpoint", str(checkpoint), "--device", "cpu"]
    robot = SimpleNamespace(joint_names=A1_JOINTS)
    env = SimpleNamespace(scene={"robot": robot}, num_envs=1, step_dt=0.02, device="cpu")
    monkeypatch.setattr("umc.evaluation.session.open_session", lambda _: contextlib.nullcontext((env, (None,))))
    monkeypatch.setattr("umc.mdp.observations.joint_layout", lambda _: file.detector.layout)
    monkeypatch.setattr("umc.diagnosis.rollout.Rollout", MagicMock())

    def alone(name):
        with pytest.raises(UmcError, match="has it"), lock_folder(out, "has it"):
            pass
        done.append(name)

    for module in ("umc.diagnosis.recording", "umc.sim2sim.diagnosis"):
        monkeypatch.setattr(f"{module}.record", lambda *_: alone("walk"))
    monkeypatch.setattr("umc.diagnosis.report.write_report", lambda *_: alone("report"))
    with lock_folder(out, "another"):
        assert main(["diagnose", *argv, "--out", str(out)]) == 2
    assert f"diagnoses into {out}; wait for it" in capsys.readouterr().err
    assert not done
    assert main(["diagnose", *argv, "--out", str(out)]) == 0
    assert done == ["walk", "report"]


def taught_further(physics, path, out):
    """Scenario: two iterations from the detector in a file; which part of a whole training was over before each."""
    from umc.diagnosis import learn, train

    train.ITERATIONS = 1  # as long as the thresholds' rollouts are by it
    parts, learn_from = [], learn.Learner.learn

    def watched(self, stretch, part):
        parts.append(part)
        return learn_from(self, stretch, part)

    learn.Learner.learn = watched
    words = ["--checkpoint", "pretrained:a1_mlp_stage2", "--num_envs", "4", "--device", "cpu"]
    words += ["--detector", path, "--iterations", "2", "--out", out]
    assert main(["train-detector", *words, f"physics={physics}", "env.scene.terrain=flat"]) == 0
    return parts


@pytest.mark.engine
def test_a_trained_detector_learns_on_beside_another_policy(tmp_path, run_engine):
    path, out = tmp_path / "detector.pt", tmp_path / "out"
    detector = Detector(JointLayout.term_major(A1_JOINTS, 48, 12)).eval()
    write_detector(path, DetectorFile(detector, "a1", {"hold_out": ["bias"]}))
    parts = run_engine(taught_further, physics="ovphysx", path=str(path), out=str(out))
    assert parts == [0.5, 0.75]  # all robots are told by it, and its learning rate is that of a later half
    start, after = read_detector(path), read_detector(out / "detector.pt")
    assert (after.resume, after.held_out) == (None, start.held_out)
    assert after.about["detector"] == {"name": "detector.pt", "sha256": start.sha256}
    weights = start.detector.named_parameters()
    changes = [float((weight - after.detector.get_parameter(name)).abs().max()) for name, weight in weights]
    assert 0.0 < max(changes) < 0.1  # learned, from where it was


@pytest.mark.engine
def test_a_detector_is_trained_and_resumed_and_measured_and_tells_a_policy_what_is_broken(tmp_path):
    path = tmp_path / "detector.pt"
    held_out = ("--hold_out", "bias", "effort:0.05,0.2")
    words = ["-m", "umc", "train-detector", *POLICY, *held_out, "--iterations", 1000, "--out", tmp_path, *TASK]
    with subprocess.Popen([sys.executable, *map(str, words)], stdout=subprocess.PIPE, text=True) as training:
        assert any("iteration 1/1000:" in line for line in training.stdout)
        training.send_signal(signal.SIGTERM)
        assert "--resume" in training.stdout.read()
    assert training.returncode == 128 + signal.SIGTERM
    done = read_detector(path, unfinished=True).resume["done"]
    assert done >= 1
    again = ("train-detector", *POLICY, *held_out, "--iterations", done + 1, "--out", tmp_path, "--resume", *TASK)
    shown = umc(*again)
    assert f"iteration {done + 1}/{done + 1}:" in shown
    assert "choosing thresholds" in shown
    finished = read_detector(path)
    assert finished.resume is None
    assert finished.about["figures"]["sensor"]["on"] > 0.0

    kinds = ("--kinds", "bias", "dead", "friction:0.05,0.2", "delayed")
    report = ("--minutes", 1, "--out", tmp_path / "report")
    shown = umc("diagnose", "--detector", path, *POLICY, *kinds, *report, *TASK)
    assert str(tmp_path / "report" / "diagnosis.md") in shown
    found = json.loads((tmp_path / "report" / "diagnosis.json").read_text())
    assert found["robot_minutes"] == pytest.approx(1.0, rel=0.05)
    assert found["about"]["mask and flag from"] == "the detector"
    assert found["about"]["held out of the training"] == "bias, effort:0.05,0.2"
    assert found["kinds"]["joint faults"] == [*JOINT_KINDS, "friction", "delayed"]

    chosen = tmp_path / "chosen"
    flags = ("--detector", path, "--iterations", 0, "--out", chosen)
    assert "iteration 1/" not in umc("train-detector", *POLICY, *flags, *TASK)
    anew = read_detector(chosen / "detector.pt")
    assert anew.held_out == finished.held_out
    assert anew.about["detector"]["sha256"] == finished.sha256
    assert anew.about["figures"]["minutes"] == pytest.approx(12.0)
    assert anew.about["figures"]["joint"]["temperature"] == float(anew.detector.temperature[1])
    for name, weight in finished.detector.named_parameters():
        assert torch.equal(weight, anew.detector.get_parameter(name)), name

    told = ("env.detection.source=detector", f"env.detection.file={path}")
    out = tmp_path / "evaluation"
    umc("evaluate", "--checkpoint", "pretrained:a1_mlp_stage2", "--quick", *TASK, *told, "--out", out)
    report = json.loads((out / "report.json").read_text())
    assert str(path) in json.dumps(report)
    walked = [one["healthy_minutes"] for one in report["policies"][0]["detector"].values()]
    assert all(minutes > 0.0 for minutes in walked)
