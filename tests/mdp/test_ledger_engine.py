# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Two policies encounter the same faults: a Newton run is recorded and replayed with other actions on both engines."""

import pytest
from umc.faults import Ledger, read_ledger

pytestmark = pytest.mark.engine

ENGINES = ("newton_mjwarp", "ovphysx")
ENVS, STEPS, EPISODE = 6, 45, 20
"""Envs and env steps of a run, and its longest episode [env steps]; robots that are thrown about end it earlier."""

KINDS = {"rom", "locked", "effort", "power_loss", "velocity", "dead", "frozen", "bias", "drift", "noise"}


def run_with_faults(physics: str, ledger: str, replay: str | None, actions: int, size: float) -> None:
    """Random actions on A1 under every kind of joint and sensor fault."""
    import fault_env
    import torch
    from isaaclab.envs import ManagerBasedRLEnv

    joint = {"uniform": [0.1, 0.6]}
    faults = {
        "severity": {
            "rom": joint,
            "effort": {"uniform": [1.0, 9.0]},
            "velocity": {"uniform": [2.0, 9.0]},
            **dict.fromkeys(("bias", "drift", "noise"), joint),
        },
        "ratios": dict.fromkeys(("rom+effort+velocity", "dead+locked", "power_loss+drift+noise", "frozen+bias"), 1.0),
        "num_faults": (1, 2),
        "onset_range": (2, 12),
        "duration": (3, 9),
        "seed": 5,
        "ledger": ledger,
        "replay": replay,
    }
    if replay is not None:  # nothing but the ledger counts
        faults |= {"ratios": {"rom": 1.0}, "seed": 6, "onset_range": (1, 1), "num_faults": (1, 1)}
    cfg = fault_env.a1_cfg(physics, ENVS, EPISODE, faults, seed=actions, falls=True)
    env = ManagerBasedRLEnv(cfg)
    env.reset()
    generator = torch.Generator().manual_seed(actions)
    for _ in range(STEPS):
        env.step(size * torch.randn(ENVS, 12, generator=generator))


@pytest.fixture(scope="module")
def runs(run_engine, tmp_path_factory) -> tuple[Ledger, dict[str, Ledger]]:
    """The recording, and the replays by engine."""
    folder = tmp_path_factory.mktemp("ledgers")

    def run(name: str, physics: str, replay: str | None, actions: int, size: float) -> Ledger:
        path = str(folder / name)
        run_engine(run_with_faults, physics=physics, ledger=path, replay=replay, actions=actions, size=size)
        return read_ledger(path)

    recorded = run("recorded.jsonl", "newton_mjwarp", None, 1, 0.3)
    return recorded, {physics: run(physics, physics, str(recorded.path), 2, 3.0) for physics in ENGINES}


@pytest.mark.parametrize("engine", ENGINES)
def test_another_policy_encounters_the_same_faults_in_the_same_steps(runs, engine):
    recorded, replayed = runs[0], runs[1][engine]
    shared = recorded.episodes.keys() & replayed.episodes.keys()
    assert len(shared) >= 2 * ENVS
    assert {kind for key in shared for fault in recorded.episodes[key].faults for kind in fault.severity} == KINDS
    compared = 0
    for key in shared:
        a, b = recorded.episodes[key], replayed.episodes[key]
        assert b.faults == a.faults
        # as far as both went, if they came to an end
        for one, two in zip(a.switches, b.switches, strict=False):
            assert (one.step, one.on, set(one.limits)) == (two.step, two.on, set(two.limits))
            compared += len(one.limits)
        if a.length and b.length:
            both = min(a.length, b.length)
            assert sum(one.step < both for one in a.switches) == sum(two.step < both for two in b.switches)
    assert compared > 30
    # a policy that falls has further episodes
    lengths = [episode.length for episode in replayed.episodes.values() if episode.length is not None]
    assert all(1 <= length <= EPISODE for length in lengths)
    further = [replayed.episodes[key] for key in replayed.episodes.keys() - recorded.episodes.keys()]
    assert any(fault.joints for episode in further for fault in episode.faults)
