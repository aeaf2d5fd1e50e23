# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``torch.compile`` (``agent.torch_compile_mode``) traces each network for a GPU, in one graph that stays there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from dummy_robot import DummyRobotEnv, build_runner
from fake_cuda import CUDA, fake_cuda
from tensordict import TensorDict


class Graphs(list):
    """Backend of torch.compile that keeps what was traced; instead of running it, it returns what has its shape."""

    def __call__(self, graph: torch.fx.GraphModule, inputs: Any) -> Any:
        self.append(graph)
        (output,) = (node for node in graph.graph.nodes if node.op == "output")
        return lambda *_: tuple(node.meta["example_value"] for node in output.args[0])

    @property
    def devices(self) -> set[torch.device]:
        """Devices of all tensors in the graphs but single numbers."""
        values = [node.meta.get("example_value") for graph in self for node in graph.graph.nodes]
        return {value.device for value in values if isinstance(value, torch.Tensor) and value.dim()}


@pytest.mark.parametrize("part", ["actor", "critic"])
@pytest.mark.parametrize("agent", ["mlp", "transformer", "body_transformer"])  # a GRU's fused cell has no fake form
def test_a_model_is_one_graph_on_the_gpu(agent, part):
    torch._dynamo.reset()
    with fake_cuda():
        env = DummyRobotEnv("A1", str(CUDA))
        runner = build_runner(None, agent, env=env, device=str(CUDA))
        model, graphs = getattr(runner.alg, f"_raw_{part}"), Graphs()
        obs: TensorDict = env.get_observations()
    # outside: torch traces nothing while a mode of others watches its operators
    result = torch.compile(model, fullgraph=True, backend=graphs)(obs)
    assert (result.device, result.shape) == (CUDA, (env.num_envs, env.num_actions if part == "actor" else 1))
    assert len(graphs) == 1
    assert graphs.devices == {CUDA}
