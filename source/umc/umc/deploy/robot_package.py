# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The runner of exported policies as one file, since a robot's computer seldom has UMC's Python 3.12.

``PYTHONPATH=umc_runner.zip python3 robot_loop.py`` needs Python 3.8, NumPy and ONNX Runtime.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

RUNNER = "umc_runner.zip"
"""Name of the file in the folder of an exported policy."""

PACKAGE = Path(__file__).parents[1]

MODULES = (
    "__init__.py",
    "deploy/__init__.py",
    "deploy/detector_runner.py",
    "deploy/policy_runner.py",
    "utils/__init__.py",
    "utils/description.py",
    "utils/errors.py",
    "utils/text.py",
)
"""Files of :data:`PACKAGE` that :class:`~umc.deploy.policy_runner.PolicyRunner` imports; they run on Python 3.8."""


def write_runner(path: Path) -> None:
    """Write the zip file that a robot's Python imports :class:`~umc.deploy.policy_runner.PolicyRunner` from."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in MODULES:
            archive.writestr(zipfile.ZipInfo(f"umc/{name}"), (PACKAGE / name).read_bytes())  # the same bytes each time
