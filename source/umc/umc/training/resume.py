# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What ``--resume`` refuses, said before anything of the run is touched."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.rl.agents import agent_spec
from umc.rl.checkpoint import CheckpointInfo
from umc.utils.errors import UmcError
from umc.utils.naming import library_of

if TYPE_CHECKING:
    from umc.training.arguments import TrainRequest

REMEMBERED = ("num_envs", "max_iterations")
"""Fields of ``run.json`` that a run goes on with, beside those that every record has."""


def require_same_run(request: TrainRequest, info: CheckpointInfo, path: Path) -> None:
    """Refuse to go on with the run of another task, RL library or agent.

    Args:
        request: Checked command line.
        info: What the run's checkpoint says about itself.
        path: The checkpoint, for the error.

    Raises:
        UmcError: If one of them differs.
    """
    if info.task != request.task:
        raise UmcError(f"{path} is a run of {info.task}; --resume goes on with the same task: give --task {info.task}")
    library = library_of(info.agent)
    if library != request.library:
        raise UmcError(
            f"{path} is a run of {library}; --resume goes on with the same library: give --rl_library {library}"
        )
    # by their name: networks of several agents are alike, and what tells them apart would change half way
    spec = agent_spec(info.agent)
    if spec is not None and spec.name != request.spec.name:
        raise UmcError(
            f"{path} is a run of agent {spec.name}; --resume goes on with the same agent: give --agent {spec.name}"
        )


def require_remembered(fields: Mapping[str, Any], path: Path) -> None:
    """Refuse the record of a run that does not say how large it is.

    Args:
        fields: Content of the ``run.json``.
        path: The file, for the error.

    Raises:
        UmcError: If a number is missing.
    """
    missing = [name for name in REMEMBERED if fields.get(name) is None]
    if missing:
        raise UmcError(f"{path} does not say {' and '.join(missing)}; start a new run without --resume")
