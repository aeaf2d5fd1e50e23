# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Finds the fault term of an environment, and the fault state that it owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from umc.utils.errors import UmcError

if TYPE_CHECKING:
    from isaaclab.envs import ManagerBasedEnv

    from umc.faults import FaultState

FAULTS_TERM = "faults"
"""Name of the :class:`~umc.mdp.joint_faults` event."""


def fault_term(env: ManagerBasedEnv) -> Any:
    """Return the :class:`~umc.mdp.joint_faults` term of an environment; raises UmcError if it has none."""
    manager = env.event_manager
    if FAULTS_TERM not in manager.active_terms.get("interval", ()):
        raise UmcError(f"the environment has no '{FAULTS_TERM}' interval event; add umc.mdp.joint_faults to its events")
    return manager.get_term_cfg(FAULTS_TERM).func


def fault_state(env: ManagerBasedEnv) -> FaultState:
    """Return the fault state of an environment as its last observation showed it, also to rewards and terminations.

    Raises UmcError if it has no ``faults`` event.
    """
    return fault_term(env).state
