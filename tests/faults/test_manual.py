# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Manual faults start and end on request, are recorded and replayed, and change no drawn fault."""

from dataclasses import fields

import pytest
import torch
from umc.faults import (
    MANUAL_FAULT,
    FaultPlan,
    FaultReplay,
    FaultSchedule,
    FaultState,
    JointLimits,
    LedgerWriter,
    clear_faults,
    find_kind,
    inject_fault,
    read_ledger,
)
from umc.faults.apply import SensorChannel
from umc.faults.ledger_lines import MOST_FAULTS
from umc.utils.errors import UmcError

JOINTS = [f"joint_{index}" for index in range(5)]
ENVS = 3
SEVERITY = {"rom": 0.3, "effort": 5.0, "velocity": 3.0}
HEALTHY = JointLimits(*(torch.full((ENVS, 5), value) for value in (-1.0, 1.0, 20.0, 10.0)))
ALL_ENVS = torch.arange(ENVS)


class Run:
    """A state that is stepped, and the ledger of it."""

    def __init__(self, path=None, source=None, **schedule) -> None:
        self.schedule = FaultSchedule(JOINTS, severity=SEVERITY, seed=3, **(schedule or {"scenario": "normal"}))
        self.state = FaultState(source or self.schedule, ENVS)
        self.writer = None if path is None else LedgerWriter(path, self.state, self.schedule, step_dt=0.02)
        self.now = 0
        self.reset()

    def reset(self) -> None:
        self.state.reset(ALL_ENVS)
        if self.writer is not None:
            self.writer.record_plans(ALL_ENVS, torch.full((ENVS,), self.now))
        self.now = 0

    def go(self, steps: int = 1) -> list:
        """What is live after each step."""
        seen = []
        for _ in range(steps):
            self.now += 1
            changed = self.state.advance(torch.full((ENVS,), self.now), torch.full((ENVS, 5), 0.01 * self.now))
            if self.writer is not None:
                self.writer.record_switches(changed, self.state.limits(HEALTHY))
            seen.append(snapshot(self.state))
        return seen

    def hit(self, env: int, joint: int, kind: str, severity: float = 0.0, **kwargs) -> None:
        faults = inject_fault(self.state, env, joint, find_kind(kind), severity, **kwargs)
        if self.writer is not None:
            self.writer.record_changes(env, faults)

    def heal(self, env: int, joint: int | None = None) -> None:
        faults = clear_faults(self.state, env, joint)
        if self.writer is not None:
            self.writer.record_changes(env, faults)


def snapshot(state: FaultState) -> dict:
    """All that anybody reads, by the names of kinds."""
    limits = state.limits(HEALTHY)
    live = {
        kind.name: state.live_fault(kind.name).on.tolist()
        for kind in state.kinds
        if state.live_fault(kind.name).on.any()
    }
    severity = {name: (state.live_fault(name).severity * state.live_fault(name).on).tolist() for name in live}
    age = {name: state.live_fault(name).age.tolist() for name in live}
    seen = {"mask": state.joint_mask.tolist(), "flag": state.fault_flag.tolist()}
    return {"live": live, "severity": severity, "age": age, **seen, **{k: v.tolist() for k, v in vars(limits).items()}}


def plan_of(state: FaultState) -> dict:
    """The drawn faults, without the manual ones."""
    drawn = state.source.num_faults
    return {field.name: getattr(state.plan, field.name)[:, :drawn] for field in fields(FaultPlan)}


def test_a_joint_breaks_with_the_next_step_and_heals_with_the_next():
    run = Run()
    run.go(4)
    run.hit(1, 2, "effort", 4.0)
    assert not run.state.live.any()  # nothing changes in the middle of a step
    run.go(3)
    effort = run.state.limits(HEALTHY).effort
    assert effort[1, 2] == 4.0
    assert effort.sum() == 15 * 20.0 - 16.0
    assert run.state.live_fault("effort").on.nonzero().tolist() == [[1, 2]]
    assert int(run.state.live_fault("effort").onset[1, 2]) == 5
    assert run.state.active.tolist() == [False, True, False]
    run.heal(1, 2)
    assert run.state.live.any()
    run.go()
    assert not run.state.live.any()
    assert torch.equal(run.state.limits(HEALTHY).effort, HEALTHY.effort)


@pytest.mark.parametrize("order", [("dead", "rom"), ("rom", "dead")])
def test_mask_and_flag_follow_the_papers_rule_in_any_order_of_faults_unless_given(order):
    run = Run()
    run.go()
    run.hit(0, 1, order[0], 0.5)
    run.go()
    assert run.state.joint_mask.any() == (order[0] == "dead")
    assert (run.state.fault_flag == -1).all()
    run.hit(0, 1, order[1], 0.5)
    run.hit(0, 3, "rom", 0.5)  # a fault of another joint changes nothing
    run.go()
    assert run.state.joint_mask.nonzero().tolist() == [[0, 1]]
    assert run.state.fault_flag[:, 0].tolist() == [1.0, -1.0, -1.0]
    assert run.state.detected.nonzero().tolist() == [[0, 1]]
    run.hit(1, 1, "rom", 0.5, detected=True)  # the caller decides
    run.go()
    assert run.state.fault_flag[1, 0] == 1.0


def test_a_second_fault_of_a_kind_replaces_the_first():
    run = Run()
    run.go()
    run.hit(0, 0, "effort", 4.0)
    run.hit(0, 0, "effort", 6.0)  # in the same step: the first never sets in
    run.hit(0, 1, "rom", 0.5)
    run.go(60)
    limits = run.state.limits(HEALTHY)
    assert limits.effort[0, 0] == 6.0
    assert limits.upper[0, 1] - limits.lower[0, 1] == pytest.approx(1.0)
    assert limits.lower[0, 1] < 0.02 < limits.upper[0, 1]  # the position at its onset
    run.hit(0, 0, "effort", 9.0)  # weaker than the one before
    run.hit(0, 1, "rom", 0.05)
    run.go()
    narrow = run.state.limits(HEALTHY)
    assert narrow.effort[0, 0] == 9.0
    assert int(run.state.live_fault("effort").onset[0, 0]) == 2  # it has been weak since
    assert narrow.lower[0, 1] < 0.62 < narrow.upper[0, 1]  # no kick: the joint has moved since
    run.go(5)
    assert torch.equal(run.state.limits(HEALTHY).lower, narrow.lower)
    run.heal(0)
    run.go()
    assert not run.state.live.any()


def test_kinds_act_in_their_own_order():
    run = Run(scenario="rom", num_joints=(5, 5), onset=1)
    run.go()
    run.hit(0, 0, "locked")
    run.hit(0, 0, "velocity", 2.0)
    run.go()
    limits = run.state.limits(HEALTHY)
    assert limits.lower[0, 0] == limits.upper[0, 0] == pytest.approx(0.02)  # locked where it was, inside its window
    assert limits.lower[0, 1] < limits.upper[0, 1]
    assert limits.velocity[0].tolist() == [2.0, 10, 10, 10, 10]
    assert [kind.name for kind in run.state.kinds] == ["rom", "velocity", "locked"]


def test_one_joint_of_a_drawn_fault_heals_and_the_others_stay_broken():
    run = Run(scenario="dead+rom", num_joints=(3, 3), onset=(5, 5), period=20, duty=0.5)
    run.go(6)
    joints = run.state.joints[1].nonzero().flatten().tolist()
    before = run.state.limits(HEALTHY)
    run.heal(1, joints[1])
    run.go()
    assert run.state.joint_mask[1].nonzero().flatten().tolist() == [joints[0], joints[2]]
    after = run.state.limits(HEALTHY)
    for joint in joints:
        healed = joint == joints[1]
        assert (after.lower[1, joint] == -1.0) == healed
        assert (after.lower[1, joint] == before.lower[1, joint]) == (not healed)
    assert run.state.joint_mask[[0, 2]].sum() == 6
    run.go(9)  # off
    assert not run.state.live.any()
    run.go(12)  # and on again
    assert run.state.joint_mask.sum(1).tolist() == [3, 2, 3]


def test_no_fault_is_active_once_all_joints_with_overlapping_faults_are_healed():
    run = Run(scenario="power_loss", num_joints=(2, 2), onset=2)
    run.go(3)
    first, second = run.state.joints[0].nonzero().flatten().tolist()
    run.hit(0, first, "locked")
    run.go()
    for joint in (first, second):
        run.heal(0, joint)
    run.go()
    assert not run.state.live[0].any()
    assert run.state.active.tolist() == [False, True, True]


def test_more_faults_than_a_ledger_holds_are_refused(tmp_path):
    run = Run(tmp_path / "ledger.jsonl")
    run.go()
    for _ in range(MOST_FAULTS - run.schedule.num_faults):
        run.hit(1, 0, "locked")
        run.go()
    with pytest.raises(UmcError, match="env 1 would have 257 faults in this episode, 256 at most; reset it"):
        run.hit(1, 0, "locked")
    run.hit(0, 0, "locked")
    run.writer.close()
    assert len(read_ledger(tmp_path / "ledger.jsonl").episodes[1, 0].faults) == MOST_FAULTS


def test_healing_all_joints_keeps_later_faults():
    run = Run(ratios={"dead": 1}, num_joints=(1, 1), num_faults=(2, 2), onset=(3, 30))
    both = run.state.plan.onset.tolist()
    env = next(index for index, onsets in enumerate(both) if sorted(onsets) == [3, 30])
    run.go(4)
    run.hit(env, 0, "effort", 2.0)
    run.go()
    run.heal(env)
    run.go()
    assert not run.state.live[env].any()
    run.go(24)
    assert run.state.joint_mask[env].sum() == 1


def test_a_reset_heals_and_manual_faults_change_no_later_draw():
    settings = {"ratios": (1, 1, 1, 1), "num_faults": (1, 2), "onset_range": (1, 9)}
    touched, alone = Run(**settings), Run(**settings)
    for episode in range(4):
        for run in (touched, alone):
            run.go(3)
        if episode < 3:
            touched.heal(2)
            for kind in ("noise", "locked", "dead"):
                touched.hit(episode % 2, 1, kind, 0.1)
        for run in (touched, alone):
            run.go(3)
        same = snapshot(touched.state) == snapshot(alone.state)
        assert same == (episode == 3)
        assert torch.equal(touched.state.normal("any"), alone.state.normal("any"))
        for run in (touched, alone):
            run.reset()
        assert not touched.state.live.any()
        drawn, expected = plan_of(touched.state), plan_of(alone.state)
        columns = [[kind.name for kind in touched.state.kinds].index(kind.name) for kind in alone.state.kinds]
        for name, value in expected.items():
            found = drawn[name][:, :, columns] if name in ("kinds", "severity") else drawn[name]
            assert torch.equal(found, value), name
        assert not touched.state.plan.joints[:, touched.state.source.num_faults :].any()


def play(run: Run, manual: bool) -> list:
    """Run three short episodes, with manual faults or without."""
    seen = []
    for episode in range(3):
        seen += run.go(4)
        if manual and episode < 2:
            run.hit(0, 1, "rom", 0.5)
            run.hit(0, 1, "dead")
            run.hit(1, 3, "noise", 0.1)
            run.heal(2, run.state.joints[2].nonzero().flatten().tolist()[0])
        seen += run.go(3)
        if manual and episode < 2:
            run.hit(0, 1, "rom", 0.9)
            run.heal(1, 3)
            run.heal(2)
        seen += run.go(3)
        run.reset()
    return seen


@pytest.fixture
def recorded(tmp_path):
    """A ledger with manual faults, and what was seen in its run."""
    path = tmp_path / "ledger.jsonl"
    run = Run(path, scenario="effort", num_joints=(2, 2), onset=2)
    return path, play(run, manual=True)


def test_the_ledger_records_manual_faults(recorded):
    ledger = read_ledger(recorded[0])
    first = ledger.episodes[0, 0]
    made = [fault for fault in first.faults if fault.scenario.name == MANUAL_FAULT]
    assert [(f.joints, f.severity, f.onset, f.end, f.detected) for f in made] == [
        (("joint_1",), {"rom": {"joint_1": 0.5}}, 5, 8, False),
        (("joint_1",), {"dead": {"joint_1": 0.0}}, 5, None, True),
        (("joint_1",), {"rom": {"joint_1": pytest.approx(0.9)}}, 8, None, True),
    ]
    assert [switch.step for switch in first.switches] == [2, 5, 8]
    assert set(ledger.episodes[1, 0].switches[1].on) == {0, 1}
    assert {"rom", "dead", "noise"} == set(ledger.more_kinds)
    assert ledger.more_kinds["noise"] == "[rad]"
    assert "joint_1" in first.limits_at(9)
    rows = [row for row in ledger.rows() if row["scenario"] == MANUAL_FAULT and (row["env"], row["episode"]) == (0, 0)]
    assert [(row["kind"], row["set_in"]) for row in rows] == [("rom", 5), ("dead", 5), ("rom", 8)]
    assert first.drawn == first.faults[:1]
    assert ledger.episodes[0, 2].drawn is None


def test_a_replay_repeats_manual_faults(recorded, tmp_path):
    path, seen = recorded
    replay = FaultReplay(path, JOINTS)
    assert play(Run(source=replay), manual=False) == seen
    # the replay's own ledger is the same, and so is a replay of it
    again = tmp_path / "again.jsonl"
    run = Run(source=replay)
    run.writer = LedgerWriter(again, run.state, replay.schedule, step_dt=0.02)
    run.state.episode.fill_(-1)
    run.reset()
    assert play(run, manual=False) == seen
    assert play(Run(source=FaultReplay(again, JOINTS)), manual=False) == seen
    # what the ledger does not hold is drawn, without manual faults
    drawn = Run(scenario="effort", num_joints=(2, 2), onset=2).schedule
    envs, episode = torch.tensor([2, 1]), torch.tensor([40, 41])
    found, expected = replay.draw(envs, episode), drawn.draw(envs, episode)
    assert torch.equal(found.joints[:, :1], expected.joints)
    assert torch.equal(found.onset[:, :1], expected.onset)
    assert not found.joints[:, 1:].any()


@pytest.fixture
def healed(tmp_path):
    """A ledger in which one joint of a drawn fault gets two more of its kind and heals, and what was seen in its run.

    The others of the drawn fault stay broken.
    """
    path = tmp_path / "ledger.jsonl"
    run = Run(path, scenario="effort", joint_names=JOINTS[:2], num_joints=(2, 2), onset=2)
    seen = run.go(9)
    for severity in (4.0, 2.0):
        run.hit(0, 0, "effort", severity)
        seen += run.go(10)
    run.heal(0, 0)
    return path, seen + run.go(10)


def test_a_replay_repeats_what_was_injected_before_one_joint_of_a_drawn_fault_was_healed(healed):
    path, seen = healed
    efforts = [step["severity"].get("effort", [[0.0, 0.0]])[0] for step in seen]
    assert [effort[0] for effort in efforts] == [0.0] + 8 * [5.0] + 10 * [4.0] + 10 * [2.0] + 10 * [0.0]
    assert [effort[1] for effort in efforts] == [0.0] + 38 * [5.0]
    assert Run(source=FaultReplay(path, JOINTS)).go(39) == seen


@pytest.mark.parametrize("room", [0, 1, 125])
def test_a_joint_that_was_hit_often_heals_with_one_more_fault_or_nothing_changes(room, tmp_path):
    run = Run(tmp_path / "ledger.jsonl", scenario="effort", joint_names=JOINTS[:3], num_joints=(3, 3), onset=2)
    seen = run.go(3)
    for number in range(MOST_FAULTS - 1 - room):
        run.hit(0, 0, "effort", 6.0 + number % 7)
        seen += run.go()
    if room:
        run.heal(0, 0)
    else:
        before = {name: getattr(run.state.plan, name).clone() for name in vars(run.state.plan)}
        with pytest.raises(UmcError, match="env 0 would have 257 faults in this episode, 256 at most; reset it"):
            run.heal(0, 0)
        assert all(torch.equal(getattr(run.state.plan, name), value) for name, value in before.items())
    seen += run.go(3)
    assert run.state.live[0].any(dim=0).tolist() == [room == 0, True, True, False, False]
    assert run.state.num_manual == [MOST_FAULTS - 1 - room + (room > 0), 0, 0]
    assert Run(source=FaultReplay(tmp_path / "ledger.jsonl", JOINTS)).go(len(seen)) == seen


def test_both_parts_of_a_fault_that_was_healed_on_one_joint_have_set_in_together(healed):
    rows = [row for row in read_ledger(healed[0]).rows() if row["env"] == 0]
    found = {(row["joint"], row["severity"], row["onset"], row["end"], row["set_in"]) for row in rows}
    healed_ones = {("joint_0", 5.0, 2, 30, 2), ("joint_0", 4.0, 10, 20, 10), ("joint_0", 2.0, 20, 30, 20)}
    assert found == {("joint_1", 5.0, 2, None, 2), *healed_ones}


def test_a_fault_that_was_injected_in_the_last_env_step_leaves_a_ledger_that_can_be_replayed(tmp_path):
    path, length = tmp_path / "ledger.jsonl", 10
    run = Run(path, scenario="effort", num_joints=(2, 2), onset=2)
    seen = run.go(length - 1)
    run.hit(0, 0, "locked")
    run.reset()
    assert read_ledger(path).episodes[0, 0].faults[-1].onset == length
    replay = Run(source=FaultReplay(path, JOINTS, episode_length=length))
    assert replay.go(length - 1) == seen


def test_invalid_faults_are_refused_and_change_nothing():
    run = Run()
    run.go()
    for arguments, line in (
        ((7, 0, "rom", 0.3), "there is no env 7"),
        ((0, 9, "rom", 0.3), "there is no joint 9"),
        ((0, 0, "rom", 1.5), "severity 1.5 of 'rom'"),
    ):
        with pytest.raises(UmcError, match=line):
            run.hit(*arguments)
    assert run.state.plan.joints.shape[1] == 1
    state = FaultState(run.schedule, 1)
    with pytest.raises(UmcError, match="reset the environment first"):
        inject_fault(state, 0, 0, find_kind("dead"), 0.0)


def test_a_fault_that_is_made_and_taken_back_in_one_step_leaves_a_ledger_that_can_be_read(tmp_path):
    run = Run(tmp_path / "ledger.jsonl", scenario="effort", num_joints=(2, 2), onset=2)
    run.go(4)
    joint = int(run.state.joints[0].nonzero()[0])
    run.hit(0, joint, "rom", 0.5)
    run.heal(0, joint)
    run.go(2)
    assert not run.state.live[0, :, joint].any()
    read_ledger(tmp_path / "ledger.jsonl")


def test_a_manual_fault_freezes_the_reading_before_it_as_its_replay_does(tmp_path):
    def readings(run, manual):
        channel, found = SensorChannel("position", 0.02), []
        for step in range(7):
            if step:
                if manual and step == 4:
                    run.hit(1, 2, "frozen")
                run.go()
            found.append(channel.read(run.state, torch.full((ENVS, 5), float(step)))[1, 2].item())
        return found

    schedule = {"scenario": "effort", "num_joints": (2, 2), "onset": 2}
    recorded = readings(Run(tmp_path / "ledger.jsonl", **schedule), manual=True)
    assert recorded == [0, 1, 2, 3, 3, 3, 3]
    replay = Run(source=FaultReplay(tmp_path / "ledger.jsonl", JOINTS), **schedule)
    assert readings(replay, manual=False) == recorded


def test_a_kind_that_is_injected_changes_no_columns_of_the_planned_ones_and_no_later_reset():
    run = Run(scenario="effort", num_joints=(2, 2), onset=2)
    with torch.inference_mode():
        run.go()
        run.hit(0, 1, "rom", 0.5)
        run.go(2)
    assert run.state.live.shape[1] == 2
    assert torch.equal(run.state.live_planned, run.state.live_fault("effort").on[:, None])
    run.reset()
    run.go(3)
