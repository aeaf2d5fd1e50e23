# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What is taken off the console is only what is listed."""

from __future__ import annotations

import logging

from umc.rl.console import _PhysxNews


def test_only_known_news_of_physx_are_dropped(caplog):
    logger = logging.getLogger("physx_as_in_this_test")
    logger.addFilter(_PhysxNews())
    logger.warning("GPU broadphase requires a CUDA context manager; falling back to ePABP.")
    logger.warning("PxScene::simulate: the articulation has exploded")
    assert caplog.messages == ["PxScene::simulate: the articulation has exploded"]
