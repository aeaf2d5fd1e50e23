# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints are complete or absent, run no code, and belong to one robot and model."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import zipfile

import changed_files
import dummy_training as dummy
import pytest
import torch
from umc.rl.checkpoint import (
    checkpoint_info,
    checkpoints_in,
    newest_checkpoint,
    read_checkpoint,
    require_match,
    write_checkpoint,
)
from umc.utils.errors import UmcError
from umc.utils.io import remove_leftovers, sha256

UMC = dataclasses.asdict(dummy.info())


def checkpoint(umc=UMC):
    return {"actor_state_dict": {"w": torch.zeros(50_000)}, "iter": 3, "infos": {"umc": umc}}


WRITER = """
import itertools, sys
from pathlib import Path
from umc.utils.io import atomic_write
for number in itertools.count():
    with atomic_write(Path(sys.argv[1])) as file:
        for part in range(200):
            file.write(bytes([number % 256]) * 1000)
            if number and part == int(sys.argv[2]):
                file.flush()
                print("in the middle", flush=True)
                sys.stdin.read()  # until it is killed
"""


def test_kill_9_while_writing_leaves_a_whole_file(tmp_path):
    path = tmp_path / "model_1.pt"
    for part in (0, 100, 199):
        command = [sys.executable, "-c", WRITER, str(path), str(part)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()  # one file is written, the next one is on its way
        child.kill()
        child.communicate()
        assert path.read_bytes() == bytes(200_000)
        assert len(list(tmp_path.glob(".*.tmp*"))) == 1
        assert checkpoints_in(tmp_path) == [path]
        remove_leftovers(tmp_path)
        assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("place", ["actor_state_dict", "optimizer_state_dict", "infos", "iter", "a key of its own"])
def test_loading_runs_no_code(tmp_path, place):
    torch.save({**checkpoint(), place: changed_files.Bomb(tmp_path / "boom")}, tmp_path / "model_1.pt")
    with pytest.raises(UmcError, match="damaged or no checkpoint"):
        read_checkpoint(tmp_path / "model_1.pt")
    assert not (tmp_path / "boom").exists()


def test_damaged_missing_and_foreign_files_are_one_line(tmp_path):
    path = tmp_path / "model_1.pt"
    with pytest.raises(UmcError, match="no checkpoint at"):
        read_checkpoint(path)
    path.write_text("hello")
    with pytest.raises(UmcError, match="damaged or no checkpoint"):
        read_checkpoint(path)
    torch.save([1, 2], path)
    with pytest.raises(UmcError, match="holds no policy"):
        read_checkpoint(path)


def flip_a_weight(path):
    content = bytearray(path.read_bytes())
    content[content.index(bytes(2000)) + 1000] ^= 0x42  # inside the weights, which are zeros
    path.write_bytes(content)


def replaced(change):
    """A file that was written whole, with its own CRC, after ``change`` altered what it says."""

    def write(path):
        data = torch.load(path, weights_only=True)
        change(data)
        torch.save(data, path)

    return write


def put(value, *keys):
    return replaced(changed_files.put(value, *keys))


def inside_itself(data):
    data["infos"]["umc"]["joint_names"] = data["infos"]


def larger_than_its_memory(data):
    data["critic_state_dict"] = {"w": torch.zeros(1).expand(10**15)}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (flip_a_weight, "the CRC of .* is wrong"),
        (put(torch.ones(50_000), "actor_state_dict", "w"), "its weights are not those that were saved"),
        (
            put(torch.full((3,), torch.nan), "actor_state_dict", "w"),
            "actor_state_dict.w is not finite; give an earlier",
        ),
        (put({"w": torch.tensor([torch.inf])}, "critic_state_dict"), "critic_state_dict.w is not finite"),
        (put({"param_groups": [{"lr": float("nan")}]}, "optimizer_state_dict"), "param_groups.0.lr is not finite"),
        (put([1.0], "actor_state_dict"), "actor_state_dict is no dict of tensors"),
        (put([1.0], "actor_state_dict", "w"), "actor_state_dict is no dict of tensors"),
        (put("x", "iter"), "iter is no count"),
        (replaced(lambda data: data.pop("iter")), "iter is missing"),
        (replaced(lambda data: data.pop("infos")), "infos is missing"),
        (put([1], "infos"), "infos is no dict"),
        (put(5, "infos", "umc", "joint_names"), "joint_names is 5; input should be a valid list"),
        (put(7, "infos", "umc", "task"), "task is 7; input should be a valid string"),
        (put(True, "infos", "umc", "stage"), "stage is True"),
        (put("../g1", "infos", "umc", "robot"), "robot is '../g1'"),
        (put("g1", "infos", "umc", "robot"), "says robot g1 and Stage 1, but task UMC-A1-Stage1"),
        (put(2, "infos", "umc", "stage"), "says robot a1 and Stage 2, but task UMC-A1-Stage1"),
        (put(1, "infos", "umc", "later"), "later"),
        (replaced(inside_itself), "nested more than 64 deep"),
        (replaced(larger_than_its_memory), "critic_state_dict.w is no dense tensor"),
    ],
)
def test_a_checkpoint_that_is_not_valid_is_refused_by_name(tmp_path, damage, words):
    path = tmp_path / "model_1.pt"
    write_checkpoint(path, checkpoint())
    damage(path)
    with pytest.raises(UmcError, match=words) as caught:
        checkpoint_info(read_checkpoint(path), path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_compressed_file_is_refused_before_it_is_unpacked(tmp_path):
    path = tmp_path / "model_1.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**7))
    with pytest.raises(UmcError, match="its members are compressed"):
        read_checkpoint(path)


def test_a_file_without_the_hash_of_its_weights_is_taken(tmp_path):
    """As an older UMC and Isaac Lab's own train write them."""
    path = tmp_path / "model_1.pt"
    torch.save({**checkpoint(), "infos": None}, path)
    assert read_checkpoint(path)["iter"] == 3


def test_a_published_file_is_checked_wherever_its_path_comes_from(tmp_path):
    path = tmp_path / "a1_mlp_stage1.pt"
    write_checkpoint(path, checkpoint())
    entry = {"robot": "a1", "agent": "mlp", "stage": 1, "sha256": sha256(path)}
    (tmp_path / "models.json").write_text(json.dumps({"format": 1, "models": {path.stem: entry}}))
    read_checkpoint(path)
    write_checkpoint(path, {**checkpoint(), "iter": 4})
    with pytest.raises(UmcError, match=r"is not the file that models.json describes"):
        read_checkpoint(path)


@pytest.mark.parametrize("umc", [None, {}, {name: UMC[name] for name in UMC if name != "robot"}])
def test_a_checkpoint_that_does_not_say_whose_it_is_is_refused(tmp_path, umc):
    path = tmp_path / "model_1.pt"
    write_checkpoint(path, checkpoint(umc=umc))
    with pytest.raises(UmcError, match="does not say which robot and model"):
        checkpoint_info(read_checkpoint(path), path)


def test_other_robot_or_model_is_refused(tmp_path):
    path = tmp_path / "model_1.pt"
    write_checkpoint(path, checkpoint())
    info = checkpoint_info(read_checkpoint(path), path)
    require_match(info, path, "a1", "mlp")
    with pytest.raises(UmcError, match=r"trained for robot a1, the task is for g1; .* --task UMC-A1-Stage1"):
        require_match(info, path, "g1", "mlp")
    with pytest.raises(UmcError, match=r"holds the mlp model, the agent is transformer; .* --agent mlp"):
        require_match(info, path, "a1", "transformer")


def test_checkpoints_are_sorted_by_number_and_nothing_else_is_one(tmp_path):
    for name in ("model_10.pt", "model_9.pt", "model_100.pt", "model_x.pt", ".model_200.pt.17.tmp", "model_3.pt.bak"):
        (tmp_path / name).touch()
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_9.pt", "model_10.pt", "model_100.pt"]


def test_newest_is_the_last_of_the_run_that_saved_last(tmp_path):
    def put(name, time_ns):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path, ns=(time_ns, time_ns))
        return path

    assert newest_checkpoint(tmp_path / "absent") is None
    put("2026-01-01_10-00-00/model_9.pt", 3)
    wanted = put("2026-01-01_10-00-00/model_10.pt", 40)  # resumed after the other run started
    put("2026-01-02_10-00-00/model_500.pt", 20)
    put("2026-01-03_10-00-00/.model_1.pt.5.tmp", 50)  # killed before its first save
    (tmp_path / "notes.txt").touch()
    assert newest_checkpoint(tmp_path) == wanted
