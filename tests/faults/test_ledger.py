# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A ledger holds what happened, its replay repeats it to the bit, and a ledger that does not fit is refused."""

import contextlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from recorded_ledger import ENVS, EPISODES, HEALTHY, JOINTS, LENGTH, MIXED, differing, record
from umc.faults import (
    NEVER,
    FaultCases,
    FaultPlan,
    FaultReplay,
    FaultSchedule,
    FaultState,
    JointLimits,
    LedgerWriter,
    read_ledger,
)
from umc.faults.replay import canonical_plan
from umc.utils.errors import UmcError


def schedule_of(**changes) -> FaultSchedule:
    """A schedule of faults of every sort."""
    return FaultSchedule(JOINTS, **MIXED | changes)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "ledger.jsonl"


def columns(plan: FaultPlan, order: list[int]) -> FaultPlan:
    return replace(plan, **{name: getattr(plan, name)[..., order] for name in ("joints", "severity", "placement")})


def episode_of(source, number: int, envs: Sequence[int] = range(ENVS)) -> FaultPlan:
    ids = torch.tensor(envs)
    return source.draw(ids, torch.full_like(ids, number))


def edit(path, number: int, change) -> None:
    """Rewrites one line."""
    lines = path.read_text().splitlines()
    content = json.loads(lines[number])
    change(content)
    lines[number] = json.dumps(content)
    path.write_text("\n".join(lines) + "\n")


def test_a_replay_does_to_joints_and_sensors_what_the_recording_did(path):
    plans = record(path, schedule_of())
    recorded = FaultState(schedule_of(), ENVS)
    replayed = FaultState(FaultReplay(path, JOINTS), ENVS)
    for _ in plans:
        for state in (recorded, replayed):
            state.reset(torch.arange(ENVS))
        for step in range(1, 60):
            for state in (recorded, replayed):
                state.advance(torch.full((ENVS,), step), torch.full((ENVS, 12), 0.3))
            for name in ("live", "detected", "joint_mask", "fault_flag", "faults_on"):
                assert torch.equal(getattr(recorded, name), getattr(replayed, name))
            a, b = recorded.limits(HEALTHY), replayed.limits(HEALTHY)
            assert all(torch.equal(limit, getattr(b, name)) for name, limit in vars(a).items())
            assert torch.equal(recorded.normal("noise/position"), replayed.normal("noise/position"))


def test_what_the_ledger_does_not_hold_is_drawn_as_the_recording_run_would_have(path):
    record(path, schedule_of())
    schedule = schedule_of()
    replay = FaultReplay(path, JOINTS)
    assert differing(episode_of(replay, EPISODES), episode_of(schedule, EPISODES)) == []
    assert differing(episode_of(replay, 1000, range(5000)), episode_of(schedule, 1000, range(5000))) == []
    mixed = episode_of(replay, EPISODES - 1, range(2 * ENVS))  # half of the envs are new
    assert differing(canonical_plan(mixed), canonical_plan(episode_of(schedule, EPISODES - 1, range(2 * ENVS)))) == []
    empty = path.with_name("empty.jsonl")
    LedgerWriter(empty, FaultState(schedule, ENVS), schedule).close()
    ledger = read_ledger(empty)
    assert ledger.episodes == {}
    assert differing(episode_of(FaultReplay(ledger, JOINTS), 4), episode_of(schedule, 4)) == []


@pytest.mark.parametrize(
    "kwargs", [{"scenario": (6, "mine", "dead+rom")}, {"joint_names": JOINTS[3:9], "num_joints": (1, 3)}]
)
def test_assigned_scenarios_and_chosen_joints_go_on_in_a_replay(path, kwargs):
    if "joint_names" in kwargs:
        kwargs["severity"] = {**MIXED["severity"], "rom": 0.3}
    record(path, schedule_of(**kwargs))
    expected = episode_of(schedule_of(**kwargs), 9)
    assert differing(episode_of(FaultReplay(path, JOINTS), 9), expected) == []


def test_joints_in_another_order_are_found_by_name(path):
    plans = record(path, schedule_of())
    order = list(reversed(range(12)))
    names = [JOINTS[index] for index in order]
    replay = FaultReplay(path, names)
    assert any((plan.kinds.any(1).any(0)).all() for plan in plans)  # every kind occurs
    envs = torch.randperm(ENVS).tolist()
    assert torch.equal(episode_of(FaultReplay(path, JOINTS), 1, envs).severity, canonical_plan(plans[1]).severity[envs])
    assert differing(episode_of(replay, 1), columns(canonical_plan(plans[1]), order)) == []
    beyond = episode_of(schedule_of(), 9)
    assert differing(episode_of(replay, 9), columns(beyond, order)) == []
    # noise follows its joint, too
    a, b = FaultState(schedule_of(), ENVS), FaultState(replay, ENVS)
    assert torch.equal(a.uniform("noise"), b.uniform("noise")[:, order])
    # and a ledger of the replay is as good as the first
    again = path.with_name("again.jsonl")
    state = FaultState(replay, ENVS)
    writer = LedgerWriter(again, state, replay.schedule)
    state.reset(torch.arange(ENVS))
    writer.record_plans(torch.arange(ENVS), torch.zeros(ENVS))
    second = FaultReplay(again, JOINTS)
    assert differing(episode_of(second, 0), canonical_plan(plans[0])) == []
    assert differing(episode_of(second, 9), beyond) == []


def test_the_ledger_says_what_happened(path):
    plans = record(path, schedule_of())
    ledger = read_ledger(path)
    header = ledger.header
    assert (header.robot, header.joint_names, header.num_envs, header.step_dt) == ("a1", tuple(JOINTS), ENVS, 0.02)
    assert header.kinds["effort"] == "[N*m]"
    assert list(ledger.episodes) == [(env, number) for number in range(EPISODES) for env in range(ENVS)]
    state = FaultState(schedule_of(), ENVS)
    for number, plan in enumerate(plans):
        state.reset(torch.arange(ENVS))
        for step in range(1, LENGTH):
            state.advance(torch.full((ENVS,), step), torch.full((ENVS, 12), 0.01 * step))
            limits = state.limits(HEALTHY)
            for env in range(ENVS):
                episode = ledger.episodes[env, number]
                on = [switch.on for switch in episode.switches if switch.step <= step]
                assert (on[-1] if on else ()) == tuple(state.faults_on[env].nonzero().flatten().tolist())
                limited = episode.limits_at(step)
                faulty = state.has_joint_fault[env].nonzero().flatten().tolist()
                assert set(limited) == {JOINTS[joint] for joint in faulty}
                for name, able in limited.items():
                    joint = JOINTS.index(name)
                    for what, limit in vars(limits).items():
                        assert torch.tensor(getattr(able, what)) == limit[env, joint]
        for env in range(ENVS):
            episode = ledger.episodes[env, number]
            assert episode.length == (env + LENGTH if number + 1 < EPISODES else None)
            assert [len(fault.joints) for fault in episode.faults] == canonical_plan(plan).joints[env].sum(1).tolist()
            assert [fault.onset or NEVER for fault in episode.faults] == plan.onset[env].tolist()


def test_a_replay_repeats_groups_and_draws_further_episodes_of_them(path):
    groups = {"left": [".L_.*"], "right": [".R_.*"]}
    settings = {"scenario": "power_loss", "joint_groups": groups, "num_joints": (1, 1), "onset_range": (1, 9)}
    schedule = FaultSchedule(JOINTS, **settings)
    plans = record(path, schedule)
    replay = FaultReplay(path, JOINTS)
    for number in (*range(len(plans)), 77):
        expected = canonical_plan(episode_of(schedule, number))
        assert differing(canonical_plan(episode_of(replay, number)), expected) == []
        assert set(expected.joints.sum(2).flatten().tolist()) == {6}
    assert "joint_groups" not in FaultSchedule(JOINTS, severity={"rom": 0.3, "effort": 1.0, "velocity": 1.0}).settings


def test_damping_and_friction_are_in_the_ledger_where_a_fault_adds_some(path):
    settings = {"severity": {"braking": {"uniform": [1.0, 5.0]}, "friction": 0.1}, "onset_range": (1, 9), "seed": 1}
    record(path, FaultSchedule(JOINTS, ratios={"braking": 1.0, "friction": 1.0, "locked": 1.0}, **settings))
    found = set()
    for episode in read_ledger(path).episodes.values():
        fault, limits = episode.faults[0], episode.limits_at(LENGTH)
        for kind, severity in fault.severity.items():
            found.add(kind)
            for joint, value in severity.items():
                damping = value if kind == "braking" else 0.0
                friction = value if kind == "friction" else 0.0
                assert (limits[joint].damping, limits[joint].friction) == (damping, friction)
                assert limits[joint].effort == (0.0 if kind == "braking" else 20.0)
    assert found == {"braking", "friction", "locked"}
    lines = path.read_text().splitlines()[1:]
    assert not any('"damping":[0.0' in line or '"friction":[0.0' in line for line in lines)
    switch = next(number for number, line in enumerate(lines, start=1) if '"friction":[' in line)
    edit(path, switch, lambda content: content["friction"].append(1.0))
    with pytest.raises(UmcError, match="damping and friction have a number for each joint"):
        read_ledger(path)


def test_the_largest_float32_number_comes_back(path):
    """PhysX has it as the torque limit of a joint without one."""
    largest = torch.finfo(torch.float32).max
    state = FaultState(FaultSchedule(["a"], scenario="locked", num_joints=(1, 1), onset=1), 1)
    writer = LedgerWriter(path, state)
    state.reset(torch.arange(1))
    writer.record_plans(torch.arange(1), torch.zeros(1))
    changed = state.advance(torch.ones(1, dtype=torch.long), torch.zeros(1, 1))
    healthy = JointLimits(*(torch.full((1, 1), value) for value in (-1.0, 1.0, largest, 10.0)))
    writer.record_switches(changed, state.limits(healthy))
    assert read_ledger(path).episodes[0, 0].limits_at(1)["a"].effort == largest
    edit(path, 2, lambda line: line.update(effort=[1e39]))
    with pytest.raises(UmcError, match=r"1e\+39 is no float32 number"):
        read_ledger(path)


def test_rows_are_a_table(path):
    record(path, schedule_of())
    ledger = read_ledger(path)
    rows = list(ledger.rows())
    assert len({tuple(sorted(row)) for row in rows}) == 1  # the same columns everywhere
    hits = sum(len(fault.joints) * len(fault.severity) for one in ledger.episodes.values() for fault in one.faults)
    assert len(rows) == hits + sum(not any(fault.joints for fault in one.faults) for one in ledger.episodes.values())
    assert {row["scenario"] for row in rows} <= set(MIXED["ratios"])
    for row in rows:
        assert row["set_in"] in (None, row["onset"])
        if row["kind"] is not None:
            fault = ledger.episodes[row["env"], row["episode"]].faults[row["fault"]]
            assert row["severity"] == fault.severity[row["kind"]][row["joint"]]


def test_a_replay_of_cases_has_the_faults_and_random_numbers_of_their_members(path):
    all_envs, again = torch.arange(ENVS), path.with_name("again.jsonl")
    two = {"scenario": "dead", "seed": 2**63 + 1, "num_faults": (2, 2)}
    cases = FaultCases(JOINTS, [{"scenario": "dead", "seed": 5}, two], ENVS)
    recorded, late, expected = FaultState(cases, ENVS), torch.full((ENVS,), 300), []
    writer = LedgerWriter(path, recorded)
    for batch in range(2):
        cases.assign(all_envs % 2, all_envs // 2 + batch)
        recorded.reset(all_envs)
        writer.record_plans(all_envs, all_envs)
        expected.append((recorded.normal("x"), recorded.plan.is_on(late)))
    for source in (path, again):  # and a replay of the replay
        replayed = FaultState(FaultReplay(source, JOINTS), ENVS)
        copy = LedgerWriter(path.with_name(f"copy_of_{source.name}"), replayed)
        for numbers, on in expected:
            replayed.reset(all_envs)
            copy.record_plans(all_envs, all_envs)
            assert torch.equal(replayed.normal("x"), numbers)
            assert torch.equal(replayed.plan.is_on(late), on)
        copy.close()
        copy.path.rename(again)


CURRICULUM = "its faults followed a curriculum"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda schedule: schedule.set_ratios({"dead+locked": 1}), CURRICULUM),
        (lambda schedule: schedule.set_level(0.5), CURRICULUM),
        (None, "its faults were not drawn from a schedule"),
        (
            lambda header: header["schedule"].update(num_joints=[4, 4]),
            "its faults are not those that this UMC draws",
        ),
    ],
    ids=["odds", "level", "no schedule", "other draws"],
)
def test_a_ledger_that_cannot_be_drawn_again_is_replayed_but_not_continued(path, change, reason):
    plans = record(path, schedule_of(), change=change if reason == CURRICULUM else None)
    if reason != CURRICULUM:
        edit(path, 0, change or (lambda header: header.update(schedule=None)))
    replay = FaultReplay(path, JOINTS)
    assert differing(episode_of(replay, 2), canonical_plan(plans[2])) == []
    with pytest.raises(UmcError, match=f"holds no episode 3 of env 0, and {reason}"):
        episode_of(replay, 3)


def test_a_killed_writer_leaves_complete_lines_and_a_half_line_is_refused_or_left_out(path):
    state = FaultState(FaultSchedule(["a", "b", "c"], scenario="dead", num_joints=(1, 2)), 4)
    writer = LedgerWriter(path, state)
    for number in range(3):
        state.reset(torch.arange(4))
        writer.record_plans(torch.arange(4), torch.ones(4, dtype=torch.long))
        assert list(read_ledger(path).episodes)[-1] == (3, number)  # nothing waits in the process's buffer
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UmcError, match=r"ends in half a line \(line \d+\): its writer was killed"):
        read_ledger(path)
    assert len(read_ledger(path, allow_truncated=True).episodes) == 11


def test_a_resumed_training_goes_on_in_another_ledger(path):
    """The first reset draws episode 0; then the counters of the checkpoint come back."""
    state = FaultState(schedule_of(), ENVS)
    writer, every = LedgerWriter(path, state, state.source, robot="a1", step_dt=0.02), torch.arange(ENVS)
    for counter in (None, 56, None):
        if counter is not None:
            state.episode.fill_(counter)
        state.reset(every)
        writer.record_plans(every, every + LENGTH)
    episodes = read_ledger(path).episodes
    assert [episodes[3, number].length for number in (0, 57, 58)] == [None, 3 + LENGTH, None]


def test_a_ledger_is_never_written_over(path):
    record(path, schedule_of())
    before = path.read_bytes()
    with pytest.raises(UmcError, match="is there already; delete it"):
        record(path, schedule_of())
    assert path.read_bytes() == before


def test_a_full_disk_is_one_error_line(path):
    writer = LedgerWriter(path, FaultState(FaultSchedule(["a", "b"], scenario="dead", num_joints=(1, 2)), 4))
    # what is left in its buffer cannot be written when it is closed, either
    with (
        contextlib.suppress(OSError),
        open("/dev/full", "w") as writer._file,
        pytest.raises(UmcError, match=r"cannot write the ledger .*: No space left on device"),
    ):
        writer.record_plans(torch.arange(4), torch.zeros(4))


EDITS = [
    (lambda path: path.unlink(), "cannot read .*: No such file"),
    (lambda path: path.write_text(""), "is empty"),
    (lambda path: path.write_bytes(b"\xff\xfe\x00\n"), "is not UTF-8 text"),
    (lambda path: path.write_text("hello\n"), "line 1 of the ledger .* is not valid JSON"),
    (lambda path: path.write_text('{"a": 1}\n'), "is not a fault ledger"),
    (lambda path: path.write_text(path.read_text() + '{"switch":[99,0,1],"on":[]}\n'), "no plan of .* env 99"),
    (lambda path: path.write_text(path.read_text() + '{"strange":1}\n'), "unknown entry strange"),
]
"""Damages of the file, and how they are refused."""
FAULTY = 1
"""A line whose first fault has joints and kinds."""
LINES = [
    (0, lambda line: line.update(umc_fault_ledger=99), "has format version 99"),
    (0, lambda line: line.__delitem__("joints"), r"header .* \(joints is missing; add it\)"),
    (0, lambda line: line["kinds"].update(rust="[-]"), "unknown kind of fault 'rust'"),
    (0, lambda line: line["kinds"].update(rom="[rad]"), r"gives 'rom' in \[rad\]"),
    (0, lambda line: line["schedule"].update(duty=7), "schedule .* is invalid: duty"),
    (0, lambda line: line.update(schedule=7), r"header .* \(schedule is 7"),
    (0, lambda line: line.update(num_envs=2), "line 4 .*env 2 is not one of 2"),
    (0, lambda line: line.update(extra=1), r"header .* \(extra is 1; extra inputs are not permitted\)"),
    (0, lambda line: line["schedule"]["nominal"].update(upper=[1.0]), "header .* does not have a limit for each joint"),
    (FAULTY, lambda line: line["faults"][0].update(onset="x"), "onset is 'x'"),
    (FAULTY, lambda line: line["faults"][0].update(onset=math.nan), "NaN is not finite"),
    (FAULTY, lambda line: line["faults"][0].update(end=1), "end 1 is not after onset"),
    (FAULTY, lambda line: line["faults"][0].update(detected="no"), "detected is 'no'"),
    (FAULTY, lambda line: line["faults"][0].update(kinds={"effort": -5.0}), "severity -5 of 'effort' must be above 0"),
    (FAULTY, lambda line: line["faults"][0].update(kinds={"effort": 1e30}), "severity 1e.30 of 'effort' must be"),
    (FAULTY, lambda line: line["faults"][0].update(joints=[99, 1, 2]), "joint 99 is not one of 12"),
    (FAULTY, lambda line: line["faults"][0].update(scenario=99), "scenario 99 is not one of 6"),
    (FAULTY, lambda line: line["faults"][0].update(scenario=eval("[" * 65 + "]" * 65)), "nested more than 64"),
    (FAULTY, lambda line: line.update(plan=[0, 2**31]), "plan.1 is 2147483648"),
    (5, lambda line: line.update(faults=[]), r"line 6 of the ledger .* is invalid \(0 faults"),
    (5, lambda line: line.update(plan=[0, 0]), "line 6 .*planned twice"),
    (5, lambda line: line.update(draws=[1]), r"line 6 .*\(draws.1 is missing; add it\)"),
]
"""Lines, what is changed in them, and how it is refused."""
OTHERS = [
    (JOINTS[:8], {}, r"another robot \('a1', 12 joints; this one has 8\): one of them lacks RL_calf_joint"),
    ([*JOINTS[:11], "tail"], {}, "another robot"),
    (JOINTS, {"step_dt": 0.01}, r"counts env steps of 0\.02 s, this environment takes 0\.01 s"),
    (JOINTS, {"episode_length": 15}, "has an onset at step 20, but episodes end at step 15"),
]
"""Joints and settings of another environment, and how they are refused."""


@pytest.mark.parametrize(
    ("damage", "names", "kwargs", "message"),
    [
        *((damage, JOINTS, {}, message) for damage, message in EDITS),
        *(
            (lambda path, n=n, change=change: edit(path, n, change), JOINTS, {}, message)
            for n, change, message in LINES
        ),
        *((lambda path: None, *other) for other in OTHERS),
    ],
)
def test_an_unusable_ledger_is_refused_in_one_line(path, damage, names, kwargs, message):
    record(path, schedule_of())
    damage(path)
    with pytest.raises(UmcError, match=message) as error:
        FaultReplay(path, names, **kwargs)
    assert "\n" not in str(error.value)
