# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""scripts/train.py: what is wrong is one line before anything is simulated; what is right becomes the right plan."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import dummy_training as dummy
import pytest
import torch
from umc.rl.agents import AGENTS
from umc.rl.checkpoint import read_checkpoint, write_checkpoint
from umc.tasks.registry import load_tasks
from umc.training import plan
from umc.training import smoke_test as quick
from umc.training import train as launch
from umc.training.arguments import parse
from umc.training.plan import CPU_NUM_ENVS, make_plan, needs_stage1
from umc.training.task_cfg import add_launcher_options, resolve_cfgs
from umc.utils.errors import UmcError
from umc.utils.io import sha256
from umc.utils.process import ChildFailed

SCRIPTS = Path(__file__).parents[2] / "scripts"
A1 = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "--device", "cpu"]

RECORD = {
    "task": "UMC-A1-Stage2",
    "agent": "rsl_rl_mlp_cfg_entry_point",
    "seed": 5,
    "overrides": ["physics=ovphysx", "agent.algorithm.gamma=0.9"],
    "parent": "p",
    "num_envs": 12,
    "max_iterations": 77,
}
"""A run.json, as far as --resume needs it."""


@pytest.fixture(scope="module", autouse=True)
def libraries_are_imported():
    """What they say of themselves comes before a test reads what is printed."""
    load_tasks()
    resolve_cfgs("UMC-A1-Stage1", "rsl_rl_mlp_cfg_entry_point", [])


@pytest.fixture(autouse=True)
def nothing_is_simulated(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(launch, "_simulate", lambda *_: pytest.fail("the simulation was started"))
    monkeypatch.setattr(launch, "run_umc", lambda *_: pytest.fail("another command was started"))


def put_checkpoint(folder, name="model_5.pt", record=None, **info):
    """A run folder with a checkpoint, by default of A1's Stage 1 MLP."""
    runner = dummy.build(folder, **info)
    runner.current_learning_iteration = int(name.split("_")[1].split(".")[0])
    runner.save(str(folder / name))
    if record is not None:
        (folder / "run.json").write_text(json.dumps(record))
    return folder / name


def planned(*argv):
    request = parse(list(argv))
    add_launcher_options(request, list(argv))
    return make_plan(request)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        ([], "--task is missing; choose one of UMC-A1-Stage1, UMC-A1-Stage2, UMC-G1-Stage1, UMC-G1-Stage2"),
        (["--task", "UMC-A1-Stag2"], "unknown task UMC-A1-Stag2; did you mean UMC-A1-Stage2? choose one of UMC-A1-"),
        (["--task", "Isaac-Cartpole"], "unknown task Isaac-Cartpole; choose one of UMC-A1-Stage1"),
        ([*A1, "--num_envs", "0"], "--num_envs is 0; it has to be at least 1"),
        ([*A1, "--num_envs", "-1"], "--num_envs is -1; it has to be at least 1"),
        ([*A1, "--num_envs", "many"], "argument --num_envs: invalid int value: 'many'"),
        ([*A1, "--max_iterations", "0"], "--max_iterations is 0; it has to be at least 1"),
        ([*A1, "--seed", "-2"], "--seed is -2; it has to be 0 or more, or -1 for a random one"),
        ([*A1, "--checkpoint", "nowhere.pt"], "no checkpoint at nowhere.pt; give the path of a model_<iteration>.pt"),
        (["--task", "UMC-A1-Stage2", "--agent", "gru"], "unknown agent gru; choose one of transformer, mlp"),
        ([*A1, "--quick", "--resume"], "--quick starts from nothing; leave out --resume and --checkpoint"),
    ],
)
def test_the_script_says_in_one_line_what_is_wrong(argv, line, tmp_path):
    ended = subprocess.run(
        [sys.executable, str(SCRIPTS / "train.py"), *argv], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"error: {line}")
    assert ended.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["physics=bogus"], "Unknown preset(s): bogus Available presets"),
        (["physics=ovphysx", "physics=newton_mjwarp"], "Conflicting global presets"),
        (["physics=isaacsim_physx"], "needs Isaac Sim, which is not installed; choose physics=newton_mjwarp"),
        (["env.scen.num_envs=3"], "unknown override env.scen: env has no field scen; did you mean scene?"),
        (["env.scene.num_env=3"], "env.scene has no field num_env; did you mean num_envs?"),
        (["agent.algorithm.learning_rat=1"], "agent.algorithm has no field learning_rat; did you mean learning_rate?"),
        (["env.events.faults.params.sed=1"], "env.events.faults.params has no field sed; did you mean seed?"),
        (["env.scene.num_envs=abc"], "env.scene.num_envs takes a number"),
        (["env.scene.num_envs=0"], "env.scene.num_envs is 0; it has to be at least 1"),
        (["agent.resume=true"], "agent.resume=true: nothing reads agent.resume here; give --resume"),
        (["env.sim.device=cuda:1"], "nothing reads env.sim.device here; give --device"),
        (["agent.num_steps_per_env=0"], "agent.num_steps_per_env is 0"),
        (["agent.obs_groups.critic=[a,b]"], "agent.obs_groups.critic is [a,b]; it lists some of policy, joint_mask, "),
        (['agent.obs_groups.actor=["live_faults"]'], "agent.obs_groups.actor is ['live_faults']; it lists some of"),
        (["agent.obs_groups.critic=[]"], "agent.obs_groups.critic is []; it lists some of policy"),
        (["agent.obs_groups=critic"], "agent.obs_groups is not set as a whole; give agent.obs_groups.actor or"),
        (["foo=1"], "Could not override 'foo'"),
        (["env.sim.dt"], "cannot read env.sim.dt; overrides look like env.scene.num_envs=64"),
        (["--num_env", "3"], "unknown flag --num_env"),
        (["--device", "cuda:99"], "no device cuda:99 on this machine"),
        (["--device", "tpu"], "unknown device tpu"),
        (["--resume"], "nothing to resume in logs/rsl_rl/umc_a1_mlp_stage2"),
    ],
)
def test_overrides_are_checked_before_the_simulation(argv, line, capfd):
    assert launch.main([*A1, *argv]) == 2
    out, err = capfd.readouterr()
    assert line in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize(("physics", "package"), [("ovphysx", "ovphysx"), ("newton_mjwarp", "newton")])
def test_an_engine_that_is_not_installed_is_one_line(tmp_path, monkeypatch, capfd, physics, package):
    installed = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *of: None if name == package else installed(name, *of)
    )
    assert launch.main(["--task", "UMC-A1-Stage1", *A1[2:], f"physics={physics}"]) == 2
    assert (
        f"physics={physics} needs the Python package {package}, which is not installed; install"
        in capfd.readouterr().err
    )
    assert not list(tmp_path.iterdir())


def test_strangers_checkpoints_are_refused(tmp_path, capfd):
    g1 = put_checkpoint(tmp_path / "g1", robot="g1", task="UMC-G1-Stage1")
    transformer = put_checkpoint(tmp_path / "transformer", model="transformer")
    stage2 = put_checkpoint(tmp_path / "stage2", task="UMC-A1-Stage2", stage=2)
    (tmp_path / "note.pt").write_text("hello")
    cases = {
        (str(g1), "UMC-A1-Stage2"): "was trained for robot g1, the task is for a1",
        (str(transformer), "UMC-A1-Stage2"): "holds the transformer model, the agent is mlp",
        (str(stage2), "UMC-A1-Stage1"): "is of Stage 2; Stage 1 comes before it",
        (str(tmp_path / "note.pt"), "UMC-A1-Stage2"): "is damaged or no checkpoint",
        (str(tmp_path), "UMC-A1-Stage2"): "no model_<iteration>.pt in",
    }
    for (path, task), line in cases.items():
        capfd.readouterr()
        assert launch.main(["--task", task, "--agent", "mlp", "--checkpoint", path]) == 2
        err = capfd.readouterr().err
        assert line in err
        assert err.count("\n") == 1
    resumed = ["--task", "UMC-A1-Stage2", "--agent", "mlp", "--resume", "--checkpoint"]
    stage1 = put_checkpoint(tmp_path / "stage1")
    assert launch.main([*resumed, str(stage1)]) == 2
    assert "is a run of UMC-A1-Stage1; --resume needs the same task" in capfd.readouterr().err
    assert launch.main([*resumed, str(stage2)]) == 2
    assert "has no run.json" in capfd.readouterr().err


def test_a_cpu_gets_sizes_it_can_carry_and_flags_win(tmp_path):
    stage1 = ["--task", "UMC-A1-Stage1", "--agent", "mlp"]
    chosen = planned(*stage1, "--device", "cpu")
    assert chosen.env_cfg.scene.num_envs == CPU_NUM_ENVS
    assert chosen.agent_cfg.max_iterations == plan.CPU_ITERATIONS
    engine, sizes, *_ = chosen.remarks
    assert engine == "engine: ovphysx, the default on a CPU (physics=newton_mjwarp for the other)"
    assert chosen.physics == "ovphysx"
    assert "--num_envs" in sizes
    assert "--max_iterations" in sizes
    assert planned(*stage1, "--device", "cpu", "physics=newton_mjwarp").physics == "newton_mjwarp"
    flags = planned(*stage1, "--device", "cpu", "--num_envs", "5", "agent.max_iterations=6")
    assert (flags.env_cfg.scene.num_envs, flags.agent_cfg.max_iterations) == (5, 6)
    assert not any("chosen" in remark for remark in flags.remarks)
    override = planned(*stage1, "--device", "cpu", "env.scene.num_envs=7", "--max_iterations", "8")
    assert (override.env_cfg.scene.num_envs, override.agent_cfg.max_iterations) == (7, 8)


def test_a_gpu_keeps_the_papers_sizes(monkeypatch):
    monkeypatch.setattr(plan, "pick_device", lambda _: "cuda:0")
    monkeypatch.setattr("umc.training.task_cfg.pick_device", lambda _: "cuda:0")
    chosen = planned("--task", "UMC-A1-Stage1", "--agent", "mlp")
    assert chosen.env_cfg.scene.num_envs == 7400  # paper, A1 training parameters
    assert chosen.agent_cfg.max_iterations == 2500
    assert chosen.physics == "newton_mjwarp"
    assert chosen.env_cfg.sim.device == chosen.agent_cfg.device == "cuda:0"


def test_overrides_and_seed_reach_the_cfgs():
    chosen = planned(*A1[:1], "UMC-A1-Stage1", *A1[2:], "--seed", "9", "physics=ovphysx", "agent.algorithm.gamma=0.5")
    assert chosen.physics == "ovphysx"
    assert chosen.agent_cfg.algorithm.gamma == 0.5
    assert chosen.env_cfg.seed == chosen.agent_cfg.seed == 9
    assert chosen.record.fields["overrides"] == ["physics=ovphysx", "agent.algorithm.gamma=0.5"]
    planned(
        *A1[:1], "UMC-A1-Stage1", *A1[2:], "env.events.faults.params.onset_range=(5,9)"
    )  # at its default in the cfg


def test_stage_2_starts_from_the_newest_stage_1(tmp_path, monkeypatch):
    monkeypatch.setattr("umc.rl.transfer.pretrained_file", lambda *_: None)
    assert needs_stage1(parse(A1))
    stage1 = put_checkpoint(tmp_path / "logs" / "rsl_rl" / "umc_a1_mlp_stage1" / "run")
    assert not needs_stage1(parse(A1))
    chosen = planned(*A1)
    assert chosen.start_from == stage1.relative_to(tmp_path)
    assert chosen.record.fields["parent"] == {"path": str(stage1), "sha256": sha256(stage1)}
    given = put_checkpoint(tmp_path / "elsewhere", "model_1.pt")
    assert planned(*A1, "--checkpoint", str(given)).start_from == given
    assert planned(*A1, "--checkpoint", str(given.parent)).start_from == given


def test_a_stage_1_that_is_not_through_is_named_with_the_way_to_finish_it(tmp_path):
    folder = tmp_path / "logs" / "rsl_rl" / "umc_a1_mlp_stage1" / "run"
    for status in ("interrupted", "finished"):
        path = put_checkpoint(folder, record={**RECORD, "task": "UMC-A1-Stage1", "status": status})
        said = [line for line in planned(*A1).remarks if "not finished" in line]
        how = f"--task UMC-A1-Stage1 --resume --checkpoint {path.relative_to(tmp_path)}"
        expected = f"its training is not finished (interrupted after iteration 6); to finish it first: {how}"
        assert said == ([expected] if status == "interrupted" else [])


def test_a_plan_loads_what_it_says(tmp_path, monkeypatch):
    monkeypatch.setattr("umc.rl.transfer.pretrained_file", lambda *_: None)
    stage1 = put_checkpoint(tmp_path / "logs" / "rsl_rl" / "umc_a1_mlp_stage1" / "run", "model_8.pt")
    weights = read_checkpoint(stage1)["critic_state_dict"]
    for argv, iteration in (([*A1], 0), (["--task", "UMC-A1-Stage1", *A1[2:], "--resume"], 9)):
        (stage1.parent / "run.json").write_text(json.dumps(RECORD))
        runner = dummy.build(tmp_path / "new", torch_seed=8)
        assert not torch.equal(runner.alg.critic.state_dict()["mlp.0.weight"], weights["mlp.0.weight"])
        launch.load_start(planned(*argv), runner)
        assert torch.equal(runner.alg.critic.state_dict()["mlp.0.weight"], weights["mlp.0.weight"])
        assert runner.current_learning_iteration == iteration


@pytest.mark.parametrize(("code", "line"), [(130, "umc train was stopped\n"), (7, "error: umc train ended with 7")])
def test_who_stops_a_child_is_told_of_no_error(monkeypatch, capsys, code, line):
    def run_umc(command, _arguments):
        raise ChildFailed(command, code)

    monkeypatch.setattr("umc.rl.transfer.pretrained_file", lambda *_: None)
    monkeypatch.setattr(launch, "run_umc", run_umc)
    assert launch.main([*A1]) == code
    assert line in capsys.readouterr().err


def test_missing_stage_1_is_trained_first_with_the_same_settings(tmp_path, monkeypatch, capsys):
    calls = []

    def run_umc(command, arguments):
        calls.append((command, arguments))
        raise ChildFailed(command, 130)

    monkeypatch.setattr("umc.rl.transfer.pretrained_file", lambda *_: None)
    monkeypatch.setattr(launch, "run_umc", run_umc)
    more = ["--num_envs", "4", "physics=ovphysx", "env.events.faults.params.seed=3", "agent.algorithm.gamma=0.9"]
    assert launch.main([*A1, *more]) == 130
    ((command, arguments),) = calls
    assert command == "train"
    assert arguments[:2] == ["--task", "UMC-A1-Stage1"]
    stage1 = parse(arguments)
    assert (stage1.model, stage1.options.num_envs, stage1.options.device) == ("mlp", 4, "cpu")
    assert stage1.overrides == ["physics=ovphysx", "agent.algorithm.gamma=0.9"]  # Stage 1 has no faults to set
    assert "training UMC-A1-Stage1 first" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [(None, "finished", 0), (KeyboardInterrupt(), "interrupted", 130), (UmcError("no"), "failed", 2)],
)
def test_run_json_says_how_it_ended_and_how_to_repeat_it(tmp_path, monkeypatch, raised, status, code):
    def simulate(plan):
        assert json.loads((plan.folder / "run.json").read_text())["status"] == "running"
        if raised is not None:
            raise raised
        return plan.folder / "model_0.pt"

    monkeypatch.setattr(launch, "_simulate", simulate)
    argv = ["--task", "UMC-A1-Stage1", "--agent", "mlp", "--device", "cpu", "--num_envs", "3", "--run_name", "mine"]
    assert launch.main([*argv, "physics=ovphysx"]) == code
    (path,) = tmp_path.glob("logs/rsl_rl/umc_a1_mlp_stage1/*_mine/run.json")
    record = json.loads(path.read_text())
    assert record["status"] == status
    assert record["ended_at"] >= record["starts"][0]["started_at"]
    expected = {"robot": "a1", "stage": 1, "model": "mlp", "physics": "ovphysx", "num_envs": 3, "parent": None}
    assert expected.items() <= record.items()
    (start,) = record["starts"]
    assert "--num_envs 3 --run_name mine physics=ovphysx" in start["command"]
    assert {"umc", "isaaclab", "torch", "warp", "newton", "rsl_rl", "python"} <= start["versions"].keys()
    assert None not in (start["versions"][name] for name in ("umc", "isaaclab", "torch", "python"))


def test_trainings_of_one_second_do_not_share_a_folder(tmp_path, monkeypatch, capfd):
    argv = ["--task", "UMC-A1-Stage1", "--agent", "mlp", "--device", "cpu"]
    plans = [planned(*argv) for _ in range(2)]  # both are made before either begins
    plans[1].record.path = plans[0].record.path
    monkeypatch.setattr(plan, "make_plan", lambda _: plans.pop())
    monkeypatch.setattr(launch, "_simulate", lambda plan: plan.folder / "model_0.pt")
    assert [launch.main(argv) for _ in range(2)] == [0, 2]
    assert "exists already; start again in a second, or give another --run_name" in capfd.readouterr().err
    (path,) = tmp_path.glob("logs/rsl_rl/umc_a1_mlp_stage1/*/run.json")
    assert len(json.loads(path.read_text())["starts"]) == 1


def test_a_run_folder_can_be_given_and_gone_on_with(tmp_path):
    argv = ["--task", "UMC-A1-Stage1", "--agent", "mlp", "--device", "cpu", "--run_dir", str(tmp_path / "mine")]
    mine = planned(*argv)
    assert mine.folder == tmp_path / "mine"
    plan.create_run_folder(mine)
    plan.create_run_folder(mine)  # the first was killed before its first checkpoint
    (mine.folder / "model_0.pt").write_text("")
    with pytest.raises(UmcError, match="exists already; give another --run_dir, or --resume"):
        plan.create_run_folder(mine)
    assert parse([*argv, "--resume"]).checkpoint == tmp_path / "mine" / "model_0.pt"
    for other in ("--quick", "--run_name=x"):
        with pytest.raises(UmcError, match="leave out --"):
            parse([*argv, other])


def test_quick_passes_through_every_part(tmp_path, monkeypatch, capsys):
    calls = []

    def run_umc(command, arguments):
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
    assert launch.main([*A1, "--quick", "physics=ovphysx"]) == 0
    assert [name for name, _ in calls] == ["train", "train", "evaluate", "film"]
    assert all({"physics=ovphysx", "--device"} <= set(arguments) for _, arguments in calls)
    assert [arguments[1] for _, arguments in calls[:2]] == ["UMC-A1-Stage1", "UMC-A1-Stage2"]
    assert all("umc_a1_mlp_stage2" in arguments[1] for _, arguments in calls[2:])
    out = capsys.readouterr().out
    assert "proves nothing about learning" in out
    for line in ("checkpoint: ", "report: ", "video: "):
        (path,) = [text.removeprefix(line) for text in out.splitlines() if text.startswith(line)]
        assert Path(path).is_file()
    assert not (tmp_path / "logs" / "rsl_rl").exists()  # else a real Stage 2 would start from a quick Stage 1


@pytest.mark.parametrize(
    ("argv", "flat"),
    [
        (["--task", "UMC-A1-Stage2", "--device", "cpu"], True),
        (["--task", "UMC-A1-Stage2", "--device", "cpu", "physics=ovphysx"], False),  # tracks cost nothing there
        (["--task", "UMC-A1-Stage2", "--device", "cpu", "env.scene.terrain=perlin"], False),  # asked for
        (["--task", "UMC-G1-Stage2", "--device", "cpu"], False),  # flat already
    ],
)
def test_quick_lays_flat_ground_where_tracks_are_slow(argv, flat, capsys):
    request = parse(argv)
    assert quick.quick_ground(request) == (["env.scene.terrain=flat"] if flat else [])
    assert ("env.scene.terrain=perlin brings that back" in capsys.readouterr().out) == flat


def test_a_large_network_learns_on_all_cores_of_a_small_machine(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    chosen = {name: plan.cpu_threads(plan.is_large(AGENTS[name])) for name in ("mlp", "nm_mlp", "nm_transformer")}
    assert chosen == {"mlp": 1, "nm_mlp": 1, "nm_transformer": None}
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert plan.cpu_threads() is None


def test_a_stage_2_has_the_kind_of_critic_that_its_stage_1_had(tmp_path):
    """Its weights are what Stage 2 begins to learn values with; --resume repeats the choice from run.json."""
    transformer = ["--task", "UMC-A1-Stage2", "--agent", "transformer", "--device", "cpu"]
    path = put_checkpoint(tmp_path, model="transformer")
    data = read_checkpoint(path)
    data["critic_state_dict"] = {"core.layers.0.weight": torch.zeros(1)}  # as MaskedMlp names them
    write_checkpoint(path, data)
    chosen = planned(*transformer, "--checkpoint", str(path))
    assert chosen.agent_cfg.mlp_critic
    assert "agent.mlp_critic=true" in chosen.record.fields["overrides"]
    assert any("the checkpoint's critic is an MLP, so this run's is one" in remark for remark in chosen.remarks)
    typed = planned(*transformer, "--checkpoint", str(path), "agent.mlp_critic=false")
    assert not typed.agent_cfg.mlp_critic
    mlp = planned(*A1, "--checkpoint", str(put_checkpoint(tmp_path / "mlp")))
    assert not mlp.agent_cfg.mlp_critic
