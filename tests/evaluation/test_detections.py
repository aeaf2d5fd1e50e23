# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Policies that are told what is broken in several ways, side by side."""

import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from run_script import run_script
from umc.detection import Detector, DetectorFile, write_detector
from umc.evaluation.arguments import parse
from umc.evaluation.checkpoints import read_checkpoints, with_detections
from umc.evaluation.session import prepare
from umc.mdp import DetectionCfg
from umc.mdp.detection import read_detection
from umc.models import JointLayout
from umc.rl.pretrained import find_pretrained
from umc.robots import A1_JOINTS
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.errors import UmcError


@pytest.fixture
def file(tmp_path):
    torch.manual_seed(0)
    detector = Detector(JointLayout.term_major(A1_JOINTS, 48, 12))
    write_detector(tmp_path / "detector.pt", DetectorFile(detector, "a1"))
    return tmp_path / "detector.pt"


def test_a_source_is_read_with_its_fields():
    assert read_detection("oracle") == DetectionCfg()
    assert read_detection("detector:file=a/b.pt,any_fault=true") == DetectionCfg(
        "detector", file="a/b.pt", any_fault=True
    )
    late = read_detection("corrupted_oracle:delay=10,missed=0.1")
    assert (late.source, late.delay, late.missed) == ("corrupted_oracle", 10, 0.1)


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["corrupted_oracle:late=3"], "'late=3' is no field of a detection"),
        (["corrupted_oracle:delay=soon"], "delay is soon, which is no int"),
        (["corrupted_oracle:missed=2"], "env.detection.missed is 2; it has to be"),
        (["detector"], "needs env.detection.file"),
        (["detector:file=none.pt"], "none.pt is missing; train one with umc train-detector"),
    ],
)
def test_what_cannot_report_is_refused(texts, words):
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, [])
    with pytest.raises(UmcError, match=words):
        with_detections([], texts, cfg)


def test_every_policy_is_evaluated_with_every_source(file):
    path, _ = find_pretrained("pretrained:a1_mlp_stage2", "a1")
    cfg = SimpleNamespace(detection=DetectionCfg())
    sources = ("oracle", f"detector:file={file}")
    plain = read_checkpoints([str(path)])
    both = with_detections(plain, sources, cfg)
    assert [one.detection for one in both] == list(sources)
    assert cfg.detection == DetectionCfg()
    identities = [json.dumps(one.identity) for one in (*plain, *both)]
    assert len(set(identities)) == 3
    assert "detection" not in plain[0].about
    file.write_bytes(file.read_bytes() + b"x")
    assert json.dumps(both[1].identity) != identities[2]  # another file behind the same name


def test_a_detector_of_another_robot_with_the_same_joints_is_refused(tmp_path):
    detector = Detector(JointLayout.term_major(A1_JOINTS, 48, 12))
    write_detector(tmp_path / "detector.pt", DetectorFile(detector, "go2"))
    path, _ = find_pretrained("pretrained:a1_mlp_stage2", "a1")
    words = "detects faults of go2, not of a1"
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, [])
    with pytest.raises(UmcError, match=words):
        with_detections(read_checkpoints([str(path)]), [f"detector:file={tmp_path}/detector.pt"], cfg)
    overrides = ["env.detection.source=detector", f"env.detection.file={tmp_path}/detector.pt"]
    options, overrides = parse(["--device", "cpu", "--checkpoint", str(path), *overrides], lambda _: None)
    with pytest.raises(UmcError, match=words):
        prepare(options, overrides, stage=2)


@pytest.mark.parametrize(
    ("joints", "refuses_own", "refuses_other"),
    [(A1_JOINTS, False, False), (A1_JOINTS[::-1], True, False), (["tail", *A1_JOINTS[1:]], True, True)],
)
def test_the_joint_order_of_another_packages_policy_is_left_to_the_env(joints, refuses_own, refuses_other, tmp_path):
    detector = Detector(JointLayout.term_major(joints, 48, 12))
    write_detector(tmp_path / "detector.pt", DetectorFile(detector, "a1"))
    torch.jit.script(torch.nn.Linear(27, 12)).save(str(tmp_path / "walk.pt"))
    (tmp_path / "walk.yaml").write_text("file: walk.pt\nobservations: [joint_pos, joint_vel, command]\n")
    own, _ = find_pretrained("pretrained:a1_mlp_stage2", "a1")
    other = ["--task", "UMC-A1-Stage2", "--policy", str(tmp_path / "walk.yaml"), "--trust"]
    source = ["env.detection.source=detector", f"env.detection.file={tmp_path}/detector.pt"]
    for argv, refuses in ((["--checkpoint", str(own)], refuses_own), (other, refuses_other)):
        options, overrides = parse(["--device", "cpu", *argv, *source], lambda _: None)
        refusal = pytest.raises(UmcError, match="other joints or another joint order") if refuses else nullcontext()
        with refusal:
            prepare(options, overrides)


@pytest.mark.engine
def test_sources_differ_over_the_same_faults(tmp_path):
    arguments = ("--scenarios", 1, "--num_envs", 12, "protocol.steps=140", "physics=ovphysx", "--out", tmp_path)
    late = "corrupted_oracle:delay=30"
    run_script(
        "evaluate.py", "--checkpoint", "pretrained:a1_mlp_stage2", *arguments, "--detection", "oracle", late, "none"
    )
    report = json.loads((tmp_path / "report.json").read_text())
    assert [one["label"] for one in report["policies"]] == ["mlp, oracle", f"mlp, {late}", "mlp, none"]
    assert len({one["average"]["distance"]["value"] for one in report["policies"]}) == 3
