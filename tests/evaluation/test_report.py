# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Protocol and report: what the paper says, what a user may change, and files that are whole or absent."""

from dataclasses import replace

import pytest
import torch
from umc.evaluation.metrics import EpisodeRecorder, Step, score
from umc.evaluation.protocol import Setting, protocol_for
from umc.evaluation.report import score_table
from umc.evaluation.study import assign_envs
from umc.utils.errors import UmcError


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"scenarios": (9,)}, "unknown scenario"),
        ({"scenarios": (0, 1)}, "unknown scenario"),
        ({"scenarios": ()}, "no scenario"),
        ({"scenarios": (1, 1)}, "twice"),
        ({"radii": (2, 1)}, "increasing"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(changes, words):
    with pytest.raises(UmcError, match=words):
        protocol_for("a1", **changes)


def test_a_robot_without_protocol_is_refused_with_the_list_of_robots():
    with pytest.raises(UmcError, match="a1, g1"):
        protocol_for("anymal")


def make_scores():
    protocol = protocol_for("a1", scenarios=(1, 8), radii=(1, 2))
    protocol = replace(protocol, settings=(Setting(1, 2),))
    assignment = assign_envs(protocol, 4)
    recorder = EpisodeRecorder(assignment.onset)
    no = torch.zeros(4, dtype=torch.bool)
    for step in range(1, 6):
        position = torch.tensor([[0.5 * step, 0.0]] * 4)
        recorder.record(
            Step(
                position,
                torch.full((4,), 0.5),
                torch.full((4,), 0.3),
                torch.tensor([step == 4, step == 1, 0, 0]).bool(),
                no,
                no,
            )
        )
    episodes = recorder.episodes()
    return protocol, [score(episodes, protocol.radii, 0.02, assignment.cell == cell) for cell in range(2)]


def test_the_table_has_a_line_per_scenario_and_the_average():
    protocol, scores = make_scores()
    words, *lines = score_table(protocol, scores).splitlines()
    assert "in % of the robots that stood at onset" in words
    rows = [line.split() for line in lines if not line.startswith("-")]
    assert [row[0] for row in rows] == ["scenario", "1", "8", "average"]
    assert rows[-1][:5] == ["average", "3", "75", "0", "25"]
    assert len({len(line) for line in lines}) == 1
