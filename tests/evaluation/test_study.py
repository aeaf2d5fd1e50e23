# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Batches hold each robot once, and files of runs and studies are whole, readable without code, or refused."""

import shutil
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
import umc
from fresh_policy import write_fresh
from umc.evaluation.batches import Batches, Parts, code_fingerprint
from umc.evaluation.compare import Comparison
from umc.evaluation.conditions import TRACKS, set_track, tracks_of
from umc.evaluation.metrics import Episodes
from umc.evaluation.protocol import Setting, protocol_for
from umc.evaluation.session import prepare
from umc.evaluation.study import EnvAssignment, EpisodeBatch, load_study, plain_run, run_of, save_study
from umc.terrains import FLAT_GROUND_CFG, perlin_tracks
from umc.terrains.tracks import needed_grid
from umc.training.command_line import parse
from umc.utils.errors import UmcError
from umc.utils.io import write_torch

from tools.demo_study import demo_study


def run_with(batch, batches):
    assignment = batches.assignment(batch)
    count = len(assignment.cell)
    value = torch.arange(count, dtype=torch.float32) + 1000 * batch
    episodes = Episodes(**{field.name: value for field in fields(Episodes)})
    joints = torch.zeros(count, 12, dtype=torch.bool)
    return EpisodeBatch(
        episodes,
        assignment.cell,
        assignment.member,
        assignment.onset,
        joints,
        {"rom": value},
        torch.ones(count, 4).bool(),
    )


@pytest.mark.parametrize(("num_envs", "episodes"), [(24, 1), (50, 2), (7, 3), (100, 11), (1, 2), (256, None)])
def test_batches_hold_every_robot_once_in_the_same_order(num_envs, episodes):
    protocol = protocol_for("a1")
    batches = Batches.plan(protocol, num_envs, episodes)
    assert batches.num_envs <= num_envs
    runs = [batches.wanted(batch, run_with(batch, batches)) for batch in range(batches.count)]
    whole = EpisodeBatch.join(runs)
    wanted = episodes or num_envs // 24
    assert list(zip(whole.member.tolist(), whole.cell.tolist(), strict=True)) == [
        (member, cell) for member in range(wanted) for cell in range(24)
    ]
    onsets = [setting.onset for setting, _ in protocol.cells]
    assert whole.onset.tolist() == onsets * wanted
    assert len(whole.severity["rom"]) == len(whole.stance) == 24 * wanted
    # another process that is told the size of the batches makes the same ones
    assert Batches.plan(protocol, batches.num_envs, batches.episodes) == batches


def test_the_ground_under_a_robot_depends_on_its_setting_and_member_only():
    from umc.tasks.a1.env_cfg import A1Stage2EnvCfg

    protocol = protocol_for("a1")
    grounds = []
    for num_envs in (24, 100):
        cfg = A1Stage2EnvCfg()
        cfg.scene.num_envs = num_envs
        cfg.scene.terrain = perlin_tracks(**protocol.track, seeds=1)
        set_track(cfg, protocol)
        grounds.append(needed_grid(cfg.scene.terrain.replace(num_envs=num_envs)))
    small, large = grounds
    assert [small.seed_of(column) for column in range(6)] == [100, 25, 75] * 2
    assert small.num_cols == large.num_cols == TRACKS
    assert small.num_rows == large.num_rows
    # 750 steps of 0.02 s at 0.5 m/s are 7.5 m
    assert small.num_rows * small.size[0] > 1.5 * 7.5
    assignment = Batches.plan(protocol, 200, 20).assignment(1)
    tracks = tracks_of(protocol, assignment)
    seeds = [small.seed_of(column) for column in tracks.tolist()]
    assert seeds == [protocol.cells[cell][0].perlin_seed for cell in assignment.cell.tolist()]
    place = torch.arange(len(tracks)).flip(0)
    other = EnvAssignment(assignment.cell[place], assignment.member[place], assignment.onset[place])
    assert torch.equal(tracks_of(protocol, other), tracks[place])
    assert set(tracks.tolist()) == set(range(TRACKS))


def test_flat_ground_stays_flat_and_too_many_terrain_seeds_are_refused():
    from umc.tasks.a1.env_cfg import A1Stage2EnvCfg

    protocol = protocol_for("a1")
    cfg = A1Stage2EnvCfg()
    cfg.scene.terrain = FLAT_GROUND_CFG
    set_track(cfg, protocol)
    assert cfg.scene.terrain is FLAT_GROUND_CFG
    cfg.scene.terrain = perlin_tracks(**protocol.track, seeds=1)
    many = tuple(Setting(1, onset, onset) for onset in range(75, 75 + TRACKS + 1))
    with pytest.raises(UmcError, match="13 terrain seeds; at most 12"):
        set_track(cfg, replace(protocol, settings=many))


def test_a_parts_name_depends_on_all_that_decides_its_result(tmp_path):
    protocol = protocol_for("a1")
    batches = Batches.plan(protocol, 24, 2)

    def name(policy="p", batches=batches, batch=0, **conditions):
        return Parts(tmp_path, {"protocol": protocol.describe(), **conditions}).path(policy, batches, batch)

    others = {
        name(policy="q"),
        name(batch=1),
        name(batches=Batches.plan(protocol, 48, 2)),
        name(protocol=replace(protocol, steps=749).describe()),
        name(protocol=replace(protocol, settings=(*protocol.settings[:2], Setting(51, 125, 75))).describe()),
        name(versions={"newton": "2"}),
    }
    assert len(others) == 6
    assert name() not in others
    assert name() == name()
    # of 3 robots a cell the last batch wants 2 of its 7 envs, of 4 it wants all of the same batch
    few, more = (Batches.plan(protocol, 7, episodes) for episodes in (3, 4))
    assert name(batches=few, batch=9) == name(batches=more, batch=9)
    assert name(batches=few, batch=10) != name(batches=more, batch=10)


def test_shares_of_one_machines_gpus_have_the_same_names(tmp_path):
    checkpoint = write_fresh(tmp_path)
    names = {}
    for device in ("cpu", "cuda:0", "cuda:1"):
        argv = ["--device", "cpu", "--checkpoint", str(checkpoint)]
        session = prepare(*parse(argv, lambda _: None), stage=2)
        session.device = session.env_cfg.sim.device = device
        names[device] = [unit.path for unit in Comparison(session, protocol_for("a1"), 24, None, tmp_path).units]
    assert names["cuda:0"] == names["cuda:1"] != names["cpu"]


def test_a_run_comes_back_from_its_file(tmp_path):
    batches = Batches.plan(protocol_for("a1"), 24)
    run = run_with(0, batches)
    parts = Parts(tmp_path, {})
    parts.save(tmp_path / "a.pt", run, ("FL", "FR"))
    back, feet = parts.load(tmp_path / "a.pt")
    assert feet == ("FL", "FR")
    for name, value in plain_run(run).items():
        assert torch.equal(plain_run(back)[name], value)
    bare = replace(run, severity=None, stance=None)
    assert run_of(plain_run(bare)).severity is None
    assert run_of(plain_run(bare)).stance is None


def test_a_damaged_part_is_refused_in_one_line(tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(b"PK nothing")
    with pytest.raises(UmcError, match="damaged; delete it") as error:
        Parts(tmp_path, {}).load(path)
    assert "\n" not in str(error.value)


def test_a_study_comes_back_from_its_file(tmp_path):
    study = demo_study()
    setting = Setting(1, 75, 100, ("FL_hip_joint",), {"rom": 0.5})
    study = replace(study, protocol=replace(study.protocol, settings=(setting, *study.protocol.settings[1:])))
    save_study(tmp_path / "study.pt", study)
    back = load_study(tmp_path / "study.pt")
    assert back.protocol == study.protocol
    assert (back.step_dt, back.joint_names, back.feet) == (study.step_dt, study.joint_names, study.feet)
    for old, new in zip(study.policies, back.policies, strict=True):
        assert (old.label, old.group) == (new.label, new.group)
        pairs = zip(plain_run(old.run).items(), plain_run(new.run).items(), strict=True)
        for (name, value), (other, same) in pairs:
            assert name == other
            assert torch.equal(value.nan_to_num(-1), same.nan_to_num(-1))


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(UmcError, match="no study at"):
        load_study(tmp_path / "study.pt")
    write_torch(tmp_path / "study.pt", {"format": 0})
    with pytest.raises(UmcError, match="no study of this version"):
        load_study(tmp_path / "study.pt")


@pytest.mark.parametrize(
    ("name", "decides"),
    [
        ("evaluation/rollout.py", True),
        ("faults/kinds/joint.py", True),
        ("faults/data/umc_paper.yaml", True),
        ("robots/data/a1.usda", True),
        ("evaluation/report/plots.py", False),
    ],
)
def test_batches_of_other_code_are_simulated_again_and_those_of_another_report_are_not(tmp_path, name, decides):
    ignored = shutil.ignore_patterns("__pycache__", "*.pt")
    package = Path(shutil.copytree(Path(umc.__file__).parent, tmp_path / "umc", ignore=ignored))
    before = code_fingerprint(package)
    assert code_fingerprint(package) == before
    (package / name).write_text((package / name).read_text() + "\n")
    assert (code_fingerprint(package) != before) == decides
