# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A member of a case has the same faults wherever it is simulated."""

import pytest
import torch
from recorded_ledger import JOINTS as TWELVE
from recorded_ledger import differing, record
from umc.faults import FaultCases, FaultPlan, FaultReplay, FaultSchedule, FaultState
from umc.utils.errors import UmcError

JOINTS = [f"joint_{index}" for index in range(6)]
CASES = [
    {"scenario": 2, "seed": 1, "onset": 75},
    {"scenario": 7, "seed": 2, "onset": 100},
    {"scenario": "locked", "seed": 3, "onset": 5, "joint_names": ["joint_3"], "num_joints": (1, 1)},
    {"scenario": 6, "seed": 2**63 + 1, "num_faults": (2, 2), "severity": {"effort": 1.0}},
    {"scenario": 8},
]
COMMON = {"severity": {"rom": 0.3, "effort": 5.0, "velocity": 3.0}}


def plan_of(cases: FaultCases, num_envs: int) -> FaultPlan:
    return cases.draw(torch.arange(num_envs), torch.zeros(num_envs, dtype=torch.long))


def test_a_member_is_the_same_alone_and_in_the_batch():
    many = plan_of(FaultCases(JOINTS, CASES, 50, **COMMON), 50)
    alone = FaultCases(JOINTS, CASES, 1, **COMMON)
    for env in (0, 17, 23, 31, 49):
        alone.assign(torch.tensor([env % 5]), torch.tensor([env // 5]))
        assert not differing(plan_of(alone, 1), many.map(lambda column, env=env: column[[env]]))


def test_every_env_has_its_case():
    cases = FaultCases(JOINTS, CASES, 10, **COMMON)
    plan = plan_of(cases, 10)
    names = [cases.scenarios[index].name for index in plan.scenario[:, 0].tolist()]
    assert names == ["scenario_2", "scenario_7", "locked", "scenario_6", "scenario_8"] * 2
    assert plan.onset[:3, 0].tolist() == [75, 100, 5]
    assert plan.joints[2, 0].tolist() == [name == "joint_3" for name in JOINTS]
    effort = [kind.name for kind in cases.kinds].index("effort")
    assert (plan.severity[3, 0, effort] == 1.0).all()
    assert plan.joints[3].any(1).tolist() == [True, True]
    assert plan.joints[:3, 1].any().item() is False
    assert not plan.joints[4].any()


def test_every_episode_has_the_same_faults_until_assigned_again():
    cases = FaultCases(JOINTS, CASES, 5, **COMMON)
    state = FaultState(cases, 5)
    state.reset(torch.arange(5))
    first = state.plan.joints.clone()
    state.reset(torch.arange(5))
    assert torch.equal(first, state.plan.joints)
    cases.assign(torch.arange(5), torch.full((5,), 7))
    state.reset(torch.arange(5))
    assert not torch.equal(first, state.plan.joints)


def test_random_numbers_depend_on_the_member_alone():
    """The next policy, a later batch and a robot that fell encounter the same noise."""
    cases = FaultCases(JOINTS, CASES, 10, **COMMON)
    state = FaultState(cases, 10)
    state.reset(torch.arange(10))
    uniform, normal = state.uniform("x"), state.normal("x")
    assert len(normal.unique()) == normal.numel()  # members and seeds have numbers of their own
    state.reset(torch.arange(0, 10, 3))
    state.reset(torch.arange(10))
    assert torch.equal(state.uniform("x"), uniform)
    assert torch.equal(state.normal("x"), normal)
    # member 1 of the second case, in an evaluation of which it is the first and alone
    others = FaultCases(JOINTS, CASES[1:], 1, **COMMON)
    others.assign(torch.tensor([0]), torch.tensor([1]))
    assert torch.equal(FaultState(others, 1).normal("x")[0], normal[6])
    # a case is what its schedule alone would draw
    alone = FaultState(FaultSchedule(JOINTS, **{**COMMON, **CASES[1]}), 2)
    alone.reset(torch.arange(2))
    assert torch.equal(alone.normal("x"), normal[1::5])
    assert torch.equal(alone.plan.joints, state.plan.joints[1::5, :1])
    assert torch.equal(alone.plan.onset, state.plan.onset[1::5, :1])


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([{"num_joint": (1, 2)}], "a case has no parameter 'num_joint'"),
        ([{"scenario": 1}, {"ledger": "x.jsonl"}], "a case has no 'ledger' of its own; give it beside cases"),
        ([{"cases": CASES}], "a case has no 'cases' of its own"),
        ([], "one or several"),
        (3, "one or several"),
        (["dead"], "one or several"),
    ],
)
def test_a_mistake_is_refused(cases, message):
    with pytest.raises(UmcError, match=message):
        FaultCases(JOINTS, cases, 5, **COMMON)


def test_a_case_alone_may_give_the_severity_of_its_kind():
    own = [{"scenario": "rom", "severity": {"rom": 0.3}}, {"scenario": "effort", "severity": {"effort": 5.0}}]
    shared = [{"scenario": "rom"}, {"scenario": "effort"}]
    found, expected = plan_of(FaultCases(JOINTS, own, 6), 6), plan_of(FaultCases(JOINTS, shared, 6, **COMMON), 6)
    assert differing(found, expected) == ["severity"]
    hit = found.kinds[..., None] & found.joints[:, :, None]
    assert torch.equal(found.severity[hit], expected.severity[hit])
    with pytest.raises(UmcError, match="kind 'effort' needs a severity"):
        FaultCases(JOINTS, [own[0], {"scenario": "effort"}], 2)


def test_the_typical_severity_of_a_joint_is_the_middle_of_its_range():
    severity = {"effort": {"joint_[01]": {"uniform": [2.0, 6.0]}, ".*": 9.0}, "rom": 0.3}
    schedule = FaultSchedule(JOINTS, severity=severity, scenario="effort", joint_names=JOINTS[1:])
    # the first joint never fails
    assert [schedule.typical_severity("effort", joint) for joint in range(6)] == [None, 4.0, 9.0, 9.0, 9.0, 9.0]
    assert schedule.typical_severity("noise", 1) is None
    own = [
        {"scenario": "normal", "severity": {"effort": 5.0, "velocity": 3.0}},  # which nothing draws
        {"scenario": "bias", "severity": {"bias": 0.1}},
        {"scenario": "dead+effort", "severity": {"bias": 0.4, "effort": 6.0}},
    ]
    cases = FaultCases(JOINTS, own, 3)
    typical = [cases.typical_severity(kind, 1) for kind in ("bias", "effort", "velocity", "rom")]
    assert typical == [pytest.approx(0.1), 6.0, 3.0, None]


SEVERITY = {"rom": 0.1, "effort": 8.0, "velocity": 3.0}


def joints_of(members, seed=1, num_joints=(2, 4), joints=JOINTS, **more):
    """Faulty joints of some members of one case."""
    case = {"scenario": 1, "seed": seed, "onset": 5, "num_joints": num_joints, "severity": SEVERITY, **more}
    members = torch.as_tensor(members)
    cases = FaultCases(joints, [case], len(members))
    cases.assign(torch.zeros_like(members), members)
    return cases.draw(torch.arange(len(members)), torch.zeros_like(members)).joints[:, 0]


@pytest.mark.parametrize("num_joints", [(2, 4), (2, 3), (4, 5), (1, 1), (3, len(JOINTS))])
@pytest.mark.parametrize("robots", [6, 10, 31])
def test_any_number_of_stratified_robots_has_the_shares_of_many(num_joints, robots):
    for seed in range(5):
        drawn = joints_of(range(robots), seed, num_joints, stratified=True)
        numbers = torch.bincount(drawn.sum(dim=1), minlength=num_joints[1] + 1)[num_joints[0] :]
        assert int(numbers.max() - numbers.min()) <= 1
        times = drawn.sum(dim=0)
        assert int(times.max() - times.min()) <= 1


def test_a_stratified_draw_depends_on_seed_and_member_only():
    many = joints_of(range(300), stratified=True)
    assert torch.equal(joints_of(range(10), stratified=True), many[:10])
    assert torch.equal(joints_of([250, 3, 99], stratified=True), many[[250, 3, 99]])
    assert not torch.equal(joints_of(range(300), 2, stratified=True), many)
    pairs = torch.einsum("ni,nj->ij", many.float(), many.float())
    assert (pairs > 0).all()  # any two joints fail together
    some = joints_of(range(30), joint_names=JOINTS[:5], stratified=True)
    assert not some[:, 5:].any()
    assert (joints_of(range(10)).sum(dim=1) == 2).sum() == 7  # drawn for each alone: an easier sample


def test_stratified_draws_are_part_of_a_ledger(tmp_path):
    schedule = FaultSchedule(TWELVE, scenario=1, severity=SEVERITY, stratified=True)
    record(tmp_path / "ledger.jsonl", schedule)
    replay = FaultReplay(tmp_path / "ledger.jsonl", TWELVE)
    ids, later = torch.arange(99), torch.full((99,), 7)
    assert torch.equal(replay.draw(ids, later).joints, schedule.draw(ids, later).joints)
    with pytest.raises(UmcError, match="stratified 1 must be true or false"):
        FaultSchedule(JOINTS, scenario=1, severity=SEVERITY, stratified=1)
