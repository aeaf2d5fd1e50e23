# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The faults that a detector learns, and those that it is measured by."""

import copy

import pytest
import torch
from umc.detection import JOINT_KINDS, SENSOR_KINDS
from umc.diagnosis.faults import LEARNED, ODDS, KindRange, only, without
from umc.diagnosis.task import add_random_faults
from umc.faults import KINDS, FaultSchedule, JointKind, JointLimits
from umc.faults.cfg import faults_cfg
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.errors import UmcError


def draw(faults, robot="A1", episodes=4000):
    """Draw the faults of many episodes; joints have a range of 2 rad, 20 N*m and 10 rad/s."""
    cfg, _ = resolve_cfgs(f"UMC-{robot}-Stage2", None, ["physics=ovphysx"])
    add_random_faults(cfg, seed=3, faults=faults)
    params = {name: value for name, value in cfg.events.faults.params.items() if name != "asset_cfg"}
    joints = list(cfg.scene.robot.joint_ordering)
    limits = JointLimits(*(torch.full((len(joints),), value) for value in (-1.0, 1.0, 20.0, 10.0)))
    schedule = FaultSchedule(joints, faults_cfg(None, params), episode_length=1000, nominal=limits)
    return cfg, schedule, schedule.draw(torch.arange(episodes), torch.zeros(episodes, dtype=torch.long))


def severities(schedule, plan, kind):
    number = [one.name for one in schedule.kinds].index(kind)
    return plan.severity[:, 0, number][plan.joints[:, 0] & plan.kinds[:, 0, number, None]]


def test_every_kind_that_is_told_apart_happens():
    happens = {kind for name in ODDS for kind in name.split("+")}
    assert happens == {*SENSOR_KINDS, *JOINT_KINDS}


@pytest.mark.parametrize("robot", ["A1", "Go2", "G1", "H1", "Solo8"])
def test_every_robot_takes_the_faults(robot):
    cfg, _, plan = draw(LEARNED, robot)
    faulty = plan.joints.any(dim=2).any(dim=1)
    assert faulty.float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert plan.end[faulty].max() > plan.onset[faulty].max()  # and they end
    assert cfg.events.push.mode == "interval"


@pytest.mark.parametrize("push", [False, True])
def test_the_pushes_of_a_task_are_left_out(push):
    cfg, _ = resolve_cfgs("UMC-G1-Stage2", None, ["physics=ovphysx"])
    own, cfg.events.shove = cfg.events.push, copy.deepcopy(cfg.events.push)
    add_random_faults(cfg, seed=3, push=push)
    interval = {name for name, term in vars(cfg.events).items() if getattr(term, "mode", None) == "interval"}
    assert interval == ({"faults", "push"} if push else {"faults"})
    assert cfg.events.push is not own


def test_a_task_without_fault_terms_is_refused():
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, ["physics=ovphysx"])
    cfg.events.faults = None
    with pytest.raises(UmcError, match="no fault terms; give another --task"):
        add_random_faults(cfg, seed=0)


def test_a_task_that_leaves_the_number_of_joints_to_the_default_takes_the_faults():
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, ["physics=ovphysx"])
    del cfg.events.faults.params["num_joints"]
    add_random_faults(cfg, seed=0)
    assert cfg.events.faults.params["num_joints"] == (1, 4)


def test_what_is_held_out_does_not_happen():
    held_out = [KindRange.read(text) for text in ("rom", "effort:0.3,0.6", "velocity:0,0.1", "bias:0.25,1")]
    _, schedule, plan = draw(without(held_out))
    names = [kind.name for kind in schedule.kinds]
    assert set(names) == {*SENSOR_KINDS, *JOINT_KINDS} - {"rom"}
    assert 0.28 * 20 < severities(schedule, plan, "effort").max() <= 0.3 * 20
    assert 0.1 * 10 <= severities(schedule, plan, "velocity").min() < 0.12 * 10
    bias = severities(schedule, plan, "bias")
    assert 0.2 < bias.abs().max() <= 0.25
    assert bias.min() < 0.0 < bias.max()
    healthy = 1.0 - plan.joints.any(dim=2).any(dim=1).float().mean().item()
    assert healthy == pytest.approx(0.5, abs=0.05)


def test_what_was_held_out_is_known_again():
    whole, part = KindRange.read("rom"), KindRange.read("bias:0.25,1")
    assert whole.holds("rom", 0.3)
    assert not whole.holds("effort", 0.3)
    assert [part.holds("bias", size) for size in (0.2, 0.3, -0.3)] == [False, True, True]
    assert KindRange.read("braking:2,4").sizes == (2.0, 4.0)  # in its unit: no part of what a healthy joint has


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["effort:0,1"], "or hold out the whole kind"),
        (["bias:0,0.1"], "has to take a part of 0 to 0.5 at its upper end"),
        (["dead:0.1,0.5"], "--hold_out dead:0.1,0.5: severities of dead do not vary; hold out the whole kind"),
        ([*SENSOR_KINDS, *JOINT_KINDS], "leaves no fault to learn"),
    ],
)
def test_what_cannot_be_held_out_is_refused(texts, message):
    with pytest.raises(UmcError, match=message):
        without([KindRange.read(text) for text in texts])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("effort:0.3", "effort:0.1,0.3"),
        ("effort:0.3,0.1", "to a larger one"),
        ("effort:a,b", "to a larger one"),
        ("bias:-0.1,0.1", "0 or above"),
        ("effort:5,10", "effort:5,10: severities of effort are parts of what a healthy joint has, 0 to 1"),
    ],
)
def test_a_choice_that_is_none_is_refused(text, message):
    with pytest.raises(UmcError, match=message):
        KindRange.read(text)


def test_kinds_that_no_detector_learns_can_happen():
    texts = ("braking", "friction:0.05,0.2", "bias:0.3,0.5", "locked")
    cfg, schedule, plan = draw(only([KindRange.read(text) for text in texts]))
    assert {kind.name for kind in schedule.kinds} == {"braking", "friction", "bias", "locked"}
    friction = severities(schedule, plan, "friction")
    assert 0.05 * 20 <= friction.min() < friction.max() <= 0.2 * 20
    assert severities(schedule, plan, "bias").min() >= 0.3
    assert not hasattr(cfg.actions, "command_faults")
    cfg, _, _ = draw(only([KindRange.read("delayed")]))
    assert cfg.actions.command_faults is not None


def test_a_kind_without_usual_severities_needs_some(monkeypatch):
    class Rust(JointKind):
        name, unit, default = "rust", "[N*m]", None

        def limit(self, limits, *_):
            return limits

    monkeypatch.setitem(KINDS, "rust", Rust())
    with pytest.raises(UmcError, match=r"--kinds rust needs severities, such as"):
        only([KindRange.read("rust")])
    assert only([KindRange.read("rust:1,2")]).severity() == {"rust": {"uniform": [1.0, 2.0]}}
