# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Maintainers' tools: results page, publishing a policy, figures of the documentation; not in the wheel."""
