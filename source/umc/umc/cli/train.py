# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc train``, with the evaluation of a recipe checked before its first phase: ``umc.training`` cannot import it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from umc.training import train
from umc.training.train import STOP_MESSAGE as STOP_MESSAGE  # for umc.cli.main
from umc.utils.cli import as_flags
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.training.recipe import Recipe


def main(argv: list[str]) -> int:
    """Run ``umc train``; return its exit status."""
    return train.main(argv, check_evaluation)


def check_evaluation(recipe: Recipe, runs: bool) -> None:
    """Raise UmcError for an ``evaluation`` that ``umc evaluate`` would refuse after the last phase.

    The machine has to have the engine if it is to run it (``runs``).
    """
    from umc.cli.evaluate import add_arguments
    from umc.evaluation.arguments import parse
    from umc.evaluation.protocol import protocol_for
    from umc.evaluation.session import without_policy
    from umc.robots.names import robot_names
    from umc.tasks.parts import FIELD
    from umc.tasks.registry import task_id
    from umc.utils.config import read_overrides

    wanted = recipe.evaluation
    try:
        flags = as_flags(num_envs=wanted.num_envs, device=recipe.device)
        options, overrides = parse([*flags, *wanted.overrides], add_arguments, ("protocol",))
        of_env = [token for token in overrides if token.split(".")[0] not in ("protocol", FIELD)]
        task = task_id(recipe.robot, 2)
        session = without_policy(options, [*recipe.engine, *of_env], task, launches=runs)
        names = robot_names(session.env_cfg.scene.robot)
        protocol = protocol_for(recipe.robot, overrides=read_overrides(overrides, "protocol"))
        if wanted.num_envs is not None:
            protocol.check_envs(wanted.num_envs)
        if names is not None:
            protocol.check_faults(names.joints)
    except UmcError as error:
        raise UmcError(f"recipe {recipe.name}: evaluation: {error}") from error
