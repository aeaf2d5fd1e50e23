# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Policies are evaluated on the engine and ground of their training, and a remark names both; nothing is simulated."""

import json

import pytest
from fresh_policy import write_fresh
from umc.cli.evaluate import launcher_arguments
from umc.evaluation.arguments import parse
from umc.evaluation.evaluate import worker_arguments
from umc.evaluation.session import prepare
from umc.tasks.task_cfg import physics_name
from umc.terrains import ground_name
from umc.utils.errors import UmcError

NEWTON = "physics=newton_mjwarp"


def prepared(*argv, engine=NEWTON):
    options, overrides = parse(["--device", "cpu", *map(str, argv)], lambda _: None)
    return prepare(options, [*([engine] if engine else []), *overrides], stage=2)


def worker_of(session, argv, checkpoint):
    """What a worker of a cluster prepares, which gets the checkpoint alone."""
    return prepared(*worker_arguments(session, launcher_arguments(argv)), "--checkpoint", checkpoint, engine=None)


def write_record(checkpoint, **says):
    """Write the record of a run beside its checkpoint."""
    record = {"task": "UMC-A1-Stage2", "agent": "a", "seed": 1, "overrides": [], **says}
    (checkpoint.parent / "run.json").write_text(json.dumps(record))


def ground(session):
    return ground_name(session.env_cfg.scene.terrain)


@pytest.fixture
def flat(tmp_path):
    return write_fresh(tmp_path / "flat", terrain="flat")


def test_the_ground_of_the_training_unless_the_user_chooses_one(flat):
    session = prepared("--checkpoint", flat)
    assert ground(session) == "flat"
    (remark,) = session.remarks
    assert remark == "ground: flat, which the policy was trained on (the task's own: env.scene.terrain=perlin)"
    for typed in ("env.scene.terrain=perlin", "presets=perlin"):
        chosen = prepared("--checkpoint", flat, typed)
        assert (ground(chosen), chosen.remarks) == ("perlin", ())
    # a task with one ground has nothing to choose
    session = prepared("--checkpoint", write_fresh(flat.parent, task="UMC-G1-Stage2", terrain="flat"))
    assert (ground(session), session.remarks) == ("flat", ())


def test_the_ground_of_an_older_checkpoint_is_in_its_run_folder_or_the_tasks(tmp_path):
    path = write_fresh(tmp_path / "run" / "old")
    assert ground(prepared("--checkpoint", path)) == "perlin"
    write_record(path, overrides=["env.scene.terrain=flat"])
    argv = ["--checkpoint", str(path), "physics=ovphysx"]
    session = prepared(*argv, engine=None)
    assert ground(session) == "flat"
    # a worker gets the file without its folder
    worker = worker_of(session, [*argv, "--ray", "2"], write_fresh(tmp_path / "worker"))
    assert (ground(worker), physics_name(worker.env_cfg)) == ("flat", "ovphysx")


def test_workers_get_pretrained_policies_as_files():
    argv = ["--checkpoint", "pretrained", "--robot", "A1", "--agent", "mlp"]
    session = prepared(*argv)
    assert session.remarks[0].startswith("pretrained: a1_")
    worker = worker_of(session, argv, session.checkpoint)
    assert (worker.checkpoints, ground(worker)) == (session.checkpoints, ground(session))


def test_policies_of_different_grounds_need_an_override(flat, tmp_path):
    other = write_fresh(tmp_path / "perlin", model="transformer_small32", terrain="perlin")
    with pytest.raises(UmcError, match=r"different grounds .*env\.scene\.terrain=flat or env\.scene\.terrain=perlin"):
        prepared("--checkpoint", flat, other)
    assert ground(prepared("--checkpoint", flat, other, "env.scene.terrain=flat")) == "flat"
    # a checkpoint that does not say takes the ground of the others
    unknown = write_fresh(tmp_path / "unknown", model="transformer_small32")
    assert ground(prepared("--checkpoint", flat, unknown)) == "flat"


def test_the_trainings_changes_of_robot_and_actions_are_repeated(tmp_path):
    scale, reward = "env.actions.joint_pos.scale=0.25", "env.rewards.progress.weight=9.0"
    trained = write_fresh(tmp_path / "trained", env_overrides=[scale, reward])
    plain = write_fresh(tmp_path / "plain", model="transformer_small32")
    session = prepared("--checkpoint", trained)
    assert session.env_cfg.actions.joint_pos.scale == 0.25
    assert session.remarks == (f"as in the training: {scale}",)
    assert session.env_cfg.rewards.progress.weight != 9.0
    assert scale in worker_arguments(session, [])
    with pytest.raises(UmcError, match=r"different overrides \(env\.actions\.joint_pos\.scale=0\.25\); evaluate them"):
        prepared("--checkpoint", trained, plain)
    chosen = prepared("--checkpoint", trained, plain, "env.actions.joint_pos.scale=0.3")
    assert (chosen.env_cfg.actions.joint_pos.scale, chosen.remarks) == (0.3, ())


def test_the_engine_of_the_training_unless_the_user_chooses_one(tmp_path):
    on = {
        name: write_fresh(tmp_path / (name or "unknown"), terrain="perlin", seed=number, physics=name)
        for number, name in enumerate(("ovphysx", "newton_mjwarp", ""))
    }

    def engine(*names, typed=None):
        session = prepared("--checkpoint", *(on[name] for name in names), engine=typed)
        return physics_name(session.env_cfg), [line for line in session.remarks if "engine" in line]

    for name in ("ovphysx", "newton_mjwarp"):
        assert engine(name) == (name, [f"engine: {name}, which the policy was trained on"])
    assert engine("newton_mjwarp", "") == engine("newton_mjwarp")  # a checkpoint that does not say takes the others'
    assert engine("")[0] == "ovphysx"
    with pytest.raises(UmcError, match=r"different engines .*physics=newton_mjwarp or physics=ovphysx"):
        engine("ovphysx", "newton_mjwarp")
    assert engine("ovphysx", "newton_mjwarp", typed=NEWTON) == ("newton_mjwarp", [])
    write_record(on[""], physics="newton_mjwarp")
    assert engine("")[0] == "newton_mjwarp"
