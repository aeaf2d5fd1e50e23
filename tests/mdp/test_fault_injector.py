# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The fault injector breaks and heals joints of running envs on both engines: physics, mask, flag and ledger follow."""

import pytest
from umc.faults import KINDS, MANUAL_FAULT, find_kind, read_ledger
from umc.utils.errors import UmcError

pytestmark = pytest.mark.engine

ENVS = 3
"""Env 0 stays healthy, env 1 has manual faults, env 2 has drawn faults, one of which is healed."""

KNEE, HIP, LOST = "FL_calf_joint", "FR_hip_joint", "RR_hip_joint"
WEAK = 4.0
"""Torque that is left [N*m]."""

DRAWN = "dead+rom"
DRAWN_ONSET, BROKEN_AT, HEALED_AT, END = 3, 8, 20, 30
"""Env steps."""


REFUSED = (
    ((1, "nose", "rom", 0.3), "the robot has no joint 'nose'"),
    ((1, KNEE, "rust", 1.0), "unknown kind of fault 'rust'"),
)
"""Arguments of manual faults, and how they are refused."""


def walk(physics: str, ledger: str) -> dict:
    """A1 under random actions while the injector injects and clears faults."""
    import fault_env
    import torch
    from isaaclab.envs import ManagerBasedRLEnv
    from umc import mdp

    drawn_faults = {"scenario": ["normal", "normal", DRAWN], "num_joints": (2, 2), "onset": DRAWN_ONSET, "seed": 4}
    cfg = fault_env.a1_cfg(physics, ENVS, 1000, drawn_faults | {"ledger": ledger})
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    mdp.add_imu_sensors(cfg)
    before = mdp.newest_fault_injector() is not None
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    injector, robot, state = mdp.newest_fault_injector(), env.scene["robot"], mdp.fault_state(env)
    knee, hip, lost = (robot.joint_names.index(name) for name in (KNEE, HIP, LOST))
    generator = torch.Generator().manual_seed(1)
    seen: dict = {"before": before, "torque": [], "position": [], "mask": [], "flag": [], "sent": []}
    for step in range(1, END):
        if step == BROKEN_AT + 1:
            injector.inject(1, KNEE, "effort", WEAK)
            seen["at_once"] = injector.rows(1)[knee].kinds
            injector.inject(1, HIP, "locked")
            injector.inject(1, HIP, "dead")
            injector.inject(1, LOST, "dropped", 1.0)
            for arguments, message in REFUSED:
                with pytest.raises(UmcError, match=message):
                    injector.inject(*arguments)
        if step == HEALED_AT + 1:
            seen["rows"] = [vars(row) for row in injector.rows(1)]
            seen["drawn"] = [row.joint for row in injector.rows(2) if row.kinds]
            injector.clear(1)
            injector.clear(2, seen["drawn"][0])
        env.step(3.0 * torch.randn(ENVS, env.action_manager.total_action_dim, generator=generator))
        seen["torque"].append(robot.actuators.applied_effort.torch[:2, knee].abs().tolist())
        seen["position"].append(robot.data.joint_pos.torch[:2, hip].tolist())
        seen["sent"].append(robot.actuators.target_command.position.torch[1, lost].item())
        seen["mask"].append(state.joint_mask[1, hip].item())
        seen["flag"].append(state.fault_flag[:, 0].tolist())
    seen["left"] = [row.joint for row in injector.rows(2) if row.kinds]
    seen["kinds"], seen["links"] = injector.kinds, injector.links
    ranges = {kind: injector.severity_range(KNEE, kind) for kind in injector.kinds}
    seen["ranges"] = {kind: found and vars(found) for kind, found in ranges.items()}
    limits = robot.data.joint_pos_limits.torch
    seen["limits"] = [limits[1, hip].tolist(), limits[0, hip].tolist()]
    injector.inject(1, KNEE, "effort", WEAK)
    env.step(torch.zeros(ENVS, env.action_manager.total_action_dim))
    env.reset()
    seen["after_reset"] = [row.joint for row in injector.rows(1) if row.kinds]
    drawn = state.source.draw(torch.arange(ENVS), torch.ones(ENVS).long())
    seen["as_drawn"] = torch.equal(state.plan.joints[:, :1], drawn.joints) and torch.equal(
        state.plan.onset[:, :1], drawn.onset
    )
    env.close()
    seen["closed"] = mdp.newest_fault_injector() is None
    return seen


@pytest.fixture(scope="module", params=("newton_mjwarp", "ovphysx"))
def run(request, run_engine, tmp_path_factory):
    """What was seen on an engine, and the ledger of it."""
    path = tmp_path_factory.mktemp("injector") / "ledger.jsonl"
    return run_engine(walk, physics=request.param, ledger=str(path)), read_ledger(path)


def during(seen: dict, name: str) -> list:
    """What was seen while manual faults were on: physics changes at the end of the step that begins them."""
    return seen[name][BROKEN_AT + 1 : HEALED_AT]


def test_physics_follows_manual_faults_and_is_restored(run):
    seen, _ = run
    healthy, weak = zip(*during(seen, "torque"), strict=True)
    assert max(healthy) > 2 * WEAK  # the actions ask for more
    assert max(weak) == pytest.approx(WEAK, rel=1e-4)
    assert max(torque for _, torque in seen["torque"][HEALED_AT + 2 :]) > 2 * WEAK
    free, locked = zip(*during(seen, "position"), strict=True)
    assert max(locked) - min(locked) < 0.01 < 0.2 < max(free) - min(free)
    assert seen["limits"][0] == seen["limits"][1]
    # a command gets lost though the task has no command faults
    assert len(set(during(seen, "sent"))) == 1
    assert len(set(seen["sent"][:BROKEN_AT])) == BROKEN_AT


def test_mask_and_flag_follow_from_the_next_step_on_until_a_reset(run):
    seen, _ = run
    on = [BROKEN_AT < step <= HEALED_AT for step in range(1, END)]
    assert seen["mask"] == on
    assert [flags[1] == 1.0 for flags in seen["flag"]] == on
    assert all(flags[0] == -1.0 for flags in seen["flag"])
    assert seen["flag"][-1][2] == 1.0  # one joint of the drawn fault healed, the other did not
    assert (len(seen["drawn"]), seen["left"]) == (2, seen["drawn"][1:])
    assert seen["after_reset"] == []
    assert seen["as_drawn"]
    assert not seen["before"]
    assert seen["closed"]


def test_rows_show_the_faults_of_each_joint(run):
    seen, _ = run
    assert seen["at_once"] == []  # from the next step on
    since = pytest.approx((BROKEN_AT + 1) * 0.02)
    rows = {row.pop("joint"): row for row in seen["rows"]}
    assert rows[KNEE] == {
        "kinds": ["effort"],
        "severities": [4.0],
        "severity": "4 N*m",
        "detected": False,
        "since": since,
        "link": "FL_calf",
        "fault_probability": None,
    }
    hip = {
        "kinds": ["locked", "dead"],
        "severities": [0.0, 0.0],
        "detected": True,
        "since": since,
        "link": "FR_hip",
        "fault_probability": None,
    }
    assert rows[HIP] | {"severity": ""} == hip | {"severity": ""}
    assert sum(not row["kinds"] for row in rows.values()) == 9
    assert [link + "_joint" for link in seen["links"]] == list(rows)


def test_severity_ranges_hold_what_makes_sense_for_the_joint(run):
    seen, _ = run
    ranges = seen["ranges"]
    assert set(ranges) == set(KINDS)
    without = {kind for kind, found in ranges.items() if found is None}
    assert without == {"locked", "power_loss", "frozen", "imu_frozen", "imu_dead"}
    assert (ranges["effort"]["high"], ranges["effort"]["initial"]) == (25.0, 5.0)  # A1's motor, the paper's severity
    assert ranges["rom"] == {"low": 0.01, "high": 1.0, "initial": pytest.approx(0.3), "unit": "-"}
    for kind, found in ranges.items():
        if found is not None:
            assert found["low"] <= found["initial"] <= found["high"], kind
            for name in ("low", "high", "initial"):
                find_kind(kind).check(found[name])


def test_the_ledger_records_manual_faults_and_the_limits_in_physics(run):
    seen, ledger = run
    episode = ledger.episodes[1, 0]
    faults = {(one.joints[0], *one.severity): one for one in episode.faults if one.onset == BROKEN_AT + 1}
    assert set(faults) == {(KNEE, "effort"), (HIP, "locked"), (HIP, "dead"), (LOST, "dropped")}
    for fault in faults.values():
        assert (fault.scenario.name, fault.end) == (MANUAL_FAULT, HEALED_AT + 1)
    limits = episode.limits_at(BROKEN_AT + 1)
    assert limits[KNEE].effort == WEAK
    assert limits[HIP].lower == limits[HIP].upper
    assert not episode.limits_at(HEALED_AT + 1)
    drawn = ledger.episodes[2, 0]
    assert [set(drawn.limits_at(HEALED_AT + after)) for after in (0, 1)] == [set(seen["drawn"]), set(seen["left"])]
    assert ledger.episodes[1, 1].drawn is None
