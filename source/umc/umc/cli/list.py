# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc list``: what there is to name on the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from umc.utils.cli import Parser, run_main

DESCRIPTION = "List what other commands take by name; everything without a kind."


def tasks() -> list[str]:
    """Gym ids."""
    from umc.tasks.registry import task_ids

    return task_ids()


def robots() -> list[str]:
    """Robots that there are tasks for."""
    from umc.tasks import registry

    return registry.robots()


def agents() -> list[str]:
    """Agents with their purpose."""
    from umc.rl.agents import AGENTS

    return [f"{name:<24} {spec.purpose}" for name, spec in AGENTS.items()]


def pretrained() -> list[str]:
    """Pretrained policies, as ``--checkpoint`` takes them."""
    from umc.rl.pretrained import describe, read_models

    return [describe(name, entry).replace(": ", ":", 1) for name, entry in sorted(read_models().items())]


def recipes() -> list[str]:
    """Recipes, those of the families included."""
    from umc.training.recipe import recipe_names

    return recipe_names()


def _files(kind: str) -> list[str]:
    from umc.utils.config import config_names

    return config_names(kind)


KINDS: dict[str, Callable[[], list[str]]] = {
    "tasks": tasks,
    "robots": robots,
    "agents": agents,
    "pretrained": pretrained,
    "protocols": lambda: _files("protocol"),
    "recipes": recipes,
    "sweeps": lambda: _files("sweep"),
}


def main(argv: Sequence[str]) -> int:
    """Run ``umc list``; return its exit status."""
    return run_main(_run, argv)


def _run(argv: list[str]) -> int:
    parser = Parser(prog="umc list", description=DESCRIPTION)
    parser.add_argument("kind", nargs="?", choices=KINDS, metavar="KIND", help=f"one of {', '.join(KINDS)}")
    kind = parser.parse_args(argv).kind
    for name in [kind] if kind else KINDS:
        if not kind:
            print(f"{name}:")
        for line in KINDS[name]():
            print(line if kind else f"  {line}")
    return 0
