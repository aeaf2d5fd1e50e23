# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Unitree H1 follows a velocity command."""

from umc.tasks.registration import register_task

register_task("H1", 1, __name__, "H1Stage1EnvCfg")
register_task("H1", 2, __name__, "H1Stage2EnvCfg")
