# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The command ``umc`` and its subcommands; a module is imported when its command is called, not before."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence

from umc.utils.cli import USAGE_ERROR, did_you_mean, run_main
from umc.utils.isaaclab_flags import asks_for_help
from umc.utils.lazy_imports import defer_unused_imports

COMMANDS: dict[str, tuple[str, list[str], str]] = {
    "train": ("umc.cli.train", [], "train a policy"),
    "recipe": ("umc.cli.train", ["--recipe"], "train all phases of a recipe: umc recipe NAME"),
    "sweep": ("umc.cli.train", ["--sweep"], "train all runs of a sweep: umc sweep NAME --task TASK"),
    "smoke-test": ("umc.cli.smoke_test", [], "everything once, small; a GPU compared with the CPU: a report"),
    "evaluate": ("umc.cli.evaluate", [], "evaluate policies under faults, side by side"),
    "gait": ("umc.cli.evaluate", ["--healthy"], "measure the gait of the healthy robot: umc gait --checkpoint PATH"),
    "report": ("umc.cli.evaluate", ["--report_only"], "write the reports of an evaluation anew: umc report DIR"),
    "benchmark": ("umc.cli.benchmark", [], "evaluate policies under frozen conditions: a card for the leaderboard"),
    "play": ("umc.cli.play", [], "watch a policy live (--viz); without --viz it is filmed"),
    "film": ("umc.cli.film", [], "film policies, side by side: MP4, GIF, storyboard"),
    "export": ("umc.cli.export", [], "write a policy as ONNX and TorchScript"),
    "sim2sim": ("umc.cli.sim2sim", [], "evaluate an export, or a policy that UMC did not train, in plain MuJoCo"),
    "tune": ("umc.cli.tune", [], "measure how many threads train fastest on this machine"),
    "train-detector": ("umc.cli.train_detector", [], "train a fault detector beside a walking policy"),
    "diagnose": ("umc.cli.diagnose", [], "measure a fault detector: delays, false alarms, the right joint"),
    "benchmark-speed": ("umc.cli.benchmark_speed", [], "measure ratios of speed in one table (in a clone)"),
    "list": ("umc.cli.list", [], "tasks, robots, agents, pretrained policies, protocols, recipes and sweeps"),
}
"""Module, arguments that come first and purpose of each subcommand."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(usage())
        return 0 if words else USAGE_ERROR
    name, *rest = words
    if name == "--version":
        import umc

        print(f"umc {umc.__version__}")
        return 0
    if name not in COMMANDS:
        hint = did_you_mean(name, COMMANDS)
        print(f"error: unknown command {name};{hint} choose one of {', '.join(COMMANDS)}", file=sys.stderr)
        return USAGE_ERROR
    gc.set_threshold(100_000, 50, 1000)  # by default a quarter of the time of imports is the search for garbage
    defer_unused_imports()
    # before torch is imported: OpenMP's threads that spin while they wait slow a transformer down on a busy machine
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    path, first, purpose = COMMANDS[name]
    module = importlib.import_module(path)
    if first and asks_for_help(rest):
        what, own = purpose.split(": ")
        print(f"usage: {own} [flags]\n\n{what.capitalize()}, as umc {path.split('.')[-1]} {first[0]} does:\n")
    return run_main(module.main, [*first, *rest], getattr(module, "STOP_MESSAGE", "stopped"))


def usage() -> str:
    """Return the help of ``umc``."""
    lines = ["usage: umc COMMAND [ARGUMENTS]", "", "Legged robots that keep walking when joints and sensors fail.", ""]
    lines += [f"  {name:<16} {purpose}" for name, (_, _, purpose) in COMMANDS.items()]
    lines += ["", "umc COMMAND --help lists its flags.", "", "examples:"]
    lines += ["  umc train --task UMC-A1-Stage1 --agent mlp", "  umc evaluate --checkpoint pretrained --robot a1"]
    return "\n".join([*lines, "  umc film --checkpoint pretrained:g1_mlp_stage2 --scenario 6"])
