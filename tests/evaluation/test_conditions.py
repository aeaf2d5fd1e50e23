# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What the robots really meet in an evaluation: no noise, one command, the scenario that their env was dealt."""

from dataclasses import replace
from pathlib import Path

import pytest

STEPS = 9
ONSETS = (4, 6)


def evaluate_g1(physics, folder):
    """G1, since its training has everything that has to be switched off: noise, pushes, turning commands."""
    import sys

    sys.path.insert(0, str(Path(__file__).parents[1] / "rl"))
    from fresh_policy import write_fresh
    from umc.evaluation.conditions import make_calm, set_faults
    from umc.evaluation.protocol import protocol_for
    from umc.evaluation.rollout import drive
    from umc.evaluation.session import parse, prepare, running
    from umc.mdp import fault_state

    checkpoint = write_fresh(Path(folder), task="UMC-G1-Stage2", model="mlp")
    options, overrides = parse(["--checkpoint", str(checkpoint), f"physics={physics}"], "", "", lambda _: None)
    session = prepare(options, overrides)
    protocol = replace(protocol_for("g1", seed=3), onset=ONSETS, steps=STEPS)
    make_calm(session.env_cfg, (0.5, 0.0, 0.0), 16, STEPS, 3)
    set_faults(session.env_cfg, protocol)
    with running(session) as (env, policy):
        obs, _ = env.reset()
        state = fault_state(env)
        again = [env.observation_manager.compute()["policy"].clone() for _ in range(2)]
        result = {
            "noise": float((again[0] - again[1]).abs().max()),
            "intervals": list(env.event_manager.active_terms["interval"]),
            "onset": state.onset.tolist(),
            "dealt": protocol.scenario_of_env(16).tolist(),
            "commands": [],
            "dead": [],
            "flag": [],
            "seen_mask": [],
        }
        for _ in drive(env, policy, obs, STEPS, "test"):
            result["commands"].append(env.command_manager.get_command("base_velocity").tolist())
            result["dead"].append(state.joint_mask.sum(1).tolist())
            result["flag"].append(env.obs_buf["fault_flag"].tolist())
            result["seen_mask"].append(env.obs_buf["joint_mask"].sum(1).tolist())
    return result


@pytest.mark.engine
def test_what_the_robots_meet_in_an_evaluation(run_engine, tmp_path):
    met = run_engine(evaluate_g1, folder=str(tmp_path))
    assert met["noise"] == 0.0
    assert met["intervals"] == ["faults"]
    for commands in met["commands"]:
        assert all(command == pytest.approx([0.5, 0.0, 0.0]) for command in commands)
    for env, scenario in enumerate(met["dealt"]):
        assert scenario == env % 8 + 1
        for index in range(STEPS):
            broken = scenario != 8 and index + 1 >= met["onset"][env]
            dead = met["dead"][index][env]
            assert (2 <= dead <= 4) if broken and scenario <= 4 else dead == 0
            assert met["seen_mask"][index][env] == dead
            told = broken and scenario in (2, 3, 4)
            assert met["flag"][index][env] == [1.0 if told else -1.0] * 3
        if scenario != 8:
            assert met["onset"][env] in ONSETS
