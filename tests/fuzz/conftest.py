# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""How many bad files every test of this folder tries: 200 in the default tier, 2,000 in the full tier."""

import os

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = {"default": 200, "full": 2_000}
"""Bad files per format; ``UMC_FUZZ_EXAMPLES`` replaces them."""


def pytest_configure(config: pytest.Config) -> None:
    """Choose the tier's number of examples; those of the default tier are always the same."""
    tier = "full" if config.getoption("--all", default=False) else "default"
    settings.register_profile(
        "fuzz",
        max_examples=int(os.environ.get("UMC_FUZZ_EXAMPLES") or EXAMPLES[tier]),
        derandomize=tier == "default",
        deadline=None,  # a busy machine is slow; tests/support/mutated.py ends what hangs
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("fuzz")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give many examples the time that they need."""
    for item in items:
        if "tests/fuzz" in item.path.as_posix():
            item.add_marker(pytest.mark.timeout(1200))
