# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Files of detectors."""

import dataclasses

import pytest
import torch
from umc.detection import Detector, DetectorCfg, DetectorFile, read_detector, write_detector
from umc.models import JointLayout
from umc.utils.errors import UmcError
from umc.utils.io import read_torch, write_torch

LAYOUT = JointLayout.term_major(("a", "b"), 10, 4)


@pytest.fixture
def file(tmp_path):
    detector = Detector(LAYOUT, DetectorCfg(network="tcn", hidden_dim=16)).eval()
    detector.thresholds[1] = torch.tensor([0.7, 0.3, 5.0])
    path = tmp_path / "detector.pt"
    write_detector(path, DetectorFile(detector, "a1", {"seed": 3}))
    return path, detector


def test_a_detector_says_the_same_after_reading(file):
    path, detector = file
    read = read_detector(path)
    assert (read.robot, read.about, read.resume) == ("a1", {"seed": 3}, None)
    assert read.detector.layout == LAYOUT
    obs = torch.randn(3, 10)
    for mine, theirs in zip(detector(obs, detector.start(3)), read.detector(obs, read.detector.start(3)), strict=True):
        assert torch.equal(mine, theirs)
    assert torch.equal(read.detector.thresholds, detector.thresholds)


def change(path, **fields):
    write_torch(path, {**read_torch(path), **fields})


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"umc_detector": 2}, "umc_detector"),
        ({"joint_names": ["a"]}, "detector.pt is damaged .*columns for 2 joints.*; train it again"),
        ({"joint_columns": [(1, 2, 3), (4, 5, 99)]}, "detector.pt is damaged .*reach column 99"),
        ({"cfg": {"network": "gru", "hidden_dim": 16, "embedding_dim": 8, "dilations": (1,)}}, "do not fit the sizes"),
        ({"extra": 1}, "unknown key extra"),
    ],
)
def test_a_damaged_file_is_refused(file, fields, words):
    path, _ = file
    change(path, **fields)
    with pytest.raises(UmcError, match=words):
        read_detector(path)


def test_weights_that_are_not_finite_are_refused(file):
    path, _ = file
    content = read_torch(path)
    content["weights"]["embedding"][0, 0] = float("nan")
    write_torch(path, content)
    with pytest.raises(UmcError, match="not finite"):
        read_detector(path)


def test_an_interrupted_training_is_read_only_to_go_on(file, tmp_path):
    path, unfinished = tmp_path / "detector.pt", dataclasses.replace(read_detector(file[0]), resume={"done": 1})
    write_detector(path, unfinished)
    with pytest.raises(UmcError, match=r"is not finished; go on with umc train-detector --out .* --resume"):
        read_detector(path)
    assert read_detector(path, unfinished=True).resume == {"done": 1}


def test_it_says_beside_which_policy_it_was_trained(file):
    read = read_detector(file[0])
    assert read.remark("a") is None  # not known
    told = dataclasses.replace(read, about={"policy": {"name": "walk.pt", "sha256": "a"}})
    assert told.remark("a") is None
    assert told.remark("b").startswith("detector: trained beside another policy (walk.pt)")


def test_it_belongs_to_a_robot_and_its_joints(file):
    read = read_detector(file[0])
    read.require("a1", ("a", "b"))
    with pytest.raises(UmcError, match="detects faults of a1, not of g1"):
        read.require("g1", ("a", "b"))
    with pytest.raises(UmcError, match="another joint order"):
        dataclasses.replace(read).require(None, ("b", "a"))
