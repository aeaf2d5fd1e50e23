# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Figures of a diagnosis, from recordings whose answers are known."""

import json
from dataclasses import replace

import numpy as np
import pytest
from umc.detection import JOINT_KINDS, SENSOR_KINDS
from umc.diagnosis import figures
from umc.diagnosis.faults import SIZES, KindRange
from umc.diagnosis.recording import Recording
from umc.diagnosis.report import MOTION, content, markdown, write_report
from umc.utils.errors import UmcError

DT = 0.02
STEPS, ROBOTS, JOINTS = 300, 4, ("a", "b", "c")
DEAD, BIAS = SENSOR_KINDS.index("dead"), SENSOR_KINDS.index("bias")
WEAK = JOINT_KINDS.index("effort")


def blank():
    shape = (STEPS, ROBOTS, len(JOINTS), 2)
    return Recording(
        step_dt=DT,
        joint_names=JOINTS,
        starts=np.zeros((STEPS, ROBOTS), dtype=bool),
        label=np.zeros(shape, dtype=np.int8),
        severity=np.zeros(shape, dtype=np.float16),
        faulty=np.zeros(shape, dtype=np.float16),
        kind=np.ones(shape, dtype=np.int8),
        reported=np.zeros(shape, dtype=bool),
        hinders=np.zeros(shape[:3], dtype=bool),
        speed=np.full((STEPS, ROBOTS), 0.5, dtype=np.float16),
    )


def fail(recording, robot, joint, fault, kind, onset, end, found=None, predicted=None, severity=0.2):
    """Let a joint fail, and be reported from a step on, as a kind."""
    recording.label[onset:end, robot, joint, fault] = kind + 1
    recording.severity[onset:end, robot, joint, fault] = severity
    if fault == 1:
        recording.hinders[onset:end, robot, joint] = True
    if found is not None:
        recording.reported[found:end, robot, joint, fault] = True
        recording.faulty[found - 2 : end, robot, joint, fault] = 0.95
        recording.kind[onset:end, robot, joint, fault] = (kind if predicted is None else predicted) + 1


def content_of(recording, held_out=()):
    return content(recording, figures.find_events(recording), {}, held_out)


@pytest.fixture
def recording():
    recording = blank()
    fail(recording, 0, 0, 0, DEAD, 50, 300, found=55)
    fail(recording, 1, 1, 0, BIAS, 50, 300, found=90, predicted=DEAD, severity=-0.3)
    fail(recording, 2, 2, 1, WEAK, 100, 300, severity=0.2)
    fail(recording, 2, 0, 1, WEAK, 100, 110, severity=0.2)  # over before it could be found
    return recording


def test_faults_and_their_delays_are_found(recording):
    events = figures.find_events(recording)
    assert sorted(
        zip(events.fault, events.kind, events.joint, events.onset, events.length, events.delay, strict=True)
    ) == [
        (0, DEAD, 0, 50, 250, 5),
        (0, BIAS, 1, 50, 250, 40),
        (1, WEAK, 0, 100, 10, -1),
        (1, WEAK, 2, 100, 200, -1),
    ]
    assert events.hinders.all()


def test_tables_and_roc_count_a_report_in_the_last_step_of_the_second():
    recording = blank()
    fail(recording, 0, 0, 0, DEAD, 50, 300, found=100)
    events = figures.find_events(recording)
    assert figures.found_within(events, 1.0, DT).value == 1.0
    assert events.reach.tolist() == pytest.approx([0.95], abs=1e-3)


def test_rates_count_what_lasted_or_was_found(recording):
    events = figures.find_events(recording)
    sensors, joints = events.where(events.fault == 0), events.where(events.fault == 1)
    assert [figures.found_within(sensors, t, DT).value for t in (0.1, 0.25, 0.5, 1.0)] == [0.5, 0.5, 0.5, 1.0]
    assert figures.found_within(joints, 0.1, DT).value == 0.0
    assert sorted(figures.delays(sensors, DT)) == pytest.approx([0.1, 0.8])
    assert figures.delays(joints, DT).tolist() == [np.inf]  # the one that lasted


def test_a_fault_that_hinders_nothing_is_told_apart():
    recording = blank()
    fail(recording, 0, 0, 1, WEAK, 50, 200)
    recording.hinders[:] = False
    recording.hinders[60:62, 0, 0] = True
    assert not figures.find_events(recording).hinders.any()
    recording.hinders[62, 0, 0] = True
    assert figures.find_events(recording).hinders.all()


def test_an_episode_that_begins_with_a_fault_after_one_with_a_fault_has_a_new_fault():
    recording = blank()
    recording.label[20:100, 0, 0, 0] = DEAD + 1
    recording.starts[60, 0] = True
    events = figures.find_events(recording)
    assert (events.onset.tolist(), events.length.tolist()) == ([20, 60], [40, 40])


def test_the_first_joint_that_is_reported_counts(recording):
    recording.reported[52:60, 1, 2, 0] = True  # another joint of robot 1, before its own
    found = figures.right_joint(recording)
    assert found.value == 0.5


def test_a_report_of_the_episode_before_does_not_hide_a_new_one():
    recording = blank()
    recording.reported[40:, 0, 1, 0] = True
    recording.starts[60, 0] = True
    recording.label[60:, 0, 1, 0] = DEAD + 1  # the next episode begins with a fault of this joint
    assert figures.right_joint(recording).value == 1.0


def test_false_alarms_are_those_of_healthy_robots(recording):
    recording.reported[10:20, 3, 1] = True  # sensor and joint at once: one alarm
    recording.reported[200:205, 3, 0, 1] = True
    recording.reported[120:130, 2, 1, 0] = True  # another joint of a robot with a fault
    count, minutes = figures.alarms(recording)
    assert count == 2
    assert minutes == pytest.approx((49 + 49 + 99 + 300) * DT / 60, rel=0.02)


def test_kinds_are_confused_where_they_are(recording):
    table = figures.confusion(figures.find_events(recording), 0, len(SENSOR_KINDS))
    assert table[DEAD].tolist() == [1, 0, 0, 0, 0, 0]
    assert table[BIAS].tolist() == [0, 0, 0, 0, 0, 1]  # half a second after the onset nothing had been seen


def test_lower_thresholds_find_more(recording):
    recording.faulty[60:70, 3, 0, 0] = 0.6
    points = figures.roc(recording, figures.find_events(recording), 0)
    rates, found = [point[1] for point in points], [point[2] for point in points]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0.0
    assert (found[0], found[-1]) == (1.0, 0.0)


def test_groups_hold_every_fault_once(recording):
    events = figures.find_events(recording)
    sizes = {}
    for by, _, some in figures.groups(events, JOINTS):
        sizes[by] = sizes.get(by, 0) + len(some)
    assert (sizes["kind"], sizes["joint"], sizes["speed"]) == (4, 4, 4)


def test_joint_faults_of_joints_with_dead_sensors_are_apart():
    recording = blank()
    fail(recording, 0, 0, 0, DEAD, 50, 300, found=55)
    fail(recording, 0, 0, 1, WEAK, 50, 300)
    fail(recording, 1, 0, 1, WEAK, 50, 300, found=60)
    found = content_of(recording)["found"]
    assert [found[name]["count"] for name in found] == [1, 2, 1, 1, 0]
    assert content_of(recording)["joint_fault_of_sensor_fault"] is None  # no sensor failed alone
    fail(recording, 2, 1, 0, DEAD, 50, 300, found=55)
    fail(recording, 3, 1, 0, DEAD, 50, 300, found=55)
    recording.reported[70:, 2, 1, 1] = True
    assert content_of(recording)["joint_fault_of_sensor_fault"][0] == 0.5
    assert found[f"{MOTION}, sensor works"]["found_within_s"]["1"][0] == 1.0
    assert found[f"{MOTION}, sensor faulty"]["found_within_s"]["1"][0] == 0.0
    names = [(name, len(some)) for by, name, some in figures.groups(figures.find_events(recording), JOINTS)]
    assert ("effort", 1) in names
    assert ("effort, sensor faulty", 1) in names


def test_what_was_not_learned_has_a_table_of_its_own(tmp_path):
    recording = replace(blank(), kinds=(SENSOR_KINDS, (*JOINT_KINDS, "braking")))
    braking = len(JOINT_KINDS)
    fail(recording, 0, 0, 1, braking, 50, 300, found=60, predicted=WEAK)
    fail(recording, 1, 0, 1, braking, 50, 300)
    recording.reported[70:, 1, 0, 0] = True  # as a sensor fault
    fail(recording, 2, 0, 1, braking, 50, 300)
    recording.reported[60:, 2, 2, 0] = True  # of another joint
    fail(recording, 3, 1, 0, BIAS, 50, 300, severity=0.3)
    found = content_of(recording, [KindRange.read("bias:0.25,0.5")])
    assert found["found"]["sensor faults"]["count"] == 0
    rows = {one["kind"]: one for one in found["not_learned"]}
    assert rows.keys() == {"bias", "braking"}
    assert rows["braking"]["found_within_s"]["1"][0] == pytest.approx(2 / 3)
    assert rows["braking"]["any_joint_within_1_s"][0] == 1.0
    assert rows["braking"]["median_delay_s"] == pytest.approx(0.4)
    assert rows["bias"]["found_within_s"]["1"][0] == 0.0
    assert content_of(recording, [KindRange.read("bias:0.4,0.5")])["found"]["sensor faults"]["count"] == 1
    text = write_report(recording, {}, tmp_path).read_text()
    assert "| braking | 3 |" in text
    assert "any joint, 1 s |" in text
    assert "| sensor faults | 1 |" in text


@pytest.mark.parametrize(
    ("fault", "kind", "severity", "learned"),
    [
        *((1, WEAK, size, True) for size in SIZES["effort"]),  # as a recording rounds its ends
        *((0, SENSOR_KINDS.index("noise"), size, True) for size in SIZES["noise"]),
        (0, BIAS, -0.5, True),
        (0, BIAS, -0.51, False),
        (1, WEAK, 0.04, False),
        (1, WEAK, 0.61, False),
        (0, DEAD, 3.0, True),  # of any severity
    ],
)
def test_severities_that_do_not_happen_in_a_training_are_not_learned(fault, kind, severity, learned):
    recording = blank()
    fail(recording, 0, 0, fault, kind, 50, 300, severity=severity)
    assert figures.learned(figures.find_events(recording), recording, []).tolist() == [learned]


def test_the_report_says_what_was_found(recording, tmp_path):
    page = write_report(recording, {"engine": "none"}, tmp_path)
    text = page.read_text()
    assert "| sensor faults | 2 | 50% [9, 91] |" in text
    assert json.loads((tmp_path / "diagnosis.json").read_text())["found"]["sensor faults"]["count"] == 2
    assert {path.name for path in tmp_path.iterdir()} >= {"delays.png", "roc.png", "confusion.png"}


def test_the_events_of_a_report_are_looked_for_once(recording, tmp_path, monkeypatch):
    found, find_events = [], figures.find_events
    monkeypatch.setattr(figures, "find_events", lambda one: found.append(one) or find_events(one))
    write_report(recording, {}, tmp_path)
    assert len(found) == 1


def test_a_full_disk_leaves_the_old_report(recording, tmp_path, monkeypatch):
    (tmp_path / "diagnosis.json").write_text("old")
    written = []

    def full(descriptor):
        written.append(descriptor)
        if len(written) == 4:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("umc.evaluation.report.write.fsync", full)
    with pytest.raises(UmcError, match="No space left on device"):
        write_report(recording, {}, tmp_path)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("diagnosis.json", "old")]


def test_a_walk_without_faults_has_a_report():
    text = markdown(content_of(blank()))
    assert "one in never" in text
    assert "is a faulty one in" not in text
    assert [line.split("|")[-2].strip() for line in text.splitlines() if "faults | 0 |" in line] == [""] * 2


@pytest.mark.filterwarnings("error")
def test_a_walk_with_faults_of_one_sort_has_pictures_without_warnings(tmp_path):
    recording = blank()
    fail(recording, 0, 0, 0, DEAD, 50, 300)
    text = write_report(recording, {}, tmp_path).read_text()
    assert [line.split("|")[-2].strip() for line in text.splitlines() if "| sensor faults" in line] == ["never"]
    assert "| other joint faults | 0 |" in text
