# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/train.py: mistakes are one line before anything is simulated; a right command line becomes the right plan."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dummy_training as dummy
import pytest
import torch
from dummy_training import planned, put_checkpoint
from isaaclab.envs import mdp as lab
from isaaclab.managers import ObservationTermCfg
from umc.cli.main import main
from umc.rl.agents import AGENTS
from umc.rl.checkpoint import read_checkpoint, write_checkpoint
from umc.rl.io_descriptor import why_not_exported
from umc.rl.models import EXPORT_INPUTS
from umc.tasks import task_cfg
from umc.tasks.task_cfg import resolve_cfgs
from umc.training import plan, quick, train
from umc.training.arguments import parse
from umc.training.plan import needs_stage1
from umc.utils.errors import UmcError
from umc.utils.io import sha256
from umc.utils.naming import load_tasks
from umc.utils.process import ChildFailed

STAGE1 = ["--task", "UMC-A1-Stage1", "--agent", "mlp", "--device", "cpu"]
STAGE2 = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "--device", "cpu"]
RUNS = Path("logs/rsl_rl/umc_a1_mlp_stage1")


@pytest.fixture(scope="module", autouse=True)
def libraries_are_imported():
    """What they print at import comes before a test reads what is printed."""
    load_tasks()
    resolve_cfgs("UMC-A1-Stage1", "rsl_rl_mlp_cfg_entry_point", [])


@pytest.fixture(autouse=True)
def nothing_is_simulated(monkeypatch):
    monkeypatch.setattr(train, "_simulate", lambda *_: pytest.fail("the simulation was started"))
    monkeypatch.setattr(train, "run_umc", lambda *_: pytest.fail("another command was started"))


@pytest.fixture
def no_pretrained_policy(monkeypatch):
    monkeypatch.setattr("umc.rl.transfer.pretrained_file", lambda *_: None)


@pytest.fixture
def refused(capfd, monkeypatch):
    """`refused(*argv)` is the one line that a refused command line prints."""
    for name in ("SOON_S", "LONG_S"):  # a busy machine shows how long it takes
        monkeypatch.setattr(f"umc.utils.console.{name}", 3600.0)

    def line(*argv):
        capfd.readouterr()
        assert main(["train", *argv]) == 2
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        return err

    return line


@pytest.mark.parametrize(("physics", "package"), [("ovphysx", "ovphysx"), ("newton_mjwarp", "newton")])
def test_an_engine_that_is_not_installed_is_named(tmp_path, monkeypatch, refused, physics, package):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == package else find(name, *more))
    line = f"physics={physics} needs the Python package {package}, which is not installed; install"
    assert line in refused(*STAGE1, f"physics={physics}")
    assert not list(tmp_path.iterdir())


def test_a_system_without_the_library_of_physx_is_told_how_to_get_it(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(task_cfg, "PHYSX_LIBRARY", "libGL.so.1.of.no.system")
    assert "which this system lacks; install it (Debian, Ubuntu: apt-get install libgl1)" in refused(
        *STAGE1, "physics=ovphysx"
    )
    assert not list(tmp_path.iterdir())


def test_only_a_run_of_the_same_task_is_resumed(tmp_path, refused):
    stage2 = str(put_checkpoint(tmp_path / "stage2", task="UMC-A1-Stage2", stage=2))
    assert "has no run.json" in refused(*STAGE2, "--resume", "--checkpoint", stage2)
    words = "is a run of UMC-A1-Stage2; --resume needs the same task"
    assert words in refused(*STAGE1, "--resume", "--checkpoint", stage2)


def test_the_defaults_of_a_cpu_give_way_to_flags_and_overrides():
    chosen = planned(*STAGE1)
    sizes = (chosen.env_cfg.scene.num_envs, chosen.agent_cfg.max_iterations)
    assert sizes == (plan.CPU_NUM_ENVS, plan.CPU_ITERATIONS)
    assert chosen.physics == "ovphysx"
    engine, remark, *_ = chosen.remarks
    assert engine == "engine: ovphysx, the default on a CPU (physics=newton_mjwarp for the other)"
    assert "256 envs (the task's own: 7400; --num_envs), 1000 iterations (the task's own: 2500; --max_it" in remark
    for argv in (["--num_envs=5", "agent.max_iterations=6"], ["env.scene.num_envs=5", "--max_iterations=6"]):
        given = planned(*STAGE1, "physics=newton_mjwarp", *argv)
        assert (given.env_cfg.scene.num_envs, given.agent_cfg.max_iterations) == (5, 6)
        assert given.physics == "newton_mjwarp"
        assert given.remarks == ["training from scratch"]


def stance_timer(env):
    return env.timer


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"base_lin_vel": ObservationTermCfg(func=lab.base_lin_vel)},
            r"reads base_lin_vel, which no robot measures .*o",
        ),
        ({"stance": ObservationTermCfg(func=stance_timer)}, r"stance_timer is unknown to exports .* another group$"),
    ],
)
def test_what_an_export_would_refuse_is_a_remark_before_the_training(monkeypatch, change, words):
    def changed(*args):
        env_cfg, agent_cfg = resolve_cfgs(*args)
        for name, value in change.items():
            setattr(env_cfg.observations.policy, name, value)
        return env_cfg, agent_cfg

    monkeypatch.setattr("umc.training.plan.resolve_cfgs", changed)
    (remark,) = [line for line in planned(*STAGE1).remarks if "umc export" in line]
    assert re.match(rf"umc export will refuse UMC-A1-Stage1: .*{words}", remark)


def test_a_group_that_an_export_reads_is_missed_before_the_training():
    lacks = ["env.observations.fault_flag=null", 'agent.obs_groups.actor=["policy","joint_mask"]']
    (remark,) = [line for line in planned(*STAGE1, *lacks).remarks if "umc export" in line]
    assert remark.endswith("an export reads the group fault_flag, which the task lacks; keep it")


def test_umcs_own_tasks_can_be_exported_and_what_cannot_be_read_ends_no_training():
    for task in (
        "UMC-A1-Stage1",
        "UMC-A1-Stage2",
        "UMC-Go2-Stage2",
        "UMC-G1-Stage2",
        "UMC-H1-Stage2",
        "UMC-Solo8-Stage2",
    ):
        env_cfg, _ = resolve_cfgs(task, None, [])
        assert why_not_exported(env_cfg, EXPORT_INPUTS) is None, task
    env_cfg.actions = None
    assert why_not_exported(env_cfg, EXPORT_INPUTS) is None


def test_a_gpu_keeps_the_papers_sizes(monkeypatch):
    monkeypatch.setattr("umc.training.plan.pick_device", lambda _: "cuda:0")
    monkeypatch.setattr("umc.training.plan.check_memory", lambda *_: None)
    chosen = planned(*STAGE1[:4])
    # paper, A1 training parameters
    assert (chosen.env_cfg.scene.num_envs, chosen.agent_cfg.max_iterations) == (7400, 2500)
    assert chosen.physics == "newton_mjwarp"
    assert chosen.env_cfg.sim.device == chosen.agent_cfg.device == "cuda:0"


def test_a_gpu_that_is_too_small_for_a_mini_batch_is_told_before_anything_starts(monkeypatch):
    """The paper's A1 transformer, 7,400 envs: a quarter of the rollout at once."""
    monkeypatch.setattr("umc.training.plan.pick_device", lambda _: "cuda:0")
    gpu = SimpleNamespace(total_memory=8e9)
    monkeypatch.setattr("torch.cuda.get_device_properties", lambda _: gpu)
    argv = [*STAGE1[:2], "--agent", "transformer"]
    with pytest.raises(
        UmcError, match=r"GPU has 8.0 GB; give --num_envs \d+ or fewer \(in a recipe: num_envs\), or more agent\.alg"
    ):
        planned(*argv)
    planned(*argv, "agent.algorithm.num_mini_batches=48")
    planned(*argv, "--teacher", "pretrained:a1_mlp_stage1")  # an imitation has no mini-batches of all envs
    with pytest.raises(UmcError, match="or more agent"):  # twice the samples
        planned(*argv, "agent.algorithm.num_mini_batches=48", "agent.mirror=true", "--num_envs", "20000")
    gpu.total_memory = 80e9
    planned(*argv)


def test_a_compiled_transformer_is_told_that_its_mini_batches_are_too_large(monkeypatch):
    monkeypatch.setattr("umc.training.plan.pick_device", lambda _: "cuda:0")
    monkeypatch.setattr("umc.training.plan.check_memory", lambda *_: None)
    for agent in ("transformer", "nm_transformer_small32", "body_transformer"):
        argv = [*STAGE1[:2], "--agent", agent, "agent.mirror=true"]
        compiled = [*argv, "agent.torch_compile_mode=default"]
        with pytest.raises(UmcError, match=r"at most 65,535 samples at once on a GPU, not 88,800 .* more agent\.alg"):
            planned(*compiled)
        planned(*compiled, "agent.algorithm.num_mini_batches=6")
        planned(*argv)
    planned(*STAGE1[:2], "--agent", "mlp", "agent.mirror=true", "agent.torch_compile_mode=default")


def test_overrides_and_seed_reach_the_cfgs():
    default = "env.events.faults.params.onset_range=(5,9)"  # a parameter that the cfg does not set
    chosen = planned(*STAGE1, "--seed", "9", "physics=ovphysx", "agent.algorithm.gamma=0.5", default)
    assert chosen.agent_cfg.algorithm.gamma == 0.5
    assert chosen.env_cfg.seed == chosen.agent_cfg.seed == 9
    assert chosen.record.fields["overrides"] == ["physics=ovphysx", "agent.algorithm.gamma=0.5", default]


def test_checkpoints_say_which_overrides_make_their_network():
    network = ["agent.actor.activation=relu", "agent.clip_actions=2.0"]
    chosen = planned(*STAGE1, "agent.algorithm.gamma=0.5", *network)
    env = SimpleNamespace(scene={"robot": SimpleNamespace(joint_names=["a"])})
    assert train._checkpoint_info(chosen, env).network_overrides == network


def test_a_start_that_had_another_network_is_named(tmp_path):
    path = put_checkpoint(tmp_path / "run", network_overrides=["agent.actor.activation=relu"])
    said = [line for line in planned(*STAGE2, "--checkpoint", str(path)).remarks if "its weights may not fit" in line]
    assert said == ["only one of its training and this run has agent.actor.activation=relu: its weights may not fit"]


def test_only_a_start_that_nobody_named_says_what_trains_it_instead():
    said = [" ".join(planned(*STAGE2, *more).remarks) for more in ([], ["--checkpoint", "pretrained"])]
    assert ["--no_pretrained trains Stage 1 first" in one for one in said] == [True, False]


def test_options_that_nothing_reads_are_named():
    def said(*argv):
        return [line.split(" has no effect")[0] for line in planned(*argv).remarks if "no effect" in line]

    options = ["agent.curriculum_iterations=9", "agent.distillation.updates=3"]
    assert said(*STAGE1, *options) == ["agent.curriculum_iterations", "agent.distillation"]
    assert said(*STAGE2, "--agent", "mlp_curriculum", options[0]) == []


@pytest.mark.usefixtures("no_pretrained_policy")
def test_stage_2_starts_from_the_weights_of_the_newest_stage_1(tmp_path):
    assert needs_stage1(parse(STAGE2))
    stage1 = put_checkpoint(tmp_path / RUNS / "run")
    assert not needs_stage1(parse(STAGE2))
    chosen = planned(*STAGE2)
    assert chosen.start_from == stage1.relative_to(tmp_path)
    assert chosen.record.fields["parent"] == {"path": str(stage1), "sha256": sha256(stage1)}
    given = put_checkpoint(tmp_path / "elsewhere", "model_1.pt")
    for path in (given, given.parent):
        assert planned(*STAGE2, "--checkpoint", str(path)).start_from == given
    runner = dummy.build(tmp_path / "new", torch_seed=8)
    weights = read_checkpoint(stage1)["critic_state_dict"]["mlp.0.weight"]
    assert not torch.equal(runner.alg.critic.state_dict()["mlp.0.weight"], weights)
    train.load_start(chosen, runner)
    assert torch.equal(runner.alg.critic.state_dict()["mlp.0.weight"], weights)
    assert runner.current_learning_iteration == 0


@pytest.mark.parametrize("rounded", [True, False])
def test_a_training_that_asks_for_bfloat16_learns_in_it(rounded, monkeypatch):
    monkeypatch.setattr("umc.utils.matmul.onednn_is_exact", lambda: False)
    before = torch.backends.mkldnn.matmul.fp32_precision
    found = []

    def learn(*_):
        found.append(torch.backends.mkldnn.matmul.fp32_precision)
        return Path("model_0.pt")

    logger = SimpleNamespace(mean_return=lambda: 0.0, mean_length=lambda: 0.0)
    cfg = SimpleNamespace(bfloat16=rounded, torch_compile_mode=None, max_iterations=1, init_at_random_ep_len=True)
    plan: Any = SimpleNamespace(device="cpu", agent_cfg=cfg, record=SimpleNamespace(fields={}), resume=False)
    runner: Any = SimpleNamespace(train=learn, logger=logger)
    train._learn(plan, runner)
    assert found == ["bf16" if rounded else before]


def test_an_unfinished_stage_1_is_named_with_the_command_that_finishes_it(tmp_path):
    record = {"task": "UMC-A1-Stage1", "agent": "rsl_rl_mlp_cfg_entry_point", "seed": 5, "overrides": []}
    for status in ("interrupted", "finished"):
        path = put_checkpoint(tmp_path / RUNS / "run", record={**record, "status": status})
        given = planned(*STAGE2, "--checkpoint", str(path))  # on purpose
        said = [line for line in given.remarks if "not finished" in line]
        how = f"--task UMC-A1-Stage1 --agent rsl_rl_mlp_cfg_entry_point --resume --checkpoint {path}"
        expected = f"its training is not finished (interrupted after iteration 6); to finish it first: {how}"
        assert said == ([expected] if status == "interrupted" else [])
    assert planned(*STAGE2).start_from == RUNS / "run/model_5.pt"
    # killed between its last checkpoint and the last change of its record: --resume has nothing left to train
    put_checkpoint(tmp_path / RUNS / "run", record={**record, "status": "interrupted", "max_iterations": 6})
    assert planned(*STAGE2).start_from == RUNS / "run/model_5.pt"


@pytest.mark.parametrize("iterations", ["--max_iterations=77", "agent.max_iterations=77"])
def test_an_unfinished_stage_1_is_resumed_before_stage_2(tmp_path, monkeypatch, iterations):
    folder = tmp_path / RUNS / "run"
    record = {"task": "UMC-A1-Stage1", "agent": "rsl_rl_mlp_cfg_entry_point", "seed": 5, "overrides": []}
    path = put_checkpoint(folder, record={**record, "status": "interrupted"}).relative_to(tmp_path)
    words = (
        rf"Stage 1 is not finished \(interrupted after iteration 6\); to finish it first: --task UMC-A1-Stage1 .*{path}"
    )
    with pytest.raises(UmcError, match=words):
        planned(*STAGE2)
    calls = []

    def run_umc(_, arguments):
        calls.append(arguments)
        put_checkpoint(folder, "model_9.pt", {**record, "status": "finished"})

    plans = []
    monkeypatch.setattr(train, "run_umc", run_umc)
    monkeypatch.setattr(train, "_run_plan", lambda plan, _: plans.append(plan) or Path("model_1.pt"))
    argv = ["--resume", "--run_name", "mine", "--num_envs", "4", iterations, "env.events.faults.params.seed=3"]
    assert main(["train", *STAGE2, *argv]) == 0
    ((*_, resume, flag, start),) = calls
    assert (resume, flag, start) == ("--resume", "--checkpoint", str(path))
    stage1 = parse(calls[0])
    assert (stage1.task, stage1.spec.name, stage1.options.num_envs, stage1.overrides) == ("UMC-A1-Stage1", "mlp", 4, [])
    assert stage1.options.max_iterations is None  # it keeps its own
    (plan,) = plans
    assert plan.agent_cfg.max_iterations == 77
    assert (plan.resume, plan.start_from, plan.physics) == (False, RUNS / "run/model_9.pt", "ovphysx")
    assert plan.folder.name.endswith("_mine")


@pytest.mark.usefixtures("no_pretrained_policy")
def test_a_curriculum_that_stage_2_refuses_is_refused_before_stage_1_is_trained(monkeypatch, refused):
    monkeypatch.setattr(train, "run_umc", lambda *_: pytest.fail("Stage 1 was trained"))
    tokens = ["env.events.faults.params.replay=x", "agent.severity_iterations=5"]
    assert "which no curriculum changes" in refused(*STAGE2, *tokens)


@pytest.mark.parametrize("given", ["env.scene.num_envs=5", "agent.max_iterations=6", "agent.seed=7"])
def test_a_size_is_given_once(refused, given):
    flag = f"--{given.split('=')[0].split('.')[-1]}"
    assert f"{flag} and {given.split('=')[0]} are both given" in refused(*STAGE1, flag, "8", given)


@pytest.mark.usefixtures("no_pretrained_policy")
@pytest.mark.parametrize(
    ("library", "code", "line"),
    [("rsl_rl", 130, "umc train was stopped\n"), ("skrl", 7, "error: umc train ended with 7")],
)
def test_a_missing_stage_1_is_trained_first_with_the_same_settings(monkeypatch, capsys, library, code, line):
    calls = []

    def run_umc(command, arguments):  # without a log: its output goes to the terminal
        calls.append((command, arguments))
        raise ChildFailed(command, code)

    monkeypatch.setattr(train, "run_umc", run_umc)
    overrides = ["physics=ovphysx", "env.events.faults.params.seed=3", "agent.actor.hidden_dims=[8]"]
    assert main(["train", *STAGE2, "--rl_library", library, "--num_envs", "4", *overrides]) == code
    ((command, arguments),) = calls
    assert command == "train"
    stage1 = parse(arguments)
    assert (stage1.task, stage1.spec.network, stage1.library) == ("UMC-A1-Stage1", "mlp", library)
    assert (stage1.options.num_envs, stage1.options.device) == (4, "cpu")
    assert stage1.overrides == [overrides[0], overrides[2]]  # Stage 1 has no faults to set
    out, err = capsys.readouterr()
    assert "training UMC-A1-Stage1 first" in out
    assert line in err


@pytest.mark.parametrize("given", [["--max_iterations", "9"], ["agent.max_iterations=9"]])
def test_a_missing_stage_1_has_as_many_iterations(given):
    request = parse([*STAGE2, *given])
    plan.add_launcher_options(request, [*STAGE2, *given])
    assert {*given} < {*request.stage1_arguments()}


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [(None, "finished", 0), (KeyboardInterrupt(), "interrupted", 130), (UmcError("no"), "failed", 2)],
)
def test_run_json_holds_how_a_run_ended_and_how_to_repeat_it(tmp_path, monkeypatch, raised, status, code):
    def simulate(plan):
        assert json.loads((plan.folder / "run.json").read_text())["status"] == "running"
        if raised is not None:
            raise raised
        return plan.folder / "model_0.pt"

    monkeypatch.setattr(train, "_simulate", simulate)
    assert main(["train", *STAGE1, "--num_envs", "3", "--run_name", "mine", "physics=ovphysx"]) == code
    (path,) = tmp_path.glob(f"{RUNS}/*_mine/run.json")
    record = json.loads(path.read_text())
    assert record["status"] == status
    assert record["ended_at"] >= record["starts"][0]["started_at"]
    expected = {"robot": "a1", "stage": 1, "model": "mlp", "physics": "ovphysx", "num_envs": 3, "parent": None}
    assert expected.items() <= record.items()
    (start,) = record["starts"]
    assert "--num_envs 3 --run_name mine physics=ovphysx" in start["command"]
    assert {"umc", "isaaclab", "torch", "warp", "newton", "rsl_rl", "python"} <= start["versions"].keys()
    assert None not in (start["versions"][name] for name in ("umc", "isaaclab", "torch", "python"))


def test_a_digit_that_is_not_decimal_is_no_port_of_a_ray_cluster(monkeypatch, refused):
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(__spec__="installed"))
    line = refused(*STAGE1, "--sweep", "seeds", "--max_iterations", "1", "--ray", "1", "--ray_address", "host:²")
    assert "--ray_address host:² is not a Ray address; it looks like 10.0.0.1:6379" in line


def test_two_runs_never_share_a_folder(tmp_path):
    argv = [*STAGE1, "--run_dir", str(tmp_path / "mine")]
    mine, unnamed = planned(*argv), planned(*STAGE1)
    assert mine.folder == tmp_path / "mine"
    plan.create_run_folder(mine)
    plan.create_run_folder(mine)  # the first was killed before its first checkpoint
    (mine.folder / "model_0.pt").write_text("")
    with pytest.raises(UmcError, match="exists already; give another --run_dir, or --resume"):
        plan.create_run_folder(mine)
    assert parse([*argv, "--resume"]).checkpoint == mine.folder / "model_0.pt"
    plan.create_run_folder(unnamed)
    with pytest.raises(UmcError, match="exists already; start again in a second, or give another --run_name"):
        plan.create_run_folder(unnamed)


def test_quick_trains_both_stages_evaluates_and_films(tmp_path, monkeypatch, capsys):
    calls = []

    def run_umc(command, arguments, log):
        assert log is None  # its output goes to the terminal
        calls.append((command, arguments))
        options = dict(zip(arguments[::2], arguments[1::2], strict=False))
        if command == "train":
            experiment = options["--task"].lower().replace("-", "_").replace("stage", "mlp_stage")
            put_checkpoint(Path(options["--logs"]) / "rsl_rl" / experiment / "run")
        else:
            out = Path(arguments[arguments.index("--out") + 1])
            out.mkdir(parents=True)
            (out / ("report.json" if command == "evaluate" else "policy.mp4")).touch()

    monkeypatch.setattr(quick, "run_umc", run_umc)
    assert main(["train", *STAGE2, "--quick", "physics=ovphysx"]) == 0
    assert [name for name, _ in calls] == ["train", "train", "evaluate", "film"]
    assert all({"physics=ovphysx", "--device"} <= set(arguments) for _, arguments in calls)
    assert [arguments[1] for _, arguments in calls[:2]] == ["UMC-A1-Stage1", "UMC-A1-Stage2"]
    assert all("umc_a1_mlp_stage2" in arguments[1] for _, arguments in calls[2:])
    lines = capsys.readouterr().out.splitlines()
    for start in ("checkpoint: ", "report: ", "video: "):
        (path,) = [line.removeprefix(start) for line in lines if line.startswith(start)]
        assert Path(path).is_file()
    assert not (tmp_path / "logs" / "rsl_rl").exists()  # else a real Stage 2 would start from a quick Stage 1
    calls.clear()
    assert main(["train", *STAGE2, "--quick", "--logs", "more", "physics=ovphysx", "env.scene.num_envs=9"]) == 0
    assert all("--num_envs" not in arguments and "env.scene.num_envs=9" in arguments for _, arguments in calls[:2])


@pytest.mark.parametrize(
    ("argv", "ground"),
    [
        ([], ["env.scene.terrain=flat"]),
        (["physics=ovphysx"], []),  # tracks cost nothing there
        (["env.scene.terrain=perlin"], []),  # asked for
        (["--task", "UMC-G1-Stage2"], []),  # flat already
    ],
)
def test_quick_takes_flat_ground_where_tracks_are_slow(argv, ground):
    assert quick.quick_ground(parse([*STAGE2, *argv])) == ground


def test_the_sizes_of_networks():
    sizes = {name: plan.network_size(AGENTS[name]) for name in ("mlp", "nm_mlp", "transformer", "nm_transformer")}
    assert sizes == {"mlp": "small", "nm_mlp": "small", "transformer": "large", "nm_transformer": "large"}


def test_stage_2_has_the_kind_of_critic_that_its_stage_1_had(tmp_path):
    """Its weights are what Stage 2 begins to learn values with; --resume repeats the choice from run.json."""
    path = put_checkpoint(tmp_path, model="transformer")
    data = read_checkpoint(path)
    data["critic_state_dict"] = {"core.layers.0.weight": torch.zeros(1)}  # as MaskedMlp names them
    write_checkpoint(path, data)
    argv = [*STAGE2, "--agent", "transformer", "--checkpoint", str(path)]
    chosen = planned(*argv)
    assert chosen.agent_cfg.mlp_critic
    assert "agent.mlp_critic=true" in chosen.record.fields["overrides"]
    assert any("the checkpoint's critic is an MLP, so this run's is one" in remark for remark in chosen.remarks)
    assert not planned(*argv, "agent.mlp_critic=false").agent_cfg.mlp_critic
    mlp = planned(*STAGE2, "--checkpoint", str(put_checkpoint(tmp_path / "mlp")))
    assert not mlp.agent_cfg.mlp_critic
