# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Files of studies are complete, readable without code, or refused."""

from dataclasses import replace

import pytest
import torch
from made_up_study import made_up_study
from umc.evaluation.protocol import Setting
from umc.evaluation.study import load_study, save_study
from umc.utils.errors import UmcError
from umc.utils.io import write_torch


def test_a_study_comes_back_from_its_file(tmp_path):
    study = made_up_study()
    setting = Setting(1, 75, 100, ("FL_hip_joint",), {"rom": 0.5})
    study = replace(study, protocol=replace(study.protocol, settings=(setting, *study.protocol.settings[1:])))
    save_study(tmp_path / "study.pt", study)
    back = load_study(tmp_path / "study.pt")
    assert back.protocol == study.protocol
    assert (back.step_dt, back.joint_names, back.feet) == (study.step_dt, study.joint_names, study.feet)
    for old, new in zip(study.policies, back.policies, strict=True):
        assert (old.label, old.group) == (new.label, new.group)
        torch.testing.assert_close(new.run.tensors(), old.run.tensors(), rtol=0, atol=0, equal_nan=True)


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(UmcError, match="no study at"):
        load_study(tmp_path / "study.pt")
    write_torch(tmp_path / "study.pt", {"format": 0})
    with pytest.raises(UmcError, match="not a study of this version"):
        load_study(tmp_path / "study.pt")
