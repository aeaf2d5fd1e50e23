# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Time forward and backward of the networks against their bare matrix products, as a Markdown table.

All contenders run in turns in one process, and one thread is timed by its processor time, so that the ratios mean
something on a busy machine. Usage:

    ./isaaclab.sh -p benchmarks/models.py [--batch 512 2048] [--threads 1] [--rounds 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from umc.models import JointLayout, MaskedMlp, MaskedTransformer
from umc.models.blocks import EncoderBlock

NUM_JOINTS, OBS_DIM, JOINT_START = 12, 48, 12
"""A1's actor observation."""

DEAD_FRACTION = 0.1
"""Share of masked joints in the batch; the times do not depend on it."""

Step = Callable[[], None]
Clock = Callable[[], float]


class TorchEncoderNetwork(nn.Module):
    """The same network around torch's own nn.TransformerEncoder, fed by one nn.Linear for each joint in a loop."""

    def __init__(self, layout: JointLayout, like: MaskedTransformer) -> None:
        super().__init__()
        block = cast(EncoderBlock, like.blocks[0])
        self.columns = like.columns
        width, feedforward = block.linear1.in_features, block.linear1.out_features
        self.tokenizers = nn.ModuleList(nn.Linear(3, width) for _ in range(layout.num_joints))
        self.context = nn.Linear(like.context_dim, width)
        self.positions = nn.Parameter(torch.zeros(layout.num_joints + 1, width))
        layer = nn.TransformerEncoderLayer(width, block.num_heads, feedforward, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, len(like.blocks), enable_nested_tensor=False)
        self.detokenizers = nn.ModuleList(nn.Linear(width, 1) for _ in range(layout.num_joints))

    def forward(self, obs: Tensor, joint_mask: Tensor, fault_flag: Tensor) -> Tensor:
        """Compute actions (B, J)."""
        base, joints = self.columns.split(obs)
        tokens = [tokenizer(joints[:, joint]) for joint, tokenizer in enumerate(self.tokenizers)]
        tokens.append(self.context(torch.cat([base, fault_flag], dim=1)))
        x = self.encoder(
            torch.stack(tokens, dim=1) + self.positions, src_key_padding_mask=F.pad(joint_mask, (0, 1)) > 0
        )
        return torch.cat([head(x[:, joint]) for joint, head in enumerate(self.detokenizers)], dim=1)


def matrix_products(network: MaskedTransformer, batch: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the operands of every matrix product in a forward pass, of the sizes that the network uses.

    Args:
        network: The network whose products are counted.
        batch: Batch size B.

    Yields:
        Pairs of matrices, batched or not.
    """
    block = cast(EncoderBlock, network.blocks[0])
    width, heads, size = block.linear1.in_features, block.num_heads, block.head_dim
    tokens, joints = network.positions.shape[0], network.layout.num_joints
    yield torch.randn(joints, batch, 3), torch.randn(joints, 3, width)
    yield torch.randn(batch, network.context_dim), torch.randn(network.context_dim, width)
    for _ in network.blocks:
        for linear in (block.qkv, block.out, block.linear1, block.linear2):
            yield torch.randn(batch * tokens, linear.in_features), torch.randn(linear.in_features, linear.out_features)
        yield torch.randn(batch * heads, tokens, size), torch.randn(batch * heads, size, tokens)  # scores
        yield torch.randn(batch * heads, tokens, tokens), torch.randn(batch * heads, tokens, size)  # values
    yield torch.randn(joints, batch, width), torch.randn(joints, width, 1)


def product_step(network: MaskedTransformer, batch: int) -> Step:
    """Make a step that does only the matrix products of forward and backward (three for each in the forward)."""
    operands = [(left, right, left @ right) for left, right in matrix_products(network, batch)]

    def step() -> None:
        for left, right, result in operands:
            torch.matmul(left, right, out=result)
            torch.matmul(result, right.mT)  # gradient of the left operand
            torch.matmul(left.mT, result)  # gradient of the right operand

    return step


def network_step(network: nn.Module, inputs: tuple[Tensor, ...]) -> Step:
    """Make a step of forward and backward."""

    def step() -> None:
        network.zero_grad(set_to_none=True)
        network(*inputs).square().mean().backward()

    return step


def measure(steps: dict[str, Step], rounds: int, clock: Clock) -> dict[str, float]:
    """Run the steps in turns.

    Args:
        steps: What to time, by name.
        rounds: Turns that count, after one that does not.
        clock: Gives the time [s].

    Returns:
        The shortest time of each [s]: the one that other processes disturbed least.
    """
    best = dict.fromkeys(steps, float("inf"))
    for turn in range(rounds + 1):
        for name, step in steps.items():
            start = clock()
            step()
            if turn:
                best[name] = min(best[name], clock() - start)
    return best


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[512, 2048], help="batch sizes")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument("--rounds", type=int, default=5, help="turns that count")
    args = parser.parse_args()
    if min(*args.batch, args.threads, args.rounds, 1) < 1:
        parser.error("--batch, --threads and --rounds must be at least 1")
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    layout = JointLayout.term_major([f"joint_{i}" for i in range(NUM_JOINTS)], OBS_DIM, JOINT_START)
    transformer = MaskedTransformer(layout)
    networks = {
        "masked transformer": transformer,
        "nn.TransformerEncoder, looped tokenizers": TorchEncoderNetwork(layout, transformer),
        "masked MLP": MaskedMlp(layout),
    }
    # The processor time of one thread leaves out what other processes took; with more threads it would add them up.
    clock, kind = (time.thread_time, "processor time") if args.threads == 1 else (time.perf_counter, "wall time")
    print(f"Forward + backward, float32, {args.threads} thread(s), torch {torch.__version__}, {kind}, ", end="")
    print(f"best of {args.rounds}\n")
    print("| batch | what | parameters | time [ms] | x bare products |")
    print("|---:|---|---:|---:|---:|")
    for batch in args.batch:
        mask = (torch.rand(batch, NUM_JOINTS) < DEAD_FRACTION).float()
        inputs = (torch.randn(batch, OBS_DIM), mask, torch.ones(batch, 3))
        steps = {"bare products of the transformer": product_step(transformer, batch)}
        steps |= {name: network_step(network, inputs) for name, network in networks.items()}
        times = measure(steps, args.rounds, clock)
        bare = times["bare products of the transformer"]
        for name, seconds in times.items():
            count = f"{sum(p.numel() for p in networks[name].parameters()):,}" if name in networks else ""
            print(f"| {batch} | {name} | {count} | {1e3 * seconds:.1f} | {seconds / bare:.2f} |")


if __name__ == "__main__":
    main()
