# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Unitree A1 walks straight ahead."""

from umc.tasks.registration import register_task

register_task("A1", 1, __name__, "A1Stage1EnvCfg")
register_task("A1", 2, __name__, "A1Stage2EnvCfg")
