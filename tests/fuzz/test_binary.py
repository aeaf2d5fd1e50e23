# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Whatever stands in a checkpoint, a study or an export: a valid object, or one line."""

import copy
import io
import json
import zipfile
from pathlib import Path

import pytest
import torch
import yaml
from fresh_policy import WIDTHS, write_fresh
from hypothesis import given
from hypothesis import strategies as st
from made_up_study import made_up_study
from mutated import all_finite, bad_files, damaged, mutated, paths_in, read_or_refuse
from umc.evaluation.report import score_table
from umc.evaluation.study import EpisodeBatch, load_study, save_study
from umc.rl.checkpoint import checkpoint_info, read_checkpoint, trained_overrides
from umc.rl.policy import load_policy, registered_agent
from umc.utils.description import digest, read_description
from umc.utils.io import leaves
from umc.utils.naming import load_tasks

SHA256 = "0" * 64
NETWORK = {"file": "policy.onnx", "sha256": SHA256, "largest_difference_to_torch": 1e-6}

ODD_TENSORS = (
    torch.tensor(float("nan")),
    torch.full((3, 2), -float("inf")),
    torch.zeros(0),
    torch.zeros(1).expand(10**15),
    torch.tensor([1 + 2j]),
    torch.eye(3).to_sparse(),
    torch.arange(5),
    torch.ones(4, dtype=torch.float16),
    torch.empty(3, device="meta"),
    torch.nn.Parameter(torch.ones(2)),
    torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def an_export():
    """What policy.json of a pretrained A1 policy says."""
    golden = json.loads((Path(__file__).parent.parent / "golden/exports.json").read_text())
    content = golden["a1_mlp_stage2"]
    content["trained"]["umc_version"] = "0"
    return {**content, "checkpoint": {"file": "model_0.pt", "sha256": SHA256}, "onnx": NETWORK, "torchscript": NETWORK}


def test_the_export_is_valid(folder):
    content = an_export()
    for _ in range(2):
        (folder / "policy.json").write_text(json.dumps(content))
        assert read_description(folder / "policy.json")["format"] == 3
        content["trained"].pop("network_overrides", None)  # UMC 0.1 wrote none


@given(content=bad_files(an_export()))
def test_policy_json(folder, content):
    path = folder / "policy.json"
    path.write_bytes(content)
    if (description := read_or_refuse(lambda: read_description(path))) is None:
        return
    assert all_finite(description)
    digest(description)
    joints = description["joints"]
    assert len({joint["name"] for joint in joints}) == len(joints)
    assert all(joint["kp_Nm_per_rad"] > 0.0 for joint in joints)
    assert Path(description["onnx"]["file"]).name == description["onnx"]["file"]


@st.composite
def bad_torch_files(draw, tree, content):
    """A changed tree; a pickle with changed bytes in a whole zip; a file with changed bytes."""
    how = draw(st.sampled_from(("tree", "tensor", "pickle", "bytes")))
    if how == "bytes":
        return draw(damaged(content))
    if how == "pickle":
        file = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
            for name in old.namelist():
                part = old.read(name)
                new.writestr(name, draw(damaged(part)) if name.endswith("data.pkl") else part)
        return file.getvalue()
    tree = draw(mutated(tree))
    if how == "tensor":
        tree = copy.deepcopy(tree)
        if paths := [one for one in paths_in(tree) if one]:
            *path, key = draw(st.sampled_from(paths))
            here = tree
            for name in path:
                here = here[name]
            here[key] = draw(st.sampled_from(ODD_TENSORS))
    file = io.BytesIO()
    torch.save(tree, file)
    return file.getvalue()


@pytest.fixture(scope="module")
def checkpoint(folder):
    """Tree and bytes of a small policy's checkpoint, without the SHA-256 that would hide all else; and its agent."""

    def narrow(agent):
        agent["actor"]["hidden_dims"] = [4]

    load_tasks()
    agent = registered_agent("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point")
    narrow(agent)
    path = write_fresh(folder, change=narrow, env_overrides=["env.scene.terrain=flat"])
    tree = torch.load(path, weights_only=True)
    del tree["infos"]["weights_sha256"]
    tree["actor_state_dict"] = dict(tree["actor_state_dict"])
    tree["optimizer_state_dict"] = {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 1e-3}]}
    torch.save(tree, path)
    (folder / "params").mkdir()
    (folder / "params" / "agent.yaml").write_text(yaml.dump(agent))
    return tree, path.read_bytes()


@given(data=st.data())
def test_checkpoint(folder, checkpoint, data):
    path = folder / "model_0.pt"
    path.write_bytes(data.draw(bad_torch_files(*checkpoint)))

    def read():
        content = read_checkpoint(path)
        info = checkpoint_info(content, path)
        trained_overrides(path, info)
        return content, load_policy(path, WIDTHS["a1"])

    if (found := read_or_refuse(read)) is None:
        return
    content, policy = found
    for _, value in leaves(content["actor_state_dict"]):
        assert not value.is_floating_point() or torch.isfinite(value).all()
    assert policy.info.robot == "a1"


@pytest.fixture(scope="module")
def study(folder):
    path = folder / "study.pt"
    save_study(path, made_up_study(members=1, policies=(("A", 1.0),)))
    return torch.load(path, weights_only=True), path.read_bytes()


@given(data=st.data())
def test_study(folder, study, data):
    path = folder / "study.pt"
    path.write_bytes(data.draw(bad_torch_files(*study)))
    if (found := read_or_refuse(lambda: load_study(path))) is None:
        return
    for result in found.policies:
        assert isinstance(result.run, EpisodeBatch)
        read_or_refuse(lambda result=result: score_table(found, result))
