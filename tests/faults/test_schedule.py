# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Plans depend on (seed, env, episode) and on nothing else, are spread as asked, and bad input is refused."""

from dataclasses import fields

import pytest
import torch
from umc.errors import UmcError
from umc.faults import NEVER, FaultPlan, FaultSchedule, FaultState, Subcategory

JOINTS = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
LIMITS = {"effort_limit": 5.0, "velocity_limit": 3.0}


def draw(envs, episode=0, **kwargs) -> FaultPlan:
    ids = torch.as_tensor(envs)
    return FaultSchedule(JOINTS, **{**LIMITS, **kwargs}).draw(ids, torch.full_like(ids, episode))


def same(a: FaultPlan, b: FaultPlan) -> bool:
    return all(torch.equal(getattr(a, field.name), getattr(b, field.name)) for field in fields(FaultPlan))


def rows(plan: FaultPlan, index) -> FaultPlan:
    return FaultPlan(**{field.name: getattr(plan, field.name)[index] for field in fields(FaultPlan)})


def test_an_env_breaks_the_same_way_among_any_others():
    many = draw(range(4096), episode=5)
    assert same(rows(many, slice(64)), draw(range(64), episode=5))
    assert same(rows(many, [17]), draw([17], episode=5))
    order = torch.randperm(4096)
    assert same(rows(many, order), draw(order, episode=5))


def test_an_env_breaks_the_same_way_whatever_the_order_of_resets():
    schedule = FaultSchedule(JOINTS, **LIMITS)
    together, alone = FaultState(schedule, 32), FaultState(schedule, 32)
    for _ in range(3):
        together.begin_episode(torch.arange(32))
    for env in reversed(range(32)):
        for _ in range(3):
            alone.begin_episode(torch.tensor([env]))
    assert together.episode.tolist() == [2] * 32
    for field in fields(FaultPlan):
        assert torch.equal(getattr(together, field.name), getattr(alone, field.name))


@pytest.mark.parametrize("other", [{"seed": 1}, {"episode": 1}])
def test_another_seed_or_episode_breaks_something_else(other):
    a, b = draw(range(1000)), draw(range(1000), **other)
    for name in ("subcategory", "joints", "onset", "placement"):
        assert not torch.equal(getattr(a, name), getattr(b, name))
    # independent: two random subcategories agree in a quarter of the envs
    assert float((a.subcategory == b.subcategory).float().mean()) == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("ratios", [(1, 1, 1, 1), (1, 2, 2, 1), (1, 0, 0, 0), (0, 0, 3, 1)])
def test_subcategories_follow_the_ratios(ratios):
    counts = draw(range(20_000), ratios=ratios).subcategory.bincount(minlength=4) / 20_000
    assert torch.allclose(counts, torch.tensor(ratios) / sum(ratios), atol=0.015)
    assert all(count == 0.0 for count, ratio in zip(counts.tolist(), ratios, strict=True) if ratio == 0)


def test_joints_are_spread_evenly_and_as_many_as_asked():
    plan = draw(range(20_000), ratios=(0, 1, 1, 1), num_joints=(2, 4))
    counts = plan.joints.sum(1).bincount(minlength=6) / 20_000
    assert torch.allclose(counts, torch.tensor([0, 0, 1, 1, 1, 0]) / 3, atol=0.02)
    assert torch.allclose(plan.joints.float().mean(0), torch.full((12,), 0.25), atol=0.015)
    # pairs of joints are independent, too: neighbours fail together as often as strangers
    pairs = torch.stack([(plan.joints[:, 0] & plan.joints[:, other]).float().mean() for other in range(1, 12)])
    assert float(pairs.max() - pairs.min()) < 0.02


def test_kinds_follow_the_subcategory():
    plan = draw(range(1000))
    expected = {  # sensor, rom, effort, velocity
        Subcategory.NORMAL: (False, False, False, False),
        Subcategory.SENSOR_ONLY: (True, False, False, False),
        Subcategory.DETECTABLE: (True, True, True, True),
        Subcategory.UNDETECTABLE: (False, False, True, True),
    }
    for subcategory, kinds in expected.items():
        envs = plan.subcategory == subcategory
        for name, happens in zip(("sensor", "rom", "effort", "velocity"), kinds, strict=True):
            planned = getattr(plan, name)[envs]
            assert torch.equal(planned, plan.joints[envs] & happens)
    assert (plan.joints.any(1) == (plan.subcategory != Subcategory.NORMAL)).all()


def test_onsets_stay_in_range_or_among_the_choices():
    healthy_too = draw(range(5000), onset_range=(10, 20))
    broken = healthy_too.subcategory != Subcategory.NORMAL
    assert set(healthy_too.onset[broken].tolist()) == set(range(10, 21))
    assert (healthy_too.onset[~broken] == NEVER).all()
    chosen = draw(range(5000), onset=(75, 100, 125), scenario=6).onset.bincount(minlength=126)
    assert set(chosen.nonzero().flatten().tolist()) == {75, 100, 125}
    assert torch.allclose(chosen[[75, 100, 125]] / 5000, torch.full((3,), 1 / 3), atol=0.03)


def test_forced_scenarios_are_dealt_out_in_turn():
    plan = draw(range(16), scenario=(1, 5, 8))
    assert plan.scenario.tolist() == [(1, 5, 8)[env % 3] for env in range(16)]
    assert not plan.joints[plan.scenario == 8].any()
    five = plan.scenario == 5
    assert plan.rom[five].any(1).all()
    assert not (plan.sensor[five] | plan.effort[five] | plan.velocity[five]).any()


def test_only_candidates_fail_and_need_a_severity():
    plan = draw(range(2000), ratios=(0, 0, 1, 0), candidates=JOINTS[:3], num_joints=(1, 3), effort_limit={"FL_.*": 5.0})
    assert plan.joints[:, :3].any(0).all()
    assert not plan.joints[:, 3:].any()


def test_severities_are_resolved_by_pattern():
    plan = draw([0], effort_limit={".*_hip_.*": 8.0, ".*_thigh_.*": 13.0, ".*_calf_.*": 4.0})
    assert plan.effort_limit[0].tolist() == [8.0, 13.0, 4.0] * 4
    assert plan.velocity_limit[0].tolist() == [3.0] * 12


def test_a_healthy_schedule_says_so():
    assert not FaultSchedule(JOINTS, **LIMITS, ratios=(1, 0, 0, 0)).breaks
    assert not FaultSchedule(JOINTS, **LIMITS, scenario=8).breaks
    assert FaultSchedule(JOINTS, **LIMITS, ratios=(1, 0, 0, 0.01)).breaks
    assert FaultSchedule(JOINTS, **LIMITS, scenario=(8, 1)).breaks


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"ratios": (0, 0, 0, 0)}, "sum to 0"),
        ({"ratios": (1, -1, 1, 1)}, "not negative"),
        ({"ratios": (1, 1, 1)}, "4 numbers"),
        ({"num_joints": (2, 13)}, "num_joints"),
        ({"num_joints": (4, 2)}, "num_joints"),
        ({"num_joints": (0, 2)}, "num_joints"),
        ({"rom_fraction": 0.0}, "rom_fraction"),
        ({"rom_fraction": 1.5}, "rom_fraction"),
        ({"effort_limit": -1.0}, "effort_limit"),
        ({"velocity_limit": 0.0}, "velocity_limit"),
        ({"velocity_limit": float("nan")}, "velocity_limit"),
        ({"effort_limit": {".*_hip_.*": 5.0, ".*_knee_.*": 5.0}}, "'.*_knee_.*' matches no joint"),
        ({"effort_limit": {".*_hip_.*": 5.0}}, "'FL_thigh_joint' matches no pattern"),
        ({"scenario": 9}, "scenario"),
        ({"scenario": (1, 0)}, "scenario"),
        ({"scenario": ()}, "scenario"),
        ({"onset": -1}, "onset"),
        ({"onset": ()}, "onset"),
        ({"onset_range": (20, 10)}, "onset_range"),
        ({"onset": (75, 100), "episode_length": 100}, "episode's end at step 100"),
        ({"onset_range": (1, 250), "episode_length": 250}, "episode's end"),
        ({"candidates": ["FL_hip_joint", "tail"]}, "tail"),
    ],
)
def test_bad_input_is_refused_in_one_line(mistake, message):
    with pytest.raises(UmcError, match=r"[^\n]*") as error:
        FaultSchedule(JOINTS, **{**LIMITS, **mistake})
    assert message in str(error.value)
    assert "\n" not in str(error.value)
