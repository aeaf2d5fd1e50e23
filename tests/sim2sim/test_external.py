# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Policies that UMC did not train walk in plain MuJoCo as an exported policy does."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from isaaclab.managers import SceneEntityCfg
from isaaclab_tasks.utils import load_cfg_from_registry
from umc.cli.main import main
from umc.deploy.export import export_checkpoint
from umc.evaluation.checkpoints import read_externals
from umc.evaluation.protocol import protocol_for
from umc.evaluation.study import STUDY, load_study
from umc.rl.agents import AGENTS
from umc.rl.pretrained import pretrained_folder
from umc.robots import A1_JOINTS
from umc.sim2sim.agreement import AGREEMENT
from umc.sim2sim.external import ExternalRunner
from umc.sim2sim.external_task import describe_external, read_external_policy
from umc.sim2sim.robot import SolverCfg
from umc.sim2sim.study import protocol_rollout
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.errors import UmcError
from umc.utils.naming import load_tasks

TASK = "UMC-A1-Stage1"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A pretrained policy's ONNX file, whose further inputs are groups of the task."""
    load_tasks()
    env_cfg = load_cfg_from_registry(TASK, "env_cfg_entry_point")
    return export_checkpoint(pretrained_folder() / "a1_mlp_stage1.pt", tmp_path_factory.mktemp("exported"), env_cfg)


def run(out, *policy):
    short = ("--scenarios", "6", "--episodes", "1", "--steps", "140", "--workers", "1", "--out", str(out))
    assert main(["sim2sim", *map(str, policy), *short]) == 0
    return load_study(out / STUDY)


def test_an_exported_policy_does_the_same_as_a_policy_of_others(exported, tmp_path):
    external = ("--task", TASK, "--policy", exported.onnx)
    first, second = run(tmp_path / "a", "--policy", exported.onnx), run(tmp_path / "b", *external)
    for one, other in zip(first.policies, second.policies, strict=True):
        assert one.run.joints.any()  # dead sensors
        torch.testing.assert_close(one.run.tensors(), other.run.tensors(), rtol=0, atol=0, equal_nan=True)
    assert (second.policies[0].label, second.step_dt) == ("policy", first.step_dt)
    run(tmp_path / "c", *external, "--against", tmp_path / "b")
    rows = json.loads((tmp_path / "c" / AGREEMENT).read_text())["scenarios"]
    assert rows[-1]["same"]["value"] == 1.0
    # the same file, read in another way, is another policy
    (tmp_path / "other.yaml").write_text(f"file: {exported.onnx}\nclip_actions: 3.0\n")
    other = ["--policy", str(tmp_path / "other.yaml"), "--against", str(tmp_path / "b")]
    assert main(["sim2sim", "--task", TASK, *other]) == 2


def test_every_process_gets_the_policy_and_its_task(exported):
    policy = read_external_policy(str(exported.torchscript), TASK, ["env.scene.robot.init_state.pos=[0,0,0.6]"], True)
    cfg = protocol_rollout(protocol_for("a1", [8]), policy, 1, SolverCfg())
    again = pickle.loads(pickle.dumps(cfg)).runner()
    assert again.policy_dt == pytest.approx(0.02)
    assert cfg.description["start"]["base_height_m"] == 0.6


def test_a_task_of_another_package_is_refused_with_what_helps():
    with pytest.raises(
        UmcError, match=r"^unknown task my_ext:My-Velocity; .*first add the robot \(docs/howto_robot.md"
    ) as refused:
        read_external_policy("policy.onnx", "my_ext:My-Velocity", [], False)
    assert "add_faults" not in str(refused.value)


def test_what_mujoco_does_not_measure_is_refused(exported, tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text(f"file: {exported.onnx}\nobservations: [joint_pos, critic/physics]\n")
    with pytest.raises(UmcError, match="reads randomized_physics, which there is not") as refused:
        read_external_policy(str(path), TASK, [], False)
    assert "\n" not in str(refused.value)
    torch.jit.script(torch.nn.Linear(30, 8)).save(str(tmp_path / "p.pt"))
    with pytest.raises(UmcError, match="reads root_quat_w, forward_and_turn, which there is not"):
        read_external_policy(str(tmp_path / "p.pt"), "UMC-Solo8-Stage2", AGENTS["mt_ftc"].tokens(2), True)


def test_joint_terms_that_mujoco_would_read_in_another_order_are_refused(exported):
    env_cfg, _ = resolve_cfgs(TASK, None, [])
    env_cfg.observations.policy.joint_pos.params["asset_cfg"] = SceneEntityCfg("robot", joint_names=["FL_.*"])
    (found,) = read_externals([str(exported.onnx)], TASK, env_cfg, trust=False)
    with pytest.raises(UmcError, match="reads joint_pos_rel of some joints or in another order"):
        describe_external(found, env_cfg)


def test_clips_of_the_task_are_those_of_the_policy(exported):
    clip = "env.observations.policy.joint_vel.clip=[-5.0,5.0]"
    policy = read_external_policy(str(exported.onnx), TASK, [clip], False)
    (term,) = (one for one in policy.reads["observations"]["policy"] if one["name"] == "joint_vel")
    assert term["clip"] == [-5.0, 5.0]


def test_a_scale_per_column_has_the_order_of_the_policy(tmp_path):
    torch.jit.script(torch.nn.Linear(15, 12)).save(str(tmp_path / "p.pt"))
    own = "file: p.pt\njoints: [{joints}]\nobservations:\n- {{term: joint_pos, scale: {scale}}}\n"
    own += "- {{term: base_lin_vel, scale: {base}}}\n"
    path = tmp_path / "p.yaml"
    factors = [float(number) for number in range(12)]

    def read(base):
        path.write_text(own.format(joints=", ".join(reversed(A1_JOINTS)), scale=factors, base=base))
        return read_external_policy(str(path), TASK, [], True).reads

    reads = read([2.0, 2.0, 2.0])
    assert [joint["name"] for joint in reads["joints"]] == [*reversed(A1_JOINTS)]
    assert [term["scale"] for term in reads["observations"]["policy"]] == [factors, [2.0, 2.0, 2.0]]
    with pytest.raises(UmcError, match="the scale of base_lin_vel has 2 values, the term has 3 columns"):
        read([2.0, 2.0])


class Sum(torch.nn.Module):
    """Remembers the sum of what it has read."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(1, 1, 12))

    def forward(self, x):
        self.total[:] = self.total + x[:, :12]
        return self.total.squeeze(0).clone()


@pytest.mark.parametrize("description", ["", "history: 3\nobservations: [joint_pos]\n"])
def test_an_episode_begins_without_memory_and_history(tmp_path, description):
    module = Sum() if not description else torch.nn.Linear(36, 12)
    torch.jit.script(module).save(str(tmp_path / "p.pt"))
    (tmp_path / "p.yaml").write_text("file: p.pt\n" + description)
    policy = read_external_policy(str(tmp_path / "p.yaml"), TASK, [], trust=True)
    runner, generator = ExternalRunner(policy, clamp=False), torch.Generator().manual_seed(0)
    seen = [torch.rand(12, generator=generator).numpy() for _ in range(3)]

    def walk():
        runner.reset()
        return [runner(one, one, [0.1] * 3, [0.0, 0.0, -1.0], [0.5, 0.0, 0.0]).tolist() for one in seen]

    first = walk()
    assert first[0] != first[1]
    assert walk() == first


def test_the_documented_description_of_unitree_s_g1_says_what_the_task_says(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "external_policies.md").read_text()
    (tmp_path / "g1.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    torch.jit.script(torch.nn.Linear(47, 12)).save(str(tmp_path / "motion.pt"))
    read = [read_external_policy(str(tmp_path / name), "UMC-G1-Stage2", [], True) for name in ("motion.pt", "g1.yaml")]
    plain, described = (one.reads for one in read)
    assert described["joints"] == plain["joints"]
    assert described["control"] == {**plain["control"], "action_clip": 100.0}
    terms = [
        [(one["function"], one["scale"]) for one in reads["observations"]["policy"]] for reads in (plain, described)
    ]
    assert terms[0] == terms[1]


def test_sensors_of_a_policy_of_others_are_as_noisy_as_the_task_says(exported):
    policy = read_external_policy(str(exported.onnx), TASK, [], False)
    cfg = protocol_rollout(replace(protocol_for("a1", [8]), noise=True), policy, 1, SolverCfg())
    assert cfg.noise
    noise = {term["function"]: term["noise"] for term in cfg.description["observations"]["policy"]}
    assert noise["joint_pos_rel"] == {"uniform": [-0.01, 0.01]}
    assert noise["base_ang_vel"] == {"uniform": [-0.2, 0.2]}
