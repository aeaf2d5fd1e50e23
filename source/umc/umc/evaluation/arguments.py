# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The flags that evaluations and films share: policies, task, device, and the overrides that they take."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Sequence

from umc.utils.cli import at_least_one, check_seed, path
from umc.utils.config import OVERRIDE, SELECTORS, override_key
from umc.utils.errors import UmcError, shown
from umc.utils.isaaclab_flags import AddArguments, parse_all

HEALTHY = 8
"""Scenario of the paper's table without faults."""

HEALTHY_SECONDS = 10.0
"""Length of ``--healthy`` [s]."""

MOST_EPISODES = 100_000
"""Most robots of each cell; at 50 env steps a second of each of 256 robots they walk for days."""

MOST_STEPS = 100_000
"""Longest episode [env steps]: half an hour of a robot's time."""

OWN_SECTIONS = ("protocol", "sweep")
"""Sections of overrides that some commands read themselves."""

SECTIONS = ("env", "agent", "parts", *OWN_SECTIONS)
"""All sections of overrides."""


def scenario(text: str) -> int | str:
    """Read a scenario: a number of the paper's table, or a name."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def add_policy_arguments(parser: argparse.ArgumentParser, seed: str = "seed of faults and starts") -> None:
    """Add the flags by which evaluations and films name policies, a task and a place; ``seed`` is a help text."""
    add = parser.add_argument_group("policies and task").add_argument
    add(
        "--checkpoint",
        nargs="*",
        help="model_<iteration>.pt, a run folder, which stands for its last one, or a pretrained policy: 'pretrained' "
        "or 'pretrained:NAME'",
    )
    add(
        "--policy",
        nargs="*",
        help="a policy that UMC did not train, for --task: a TorchScript or ONNX file, a checkpoint of rsl_rl or skrl, "
        "a YAML file that describes what one reads (docs/external_policies.md), or package.module:function",
    )
    add("--trust", action="store_true", help="run the code in the TorchScript files of --policy")
    add(
        "--task",
        help="gym id of a velocity task: UMC's, Isaac Lab's or, as PACKAGE:ID, that of any Python package; the "
        "checkpoint's own without it",
    )
    add("--offline", action="store_true", help="take UMC's files for those of Isaac Lab's asset server (A1, Go2)")
    add("--robot", help="robot that the checkpoints must be for; the first checkpoint's without it")
    add("--agent", help="agent whose pretrained policy is meant; the first that the robot has without it")
    add("--seed", type=int, help=seed)
    add("--device", help="cpu, cuda, cuda:N; the first GPU where there is one, else the CPU")
    add("--out", type=path, help="folder for what is written; beside the checkpoint without it")
    parser.set_defaults(num_envs=None)  # a flag of some


LONG_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*){2,}=")
"""Override in a section of a section, perhaps misspelt, such as ``evn.scene.terrain=flat``."""

FAULTS = "env.events.faults.params"
"""Overrides of a training's faults, in whose place a protocol's are evaluated."""


def num_policies(options: argparse.Namespace) -> int:
    """Return how many policies the flags name."""
    return len(options.checkpoint or ()) + len(options.policy or ())


def parse(
    argv: Sequence[str], add_arguments: AddArguments, own: tuple[str, ...] | None = ()
) -> tuple[argparse.Namespace, list[str]]:
    """Return flags and overrides of an evaluation or a film.

    It reads the sections ``own`` besides ``env.`` and ``parts.``; with None the caller refuses what it does not read.
    """
    options, overrides = parse_all(overrides_first(argv), (add_policy_arguments, add_arguments))
    for token in overrides:
        if own is None:
            break
        section = override_key(token).lstrip("+~").split(".")[0]
        sections = ("env", *own, "parts")
        if section not in (*SELECTORS, *sections):
            allowed = ", ".join(f"{name}." for name in sections)
            reason = "; the agent comes with the checkpoint" if section == "agent" else ""
            raise UmcError(f"{token}: only {allowed} and physics= overrides can be given{reason}")
        # a clip repeats what its training has simulated, faults included
        films_training = getattr(options, "recording", None) is not None
        if not films_training:
            _check_faults(token, own)
    at_least_one(options.num_envs, "--num_envs")
    check_seed(options.seed)
    return options, overrides


def _check_faults(token: str, own: tuple[str, ...]) -> None:
    """Raise UmcError for an override of the task's faults, other than of the joints that can fail."""
    key = override_key(token)
    if key in (f"{FAULTS}.ledger", f"{FAULTS}.replay"):
        fix = "umc play --viz viser --ledger FILE records one, umc sim2sim --ledger FILE replays one"
        raise UmcError(f"{shown(token)}: this command draws the faults itself, without a ledger; {fix}")
    ours = key in (FAULTS, FAULTS.removesuffix(".params")) or key.startswith(f"{FAULTS}.")
    if ours and not key.startswith(f"{FAULTS}.asset_cfg."):
        fix = "give --protocol or protocol.severity.rom=0.3 in its place" if "protocol" in own else "leave it out"
        raise UmcError(f"{shown(token)}: this command draws the faults itself; {fix}")


def of_env(overrides: Iterable[str]) -> list[str]:
    """Return the overrides of the task and its presets."""
    return [token for token in overrides if token.split(".")[0] not in OWN_SECTIONS]


def overrides_first(argv: Sequence[str]) -> list[str]:
    """Move presets and overrides to the front, where no flag with a list of values takes them for one of its own."""

    def moves(number: int) -> bool:
        token = argv[number]
        # the token after a flag is its value, whatever it looks like
        value = number > 0 and argv[number - 1].startswith("-") and "=" not in argv[number - 1]
        section, dot, _ = override_key(token).lstrip("+~").partition(".")
        if not value and section not in (SECTIONS if dot else SELECTORS):
            flags = [word for word in argv[:number] if word.startswith("--")]
            # such as lr=1e-3 or v2.1=wide
            value = flags[-1:] in (["--labels"], ["--names"]) and not LONG_PATH.match(token)
        return OVERRIDE.match(token) is not None and not value and not os.path.exists(token)

    first = [number for number in range(len(argv)) if moves(number)]
    return [argv[number] for number in first] + [argv[number] for number in range(len(argv)) if number not in first]
