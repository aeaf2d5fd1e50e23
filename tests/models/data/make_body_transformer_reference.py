# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Run the public BodyTransformer and write down what it computes: body_transformer.json.

Usage, with a clone of https://github.com/carlosferrazza/BodyTransformer (MIT; none of it is kept here):

    ./isaaclab.sh -p tests/models/data/make_body_transformer_reference.py CLONE

Weights are drawn by name order from numpy's RandomState, whose stream is frozen: so the file holds names, shapes,
inputs and outputs only, and a test draws the same weights again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import types
from pathlib import Path

import numpy as np
import torch

COMMIT = "941551e7120f994e51f48b39866620df7435a71c"
ROWS, OBS_DIM, NUM_ACTIONS = 5, 48, 12
PUBLISHED = {"embed_dim": 64, "num_heads": 2, "feedforward_dim": 128, "num_layers": 8}
"""a1_field_config.py: A1FieldCfgPPO.policy."""
PAPER = {"embed_dim": 120, "num_heads": 2, "feedforward_dim": 128, "num_layers": 4}
"""The sizes of UMC's transformer."""
CASES = [
    {"output": "action", "mixed": False, "tanh": True, "sizes": PUBLISHED},
    {"output": "action", "mixed": True, "tanh": True, "sizes": PUBLISHED},
    {"output": "action", "mixed": True, "tanh": False, "sizes": PAPER},
    {"output": "value", "mixed": False, "tanh": False, "sizes": PUBLISHED},
]


def draw_weights(shapes: dict[str, list[int]], seed: int) -> dict[str, np.ndarray]:
    """Draw weights by name order: biases of 0.1, factors of a norm around 1, matrices that keep their input's scale."""
    random = np.random.RandomState(seed)
    drawn = {}
    for name in sorted(shapes):
        value = random.standard_normal(shapes[name])
        if name.endswith("bias"):
            value *= 0.1
        elif ".norm" in name:
            value = 1.0 + 0.1 * value
        elif "position" not in name:
            value /= np.sqrt(shapes[name][-1]) * (2.0 if "detokenizer" in name else 1.0)  # tanh must not saturate
        drawn[name] = value.astype(np.float32)
    return drawn


def public_modules(clone: Path) -> types.ModuleType:
    """Import the public networks without their package's __init__ files, which need Isaac Gym."""
    root = clone / "a1_walk" / "rsl_rl" / "rsl_rl"
    for name, path in {"rsl_rl": root, "rsl_rl.modules": root / "modules", "rsl_rl.utils": root / "utils"}.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [str(path)]
    for name in ("positional_encodings", "positional_encodings.torch_encodings"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["positional_encodings.torch_encodings"].PositionalEncoding1D = object  # imported there, never used
    return importlib.import_module("rsl_rl.modules.transformers")


def build(public: types.ModuleType, case: dict) -> torch.nn.Module:
    """Make the public network of a case."""
    width, sizes = case["sizes"]["embed_dim"], case["sizes"]
    net = public.BodyTransformer(
        "a1",
        width,
        dim_feedforward=sizes["feedforward_dim"],
        nhead=sizes["num_heads"],
        num_layers=sizes["num_layers"],
        is_mixed=case["mixed"],
        first_hard_layer=0,
    )
    if case["output"] == "value":
        return public.BodyCritic("a1", net, embedding_dim=width, stack_time=False, device="cpu")
    activation = torch.nn.Tanh() if case["tanh"] else None
    return public.BodyActor("a1", net, width, NUM_ACTIONS, stack_time=False, mu_activation=activation, device="cpu")


def main() -> None:
    """Write the file beside this script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path, help="clone of the public repository")
    public = public_modules(parser.parse_args().clone)
    obs = np.random.RandomState(0).standard_normal((ROWS, OBS_DIM)).astype(np.float32)
    cases = []
    for seed, case in enumerate(CASES):
        network = build(public, case)
        trained = {name: list(value.shape) for name, value in network.named_parameters() if value.requires_grad}
        shapes = {name: shape for name, shape in trained.items() if 0 not in shape}
        weights = draw_weights(shapes, seed)
        with torch.no_grad():
            for name, parameter in network.named_parameters():
                if name in weights:
                    parameter.copy_(torch.from_numpy(weights[name]))
            outputs = network(torch.from_numpy(obs))
        cases.append({**case, "seed": seed, "shapes": shapes, "outputs": outputs.tolist()})
    source = {"repository": "https://github.com/carlosferrazza/BodyTransformer", "commit": COMMIT}
    content = {"source": {**source, "torch": torch.__version__}, "obs": obs.tolist(), "cases": cases}
    path = Path(__file__).with_name("body_transformer.json")
    path.write_text(json.dumps(content) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
