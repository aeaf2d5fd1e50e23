# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Time and memory of the networks, against bare matrix products and against torch's own encoder, as Markdown tables.

All contenders run in turns in one process, and one thread is timed by its processor time, so that the ratios mean
something on a busy machine. Usage:

    ./isaaclab.sh -p benchmarks/models.py [--batch 512 4096 24576] [--threads 1 2] [--rounds 5]
    ./isaaclab.sh -p benchmarks/models.py --public CLONE   # the public BodyTransformer too, from a clone of it
    ./isaaclab.sh -p benchmarks/models.py --device cuda    # float32, TF32 and bf16; eager, compiled, CUDA graph
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import onnxruntime
import torch
import torch.nn.functional as F
from common import clock_of, positive
from ratios import add_json_flag, save
from torch import Tensor, nn
from umc.models import BodyTransformer, BodyTransformerCfg, JointLayout, MaskedMlp, MaskedTransformer, TransformerCfg
from umc.models.blocks import EncoderBlock
from umc.robots import A1_CFG, A1_JOINTS
from umc.robots.graph import joint_neighbours
from umc.utils.matmul import onednn_matmul

OBS_DIM, JOINT_START = 48, 12
"""A1's actor observation."""

SIZES: dict[str, Any] = {"embed_dim": 120, "num_heads": 2, "feedforward_dim": 128, "num_layers": 4}
"""The paper's sizes, for all transformers."""

DEAD_FRACTION = 0.1
"""Share of masked joints in the batch; the times do not depend on it."""

LATENCY_ROUNDS = 2000
"""Single observations whose time is taken."""

REFERENCE = "nn.TransformerEncoder, looped tokenizers"
TRAINED = ("masked MLP", "masked transformer")
"""Networks whose time is taken in training's own setting, too."""

BARE = "bare products of the transformer"
PUBLIC = "public BodyTransformer"
OURS = "BodyTransformer of the same sizes"
SAVED = ((REFERENCE, "masked transformer"), (PUBLIC, OURS))
"""Ratios that are saved."""

Step = Callable[[], None]


class TorchEncoderNetwork(nn.Module):
    """The same network as BodyTransformer's public code builds it: nn.Linear in loops around nn.TransformerEncoder."""

    def __init__(self, layout: JointLayout) -> None:
        super().__init__()
        self.layout, width, joints = layout, SIZES["embed_dim"], layout.num_joints
        self.tokenizers = nn.ModuleList(nn.Linear(3, width) for _ in range(joints))
        self.context = nn.Linear(layout.base_dim + 3, width)
        self.positions = nn.Parameter(torch.zeros(joints + 1, width))
        layer = nn.TransformerEncoderLayer(
            width, SIZES["num_heads"], SIZES["feedforward_dim"], dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, SIZES["num_layers"], enable_nested_tensor=False)
        self.detokenizers = nn.ModuleList(nn.Linear(width, 1) for _ in range(joints))

    def forward(self, obs: Tensor, joint_mask: Tensor, fault_flag: Tensor) -> Tensor:
        """Compute actions (B, J)."""
        tokens = [
            tokenizer(obs[:, list(columns)])
            for columns, tokenizer in zip(self.layout.joint_columns, self.tokenizers, strict=True)
        ]
        tokens.append(self.context(torch.cat([obs[:, list(self.layout.base_columns)], fault_flag], dim=1)))
        x = torch.stack(tokens, dim=1) + self.positions
        x = self.encoder(x, src_key_padding_mask=F.pad(joint_mask, (0, 1)) > 0)
        return torch.cat([head(x[:, joint]) for joint, head in enumerate(self.detokenizers)], dim=1)


def a1_layout() -> JointLayout:
    """A1's observation and joint graph."""
    return JointLayout.term_major(A1_JOINTS, OBS_DIM, JOINT_START, joint_neighbours(A1_CFG, A1_JOINTS))


def make_networks(public: Path | None) -> dict[str, nn.Module]:
    """Make the contenders by name; the public one only where its clone is given."""
    layout = a1_layout()
    networks: dict[str, nn.Module] = {
        "masked transformer": MaskedTransformer(layout, TransformerCfg(**SIZES)),
        "masked transformer, body attention": MaskedTransformer(layout, TransformerCfg(attention="body", **SIZES)),
        OURS: BodyTransformer(layout, BodyTransformerCfg(**SIZES)),
        REFERENCE: TorchEncoderNetwork(layout),
        "masked MLP": MaskedMlp(layout),
    }
    if public is not None:
        sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "models" / "data"))
        maker = importlib.import_module("make_body_transformer_reference")
        case = {"output": "action", "mixed": False, "tanh": True, "sizes": SIZES}
        with warnings.catch_warnings(action="ignore"):
            networks[PUBLIC] = maker.build(maker.public_modules(public), case)
    return networks


def make_inputs(network: nn.Module, batch: int, device: str) -> tuple[Tensor, ...]:
    """Make a batch of observations, with mask and flag where the network takes them."""
    obs = torch.randn(batch, OBS_DIM, device=device)
    if not isinstance(network, (MaskedTransformer, MaskedMlp, TorchEncoderNetwork)):
        return (obs,)
    mask = (torch.rand(batch, len(A1_JOINTS), device=device) < DEAD_FRACTION).float()
    return obs, mask, torch.ones(batch, 3, device=device)


def matrix_products(network: MaskedTransformer, batch: int, device: str) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the operands of every matrix product in a forward pass, of the sizes that the network uses."""
    block = cast(EncoderBlock, network.blocks[0])
    width, heads, size = block.linear1.in_features, block.num_heads, block.head_dim
    tokens, joints = network.positions.shape[0], network.layout.num_joints

    def pair(*shapes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        left, right = (torch.randn(shape, device=device) for shape in shapes)
        return left, right

    yield pair((joints, batch, 3), (joints, 3, width))
    yield pair((batch, network.context_dim), (network.context_dim, width))
    for _ in network.blocks:
        for linear in (block.qkv, block.out, block.linear1, block.linear2):
            yield pair((batch * tokens, linear.in_features), (linear.in_features, linear.out_features))
        yield pair((batch * heads, tokens, size), (batch * heads, size, tokens))  # scores
        yield pair((batch * heads, tokens, tokens), (batch * heads, tokens, size))  # values
    yield pair((joints, batch, width), (joints, width, 1))


def product_step(network: MaskedTransformer, batch: int, device: str) -> Step:
    """Make a step that does only the matrix products of forward and backward (three for each in the forward)."""
    operands = [(left, right, left @ right) for left, right in matrix_products(network, batch, device)]

    def step() -> None:
        for left, right, result in operands:
            torch.matmul(left, right, out=result)
            torch.matmul(result, right.mT)  # gradient of the left operand
            torch.matmul(left.mT, result)  # gradient of the right operand

    return step


def network_step(network: nn.Module, inputs: tuple[Tensor, ...], forward: nn.Module | None = None) -> Step:
    """Make a step of forward and backward; `forward` stands in for a compiled or graphed network."""

    def step() -> None:
        for parameter in network.parameters():
            parameter.grad = None
        (forward or network)(*inputs).square().mean().backward()

    return step


def by_onednn(step: Step) -> Step:
    """The same step, its products by oneDNN, as `scripts/train.py` takes it on CPUs other than Intel's."""

    def fast() -> None:
        with onednn_matmul():
            step()

    return fast


def measure(steps: dict[str, Step], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Run the steps in turns, once more than counts; return the times of each [s]."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 1):
        for name, step in steps.items():
            start = clock()
            step()
            if turn:
                times[name].append(clock() - start)
    return times


def print_speed(
    networks: dict[str, nn.Module], batches: list[int], threads: int, rounds: int
) -> dict[str, list[float]]:
    """Print forward and backward on a CPU, the shortest times; return the ratios of :data:`SAVED`."""
    torch.set_num_threads(threads)
    # The processor time of one thread leaves out what other processes took; with more threads it would add them up.
    clock, kind = (time.thread_time, "processor time") if threads == 1 else (time.perf_counter, "wall time")
    print(f"\nForward + backward, float32, CPU, {threads} thread(s), torch {torch.__version__}, {kind}, ", end="")
    print(f"best of {rounds}\n\n| batch | what | parameters | time [ms] | x bare products | {REFERENCE} / it |")
    print("|---:|---|---:|---:|---:|---:|")
    saved = {}
    for batch in batches:
        steps = {BARE: product_step(cast(MaskedTransformer, networks["masked transformer"]), batch, "cpu")}
        steps |= {name: network_step(one, make_inputs(one, batch, "cpu")) for name, one in networks.items()}
        steps |= {f"{name}, by oneDNN": by_onednn(steps[name]) for name in TRAINED}
        every = measure(steps, rounds, clock)
        for one, other in SAVED:
            if one in every:
                name = f"{one} / {other}, batch {batch:,}, {threads} thread(s)"
                saved[name] = [first / second for first, second in zip(every[one], every[other], strict=True)]
        times = {name: min(taken) for name, taken in every.items()}  # what other processes disturbed least
        for name, seconds in times.items():
            count = f"{sum(p.numel() for p in networks[name].parameters()):,}" if name in networks else ""
            ratios = f"{seconds / times[BARE]:.2f} | {times[REFERENCE] / seconds:.2f}"
            print(f"| {batch} | {name} | {count} | {1e3 * seconds:.1f} | {ratios} |", flush=True)
    return saved


def print_cuda(networks: dict[str, nn.Module], batches: list[int], rounds: int) -> None:
    """Print forward and backward on a GPU: precisions, eager, compiled and as a CUDA graph."""
    clock = clock_of("cuda")
    print(f"\nForward + backward, {torch.cuda.get_device_name()}, torch {torch.__version__}, best of {rounds}\n")
    print("| batch | precision | what | mode | time [ms] | peak memory [MiB] |\n|---:|---|---|---|---:|---:|")
    for batch in batches:
        for precision in ("float32", "TF32", "bf16"):
            torch.set_float32_matmul_precision("high" if precision == "TF32" else "highest")
            lower = torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16", cache_enabled=False)
            for name, network in networks.items():
                inputs = make_inputs(network.to("cuda"), batch, "cuda")
                for mode in ("eager", "compiled", "CUDA graph"):
                    if mode == "CUDA graph" and network is networks.get(PUBLIC):
                        continue  # it makes tensors on the CPU in its forward
                    with lower:
                        forward = prepared(network, inputs, mode)
                        torch.cuda.reset_peak_memory_stats()
                        seconds = min(measure({"": network_step(network, inputs, forward)}, rounds, clock)[""])
                    peak = torch.cuda.max_memory_allocated() / 2**20
                    print(f"| {batch} | {precision} | {name} | {mode} | {1e3 * seconds:.2f} | {peak:.0f} |", flush=True)
                    del forward
                    torch.compiler.reset()


def prepared(network: nn.Module, inputs: tuple[Tensor, ...], mode: str) -> nn.Module:
    """Compile or record a network for these inputs."""
    if mode == "compiled":
        return cast(nn.Module, torch.compile(network))
    if mode == "CUDA graph":
        # it replaces the forward of the module that it is given: a wrapper leaves the network itself as it was
        return cast(nn.Module, torch.cuda.make_graphed_callables(_Wrapper(network), inputs))
    return network


class _Wrapper(nn.Module):
    """A network under another name."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, *inputs: Tensor) -> Tensor:
        """Compute what the network computes."""
        return self.network(*inputs)


def peak_memory(name: str, batch: int) -> float:
    """Peak memory that forward and backward add on a CPU, in a process of its own [MiB]."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_added_memory, (name, batch))


def _added_memory(name: str, batch: int) -> float:
    network = make_networks(None)[name]
    network_step(network, make_inputs(network, 8, "cpu"))()
    inputs = make_inputs(network, batch, "cpu")
    Path("/proc/self/clear_refs").write_text("5")  # Linux: the high-water mark starts anew
    before = _status_kib("VmRSS")
    network_step(network, inputs)()
    return (_status_kib("VmHWM") - before) / 1024


def _status_kib(field: str) -> int:
    """A figure of this process as Linux counts it [KiB]."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def print_latency(networks: dict[str, nn.Module]) -> None:
    """Print what one observation takes in ONNX Runtime on one core."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    print(f"\nOne observation in ONNX Runtime {onnxruntime.__version__}, one thread, {LATENCY_ROUNDS} times\n")
    print("| what | median [ms] | best [ms] |\n|---|---:|---:|")
    for name in ("masked transformer", "masked transformer, body attention", "masked MLP"):
        network = networks[name].eval()
        inputs = make_inputs(network, 1, "cpu")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network.onnx"
            with contextlib.redirect_stdout(None), warnings.catch_warnings(action="ignore"):
                torch.onnx.export(network, inputs, path, input_names=["o", "m", "f"], dynamo=True, external_data=False)
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        feed = {node.name: value.numpy() for node, value in zip(session.get_inputs(), inputs, strict=True)}
        times = []
        for _ in range(LATENCY_ROUNDS):
            start = time.perf_counter()
            session.run(None, feed)
            times.append(1e3 * (time.perf_counter() - start))
        network.train()
        print(f"| {name} | {sorted(times)[len(times) // 2]:.3f} | {min(times):.3f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=positive, nargs="+", default=[512, 4096, 24576], help="batch sizes")
    parser.add_argument("--threads", type=positive, nargs="+", default=[1, 2], help="torch threads (CPU)")
    parser.add_argument("--rounds", type=positive, default=5, help="turns that count")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--public", type=Path, help="clone of github.com/carlosferrazza/BodyTransformer")
    add_json_flag(parser)
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("there is no CUDA device here: use --device cpu")
    torch.manual_seed(0)
    networks = make_networks(args.public)
    if args.device == "cuda":
        print_cuda(networks, args.batch, args.rounds)
        return
    print_latency(networks)
    print("\nPeak memory of forward + backward, CPU\n\n| batch | what | added [MiB] |\n|---:|---|---:|")
    for name in ("masked transformer", REFERENCE):
        print(f"| {max(args.batch)} | {name} | {peak_memory(name, max(args.batch)):,.0f} |", flush=True)
    saved = {}
    for threads in args.threads:
        saved |= print_speed(networks, args.batch, threads, args.rounds)
    save(args.json, saved)


if __name__ == "__main__":
    main()
