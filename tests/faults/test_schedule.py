# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Plans depend on (seed, env, episode) and on nothing else, are spread as asked, and bad input is refused."""

import math
from dataclasses import replace

import pytest
import torch
from recorded_ledger import JOINTS, MIXED, differing
from umc.faults import NEVER, FaultPlan, FaultSchedule, FaultState, JointLimits
from umc.utils.errors import UmcError

SEVERITY = {"rom": 0.3, "effort": 5.0, "velocity": 3.0}
NOMINAL = JointLimits(*(torch.full((12,), value) for value in (-1.0, 1.0, 20.0, 10.0)))


def schedule(**kwargs) -> FaultSchedule:
    severity = kwargs.get("severity", {})
    kwargs["severity"] = {**SEVERITY, **severity} if isinstance(severity, dict) else severity
    return FaultSchedule(JOINTS, **kwargs)


def draw(envs, episode=0, **kwargs) -> FaultPlan:
    ids = torch.as_tensor(envs)
    return schedule(**kwargs).draw(ids, torch.full_like(ids, episode))


@pytest.mark.parametrize("kwargs", [{}, MIXED], ids=["paper", "mixed"])
def test_an_env_has_the_same_faults_in_any_batch(kwargs):
    many = draw(range(4096), episode=5, **kwargs)
    assert not differing(many.map(lambda column: column[:64]), draw(range(64), episode=5, **kwargs))
    assert not differing(many.map(lambda column: column[[17]]), draw([17], episode=5, **kwargs))
    order = torch.randperm(4096)
    assert not differing(many.map(lambda column: column[order]), draw(order, episode=5, **kwargs))


def test_an_env_has_the_same_faults_in_any_order_of_resets():
    together, alone = FaultState(schedule(), 32), FaultState(schedule(), 32)
    for _ in range(3):
        together.reset(torch.arange(32))
    for env in reversed(range(32)):
        for _ in range(3):
            alone.reset(torch.tensor([env]))
    assert together.episode.tolist() == [2] * 32
    assert not differing(together.plan, alone.plan)


@pytest.mark.parametrize("other", [{"seed": 1}, {"episode": 1}])
def test_another_seed_or_episode_draws_other_faults(other):
    a, b = draw(range(1000)), draw(range(1000), **other)
    for name in ("scenario", "joints", "onset", "placement"):
        assert not torch.equal(getattr(a, name), getattr(b, name))
    # independent: two random subcategories agree in a quarter of the envs
    assert float((a.scenario == b.scenario).float().mean()) == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize("ratios", [(1, 1, 1, 1), (1, 2, 2, 1), (1, 0, 0, 0), (0, 0, 3, 1)])
def test_subcategories_follow_the_ratios(ratios):
    counts = draw(range(20_000), ratios=ratios).scenario[:, 0].bincount(minlength=4) / 20_000
    assert torch.allclose(counts, torch.tensor(ratios) / sum(ratios), atol=0.015)
    assert all(count == 0.0 for count, ratio in zip(counts.tolist(), ratios, strict=True) if ratio == 0)


def test_joints_are_spread_evenly_and_as_many_as_asked():
    joints = draw(range(20_000), ratios=(0, 1, 1, 1), num_joints=(2, 4)).joints[:, 0]
    counts = joints.sum(1).bincount(minlength=6) / 20_000
    assert torch.allclose(counts, torch.tensor([0, 0, 1, 1, 1, 0]) / 3, atol=0.02)
    assert torch.allclose(joints.float().mean(0), torch.full((12,), 0.25), atol=0.015)
    # pairs of joints are independent, too: neighbours fail together as often as distant joints
    pairs = torch.stack([(joints[:, 0] & joints[:, other]).float().mean() for other in range(1, 12)])
    assert float(pairs.max() - pairs.min()) < 0.02


def test_kinds_follow_the_scenario():
    drawn = schedule()
    plan = drawn.draw(torch.arange(1000), torch.zeros(1000, dtype=torch.long))
    for index, scenario in enumerate(drawn.scenarios):
        envs = plan.scenario[:, 0] == index
        expected = torch.tensor([kind.name in scenario.kinds for kind in drawn.kinds])
        assert envs.any()
        assert (plan.kinds[envs, 0] == expected).all()
        assert (plan.detected[envs, 0] == scenario.detected).all()
        assert (plan.joints[envs, 0].any(1) == bool(scenario.kinds)).all()


def test_onsets_stay_in_range_or_among_the_choices():
    plan = draw(range(5000), onset_range=(10, 20))
    broken = plan.joints[:, 0].any(1)
    assert set(plan.onset[broken, 0].tolist()) == set(range(10, 21))
    assert (plan.onset[~broken] == NEVER).all()
    chosen = draw(range(5000), onset=(75, 100, 125), scenario=6).onset[:, 0].bincount(minlength=126)
    assert set(chosen.nonzero().flatten().tolist()) == {75, 100, 125}
    assert torch.allclose(chosen[[75, 100, 125]] / 5000, torch.full((3,), 1 / 3), atol=0.03)


def test_forced_scenarios_are_assigned_in_turn():
    drawn = schedule(scenario=(1, 5, 8, "locked"))
    plan = drawn.draw(torch.arange(16), torch.zeros(16, dtype=torch.long))
    names = [drawn.scenarios[index].name for index in plan.scenario[:, 0].tolist()]
    assert names == ["scenario_1", "scenario_5", "scenario_8", "locked"] * 4
    assert not plan.joints[2::4].any()
    assert plan.joints[1::4].any(-1).all()


def test_durations_and_periods_are_drawn_in_their_spans():
    plan = draw(range(3000), scenario=6, onset_range=(1, 50), duration=(5, 9), period=(4, 6), duty=0.5)
    assert set((plan.end - plan.onset).flatten().tolist()) == set(range(5, 10))
    assert set(plan.period.flatten().tolist()) == {4, 5, 6}
    assert set(plan.on.flatten().tolist()) == {2, 3}
    for duty, on in ((0.1, 1), (0.6, 2), (0.7, 3), (1.0, 4)):  # the nearest number of steps, at least one
        assert (draw(range(20), scenario=6, period=4, duty=duty).on == on).all()


def test_an_episode_may_have_several_faults():
    plan = draw(range(3000), ratios=(0, 1, 1, 1), num_faults=(1, 3))
    counts = plan.joints.any(2).sum(1).bincount(minlength=4) / 3000
    assert torch.allclose(counts, torch.tensor([0, 1, 1, 1]) / 3, atol=0.04)
    both = plan.joints[:, 0].any(1) & plan.joints[:, 1].any(1)
    assert not torch.equal(plan.joints[both, 0], plan.joints[both, 1])
    assert (plan.onset[both, 0] != plan.onset[both, 1]).any()
    severity = {"rom": {"uniform": [0.1, 0.9]}}
    own = draw(range(100), scenario="rom", severity=severity, num_faults=(2, 2))
    for drawn in (own.severity, own.placement):
        assert (drawn[:, 0] == drawn[:, 1]).float().mean() < 0.01
    # the first fault is the one that an episode of one fault has
    alone = draw(range(3000), ratios=(0, 1, 1, 1))
    assert torch.equal(alone.joints[:, 0], plan.joints[:, 0])


def test_only_candidates_fail_and_need_a_severity():
    severity = {"effort": {"FL_.*": 5.0}}
    plan = draw(range(2000), ratios=(0, 0, 1, 0), joint_names=JOINTS[:3], num_joints=(1, 3), severity=severity)
    assert plan.joints[:, 0, :3].any(0).all()
    assert not plan.joints[..., 3:].any()


def severity_of(kind: str, **kwargs) -> torch.Tensor:
    drawn = schedule(scenario=kind, **kwargs)
    return drawn.draw(torch.arange(5000), torch.zeros(5000, dtype=torch.long)).severity[:, 0, 0]


LEGS = {leg: [f"{leg}_.*"] for leg in ("FL", "FR", "RL", "RR")}


def test_joints_of_a_group_fail_together():
    whole = {"scenario": "power_loss", "joint_groups": LEGS, "num_joints": (1, 2)}
    plan = draw(range(4000), **whole)
    legs = plan.joints[:, 0].unflatten(1, (4, 3))
    assert torch.equal(legs.any(dim=2), legs.all(dim=2))
    count = legs.all(dim=2).sum(dim=1)
    assert set(count.tolist()) == {1, 2}
    assert float((count == 1).float().mean()) == pytest.approx(0.5, abs=0.03)
    assert legs.all(dim=2).float().mean(0).tolist() == pytest.approx([1.5 / 4] * 4, abs=0.03)
    # any batch, and any order of the groups, which are drawn by name
    assert not differing(plan.map(lambda column: column[17:18]), draw([17], **whole))
    turned = {**whole, "joint_groups": dict(reversed(LEGS.items()))}
    assert not differing(plan, draw(range(4000), **turned))
    assert differing(plan, draw(range(4000), seed=1, **whole))


def test_groups_leave_everything_else_of_a_plan_as_it_was_and_may_overlap():
    alone, grouped = (draw(range(200), **MIXED, **more) for more in ({}, {"joint_groups": LEGS, "num_joints": (1, 2)}))
    for name in ("scenario", "kinds", "onset", "end", "severity", "placement"):
        assert torch.equal(getattr(alone, name), getattr(grouped, name)), name
    boards = {"front": ["F._.*"], "left": [".L_.*"], "hips": [".*_hip_.*"]}
    plan = draw(range(300), scenario="dead", joint_groups=boards, num_joints=(1, 1), joint_names=[".*_(hip|thigh)_.*"])
    assert set(plan.joints.sum(2).flatten().tolist()) == {4}
    assert not plan.joints[:, 0, 2::3].any()  # joints that cannot fail
    assert {tuple(row.nonzero().flatten().tolist()) for row in plan.joints[:, 0]} == {
        (0, 1, 3, 4),
        (0, 1, 6, 7),
        (0, 3, 6, 9),
    }


def test_joints_of_no_group_need_no_severity_and_no_limit():
    upper = NOMINAL.upper.clone()
    upper[3:6] = math.inf  # those of FR
    limited = {"scenario": "rom", "nominal": replace(NOMINAL, upper=upper), "num_joints": (1, 1)}
    drawn = schedule(joint_groups={"FL": ["FL_.*"]}, severity={"rom": {"F[LR]_.*": 0.3}}, **limited)
    assert drawn.draw(torch.arange(9), torch.zeros(9).long()).joints.nonzero()[:, 2].unique().tolist() == [0, 1, 2]
    assert [drawn.typical_severity("rom", joint) is None for joint in (0, 3, 6)] == [False, True, True]
    with pytest.raises(UmcError, match="'RL_hip_joint' matches no pattern"):
        schedule(joint_groups={"left": [".L_.*"]}, severity={"rom": {"FL_.*": 0.3}}, **limited)
    with pytest.raises(UmcError, match="rom would have no effect on FR_hip_joint"):
        schedule(joint_groups={"front": ["F._.*"]}, **limited)


def test_a_severity_may_name_joints_that_do_not_fail_but_none_that_there_is_not():
    front = {"joint_groups": {"hips": [".*_hip_.*"]}, "num_joints": (1, 1), "joint_names": ["F._.*"], "scenario": "rom"}
    severity = {".*_(thigh|calf)_.*": 0.4, ".*_hip_.*": 0.3}
    plan = schedule(severity={"rom": severity}, **front).draw(torch.arange(9), torch.zeros(9).long())
    assert (plan.severity[plan.joints[:, :, None]] == torch.tensor(0.3)).all()
    with pytest.raises(UmcError, match=r"rom: pattern 'M._.\*' matches no joint; the joints are FL_hip_joint, "):
        schedule(severity={"rom": {**severity, "M._.*": 0.2}}, **front)
    alone = {"joint_names": ["FL_hip_joint"], "num_joints": (1, 1), "scenario": "rom"}
    plan = schedule(severity={"rom": severity}, **alone).draw(torch.arange(9), torch.zeros(9).long())
    assert plan.joints.nonzero()[:, 2].unique().tolist() == [0]


def test_stratified_groups_are_spread_evenly():
    plan = draw(range(40), scenario="power_loss", joint_groups=LEGS, num_joints=(1, 1), stratified=True)
    assert plan.joints[:, 0].unflatten(1, (4, 3)).all(dim=2).sum(0).tolist() == [10] * 4


def test_severities_are_resolved_by_pattern():
    value = {".*_hip_.*": 8.0, ".*_thigh_.*": {"choice": [1.0, 2.0]}, ".*_calf_.*": {"uniform": [3.0, 4.0]}}
    drawn = severity_of("effort", severity={"effort": value})
    assert (drawn[:, 0] == 8.0).all()
    assert set(drawn[:, 1].tolist()) == {1.0, 2.0}
    assert 3.0 <= float(drawn[:, 2].min()) < 3.01
    assert 3.99 < float(drawn[:, 2].max()) < 4.0
    assert not torch.equal(drawn[:, 2], drawn[:, 5])
    decades = severity_of("noise", severity={"noise": {"log_uniform": [0.001, 0.1]}})
    assert float((decades < 0.01).float().mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(("kind", "most"), [("imu_bias", 1.0), ("burst_loss", 50.0)])
def test_joints_that_share_a_sensor_or_a_bus_share_the_draw_of_their_severity(kind, most):
    """The number of joints does not make the fault of the base's sensor worse."""
    severity = {kind: {"uniform": [0.6, most]}}
    plan = draw(range(2000), scenario=kind, severity=severity, num_joints=(12, 12))
    drawn = plan.severity[:, 0, 0]
    assert (drawn == drawn[:, :1]).all()
    assert drawn[:, 0].mean().item() == pytest.approx(0.5 * (0.6 + most), rel=0.03)
    assert len(drawn[:, 0].unique()) == 2000


def test_fractions_are_of_the_healthy_joint():
    assert (severity_of("effort", severity={"effort": {"fraction": 0.25}}, nominal=NOMINAL) == 5.0).all()
    drawn = severity_of("velocity", severity={"velocity": {"fraction": {"uniform": [0.1, 0.2]}}}, nominal=NOMINAL)
    assert 1.0 <= float(drawn.min()) < float(drawn.max()) < 2.0


def test_a_level_lies_between_healthy_and_full_severity():
    drawn = schedule(ratios=(0, 0, 1, 0), nominal=NOMINAL)
    index = {kind.name: number for number, kind in enumerate(drawn.kinds)}
    drawn.set_level(0.25)
    severity = drawn.draw(torch.tensor([0]), torch.tensor([0])).severity[0, 0]
    assert severity[index["effort"]].tolist() == [20.0 - 0.25 * 15.0] * 12
    assert severity[index["velocity"]].tolist() == [10.0 - 0.25 * 7.0] * 12
    assert severity[index["rom"]].tolist() == pytest.approx([1.0 - 0.25 * 0.7] * 12)
    drawn.set_level(1.0)
    assert drawn.draw(torch.tensor([0]), torch.tensor([0])).severity[0, 0, index["effort"]].tolist() == [5.0] * 12
    drawn = schedule(scenario="effort", severity={"effort": {"fraction": 0.25}}, nominal=NOMINAL)
    drawn.set_level(0.5)
    assert (drawn.draw(torch.tensor([0]), torch.tensor([0])).severity == 20.0 - 0.5 * 15.0).all()


@pytest.mark.parametrize("none", [1.0e9, 3.4e38, math.inf])
def test_a_joint_without_a_limit_has_the_full_severity_at_every_level(none):
    """A part of the way to a limit that no motor reaches would be no fault."""
    efforts = torch.full((12,), 20.0)
    efforts[0] = none
    drawn = schedule(scenario="effort", num_joints=(12, 12), nominal=replace(NOMINAL, effort=efforts))
    drawn.set_level(0.25)
    severity = drawn.draw(torch.tensor([0]), torch.tensor([0])).severity[0, 0, 0]
    assert severity.tolist() == [5.0] + [20.0 - 0.25 * 15.0] * 11
    alone = {"num_joints": (1, 1), "joint_names": ["FL_hip_joint"]}  # the limits of joints that never fail do not help
    with pytest.raises(UmcError, match="none of effort has a mild form"):
        schedule(scenario="effort", **alone, nominal=replace(NOMINAL, effort=efforts)).set_level(0.25)
    with pytest.raises(UmcError, match="none of effort has a mild form"):
        schedule(scenario="effort", nominal=replace(NOMINAL, effort=efforts.fill_(none))).set_level(0.25)


def test_ratios_can_change_and_only_to_known_scenarios():
    drawn = schedule(ratios=(1, 0, 0, 0))
    assert not drawn.has_faults
    drawn.set_ratios((0, 1, 0, 0))
    assert drawn.has_faults
    plan = drawn.draw(torch.arange(100), torch.zeros(100, dtype=torch.long))
    assert (plan.scenario == 1).all()
    with pytest.raises(UmcError, match="'locked' is new"):
        drawn.set_ratios({"locked": 1})
    with pytest.raises(UmcError, match="ratios name scenario 'scenario_3' twice"):
        schedule(ratios={3: 1, "scenario_3": 5})
    assert not schedule(scenario=8).has_faults
    assert schedule(ratios=(1, 0, 0, 0.01)).has_faults
    assert schedule(scenario=(8, 1)).has_faults


@pytest.mark.parametrize(
    ("kind", "severity", "limits"),
    [
        ("velocity", {"fraction": 0.15}, {"velocity": 17_453.0}),  # PhysX where the cfg has none
        ("effort", {"fraction": 0.25}, {"effort": 3.4e38}),
        ("rom", 0.3, {"upper": float("inf"), "lower": float("-inf")}),  # a wheel
        ("rom", 0.3, {"lower": float("-inf")}),  # one limit: there is no range to take a share of
        ("rom", 0.3, {"upper": float("inf")}),
    ],
)
def test_a_fault_that_would_have_no_effect_for_want_of_a_limit_is_refused(kind, severity, limits):
    nominal = replace(NOMINAL, **{name: getattr(NOMINAL, name).clone() for name in limits})
    for name, value in limits.items():
        getattr(nominal, name)[3] = value
    refused = f"{kind} would have no effect on FR_hip_joint, which has no limit .*joint_velocity_limit; actuator_effort"
    with pytest.raises(UmcError, match=refused):
        schedule(scenario=kind, severity={kind: severity}, nominal=nominal)
    schedule(scenario=kind, severity={kind: severity}, nominal=nominal, joint_names=["R._.*"])
    schedule(scenario="rom", severity={"rom": 1.0}, nominal=nominal)  # the whole range, as before a protocol is chosen
    schedule(scenario=kind, severity={kind: severity}, nominal=NOMINAL)


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ({"ratios": (0, 0, 0, 0)}, "sum to 0"),
        ({"ratios": {1: 0, 2: 0}}, "sum to 0; raise one of them (1, 2)"),
        ({"ratios": (1, -1, 1, 1)}, "not negative"),
        ({"ratios": (1, 1, 1)}, "4 numbers"),
        ({"num_faults": (0, 1)}, "num_faults"),
        ({"severity": {"rom": 0.0}}, "severity 0 of 'rom' must be above 0 and at most 1"),
        ({"severity": {"velocity": float("nan")}}, "'velocity'"),
        ({"severity": {"delayed": 11}}, "'delayed'"),
        ({"severity": {"delayed": 0.4}}, "severity 0.4 of 'delayed' must be above 0.5 and at most 10"),
        ({"severity": {"burst_loss": {"uniform": [0.5, 9.0]}}}, "severity 0.5 of 'burst_loss' must be above 0.5"),
        ({"severity": {"locked": 0.5}}, "kind 'locked' has no severity; leave it out of severity"),
        ({"severity": {"efort": 3.0}}, "unknown kind of fault 'efort'"),
        ({"severity": {"effort": {"uniform": [2.0, 1.0]}}}, "must be a number, uniform"),
        ({"severity": {"effort": "weak"}}, "must be a number, uniform"),
        ({"severity": {"effort": {"fraction": 0.5}}}, "is a fraction of is unknown"),
        ({"scenario": "noise"}, "needs a severity [rad]"),
        ({"severity": {"effort": {".*_hip_.*": 5.0, ".*_knee_.*": 5.0}}}, "'.*_knee_.*' matches no joint"),
        ({"severity": {"effort": {".*_hip_.*": 5.0}}}, "'FL_thigh_joint' matches no pattern"),
        ({"scenario": ()}, "scenario"),
        ({"onset": ()}, "onset"),
        ({"onset_range": (20, 10)}, "onset_range"),
        ({"onset": (75, 100), "episode_length": 100}, "episode's end at step 100"),
        ({"period": (9, 3)}, "period"),
        ({"duration": 2**31}, "duration 2147483648 must be a whole number of env steps from 1 to 1000000000"),
        ({"duty": 0.0}, "duty"),
        ({"joint_names": ["FL_hip_joint", "tail"]}, "tail"),
        ({"joint_groups": {}}, "joint_groups {} must be a mapping of names to joints"),
        ({"joint_groups": ["FL_.*"]}, "must be a mapping of names to joints"),
        ({"joint_groups": {"FL": "FL_.*"}}, "joint_groups: 'FL' must list names or patterns"),
        ({"joint_groups": {"FL": []}}, "joint_groups: 'FL' must list names or patterns"),
        ({"joint_groups": {"FL": ["tail"]}}, "joint_groups: 'FL': no joint is named tail"),
        # values of the wrong kind
        ({"severity": 3}, "severity 3 must be a mapping"),
        ({"joint_names": "FL_hip_joint"}, "joint_names must list names or patterns"),
        ({"seed": "abc"}, "seed abc must be a whole number"),
        ({"ratios": (1, "x", 1, 1)}, "ratios (1, 'x', 1, 1) must be numbers"),
        ({"scenario": [[1]]}, "scenario [[1]] must be a whole number, a name, or a list of these"),
        ({"scenarios": ["stiff"]}, "scenarios ['stiff'] must be a mapping"),
        ({"num_joints": (1.5, 3)}, "num_joints (1.5, 3) must be (min, max): two whole numbers"),
        ({"num_joints": (3, 13)}, "num_joints (3, 13): max is 13, but there are 12 joints that can fail"),
        ({"onset": 75.5}, "onset 75.5 must be a whole number of env steps, or a list of them"),
        ({"onset": (75, "late")}, "must be a whole number of env steps, or a list of them"),
        ({"onset_range": 75}, "onset_range 75 must be first and last step, two whole numbers"),
        ({"duration": (1, 2, 3)}, "duration (1, 2, 3) must be a whole number of env steps"),
        ({"duty": "x"}, "duty x must be a number above 0"),
        ({"severity": {"effort": {"(": 5.0}}}, "effort: '(' is no pattern of joint names"),
    ],
)
def test_bad_input_is_refused_in_one_line(mistake, message):
    with pytest.raises(UmcError, match=r"[^\n]*") as error:
        schedule(**mistake)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
