# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc list``: what there is to name on the command line."""

from __future__ import annotations

from umc.rl.agents import AGENTS
from umc.rl.pretrained import describe, read_models
from umc.utils.cli import Parser
from umc.utils.config import config_names

DESCRIPTION = "List what other commands take by name; everything without a kind."

KINDS = ("tasks", "robots", "agents", "pretrained", "protocols", "recipes", "sweeps")


def listed(kind: str) -> list[str]:
    """Return what there is of a kind, one line each."""
    if kind == "agents":
        return [f"{name:<24} {spec.purpose}" for name, spec in AGENTS.items()]
    if kind == "pretrained":  # as --checkpoint takes them
        return [describe(name, entry).replace(": ", ":", 1) for name, entry in sorted(read_models().items())]
    if kind in ("protocols", "sweeps"):
        return config_names(kind.removesuffix("s"))
    from umc.tasks.registry import robots, task_ids
    from umc.training.recipe import recipe_names

    return {"tasks": task_ids, "robots": robots, "recipes": recipe_names}[kind]()


def main(argv: list[str]) -> int:
    """Run ``umc list``; return its exit status."""
    parser = Parser(prog="umc list", description=DESCRIPTION)
    parser.add_argument("kind", nargs="?", choices=KINDS, metavar="KIND", help=f"one of {', '.join(KINDS)}")
    kind = parser.parse_args(argv).kind
    for name in [kind] if kind else KINDS:
        if not kind:
            print(f"{name}:")
        for line in listed(name):
            print(line if kind else f"  {line}")
    return 0
