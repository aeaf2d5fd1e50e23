# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What is taken off the console is only what is listed."""

from __future__ import annotations

import logging

import pytest
from umc.utils.console import physx_logger


@pytest.fixture
def root_at_error():
    """Set the root logger as Hydra leaves it after the composition of a task."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    yield
    root.setLevel(level)


@pytest.mark.usefixtures("root_at_error")
def test_only_known_news_of_physx_are_dropped(capsys):
    logger = physx_logger()
    logger.warning("%s", "GPU broadphase requires a CUDA context manager; falling back to ePABP.")
    logger.warning("%s", "PxScene::simulate: the articulation has exploded")
    assert capsys.readouterr().err == "[PhysX] WARNING: PxScene::simulate: the articulation has exploded\n"
