# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""An agent's PPO under skrl's names. Agents keep rsl_rl's names: overrides and recipes hold for both libraries."""

from collections.abc import Mapping
from typing import Any

from umc.utils.errors import UmcError


def skrl_ppo(ppo: Mapping[str, Any]) -> dict[str, Any]:
    """Return rsl_rl's PPO values under the names of skrl's ``PPO_CFG``; raise UmcError for what skrl lacks."""
    if ppo["schedule"] not in ("adaptive", "fixed"):
        raise UmcError(f"agent.algorithm.schedule: unknown schedule {ppo['schedule']}; choose one of adaptive, fixed")
    missing = {
        "optimizer": ppo.get("optimizer", "adam") != "adam",
        "normalize_advantage_per_mini_batch": ppo.get("normalize_advantage_per_mini_batch"),
        "rnd_cfg": ppo.get("rnd_cfg"),
        "symmetry_cfg": ppo.get("symmetry_cfg"),
    }
    unknown = [f"{name}={ppo[name]}" for name, wanted in missing.items() if wanted]
    if unknown:
        raise UmcError(f"skrl's PPO has no {', '.join(unknown)}; train this agent with --rl_library rsl_rl")
    adaptive = ppo["schedule"] == "adaptive" and ppo["desired_kl"] is not None
    schedule = {
        "kl_threshold": ppo["desired_kl"],
        # the rest as rsl_rl 5.5.1, PPO.update
        "min_lr": 1.0e-5,
        "max_lr": 1.0e-2,
        "kl_factor": 2.0,
        "lr_factor": 1.5,
    }
    return {
        "learning_epochs": ppo["num_learning_epochs"],
        "mini_batches": ppo["num_mini_batches"],
        "discount_factor": ppo["gamma"],
        "gae_lambda": ppo["lam"],
        "learning_rate": ppo["learning_rate"],
        "learning_rate_scheduler_kwargs": schedule if adaptive else {},
        "grad_norm_clip": ppo["max_grad_norm"],
        "ratio_clip": ppo["clip_param"],
        "value_clip": ppo["clip_param"] if ppo["use_clipped_value_loss"] else 0.0,  # 0 leaves values free
        "entropy_loss_scale": ppo["entropy_coef"],
        "value_loss_scale": ppo["value_loss_coef"],
        "kl_threshold": 0.0,  # no early end of an epoch, as in rsl_rl
        "mixed_precision": ppo.get("use_mixed_precision", False),
    }


def require_skrl(agent_cfg: Any) -> None:
    """Raise UmcError if skrl cannot train an agent."""
    from umc.rl.model_cfg import UmcGruModelCfg

    if isinstance(agent_cfg.actor, UmcGruModelCfg):
        raise UmcError("skrl does not train networks with a memory here; give --rl_library rsl_rl, or another agent")
    if agent_cfg.torch_compile_mode:
        raise UmcError("skrl's runner compiles nothing; leave agent.torch_compile_mode out, or --rl_library rsl_rl")
    skrl_ppo(agent_cfg.algorithm.to_dict())
