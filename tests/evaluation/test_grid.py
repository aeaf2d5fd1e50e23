# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Sweeps become protocols and find their policies."""

import os
from collections import Counter

import pytest
import torch
import yaml
from fresh_policy import write_fresh
from umc.evaluation.evaluate import _check_grid
from umc.evaluation.grid import apply_grid, trained_policies
from umc.evaluation.protocol import protocol_for
from umc.faults import FaultCases, JointLimits
from umc.robots import A1_JOINTS
from umc.training.sweep_file import read_sweep_file
from umc.utils.config import config_names
from umc.utils.errors import UmcError


def grid(name, quick=False, **changes):
    sweep = read_sweep_file(name, changes)
    protocol = protocol_for("a1", sweep.scenarios, name=sweep.protocol or "umc_paper")
    return apply_grid(sweep, protocol.quick() if quick else protocol, A1_JOINTS, quick)


def test_a_grid_is_every_combination():
    protocol = grid("severity_joint_onset")
    assert len(protocol.cells) == 3 * 12 * 3 * 3
    assert Counter(setting.onset for setting in protocol.settings) == {75: 36, 100: 36, 125: 36}
    assert Counter(setting.joints for setting in protocol.settings) == {(name,): 9 for name in A1_JOINTS}
    assert len({setting.name for setting in protocol.settings}) == 108
    quick = grid("severity_joint_onset", quick=True)
    assert (len(quick.settings), {setting.onset for setting in quick.settings}) == (2 * 2, {10})
    groups = grid("joints", **{"grid.joints": [["FL_hip_joint", "FL_calf_joint"], "RR_hip_joint"]})
    assert [case["num_joints"] for case in groups.cases()[:: len(groups.scenarios)]] == [(2, 2), (1, 1)]


def test_the_faults_of_a_cell_are_those_of_its_setting():
    protocol = grid("severity_joint_onset", **{"grid.severity": [{"rom": 0.5, "effort": 16.0}, {"rom": 0.2}]})
    count = len(protocol.cells)
    cases = FaultCases(A1_JOINTS, protocol.cases(), count)
    plan = cases.draw(torch.arange(count), torch.zeros(count, dtype=torch.long))
    kinds = [kind.name for kind in cases.kinds]
    for number, (setting, scenario) in enumerate(protocol.cells):
        joints = plan.joints[number].any(0)
        assert [A1_JOINTS[joint] for joint in joints.nonzero().flatten()] == list(setting.joints)
        assert plan.onset[number, 0] == setting.onset
        kind = {5: "rom", 6: "effort", 7: "velocity"}[scenario]
        expected = {**protocol.severity, **setting.severity}[kind]
        assert plan.severity[number, 0, kinds.index(kind)][joints].tolist() == pytest.approx([expected])


def test_a_grid_keeps_the_severity_of_the_first_setting():
    settings = {"seed": [1, 2], "onset": [75, 100], "severity": [{"rom": 0.4}, {"rom": 0.2}]}
    protocol = apply_grid(
        read_sweep_file("joints", {}), protocol_for("a1", overrides={"settings": settings}), A1_JOINTS
    )
    assert [setting.severity for setting in protocol.settings] == [{"rom": 0.4}] * 12


def test_settings_that_a_grid_lacks_may_be_typed():
    _check_grid(read_sweep_file("severity", {}), 7, {"settings.onset": [75, 75, 75]})
    with pytest.raises(UmcError, match=r"protocol.settings.onset: a sweep with a grid repeats one setting"):
        _check_grid(read_sweep_file("severity", {}), None, {"settings.onset": [75, 75, 80]})
    with pytest.raises(UmcError, match=r"--seed: sweep severity has its own; give sweep.grid.seed"):
        _check_grid(read_sweep_file("severity", {"grid.seed": [3]}), 7, {})


@pytest.mark.parametrize("name", config_names("sweep"))
def test_every_sweep_of_the_package_has_faults(name):
    protocol = grid(name)
    sweep = read_sweep_file(name, {})
    # without a grid the conditions are the protocol's, and so is the name by which the paper's tables are found
    assert protocol.name == (name if sweep.grid else sweep.protocol or "umc_paper")
    limits = JointLimits(*(torch.full((12,), value) for value in (-1.0, 1.0, 33.5, 21.0)))
    assert FaultCases(A1_JOINTS, protocol.cases(), len(protocol.cells), nominal=limits).has_faults


def test_an_ablation_finds_the_last_run_of_every_seed(tmp_path):
    def found(*agents):
        sweep = read_sweep_file("ablation_mask_value", {"network": "mlp", "agents": list(agents)})
        return trained_policies(sweep, "a1", tmp_path)

    runs = {}
    for agent, seeds in (("mlp", (2, 1, 1)), ("mlp_mask_100", (5,))):
        for number, seed in enumerate(seeds):
            folder = tmp_path / "rsl_rl" / f"umc_a1_{agent}_stage2" / f"2026-01-0{number + 1}_00-00-00"
            runs[agent, number] = write_fresh(folder, seed=seed)
    older = write_fresh(tmp_path / "skrl" / "umc_a1_mlp_stage2" / "2026-01-09_00-00-00", seed=1)
    os.utime(older, (1, 1))
    expected = (("mlp", 2), ("mlp", 0), ("mlp_mask_100", 0))
    assert found("NETWORK", "NETWORK_mask_100") == [str(runs[key]) for key in expected]
    with pytest.raises(UmcError, match=r"no trained mlp_mask_minus_100 of a1.*--task UMC-A1-Stage2 --agent mlp_mask_m"):
        found("NETWORK", "NETWORK_mask_minus_100")
    with pytest.raises(UmcError, match="unknown agent lstm"):
        found("lstm")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"grid": {}}, "name is missing"),
        ({"name": "x", "gird": {}}, "unknown key gird; did you mean grid"),
        ({"name": "x", "grid": {"joint": []}}, "grid: unknown key joint; did you mean joints"),
        ({"name": "x", "grid": {"joints": "all"}}, "give 'each', or a list"),
        ({"name": "x", "grid": {"onset": []}}, r"grid\.onset"),
        ({"name": "x", "grid": {"onset": [750]}}, "onset 750 must lie between"),
        ({"name": "x", "grid": {"severity": [0.1]}}, r"grid\.severity"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused(tmp_path, content, words):
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(UmcError, match=words) as error:
        grid(str(path))
    assert "\n" not in str(error.value)
