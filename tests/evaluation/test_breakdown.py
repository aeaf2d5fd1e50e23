# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Breakdowns: who belongs to a slice, and what its figures are, on made-up robots."""

from dataclasses import replace

import pytest
import torch
from made_up_results import changed
from made_up_study import made_up_study
from umc.evaluation.breakdown import break_down, scenario_name, slices
from umc.evaluation.metrics import Outcome
from umc.evaluation.statistics import wilson


def made_up(**changes):
    """Two robots in each of scenarios 1 to 8 and three settings; joint 0 is faulty in the first, joint 1 in all."""
    study = made_up_study(members=2, policies=[("a", 1.0)])
    first = study.policies[0].run.member == 0
    joints = torch.zeros(len(first), 12, dtype=torch.bool)
    joints[:, 1] = True
    joints[first, 0] = True
    joints[study.policies[0].run.cell % 8 == 7] = False  # scenario 8 breaks nothing
    outcome = torch.where(first, int(Outcome.FAILED), int(Outcome.UP))
    result = changed(study.policies[0], outcome=outcome, distance=torch.where(first, 0.5, 3.5))
    result = replace(result, run=replace(result.run, joints=joints, **changes))
    return replace(study, policies=(result,)), result


def found_parts(study, result, by):
    return {(one.slice.name, one.scenario): one for one in break_down(study, result) if one.slice.by == by}


def test_a_joint_counts_the_robots_in_which_it_is_faulty():
    study, result = made_up()
    parts = found_parts(study, result, "joint")
    names = study.joint_names
    assert {name for name, _ in parts} == set(names[:2])  # joints that nobody has faulty have no figures
    assert parts[names[0], None].rates["failed"].value == 1.0
    assert parts[names[1], None].rates["failed"].value == 0.5
    assert parts[names[1], None].rates["reached@3"].value == 0.5
    assert parts[names[1], None].rates["reached@4"].value == 0.0
    assert parts[names[1], None].score.evaluated == 7 * 3 * 2  # scenario 8 breaks nothing
    assert (names[1], 8) not in parts
    found, expected = parts[names[1], 3].rates["failed"], wilson(3, 6)
    assert (found.value, found.low, found.high) == pytest.approx((0.5, expected.low, expected.high))


def test_scenarios_are_named_by_their_kinds_and_own_ones_by_their_name():
    assert [scenario_name(one) for one in (3, 8, "power_loss", "leg_power_loss")] == [
        "torque + blind",
        "healthy",
        "power loss",
        "leg power loss",
    ]


def test_settings_and_onsets_hold_all_scenarios():
    study, result = made_up()
    settings = found_parts(study, result, "setting")
    assert len(settings) == 3
    assert all(one.score.evaluated == 16 and one.rates["failed"].value == 0.5 for one in settings.values())
    onsets = [one for one in slices(study, result) if one.by == "onset"]
    assert [one.value for one in onsets] == pytest.approx([1.5, 2.0, 2.5])
    assert torch.equal(onsets[1].rows, result.run.onset == 100)
    # one setting is no breakdown
    one = replace(study, protocol=replace(study.protocol, settings=study.protocol.settings[:1]))
    result = replace(result, run=replace(result.run.select(result.run.cell < 8), stance=None))
    assert {found.by for found in slices(one, result)} == {"joint"}


def severity_slices(severity, kind="effort"):
    return [one for one in slices(*made_up(severity={kind: severity})) if one.by == "severity"]


def test_severities_are_kept_apart_if_few_and_binned_if_many():
    severity = torch.tensor([4.0, 8.0, float("nan")]).repeat(16)
    found = severity_slices(severity)
    assert [(one.name, one.value, one.kind) for one in found] == [("4", 4.0, "effort"), ("8", 8.0, "effort")]
    assert torch.equal(found[0].rows, severity == 4.0)
    found = severity_slices(torch.linspace(-1.0, 1.0, 48))
    assert [int(one.rows.sum()) for one in found] == [8] * 6
    assert torch.stack([one.rows for one in found]).sum(dim=0).eq(1).all()
    assert found[0].value < -0.8 < 0.8 < found[-1].value
    found = severity_slices(torch.linspace(-1.0, 1.0, 48).clamp(max=0.0))  # the largest is the severity of half
    assert torch.stack([one.rows for one in found]).sum(dim=0).eq(1).all()
    same = torch.full((48,), 0.1)
    same[::2] = torch.nextafter(torch.tensor(0.1), torch.tensor(1.0))
    assert not severity_slices(same)
    assert not severity_slices(torch.full((48,), float("nan")))


def test_stances_are_named_by_the_feet_on_the_ground():
    stance = torch.tensor([[1, 0, 0, 1], [0, 0, 0, 0]]).bool().repeat(24, 1)
    study, result = made_up(stance=stance)
    found = {one.name: one.rows for one in slices(study, result) if one.by == "stance"}
    assert set(found) == {"FL + RR", "in the air"}
    broken = result.run.cell % 8 != 7
    assert torch.equal(found["FL + RR"], stance[:, 0] & broken)
    without, lone = made_up(stance=None)
    assert not [one for one in slices(without, lone) if one.by == "stance"]
