# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A seeded evaluation on Newton, which repeats to the bit, gives the same robots from version to version."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

GOLDEN = Path(__file__).with_name("newton_robots.csv")
ABSOLUTE, RELATIVE = 0.02, 0.15
"""Room for another processor's rounding, which a fall multiplies (9 % seen), of each figure [unit of the column; -]."""


def robots_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.engine
def test_robots_of_a_newton_evaluation(tmp_path):
    arguments = ["--num_envs", "24", "--seed", "11", "--out", str(tmp_path), "physics=newton_mjwarp"]
    arguments += ["env.scene.terrain=flat", "protocol.steps=150", "protocol.draws=independent"]
    command = [sys.executable, "-m", "umc", "evaluate", "--checkpoint", "pretrained:a1_mlp_stage2", *arguments]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    found, expected = robots_of(tmp_path / "robots.csv"), robots_of(GOLDEN)
    assert len(found) == len(expected) == 24
    for robot, golden in zip(found, expected, strict=True):
        assert robot.keys() == golden.keys()
        for name, value in golden.items():
            if value.lstrip("-").replace(".", "", 1).isdigit():
                assert float(robot[name]) == pytest.approx(float(value), abs=ABSOLUTE, rel=RELATIVE), name
            else:
                assert robot[name] == value, name
