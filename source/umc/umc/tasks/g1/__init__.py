# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Unitree G1 follows a velocity command."""

from umc.tasks.registration import register_task

register_task("G1", 1, __name__, "G1Stage1EnvCfg")
register_task("G1", 2, __name__, "G1Stage2EnvCfg")
