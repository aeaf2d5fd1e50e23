# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Flags of a command together with Isaac Lab's: their help without importing it, and their parsing."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from umc.utils.cli import Parser
from umc.utils.errors import UmcError
from umc.utils.naming import load_tasks
from umc.utils.process import python_arguments

LAUNCHER_FLAGS: tuple[tuple[tuple[str, ...], str | None, str], ...] = (
    (("--visualizer", "--viz"), "NAMES", "visualizers, comma-separated: kit, newton, rerun, viser; none without it"),
    (("--deterministic",), None, "reproducible rendering"),
    (("--verbose",), None, "messages of the simulation app, verbose"),
    (("--info",), None, "messages of the simulation app, informative"),
    (("--max_visible_envs",), "COUNT", "envs that a visualizer shows at most"),
    (("--livestream",), "{0,1,2}", "stream the app of Isaac Sim (environment variable LIVESTREAM)"),
    (("--xr",), None, "XR mode of Isaac Sim"),
    (("--experience",), "FILE", "experience file of Isaac Sim"),
    (("--kit_args",), "ARGS", "arguments of Omniverse Kit, in quotes"),
    (("--anim_recording_enabled",), None, "record USD animations of Isaac Sim's PhysX"),
    (("--anim_recording_start_time",), "SECONDS", "begin of that recording (0)"),
    (("--anim_recording_stop_time",), "SECONDS", "end of that recording (10)"),
)
"""Isaac Lab's launcher flags but ``--device``, for the help; tests compare them with Isaac Lab's own parser."""

OVERRIDES: Mapping[str, str] = {
    "physics": "physics=ovphysx or physics=newton_mjwarp chooses the engine; without it a checkpoint runs on that of\n"
    "its training, everything else on ovphysx on a CPU and on Newton on a GPU",
    "env": "env.KEY=VALUE changes a field of the task",
    "agent": "agent.KEY=VALUE changes a field of the agent",
    "protocol": "protocol.KEY=VALUE changes a field of the protocol",
    "sweep": "sweep.KEY=VALUE changes a field of the sweep (--sweep)",
    "parts": "parts.NAME=VALUE names a part of the task (docs/external_policies.md)",
}
"""Help on overrides by what they begin with."""

TRAINING = ("physics", "env", "agent")
"""Overrides of a training."""

AddArguments = Callable[[argparse.ArgumentParser], None]


def asks_for_help(argv: Sequence[str]) -> bool:
    """Return whether a command line asks for the help."""
    return "-h" in argv or "--help" in argv


def show_help(
    argv: Sequence[str],
    command: str,
    description: str,
    examples: Sequence[str],
    add_arguments: Sequence[AddArguments],
    takes: Sequence[str] = (),
) -> int:
    """Print the help of a command that ``takes`` some of :data:`OVERRIDES`, and a task's presets; return 0."""
    words = python_arguments(command)
    prog = f"umc {command}" if words[0] == "-m" else Path(words[0]).name
    usage = f"{prog} [flags]{' [overrides]' if takes else ''}"
    style = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=prog, description=description, usage=usage, formatter_class=style)
    lines = ["examples:", *(f"  {prog} {example}" for example in examples)]
    for add in add_arguments:
        add(parser)
    with_presets = "physics" in takes and any(token.split("=")[0] == "--task" for token in argv)
    if takes and not with_presets:
        text = "\n".join(OVERRIDES[name] for name in takes)
        more = "\n--task TASK --help lists the presets of a task" if "physics" in takes else ""
        lines = ["overrides:", *(f"  {line}" for line in (text + more).splitlines()), "", *lines]
    parser.epilog = "\n".join(lines)
    if with_presets:
        from isaaclab_tasks.utils import setup_preset_cli

        load_tasks()
        typed, sys.argv = sys.argv, [sys.argv[0], *argv]  # where it looks for the task
        try:
            setup_preset_cli(parser, list(argv))
        finally:
            sys.argv = typed
    parser.print_help()
    return 0


def parse_all(argv: Sequence[str], add_arguments: Sequence[AddArguments]) -> tuple[argparse.Namespace, list[str]]:
    """Return Isaac Lab's launcher flags with a command's own, which win where both name one, and the overrides."""
    check_flags(argv, add_arguments)

    from isaaclab.app import add_launcher_args
    from isaaclab.app.sim_launcher import fuse_kit_args

    parser = Parser(conflict_handler="resolve", allow_abbrev=False, add_help=False)
    add_launcher_args(parser)
    parser.add_argument("--headless", action="store_true")
    for add in add_arguments:
        add(parser)
    options, overrides = parser.parse_known_args(fuse_kit_args(list(argv)))
    if options.headless:  # standard error, since callers keep Isaac Lab's prints off standard output
        print("--headless is ignored: only --viz opens a window", file=sys.stderr)
    _check_overrides(overrides)
    return options, overrides


def check_flags(argv: Sequence[str], add_arguments: Sequence[AddArguments]) -> None:
    """Raise UmcError for a word that is no flag of the command or of Isaac Lab, and no override; imports neither."""
    if any(token.split("=")[0] == "--kit_args" for token in argv):  # its value may look like a flag
        return
    parser = Parser(conflict_handler="resolve", allow_abbrev=False, add_help=False)
    parser.add_argument("--device")
    add_launcher_flags(parser)
    for add in add_arguments:
        add(parser)
    _check_overrides(parser.parse_known_args(argv)[1])


def add_launcher_flags(parser: argparse.ArgumentParser) -> None:
    """Add Isaac Lab's launcher flags, as a group of the help."""
    group = parser.add_argument_group("Isaac Lab's launcher flags")
    group.add_argument("--headless", action="store_true", help="accepted and ignored: only --viz opens a window")
    for flags, metavar, text in LAUNCHER_FLAGS:
        kind: Any = {"metavar": metavar} if metavar else {"action": "store_true"}
        group.add_argument(*flags, help=text, **kind)


def _check_overrides(overrides: Sequence[str]) -> None:
    for token in overrides:
        if token.startswith("-"):
            raise UmcError(f"unknown flag {token.split('=')[0]}; --help lists all flags")
        if "=" not in token:
            raise UmcError(f"cannot read {token}; overrides look like env.scene.num_envs=64 or physics=ovphysx")
