# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What a policy's numbers mean: overrides of its training that an evaluation or a film has to repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from umc.rl.checkpoint import trained_overrides
from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from umc.evaluation.session import Candidate

INTERFACE = ("env.actions.", "env.observations.", "env.decimation", "env.sim.dt", "env.scene.robot.")
"""Where overrides stand that change what actions and observations mean, how often they are asked for, or the body."""

CRITIC = "env.observations.critic."
"""The exception: what only the critic reads."""


def interface_overrides(candidates: Sequence[Candidate], overrides: Sequence[str]) -> tuple[list[str], list[str]]:
    """Repeat what the policies' training changed in their robot, actions and observations, where the user does not."""
    from umc.utils.config import override_key

    typed = {override_key(token) for token in overrides}

    def of(one: Candidate) -> list[str]:
        trained = [(override_key(token).lstrip("~+"), token) for token in trained_overrides(one.path, one.info)]
        return [
            token
            for key, token in trained
            if key.startswith(INTERFACE) and not key.startswith(CRITIC) and key not in typed
        ]

    first, *others = candidates
    repeated = of(first)
    for other in others:
        different = sorted({*repeated} ^ {*of(other)})
        if different:
            raise UmcError(
                f"{first.path} and {other.path} were not trained alike ({' '.join(different)}); take each on its own, "
                "or give the override that is to hold for all"
            )
    return repeated, [f"as in the training: {' '.join(repeated)}"] if repeated else []
