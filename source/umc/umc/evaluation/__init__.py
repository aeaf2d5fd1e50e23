# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Protocol, rollout, metrics and report of an evaluation, and pictures of a policy."""
