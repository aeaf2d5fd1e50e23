# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Task ids and entry points say what they name."""

import pytest
from umc.utils.errors import UmcError
from umc.utils.naming import entry_point, library_of, stage1_task, task_parts


def test_names():
    assert task_parts("UMC-G1-Stage2") == ("g1", 2)
    assert stage1_task("UMC-Solo8-Stage2") == "UMC-Solo8-Stage1"
    assert library_of(entry_point("nm_mlp", "skrl")) == "skrl"
    assert library_of("mlp") is None
    with pytest.raises(UmcError, match="no UMC task"):
        task_parts("Isaac-Velocity-Flat-Unitree-A1")
