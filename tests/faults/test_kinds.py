# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What each kind does to a signal, a command or a range."""

import pytest
import torch
from umc.faults import FaultSchedule, FaultState, JointKind, find_kind, register_kind
from umc.faults.apply import CommandChannel, ImuChannel
from umc.faults.kinds import KINDS, LONGEST_DELAY, CommandContext, ImuKind, MotionContext, SensorContext, rom_window
from umc.utils.errors import UmcError

SIGNAL = torch.tensor([[1.0, 2.0, 3.0]])
ON = torch.tensor([[True, False, True]])


def read(kind: str, quantity: str, severity: float, age: float = 2.0) -> list[float]:
    context = SensorContext(
        quantity=quantity,
        on=ON,
        severity=torch.full((1, 3), severity),
        age=torch.full((1, 3), age),
        held=torch.full((1, 3), 9.0),
        normal=lambda stream: torch.full((1, 3), 0.5),
    )
    found = find_kind(kind)
    # a quantity that the kind does not concern is not read
    return (found.read(SIGNAL, context) if quantity in found.quantities else SIGNAL)[0].tolist()


@pytest.mark.parametrize(
    ("kind", "severity", "position", "velocity", "action"),
    [
        ("dead", 0.0, [0, 2, 0], [0, 2, 0], [0, 2, 0]),
        ("dead", 100.0, [100, 2, 100], [100, 2, 100], [100, 2, 100]),
        ("frozen", 0.0, [9, 2, 9], [9, 2, 9], [1, 2, 3]),
        ("bias", 0.25, [1.25, 2, 3.25], [1, 2, 3], [1, 2, 3]),
        ("drift", 0.25, [1.5, 2, 3.5], [1.25, 2, 3.25], [1, 2, 3]),
        ("noise", 0.5, [1.25, 2, 3.25], [38.5, 2, 40.5], [1, 2, 3]),
    ],
)
def test_sensor_kinds(kind, severity, position, velocity, action):
    assert read(kind, "position", severity) == position
    assert read(kind, "velocity", severity) == velocity
    assert read(kind, "action", severity) == action


def deliver(kind: str, severity: float, luck: float = 0.5, age: int = 5, seen: list | None = None) -> list[float]:
    history = torch.stack([SIGNAL, SIGNAL + 10.0, SIGNAL + 20.0])
    context = CommandContext(
        on=ON,
        severity=torch.full((1, 3), severity),
        age=torch.full((1, 3), age),
        sent=lambda ago: history.gather(0, ago.unsqueeze(0)).squeeze(0),
        last=torch.full((1, 3), 9.0),
        uniform=lambda stream, **of: (seen if seen is not None else []).append(of) or torch.full((1, 3), luck),
    )
    return find_kind(kind).deliver(SIGNAL, context)[0].tolist()


def test_command_kinds():
    assert deliver("dropped", 1.0) == [9, 2, 9]
    assert deliver("dropped", 0.6, luck=0.5) == [9, 2, 9]
    assert deliver("dropped", 0.4, luck=0.5) == [1, 2, 3]
    assert deliver("delayed", 2.0) == [21, 2, 23]
    assert deliver("delayed", 0.0) == [1, 2, 3]
    assert deliver("delayed", 2.0, age=0) == [11, 2, 13]  # what was in time does not come again


def test_bursts_lie_in_windows_of_which_they_take_their_share():
    for luck, place in ((0.0, 0), (0.5, 4), (0.999, 7)):  # 3 of 10 steps
        lost = [deliver("burst_loss", 3.0, luck, age)[0] == 9.0 for age in range(20)]
        assert lost == 2 * [place <= step < place + 3 for step in range(10)]
    of: list = []
    deliver("burst_loss", 3.0, 0.5, age=17, seen=of)
    assert of[0]["ago"].tolist() == [[7, 7, 7]]  # the number of the window's first step
    assert of[0]["shared"]
    assert deliver("burst_loss", 0.4, 0.0, age=0) == [1, 2, 3]  # a curriculum's mildest
    assert sum(deliver("burst_loss", 1.0, 0.5, age)[0] == 9.0 for age in range(300)) == 100


def test_a_delay_grows_step_by_step_to_the_longest():
    ages = [deliver("growing_delay", 0.5, age=age)[0] for age in range(4)]
    assert ages == [1, 11, 11, 21]
    assert deliver("growing_delay", 1.0, age=1) == [21, 2, 23]
    assert deliver("growing_delay", 0.0) == [1, 2, 3]


def test_backlash_lets_a_joint_turn_freely_within_the_play():
    kind = find_kind("backlash")
    target = torch.stack((torch.full((2, 5), 1.0), torch.full((2, 5), 0.1), torch.full((2, 5), 2.0)))
    position = torch.tensor([[0.5, 0.85, 1.0, 1.15, 1.5]]).expand(2, 5)
    velocity = torch.tensor([[3.0]]).expand(2, 5)
    on = torch.tensor([[True], [False]]).expand(2, 5)
    acting = kind.transmit(target, MotionContext(on, torch.full((2, 5), 0.4), position, velocity))
    error = acting[0] - position
    assert error[0].tolist() == pytest.approx([0.3, 0.0, 0.0, 0.0, -0.3])
    assert acting[1][0].tolist() == pytest.approx([0.1, 3.0, 3.0, 3.0, 0.1])
    assert torch.equal(acting[:, 1], target[:, 1])
    assert torch.equal(acting[2], target[2])
    assert torch.equal(kind.transmit(target, MotionContext(on, torch.zeros(2, 5), position, velocity))[0], target[0])
    assert kind.depends_on_motion
    assert not find_kind("dropped").depends_on_motion


def test_targets_that_were_sent_in_inference_mode_are_forgotten_outside_it():
    state = FaultState(FaultSchedule(["a", "b"], scenario="delayed", severity={"delayed": 1}, num_joints=(1, 2)), 2)
    line = CommandChannel(state)
    with torch.inference_mode():
        line.send(torch.ones(3, 2, 2), torch.zeros(3, 2, 2))
    line.reset(torch.tensor([0]))
    line.reset()
    line.send(torch.ones(3, 2, 2), torch.zeros(3, 2, 2))


DOWN, TURN = torch.tensor([0.0, 0.0, -1.0]), torch.tensor([0.1, 0.2, 0.3])


def imu_readings(kind: str, steps: int = 60, **severity) -> tuple[torch.Tensor, ...]:
    """Angular velocities and directions of gravity of 8 bases at rest, one of which is healthy, step by step."""
    settings = {"severity": {kind: severity["severity"]} if severity else {}, "onset": 10, "num_joints": (1, 1)}
    state = FaultState(FaultSchedule(["a", "b"], scenario=[kind] * 7 + ["normal"], **settings), 8)
    state.reset(torch.arange(8))
    channels, rows = [ImuChannel(quantity, 0.02) for quantity in ("angular_velocity", "gravity")], []
    for step in range(1, steps + 1):
        state.advance(torch.full((8,), step), torch.zeros(8, 2))
        signals = (TURN + 0.001 * step, DOWN)
        rows.append([one.read(state, true.expand(8, 3)) for one, true in zip(channels, signals, strict=True)])
    return tuple(torch.stack(column) for column in zip(*rows, strict=True))


def test_imu_kinds():
    true = TURN + 0.001 * torch.arange(1, 61)[:, None, None]
    rate, gravity = imu_readings("imu_bias", severity=0.5)
    error = rate - true
    assert error[:9].abs().max() < 1e-6
    assert error[:, 7].abs().max() < 1e-6  # the healthy env
    assert error[9:, :7].norm(dim=-1).flatten().tolist() == pytest.approx([0.5] * 51 * 7, rel=1e-3)
    assert (error[9:] - error[9]).abs().max() < 1e-5  # one axis for all the episode,
    assert len({tuple(row) for row in error[20, :7].mul(100).round().tolist()}) == 7  # and one of its own for each
    assert (gravity == DOWN).all()

    rate, gravity = imu_readings("imu_drift", severity=0.5)
    error = (rate - true)[9:, :7]
    assert error[..., 2].abs().max() < 1e-6
    tilt = torch.acos((gravity[:, :7] * DOWN).sum(-1).clamp(-1.0, 1.0))
    assert tilt[9 + 50].tolist() == pytest.approx([0.5] * 7, abs=1e-3)
    # what the gyroscope reads in error turns gravity as a turn of the base would: dg/dt = -w x g
    change = (gravity[11, :7] - gravity[10, :7]) / 0.02
    assert torch.allclose(change, -torch.linalg.cross(error[1], gravity[10, :7]), atol=0.01)

    rate, gravity = imu_readings("imu_frozen")
    assert torch.allclose(rate[9:, :7], true[8].expand(51, 7, 3))
    rate, gravity = imu_readings("imu_dead")
    assert (rate[9:, :7].abs().max(), gravity[9:, :7].abs().max()) == (0.0, 0.0)
    assert torch.allclose(rate[:, 7], true[:, 0])


def test_the_severity_of_an_imu_fault_of_ones_own_may_be_negative(monkeypatch):
    class Scale(ImuKind):
        name, unit, default, min_severity = "imu_scale", "[-]", -0.5, -1.0

        def read(self, signal, context):
            return signal * (1.0 + context.severity)  # 0 for a robot without the fault

    monkeypatch.setitem(KINDS, "imu_scale", Scale())
    true = TURN + 0.001 * torch.arange(1, 61)[:, None, None]
    rate, _ = imu_readings("imu_scale", severity=-0.5)
    torch.testing.assert_close(rate[9:, :7], 0.5 * true[9:].expand(51, 7, 3))
    torch.testing.assert_close(rate[:, 7], true[:, 0])


@pytest.mark.parametrize("position", [-2.0, -1.0, -0.3, 0.0, 0.9, 1.0, 1.7])
@pytest.mark.parametrize("placement", [0.0, 0.4, 0.999])
def test_a_window_holds_the_joint_and_lies_inside_the_limits(position, placement):
    tensors = [torch.tensor(value) for value in (-1.0, 1.0, position, 0.3, placement)]
    lower, upper = rom_window(*tensors)
    assert float(upper - lower) == pytest.approx(0.6, abs=1e-6)
    assert float(lower) >= -1.0
    assert float(upper) <= 1.0
    assert lower <= tensors[2].clamp(-1.0, 1.0) <= upper
    # the placement moves the window from one end to the other
    ends = [rom_window(*map(torch.tensor, (-1.0, 1.0, 0.0, 0.3, end))) for end in (0.0, 1.0)]
    assert [round(float(end), 5) for window in ends for end in window] == [-0.6, 0.0, 0.0, 0.6]


def test_a_kind_needs_a_name_of_its_own():
    with pytest.raises(UmcError, match="already"):
        register_kind(type("Other", (JointKind,), {"name": "dead"}))
    with pytest.raises(UmcError, match="letters, digits and underscores"):
        register_kind(type("Other", (JointKind,), {"name": "half dead"}))
    with pytest.raises(UmcError, match="choose from backlash, bias"):
        find_kind("deaf")


def test_a_kind_of_umc_is_not_replaced_by_a_class_of_its_name_and_a_scripts_own_is_registered_twice(monkeypatch):
    monkeypatch.setattr("umc.faults.kinds.base.KINDS", known := dict(KINDS))
    before = known["dead"]
    with pytest.raises(UmcError, match="'dead' exists already"):
        register_kind(type("Dead", (JointKind,), {"name": "dead", "__module__": "my_faults"}))
    assert known["dead"] is before
    register_kind(type(before))  # its own module, imported again
    for module in ("__main__", "my_faults"):
        rust = register_kind(type("Rust", (type(before),), {"name": "rust", "__module__": module}))
        assert type(known["rust"]) is rust
    with pytest.raises(UmcError, match="'rust' exists already"):
        register_kind(type("Corrosion", (type(before),), {"name": "rust", "__module__": "my_faults"}))


@pytest.mark.parametrize(("scenario", "value"), [("dead+noise+drift+frozen", 0.0), ("frozen+noise+drift", 9.0)])
def test_a_dead_sensor_hides_other_faults_and_a_frozen_one_hides_noise(scenario, value):
    severities = {"noise": 0.5, "drift": 0.25}
    schedule = FaultSchedule(["a", "b", "c"], scenario=scenario, severity=severities, num_joints=(1, 3))
    signal = SIGNAL
    for kind in schedule.kinds:  # as a sensor goes through them
        severity = torch.full((1, 3), 0.0 if kind.name == "dead" else 0.5)
        ones = torch.ones(1, 3)
        context = SensorContext(
            "position", ON, severity, age=ones, held=9.0 * ones, normal=lambda stream: torch.ones(1, 3)
        )
        signal = kind.read(signal, context)
    assert signal[0].tolist() == [value, 2.0, value]


def test_no_target_is_older_than_the_longest_delay():
    class Late(type(find_kind("delayed"))):
        def deliver(self, target, context):
            return torch.where(context.on, context.sent(torch.full_like(context.age, LONGEST_DELAY + 5)), target)

    state = FaultState(
        FaultSchedule(["a", "b"], scenario="delayed", severity={"delayed": 1}, num_joints=(2, 2), onset=1), 1
    )
    line = CommandChannel(state)
    assert line.can_fail
    line._kinds = [Late()]
    last = torch.zeros(3, 1, 2)
    state.reset(torch.arange(1))
    for step in range(1, 40):
        state.advance(torch.tensor([step]), torch.zeros(1, 2))
        arrived = line.send(torch.full((3, 1, 2), float(step)), last)
        last = torch.full((3, 1, 2), float(step)) if arrived is None else arrived[1]
    assert last.unique().tolist() == [39 - LONGEST_DELAY]
