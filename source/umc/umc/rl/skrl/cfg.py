# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An rsl_rl agent's cfg as skrl's: the same networks, sizes and PPO values, under the names that skrl gives them."""

import copy
from dataclasses import MISSING
from typing import Any

from isaaclab.utils import configclass
from isaaclab_rl.rsl_rl import RslRlOnPolicyRunnerCfg, RslRlPpoAlgorithmCfg

from umc.rl.model_cfg import UmcGruModelCfg
from umc.utils.errors import UmcError


@configclass
class UmcSkrlPpoCfg:
    """Fields of skrl's ``PPO_CFG``, under its names; ``rollouts`` is the agent's ``num_steps_per_env``."""

    learning_epochs: int = MISSING  # pyright: ignore[reportAssignmentType]
    mini_batches: int = MISSING  # pyright: ignore[reportAssignmentType]
    discount_factor: float = MISSING  # pyright: ignore[reportAssignmentType]
    gae_lambda: float = MISSING  # pyright: ignore[reportAssignmentType]
    learning_rate: float = MISSING  # pyright: ignore[reportAssignmentType]

    learning_rate_scheduler: str | None = None
    """``"KLAdaptiveLR"``, or None for a fixed learning rate."""

    learning_rate_scheduler_kwargs: dict[str, float] = {}
    """Its options."""

    grad_norm_clip: float = MISSING  # pyright: ignore[reportAssignmentType]
    ratio_clip: float = MISSING  # pyright: ignore[reportAssignmentType]

    value_clip: float = MISSING  # pyright: ignore[reportAssignmentType]
    """How far a value may move in one update; 0 leaves it free."""

    entropy_loss_scale: float = MISSING  # pyright: ignore[reportAssignmentType]
    value_loss_scale: float = MISSING  # pyright: ignore[reportAssignmentType]

    kl_threshold: float = 0.0
    """KL divergence that ends an epoch early; 0 ends none, as in rsl_rl."""

    mixed_precision: bool = False


def skrl_cfg(agent: RslRlOnPolicyRunnerCfg) -> Any:
    """Return the skrl twin of an rsl_rl agent: a copy whose ``algorithm`` is a :class:`UmcSkrlPpoCfg`.

    All other fields have the same values, so ``agent.`` overrides outside the algorithm hold for both libraries.
    """
    if isinstance(agent.actor, UmcGruModelCfg):
        raise UmcError("skrl does not train networks with a memory here; give --rl_library rsl_rl, or another agent")
    twin: Any = copy.deepcopy(agent)
    twin.algorithm = skrl_ppo(agent.algorithm)
    return twin


def skrl_ppo(ppo: RslRlPpoAlgorithmCfg) -> UmcSkrlPpoCfg:
    """Return the values of rsl_rl's PPO under the names of skrl's; what skrl lacks raises :class:`UmcError`."""
    if ppo.schedule not in ("adaptive", "fixed"):
        raise UmcError(f"agent.algorithm.schedule: unknown schedule {ppo.schedule}; choose one of adaptive, fixed")
    missing = {
        "optimizer": ppo.optimizer != "adam",
        "normalize_advantage_per_mini_batch": ppo.normalize_advantage_per_mini_batch,
        "rnd_cfg": ppo.rnd_cfg is not None,
        "symmetry_cfg": ppo.symmetry_cfg is not None,
    }
    unknown = [name for name, wanted in missing.items() if wanted]
    if unknown:
        raise UmcError(f"skrl's PPO has no {', '.join(unknown)}; train this agent with --rl_library rsl_rl")
    adaptive = ppo.schedule == "adaptive"
    schedule = {
        "kl_threshold": ppo.desired_kl,
        # the rest as rsl_rl 5.5.1, PPO.update
        "min_lr": 1.0e-5,
        "max_lr": 1.0e-2,
        "kl_factor": 2.0,
        "lr_factor": 1.5,
    }
    return UmcSkrlPpoCfg(
        learning_epochs=ppo.num_learning_epochs,
        mini_batches=ppo.num_mini_batches,
        discount_factor=ppo.gamma,
        gae_lambda=ppo.lam,
        learning_rate=ppo.learning_rate,
        learning_rate_scheduler="KLAdaptiveLR" if adaptive else None,
        learning_rate_scheduler_kwargs=schedule if adaptive else {},
        grad_norm_clip=ppo.max_grad_norm,
        ratio_clip=ppo.clip_param,
        value_clip=ppo.clip_param if ppo.use_clipped_value_loss else 0.0,
        entropy_loss_scale=ppo.entropy_coef,
        value_loss_scale=ppo.value_loss_coef,
        mixed_precision=ppo.use_mixed_precision,
    )
