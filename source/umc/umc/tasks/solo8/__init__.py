# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Solo8 walks straight ahead."""

from umc.tasks.registration import register_task

register_task("Solo8", 1, __name__, "Solo8Stage1EnvCfg")
register_task("Solo8", 2, __name__, "Solo8Stage2EnvCfg")
