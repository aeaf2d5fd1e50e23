# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The detector's network and its decision."""

import pytest
import torch
from umc.detection import NETWORKS, Detector, DetectorCfg
from umc.models import JointLayout
from umc.utils.errors import UmcError

JOINTS = ("a", "b", "c")
LAYOUT = JointLayout.term_major(JOINTS, 5 + 9, 5)


def make(network="gru"):
    torch.manual_seed(0)
    return Detector(LAYOUT, DetectorCfg(network=network)).eval()


def run(detector, obs, state=None):
    """What it says of every step of observations (T, B, D), and what it remembers at the end."""
    state = detector.start(obs.shape[1]) if state is None else state
    said = []
    with torch.no_grad():
        for one in obs:
            found = detector(one, state)
            state = found.state
            said.append(torch.cat((found.sensor, found.joint, found.severity), dim=-1))
    return torch.stack(said), state


@pytest.mark.parametrize("network", NETWORKS)
def test_it_says_probabilities(network):
    detector = make(network)
    found = detector(torch.randn(4, 14), detector.start(4))
    assert found.sensor.shape == found.joint.shape == (4, 3, 6)
    assert found.severity.shape == (4, 3, 10)
    assert found.state.shape == (4, 3, detector.state_dim)
    torch.testing.assert_close(found.sensor.sum(dim=-1), torch.ones(4, 3))
    torch.testing.assert_close(found.joint.sum(dim=-1), torch.ones(4, 3))


@pytest.mark.parametrize("network", NETWORKS)
def test_it_remembers_the_past_and_not_the_future(network):
    detector, obs = make(network), torch.randn(12, 2, 14)
    said, _ = run(detector, obs)
    other = obs.clone()
    other[6] += 1.0
    changed, _ = run(detector, other)
    assert torch.equal(said[:6], changed[:6])
    assert ((said[7:] - changed[7:]).abs().amax(dim=(1, 2, 3)) > 1e-6).all()  # of every later step


@pytest.mark.parametrize("network", NETWORKS)
def test_a_walk_in_two_parts_is_the_whole(network):
    detector, obs = make(network), torch.randn(10, 2, 14)
    whole, end = run(detector, obs)
    first, state = run(detector, obs[:4])
    second, last = run(detector, obs[4:], state)
    assert torch.equal(whole, torch.cat((first, second)))
    assert torch.equal(end, last)


def test_the_first_readings_of_an_episode_are_no_change():
    detector, seen = make(), []
    detector.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0][..., 3:5]))
    run(detector, torch.ones(3, 2, 14))
    assert [bool(change.any()) for change in seen] == [False, False, False]
    run(detector, torch.arange(3.0)[:, None, None].expand(3, 2, 14))
    assert [bool(change.all()) for change in seen[3:]] == [False, True, True]


def test_the_tcn_sees_a_window():
    detector = Detector(LAYOUT, DetectorCfg(network="tcn", dilations=(1, 2))).eval()
    obs = torch.randn(9, 1, 14)
    said, _ = run(detector, obs)
    other = obs.clone()
    other[2] += 1.0
    changed, _ = run(detector, other)
    differs = (said - changed).abs().amax(dim=(1, 2, 3)) > 0
    # its window of 1 + 1 + 2 steps, and one more for the change of the readings
    assert differs.tolist() == [False, False, True, True, True, True, True, False, False]


def test_joints_share_weights_and_differ_by_their_embedding():
    detector = make()
    obs = torch.zeros(1, 14)
    before = detector(obs, detector.start(1)).sensor
    assert not torch.equal(before[0, 0], before[0, 1])
    with torch.no_grad():
        detector.embedding.copy_(detector.embedding[:1].expand(3, -1))
    after = detector(obs, detector.start(1)).sensor
    torch.testing.assert_close(after[0, 0], after[0, 1])


def decide(probabilities, on=0.9, off=0.5, steps=3):
    """Reports of a sensor whose probability of a fault takes these values."""
    detector = make()
    detector.thresholds[:] = torch.tensor([on, off, float(steps)])
    state = detector.start(1)
    reports = []
    for value in probabilities:
        logits = torch.full((1, 3, 6), -1e9)
        logits[..., 0], logits[..., 1] = torch.tensor([1.0 - value, value]).log()
        detector.step = lambda obs, state, logits=logits: ((logits, logits), torch.zeros(1, 3, 10), state)
        found = detector(torch.zeros(1, 14), state)
        state = found.state
        reports.append(bool(found.reported[0, 0, 0]))
    return reports


def test_a_fault_is_reported_after_some_steps_until_its_probability_is_low():
    said = [0.95, 0.95, 0.1, 0.95, 0.95, 0.95, 0.6, 0.6, 0.4, 0.95]
    assert decide(said) == [False] * 5 + [True] * 3 + [False] * 2
    assert decide(said, steps=1) == [True, True, False, True, True, True, True, True, False, True]


def test_temperature_flattens_what_it_says():
    detector, obs = make(), torch.randn(2, 14)
    sharp = detector(obs, detector.start(2))
    detector.temperature[0] = 10.0
    flat = detector(obs, detector.start(2))
    assert flat.sensor.std() < 0.5 * sharp.sensor.std()
    assert torch.equal(flat.joint, sharp.joint)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"network": "lstm"}, "unknown network 'lstm' of a detector; choose one of gru, tcn"),
        ({"hidden_dim": 0}, "sizes of a detector must be positive"),
        ({"dilations": (1, 0)}, "sizes of a detector must be positive"),
    ],
)
def test_sizes_are_checked(fields, words):
    with pytest.raises(UmcError, match=words):
        DetectorCfg(**fields)
