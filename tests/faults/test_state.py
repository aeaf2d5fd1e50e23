# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Faults are on from onset to end, and mask and flag show what the scenario detects."""

import math

import pytest
import torch
from umc.faults import FaultSchedule, FaultState, JointLimits, find_kind
from umc.faults.kinds import Derating
from umc.faults.random import philox, philox_pair

JOINTS = [f"joint_{index}" for index in range(6)]
SEVERITY = {"rom": 0.3, "effort": 5.0, "velocity": 3.0, "braking": 2.0, "friction": 5.0}


def state_of(num_envs: int, severity=None, **kwargs) -> FaultState:
    state = FaultState(FaultSchedule(JOINTS, severity={**SEVERITY, **(severity or {})}, **kwargs), num_envs)
    state.reset(torch.arange(num_envs))
    return state


def go_to(state: FaultState, step: int, position: float = 0.0) -> torch.Tensor:
    shape = (state.num_envs, len(JOINTS))
    return state.advance(torch.full((state.num_envs,), step), torch.full(shape, position))


def test_a_fault_sets_in_at_its_onset_and_once():
    state = state_of(6, scenario=6, onset=(10, 20))
    onset = state.onset.clone()
    assert set(onset.tolist()) == {10, 20}
    for step in range(1, 30):
        assert torch.equal(go_to(state, step), onset == step)
        assert torch.equal(state.active, onset <= step)
        assert not go_to(state, step).any()  # a second call in a step changes nothing
    late = state_of(2, scenario=6, onset=10)  # an onset between two calls sets in with the next
    assert late.advance(torch.tensor([500, 9]), torch.zeros(2, 6)).tolist() == [True, False]


def test_env_steps_that_were_taken_are_known_without_reading_them():
    state, step = state_of(4, scenario=6, onset=10), torch.zeros(4, dtype=torch.long)

    def take():
        assert not state.has_advanced(step)
        state.advance(step, torch.zeros(4, 6))
        assert state.has_advanced(step)
        assert not state.has_advanced(step.clone())

    take()
    with torch.inference_mode():  # as in an evaluation
        step += 1
        take()
        step[torch.tensor([1, 2])] = 0
        take()
        assert not state.has_advanced(step + 1)
        state.advance(step + 1, torch.zeros(4, 6))  # whose changes torch does not count
    take()
    state.reset(torch.tensor([1]))
    take()


def test_nothing_is_live_before_onset_and_nothing_is_left_after_reset():
    state = state_of(64, ratios=(0, 1, 1, 1))
    assert not any(tensor.any() for tensor in (state.live, state.detected, state.active))
    go_to(state, 300)
    assert state.live.flatten(1).any(1).all()
    state.reset(torch.arange(0, 64, 2))
    assert not state.live[::2].any()
    assert not state.detected[::2].any()
    assert state.active.tolist() == [False, True] * 32
    assert state.episode.tolist() == [1, 0] * 32


def test_a_plan_that_is_drawn_within_an_env_step_is_switched_on_within_it():
    state = state_of(3, scenario=6, onset=10)
    go_to(state, 0)
    state.reset(torch.tensor([1]))
    state.plan.onset[1] = 0  # as a source of one's own may plan
    assert go_to(state, 0).tolist() == [False, True, False]
    assert not go_to(state, 0).any()


def test_an_intermittent_fault_comes_and_goes_until_its_end_and_its_age_counts_from_the_last_onset():
    state = state_of(1, scenario="drift", severity={"drift": 0.1}, onset=10, duration=16, period=6, duty=1 / 3)
    on, ages = [], []
    for step in range(1, 35):
        go_to(state, step)
        on += [step] * int(state.active)
        ages.append(int(state.live_fault("drift").age.max()))
    assert on == [10, 11, 16, 17, 22, 23]
    assert [step for step, age in enumerate(ages, start=1) if age == 1] == [11, 17, 23]
    assert max(ages) == 1


@pytest.mark.parametrize("scenario", range(1, 9))
def test_mask_and_flag_follow_the_scenario(scenario):
    state = state_of(16, scenario=scenario, onset=1)
    go_to(state, 1)
    assert torch.equal(state.joint_mask, state.joints & (scenario <= 4))
    assert state.joint_mask.any(1).all() == (scenario <= 4)
    assert (state.fault_flag == (1.0 if scenario in (2, 3, 4) else -1.0)).all()
    assert state.fault_flag.shape == (16, 3)


def test_several_faults_add_up_and_end_one_by_one():
    state = state_of(200, ratios={"dead": 1, "effort": 1}, num_faults=(2, 2), onset_range=(1, 20), duration=(10, 30))
    plan = state.plan
    for step in range(1, 60):
        go_to(state, step)
        on = plan.is_on(torch.full((200,), step))
        for kind in ("dead", "effort"):
            index = [one.name for one in state.kinds].index(kind)
            expected = (plan.joints & on[..., None] & plan.kinds[:, :, index, None]).any(1)
            assert torch.equal(state.live_fault(kind).on, expected)


HEALTHY = JointLimits(*(torch.full((4, 6), value) for value in (-1.0, 1.0, 20.0, 10.0)))


def limits_with(kind: str, position: float = 0.2, **severity) -> tuple[JointLimits, torch.Tensor]:
    state = state_of(4, scenario=kind, severity=severity, onset=1)
    go_to(state, 1, position)
    go_to(state, 2, position + 0.5)  # a window stays where it set in
    return state.limits(HEALTHY), state.joints


def test_joint_kinds_lower_what_they_say_and_nothing_else():
    names = ("lower", "upper", "effort", "velocity", "damping", "friction")
    changed = {
        "braking": ("effort", "damping"),
        "friction": ("friction",),
        "rom": ("lower", "upper"),
        "locked": ("lower", "upper"),
        "effort": ("effort",),
        "power_loss": ("effort",),
        "velocity": ("velocity",),
    }
    for kind, lowered in changed.items():
        limits, joints = limits_with(kind)
        assert joints.any()
        assert find_kind(kind).adds_passive == any(name in ("damping", "friction") for name in lowered)
        for name in names:
            differs = getattr(limits, name) != getattr(HEALTHY, name)
            if name not in lowered:
                assert not differs.any(), (kind, name)
            elif kind != "rom":
                assert torch.equal(differs, joints), (kind, name)
        if kind == "rom":
            assert torch.allclose((limits.upper - limits.lower)[joints], torch.tensor(0.6))
            assert (limits.lower[joints] <= 0.2).all()
            assert (limits.upper[joints] >= 0.2).all()
    assert (limits_with("effort")[0].effort.min(), limits_with("velocity")[0].velocity.min()) == (5.0, 3.0)
    assert limits_with("effort", effort=30.0)[0].effort.max() == 20.0  # a fault never strengthens a joint
    assert limits_with("power_loss")[0].effort.min() == 0.0
    brakes, joints = limits_with("braking")
    assert (brakes.effort[joints] == 0.0).all()
    assert (brakes.damping[joints] == 2.0).all()
    worn = limits_with("friction+braking")[0]
    assert (worn.friction.max(), worn.damping.max()) == (5.0, 2.0)
    locked, joints = limits_with("locked")
    assert torch.equal(locked.lower[joints], torch.full_like(locked.lower[joints], 0.2))
    assert torch.equal(locked.upper[joints], locked.lower[joints])


def overloaded(wanted: float, seconds: float, state: FaultState, step: int = 2) -> torch.Tensor:
    """Limits [N*m] of a motor that is to give a torque, step by step; shape is (steps, E, J)."""
    found = []
    for number in range(step, step + round(seconds / 0.02)):
        go_to(state, number)
        allowed = state.limits(HEALTHY).effort
        found.append(allowed)
        assert torch.equal(state.update_memory(allowed.clamp(max=wanted), 0.02), state.active)
    return torch.stack(found)


def test_a_motor_is_cold_until_it_has_given_a_torque_since_the_onset():
    state = state_of(4, scenario="derating", severity={"derating": 1.0}, onset=2)
    lowered = []
    for step in range(1, 5):
        go_to(state, step)
        state.update_memory(torch.full((4, 6), 1000.0), 0.02)  # so hot that one env step is enough
        lowered.append(float(state.limits(HEALTHY).effort.min()) < 20.0)
    assert lowered == [False, False, True, True]


def test_an_overloaded_motor_falls_to_its_continuous_torque_and_recovers():
    state = state_of(4, scenario="derating", severity={"derating": 5.0}, onset=1)
    go_to(state, 1)
    assert state.depends_on_torque
    limit, on = overloaded(20.0, 120.0, state), state.live_fault("derating").on
    assert (limit[:, ~on] == 20.0).all()
    faulty = limit[:, on]
    # it heats up by 16 / T until half of the heat is reached, and nothing is lost before
    begins = (faulty[:, 0] < 20.0).int().argmax() * 0.02
    assert float(begins) == pytest.approx(-Derating.time_constant * math.log(1.0 - 0.5 / 16.0), abs=0.05)
    assert (faulty[1:] <= faulty[:-1]).all()
    assert faulty[-1].tolist() == pytest.approx([5.0] * int(on.sum()), rel=0.01)
    cool = overloaded(0.0, 60.0, state, step=6002)[:, on]
    assert (cool[1:] >= cool[:-1]).all()
    # from a heat of 1 it takes T ln 2 to half of it
    again = (cool[:, 0] == 20.0).int().argmax() * 0.02
    assert float(again) == pytest.approx(Derating.time_constant * math.log(2.0), abs=0.3)


def test_a_motor_below_its_continuous_torque_stays_whole_and_each_fault_starts_cold():
    state = state_of(4, scenario="derating", severity={"derating": 5.0}, onset=1)
    go_to(state, 1)
    assert overloaded(3.5, 58.0, state).min() == 20.0  # 0.49 of the heat
    assert overloaded(20.0, 1.9, state, step=2902).min() < 20.0
    assert state.update_memory(torch.zeros(4, 6), 0.02).all()
    state.reset(torch.arange(4))
    go_to(state, 1)
    assert state.limits(HEALTHY).effort.min() == 20.0
    assert not state_of(1, scenario="effort").depends_on_torque
    # a weak motor's continuous torque is never more than what it has
    weak = state_of(4, scenario="derating+effort", severity={"derating": 9.0}, onset=1)
    go_to(weak, 1)
    assert overloaded(20.0, 60.0, weak).min() == 5.0


# Random123's kat_vectors, philox4x32 10 rounds: counter, key, first two words of the answer
KNOWN_ANSWERS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB)),
]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN_ANSWERS)
def test_philox_gives_the_published_answers(counter, key, answer):
    words = tuple(torch.tensor([word]) for word in counter)
    assert int(philox(key[0] | key[1] << 32, words)) == answer[0]
    assert tuple(int(word) for word in philox_pair(key[0] | key[1] << 32, words)) == answer


def test_random_numbers_depend_on_joint_step_and_episode_alone():
    few, many, sample = state_of(4), state_of(64), state_of(5000)
    seen = []
    for _ in range(2):
        for step in range(5):
            go_to(few, step)
            seen.append(few.uniform("x").flatten())
        go_to(many, 4)
        assert torch.equal(few.uniform("x"), many.uniform("x")[:4])
        for state in (few, many):
            state.reset(torch.arange(state.num_envs))
    assert len(torch.cat(seen).unique()) == 2 * 5 * 4 * len(JOINTS)  # no number twice
    assert torch.equal(few.normal("x"), few.normal("x"))
    assert not torch.equal(few.uniform("x"), few.uniform("y"))
    numbers = sample.normal("x")
    assert float(numbers.mean()) == pytest.approx(0.0, abs=0.02)
    assert float(numbers.std()) == pytest.approx(1.0, abs=0.02)
    assert float((numbers.abs() > 1.96).float().mean()) == pytest.approx(0.05, abs=0.005)


def test_of_two_faults_of_a_kind_on_one_joint_the_last_of_the_plan_counts():
    severity = {"effort": {"uniform": [1.0, 9.0]}}
    state = state_of(50, severity=severity, scenario="effort", num_joints=(6, 6), num_faults=(2, 2), onset=1)
    go_to(state, 1)
    assert not torch.equal(state.plan.severity[:, 0], state.plan.severity[:, 1])
    assert torch.equal(state.live_fault("effort").severity, state.plan.severity[:, 1, 0])


def test_a_window_stays_where_it_set_in_when_a_second_fault_joins_the_first():
    healthy = JointLimits(*(torch.full((50, 6), value) for value in (-1.0, 1.0, 20.0, 10.0)))
    state = state_of(50, scenario="rom", num_joints=(3, 6), num_faults=(2, 2), onset_range=(1, 20))
    lower, was = healthy.lower, state.has_joint_fault
    for step in range(1, 22):
        go_to(state, step, 0.2)
        before, lower = lower, state.limits(healthy).lower
        assert torch.equal(lower[was], before[was])
        was = state.has_joint_fault
    assert (state.plan.joints.sum(1) == 2).any()  # joints with two faults
