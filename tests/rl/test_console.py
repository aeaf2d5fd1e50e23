# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What is taken off the console is only what is listed."""

from __future__ import annotations

import logging

from umc.rl.console import _PhysxNews


def passes(message):
    return bool(_PhysxNews().filter(logging.LogRecord("ovphysx", logging.WARNING, "", 0, "%s", (message,), None)))


def test_only_known_news_of_physx_are_dropped():
    assert not passes("GPU broadphase requires a CUDA context manager; falling back to ePABP.")
    assert passes("PxScene::simulate: the articulation has exploded")
