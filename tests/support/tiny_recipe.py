# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A recipe of three tiny phases, for tests of what recipes say and of what they run."""

import yaml

TINY = {
    "robot": "a1",
    "agent": "mlp",
    "device": "cpu",
    "physics": "ovphysx",
    "seed": 3,
    "num_envs": 8,
    "overrides": ["env.scene.terrain=flat"],
    "stages": {
        1: [
            {"name": "walk", "iterations": 2},
            {"name": "speed", "iterations": 3, "overrides": ["env.rewards.track_lin_vel.params.std=0.25"]},
        ],
        2: [{"name": "faults", "iterations": 4, "num_envs": 16}],
    },
}
PHASES = 3


def written(folder, name="tiny", **changes):
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({key: value for key, value in {**TINY, **changes}.items() if value is not None}))
    return str(path)
