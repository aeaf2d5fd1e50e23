# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The fault board breaks and heals joints of running envs on both engines: physics, mask, flag and ledger follow."""

import pytest
from umc.faults import KINDS, MANUAL_FAULT, find_kind, read_ledger

pytestmark = pytest.mark.engine

ENVS = 3
"""Env 0 stays healthy, env 1 has manual faults, env 2 has drawn faults, one of which is healed."""

KNEE, HIP = "FL_calf_joint", "FR_hip_joint"
WEAK = 4.0
"""Torque that is left [N*m]."""

DRAWN = "dead+rom"
DRAWN_ONSET, BROKEN_AT, HEALED_AT, END = 3, 8, 20, 30
"""Env steps."""


def walk(physics: str, ledger: str) -> dict:
    """A1 under random actions while the board injects and clears faults."""
    import torch
    import umc.tasks  # noqa: F401
    from isaaclab.envs import ManagerBasedRLEnv
    from isaaclab_tasks.utils import resolve_presets
    from umc import mdp
    from umc.tasks.a1 import A1Stage2EnvCfg
    from umc.terrains import FLAT_GROUND_CFG
    from umc.utils.errors import UmcError

    torch.set_num_threads(1)
    cfg = resolve_presets(A1Stage2EnvCfg(), [physics, "flat"])
    cfg.scene.terrain = FLAT_GROUND_CFG
    cfg.scene.num_envs, cfg.sim.device, cfg.seed = ENVS, "cpu", 3
    cfg.actions.command_faults = mdp.CommandFaultsCfg()
    for name in vars(cfg.terminations):
        if name != "time_out":
            setattr(cfg.terminations, name, None)
    cfg.events.faults.params |= {
        "scenario": ["normal", "normal", DRAWN],
        "num_joints": (2, 2),
        "onset": DRAWN_ONSET,
        "seed": 4,
        "ledger": ledger,
    }
    before = mdp.running_board() is not None
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    board, robot, state = mdp.running_board(), env.scene["robot"], mdp.fault_state(env)
    knee, hip = robot.joint_names.index(KNEE), robot.joint_names.index(HIP)
    generator = torch.Generator().manual_seed(1)
    seen: dict = {"before": before, "torque": [], "position": [], "mask": [], "flag": [], "sent": []}
    for step in range(1, END):
        if step == BROKEN_AT + 1:
            board.inject(1, KNEE, "effort", WEAK)
            seen["at_once"] = board.rows(1)[knee].kinds
            board.inject(1, HIP, "locked")
            board.inject(1, HIP, "dead")
            board.inject(1, "RR_hip_joint", "dropped", 1.0)
            seen["refused"] = []
            for arguments in (
                (1, "nose", "rom", 0.3),
                (1, KNEE, "rust", 1.0),
                (1, KNEE, "rom", 1.5),
                (9, KNEE, "rom", 0.3),
            ):
                try:
                    board.inject(*arguments)
                except UmcError as error:
                    seen["refused"].append(str(error))
        if step == HEALED_AT + 1:
            seen["rows"] = [vars(row) for row in board.rows(1)]
            seen["drawn"] = [row.joint for row in board.rows(2) if row.kinds]
            board.clear(1)
            board.clear(2, seen["drawn"][0])
        env.step(3.0 * torch.randn(ENVS, env.action_manager.total_action_dim, generator=generator))
        torque = robot.actuators.applied_effort.torch
        seen["torque"].append(torque[:2, knee].abs().tolist())
        seen["position"].append(robot.data.joint_pos.torch[:2, hip].tolist())
        seen["sent"].append(
            robot.actuators.target_command.position.torch[1, robot.joint_names.index("RR_hip_joint")].item()
        )
        seen["mask"].append(state.joint_mask[1, hip].item())
        seen["flag"].append(state.fault_flag[:, 0].tolist())
    seen["left"] = [row.joint for row in board.rows(2) if row.kinds]
    seen["kinds"], seen["links"] = board.kinds, board.links
    seen["spans"] = {kind: board.span(KNEE, kind) and vars(board.span(KNEE, kind)) for kind in board.kinds}
    limits = robot.data.joint_pos_limits.torch
    seen["limits"] = [limits[1, hip].tolist(), limits[0, hip].tolist()]
    board.inject(1, KNEE, "effort", WEAK)
    env.step(torch.zeros(ENVS, env.action_manager.total_action_dim))
    env.reset()
    seen["after_reset"] = [row.joint for row in board.rows(1) if row.kinds]
    drawn = state.source.draw(torch.arange(ENVS), torch.ones(ENVS).long())
    seen["as_drawn"] = torch.equal(state.plan.joints[:, :1], drawn.joints) and torch.equal(
        state.plan.onset[:, :1], drawn.onset
    )
    env.close()
    seen["closed"] = mdp.running_board() is None
    return seen


@pytest.fixture(scope="module", params=("newton_mjwarp", "ovphysx"))
def run(request, run_engine, tmp_path_factory):
    """What was seen on an engine, and the ledger of it."""
    path = tmp_path_factory.mktemp("board") / "ledger.jsonl"
    return run_engine(walk, physics=request.param, ledger=str(path)), read_ledger(path)


def during(seen: dict, name: str) -> list:
    """What was seen while manual faults were on: physics changes at the end of the step that begins them."""
    return seen[name][BROKEN_AT + 1 : HEALED_AT]


def test_a_weak_knee_gives_its_torque_and_no_more(run):
    seen, _ = run
    healthy, broken = zip(*during(seen, "torque"), strict=True)
    assert max(healthy) > 2 * WEAK  # the actions ask for more
    assert max(broken) == pytest.approx(WEAK, rel=1e-4)
    assert max(torque for _, torque in seen["torque"][HEALED_AT + 2 :]) > 2 * WEAK


def test_a_locked_hip_stays_where_it_was_and_gets_its_limits_back(run):
    seen, _ = run
    free, locked = zip(*during(seen, "position"), strict=True)
    assert max(locked) - min(locked) < 0.01 < 0.2 < max(free) - min(free)
    assert seen["limits"][0] == seen["limits"][1]


def test_a_command_gets_lost_though_the_task_breaks_none(run):
    seen, _ = run
    assert len(set(during(seen, "sent"))) == 1
    assert len(set(seen["sent"][:BROKEN_AT])) == BROKEN_AT


def test_mask_and_flag_follow_from_the_next_step_on(run):
    seen, _ = run
    on = [BROKEN_AT < step <= HEALED_AT for step in range(1, END)]
    assert seen["mask"] == on
    assert [flags[1] == 1.0 for flags in seen["flag"]] == on
    assert all(flags[0] == -1.0 for flags in seen["flag"])


def test_rows_say_what_is_wrong(run):
    seen, _ = run
    assert seen["at_once"] == []  # from the next step on
    rows = {row["joint"]: row for row in seen["rows"]}
    since = pytest.approx((BROKEN_AT + 1) * 0.02)
    knee = {
        "joint": KNEE,
        "kinds": ["effort"],
        "severities": [4.0],
        "severity": "4 N*m",
        "detected": False,
        "since": since,
        "link": "FL_calf",
    }
    assert rows[KNEE] == knee
    assert rows[HIP] | {"severity": ""} == {
        "joint": HIP,
        "kinds": ["locked", "dead"],
        "severities": [0.0, 0.0],
        "severity": "",
        "detected": True,
        "since": since,
        "link": "FR_hip",
    }
    assert sum(not row["kinds"] for row in seen["rows"]) == 9
    assert [link + "_joint" for link in seen["links"]] == [row["joint"] for row in seen["rows"]]


def test_a_drawn_fault_heals_joint_by_joint(run):
    seen, _ = run
    assert len(seen["drawn"]) == 2
    assert seen["left"] == seen["drawn"][1:]
    assert seen["flag"][-1][2] == 1.0


def test_a_reset_heals_and_the_next_plan_is_the_drawn_one(run):
    seen, _ = run
    assert seen["after_reset"] == []
    assert seen["as_drawn"]
    assert not seen["before"]
    assert seen["closed"]


def test_spans_hold_what_makes_sense_for_the_joint(run):
    seen, _ = run
    spans = seen["spans"]
    assert set(spans) == set(KINDS)
    assert {kind for kind, span in spans.items() if span is None} == {"locked", "power_loss", "frozen"}
    assert (spans["effort"]["high"], spans["effort"]["first"]) == (25.0, 5.0)  # A1's motor, the paper's severity
    assert spans["rom"] == {"low": 0.01, "high": 1.0, "first": pytest.approx(0.3), "unit": "-"}
    for kind, span in spans.items():
        if span is not None:
            assert span["low"] <= span["first"] <= span["high"], kind
            for name in ("low", "high", "first"):
                find_kind(kind).check(span[name])


def test_what_makes_no_sense_is_refused_in_one_line(run):
    seen, _ = run
    starts = (
        "the robot has no joint 'nose'",
        "unknown kind of fault 'rust'",
        "severity 1.5 of 'rom'",
        "there is no env 9",
    )
    for line, start in zip(seen["refused"], starts, strict=True):
        assert line.startswith(start)


def test_the_ledger_says_who_broke_and_healed_what(run):
    _, ledger = run
    made = {(fault.joints[0], *fault.severity): fault for fault in ledger.episodes[1, 0].faults if fault.joints}
    assert set(made) == {(KNEE, "effort"), (HIP, "locked"), (HIP, "dead"), ("RR_hip_joint", "dropped")}
    for fault in made.values():
        assert fault.scenario.name == MANUAL_FAULT
    episode = ledger.episodes[1, 0]
    first = [fault for fault in episode.faults if fault.onset == BROKEN_AT + 1]
    assert [fault.end for fault in first] == [HEALED_AT + 1] * 4
    assert episode.limits_at(BROKEN_AT + 1)[KNEE].effort == WEAK
    assert episode.limits_at(BROKEN_AT + 1)[HIP].lower == episode.limits_at(BROKEN_AT + 1)[HIP].upper
    assert not episode.limits_at(HEALED_AT + 1)
    assert set(ledger.episodes[2, 0].limits_at(HEALED_AT)) == set(run[0]["drawn"])
    assert set(ledger.episodes[2, 0].limits_at(HEALED_AT + 1)) == {run[0]["left"][0]}
    assert ledger.episodes[1, 1].drawn is None
