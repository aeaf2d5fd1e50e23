# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Files of studies are complete, readable without code, or refused."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from changed_files import put
from made_up_study import JOINTS, made_up_study
from umc.evaluation import rollout
from umc.evaluation.metrics import Step
from umc.evaluation.protocol import Setting
from umc.evaluation.study import EnvAssignment, faulty_joints, load_study, save_study
from umc.faults import FaultCases, FaultState
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


def test_a_fault_of_the_imu_is_a_fault_of_no_joint(monkeypatch):
    cases = [{"scenario": name} for name in ("dead", "imu_dead", "dead+imu_dead", "normal")]
    state = FaultState(FaultCases(JOINTS, cases, 4), 4)
    state.reset(torch.arange(4))
    assert state.joints.any(dim=1).tolist() == [True, True, True, False]  # the plan gives it one
    assert faulty_joints(state).any(dim=1).tolist() == [True, False, True, False]

    def steps(*_):
        nothing, no = torch.zeros(4), torch.zeros(4, dtype=torch.bool)
        yield Step(torch.zeros(4, 2), nothing, nothing, no, no, no, nothing, nothing, number=1)

    monkeypatch.setattr(rollout, "reset_batch", lambda *_: None)
    monkeypatch.setattr(rollout, "fault_term", lambda _: SimpleNamespace(state=state, detector=None))
    monkeypatch.setattr(rollout, "step_policy", steps)
    four = torch.arange(4)
    run = rollout.run_faults(
        SimpleNamespace(num_envs=4, device="cpu"), None, SimpleNamespace(steps=1), EnvAssignment(four, four, four + 1)
    )
    assert torch.equal(run.joints, faulty_joints(state))


def test_what_is_no_study_is_refused(tmp_path):
    for version in (0, torch.ones(2)):
        write_torch(tmp_path / "study.pt", {"format": version})
        with pytest.raises(UmcError, match=r"has format .* instead of .*, a study of another umc"):
            load_study(tmp_path / "study.pt")


RUN = ("policies", 0, "run")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(None, "protocol"), "protocol is missing"),
        (put([3], "policies"), "policies.0 is 3"),
        (put("0.02", "step_dt"), "step_dt is '0.02'"),
        (put(float("nan"), "step_dt"), "step_dt is nan"),
        (put(10, "protocol", "settings"), "protocol of an evaluation is damaged: settings is 10"),
        (put(0, "protocol", "settings", 0, "onset"), "onset 0 must lie between"),
        (put("example B", "policies", 0, "label"), "two policies have the same label"),
        (put(None, *RUN, "cell"), r"a run lacks the tensors \['cell'\] and has the unknown tensors \[\]"),
        (put(torch.zeros(3), *RUN, "extra"), r"lacks the tensors \[\] and has the unknown tensors \['extra'\]"),
        (put([1], *RUN, "cell"), "a run has no robot"),
        (put(torch.zeros(3), *RUN, "onset"), "onset is no tensor of torch.int64"),
        (put(torch.full((960,), 24), *RUN, "cell"), "cell has a value that is not from 0 to 23"),
        (put(torch.full((960,), 9), *RUN, "episodes.outcome"), "episodes.outcome has a value that is not from 0 to 4"),
    ],
)
def test_a_study_that_is_not_valid_is_refused_by_name(tmp_path, change, words):
    path = tmp_path / "study.pt"
    save_study(path, made_up_study())
    content = torch.load(path, weights_only=True)
    change(content)
    write_torch(path, content)
    with pytest.raises(UmcError, match=words) as caught:
        load_study(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
