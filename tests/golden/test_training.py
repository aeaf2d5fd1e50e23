# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A seeded training, stopped and resumed, comes to the same weights from version to version."""

import dummy_training as dummy
import torch

WEIGHTS = {
    "actor.distribution.std_param": [2.110463, 1.055986],
    "actor.mlp.0.weight": [0.389839, 2.060905],
    "actor.mlp.0.bias": [-0.610142, 1.005523],
    "actor.mlp.2.weight": [-1.69206, 1.089201],
    "actor.mlp.2.bias": [-0.034699, 0.187752],
    "critic.mlp.0.weight": [0.853895, 2.613337],
    "critic.mlp.0.bias": [-0.354016, 1.293675],
    "critic.mlp.2.weight": [0.079608, 0.988162],
    "critic.mlp.2.bias": [-0.250817, 0.250817],
}
"""Sum and length of each parameter after six iterations."""


def resumed_weights(folder) -> dict[str, tuple[float, float]]:
    """Train three iterations, and three more in a second runner."""
    path = dummy.build(folder).train(3)
    runner = dummy.build(folder)
    runner.resume(str(path))
    runner.train(6)
    networks = {"actor": runner.alg.actor, "critic": runner.alg.critic}
    return {
        f"{network}.{name}": (round(float(value.detach().sum()), 6), round(float(value.detach().norm()), 6))
        for network, module in networks.items()
        for name, value in module.named_parameters()
    }


def test_weights_of_a_resumed_training(tmp_path):
    found = resumed_weights(tmp_path)
    assert found.keys() == WEIGHTS.keys()
    for name, figures in WEIGHTS.items():
        torch.testing.assert_close(torch.tensor(found[name]), torch.tensor(figures), rtol=0.0, atol=1e-4, msg=name)
