# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A policy in the browser: the robot, its faults and the controls to break it (``umc play --viz viser``)."""
