# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Recipes name what exists, and mistakes are one line; no simulator."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from fresh_policy import WIDTHS
from tiny_recipe import PHASES, TINY, written
from umc.cli.main import main
from umc.faults import paper_settings
from umc.mdp.observations import entries
from umc.rl.agents import AGENTS, STAGE_ITERATIONS
from umc.rl.distillation import read_teacher
from umc.rl.external import _terms_of, _width
from umc.tasks.ppo import UmcPpoRunnerCfg
from umc.tasks.task_cfg import resolve_cfgs
from umc.training.recipe import DEFAULT_MINI_BATCHES, Source, read_recipe, recipe_names
from umc.training.recipe_runner import RecipeRun, check_recipe
from umc.utils.errors import UmcError
from umc.utils.naming import entry_point

COMMAND = 3
"""Columns of the velocity command, the one term whose function does not say how many it has."""


def test_every_recipe_names_tasks_agents_and_fields_that_exist(monkeypatch):
    """By Isaac Lab's own resolving, each different phase once; a wrong name raises."""
    monkeypatch.setattr("umc.tasks.task_cfg.pick_device", lambda _: "cpu")
    monkeypatch.setattr("umc.tasks.memory.available_bytes", lambda: 4.0e9)
    for name in recipe_names():
        check_recipe(read_recipe(name), left=())
    with pytest.raises(UmcError, match=r"a1_mlp_paper: Stage 1.*: 7400 envs need about"):  # on a machine that runs it
        check_recipe(read_recipe("a1_mlp_paper"))


def test_recipes_beside_the_package_fit_the_policy_that_they_imitate(tmp_path, monkeypatch):
    """They name Unitree's public motion.pt, whose observations have these widths."""
    monkeypatch.setattr("umc.tasks.task_cfg.pick_device", lambda _: "cpu")
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parents[2]
    own = [path for path in root.glob("checkpoints/**/*.yaml") if "\nextends: " in path.read_text()]
    for path in own:
        check_recipe(read_recipe(str(path)))
    imitating = []
    for path in root.glob("examples/*.yaml"):
        recipe = read_recipe(str(path))
        check_recipe(recipe)
        for phase in (phase for phase in recipe.phases if phase.teacher is not None):
            columns, joints = {"g1": (47, 12), "h1": (41, 10)}[recipe.robot]
            torch.jit.script(torch.nn.Linear(columns, joints)).save("motion.pt")
            env_cfg, _ = resolve_cfgs(phase.task, entry_point(phase.agent), list(phase.overrides))
            teacher = read_teacher(phase.teacher, recipe.robot, trust=True)
            teacher.add_observations(env_cfg)
            terms = _terms_of(entries(env_cfg.observations), teacher.group)
            widths = [COMMAND if (width := _width(env_cfg, term)) is None else width for term in terms.values()]
            assert sum(widths) == columns == WIDTHS[recipe.robot]["policy"]
            imitating.append(path.stem)
    assert sorted(imitating) == ["h1_nm_gru", "harden_g1", "harden_h1"]


def test_stage_2_of_g1_and_h1_keeps_the_policy_symmetric():
    for name in ("g1_mlp_cpu", "h1_mlp_cpu"):
        phase = [phase for phase in read_recipe(name).phases if phase.stage == 2][-1]
        assert {"agent.mirror=true", "agent.mirror_loss=1.0"} <= {*phase.overrides}, name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"library": "skrl", "stages": {1: [], 2: [{"iterations": 1, "teacher": "t"}]}}, "needs library: rsl_rl"),
        ({"overrides": ["env.scene.terain=flat"]}, r"recipe tiny: Stage 1, walk: unknown override env\.scene\.terain"),
        ({"overrides": ['env.events.faults.params.severity={"rom":0.3}']}, "kind 'effort' needs a severity"),
        ({"robot": "solo8", "overrides": ["agent.mirror_loss=2.0"]}, "has no effect without mirror images"),
        ({"overrides": ['agent.obs_groups.actor=["eyes"]']}, "agent.obs_groups.actor is .*lists some of policy"),
        ({"agent": "mlp_curriculum", "stages": {1: [], 2: [{"iterations": 3}]}}, "cannot hold the 4 stages"),
        ({"overrides": ["env.events.faults.params.replay=x", "agent.sample_failures=true"]}, "no curriculum changes"),
        ({"overrides": ["agent.algorithm.num_mini_batches=999"]}, "has to be at most 192"),
        ({"overrides": ["env.scene.num_envs=4"]}, "has a key of its own; give 'num_envs'"),
        ({"overrides": ["agent.seed=4"]}, "has a key of its own; give 'seed'"),
        (
            {"stages": {1: [{"iterations": 1}, {"iterations": 1, "overrides": ["agent.clip_actions=2.0"]}], 2: []}},
            "Stage 1, 2: it resumes the phase before it and keeps its agent.clip_actions; .* 'from: before'",
        ),
        *(
            ({"stages": {1: [{"iterations": 1}, {"iterations": 1, "overrides": [token]}], 2: []}}, f"keeps its {key}")
            for key, token in (
                ("agent.critic.hidden_dims", "agent.critic.hidden_dims=[64,64]"),
                ("agent.mlp_critic", "agent.mlp_critic=true"),
            )
        ),
    ],
)
def test_a_mistake_is_named_before_anything_is_trained(tmp_path, monkeypatch, changes, words):
    monkeypatch.chdir(tmp_path)
    Path("t").touch()
    with pytest.raises(UmcError, match=words):
        check_recipe(read_recipe(written(tmp_path, **changes)))


SEES, KEEPS = "agent.critic_sees_faults=true", "agent.stage1_transfer.reset_optimizer=false"
READS = 'agent.obs_groups.critic=["critic","fault_flag"]'
FLAGLESS = 'agent.obs_groups.actor=["policy"]'
SMALL, MLP = "agent.actor.hidden_dims=[64,64]", "agent.mlp_critic=true"


@pytest.mark.parametrize(
    ("agent", "first", "second", "words"),
    [
        ("mlp", [], [SMALL], "keeps its agent.actor.hidden_dims; give both the same"),
        ("mlp", [SMALL], [], "keeps its agent.actor.hidden_dims"),
        ("mlp", [SMALL], [SMALL], None),
        ("mlp", [], ["agent.critic.activation=tanh"], "keeps its agent.critic.activation"),
        ("mlp", [], [READS], "keeps its agent.obs_groups.critic"),
        ("mlp", [], [MLP], None),  # which it is already
        ("transformer_small32", [], [MLP], "keeps its agent.mlp_critic"),
        ("transformer_small32", [MLP], ["agent.mlp_critic=false"], "keeps its agent.mlp_critic"),
        ("transformer_small32", [MLP], [], None),  # the plan adopts it
        ("mlp", [], [SEES], None),
        ("mlp", [SEES], [], "keeps its agent.critic_sees_faults"),
        ("mlp", [], [SEES, KEEPS], "agent.critic_sees_faults needs a new optimizer"),
        ("mlp", [SEES], [SEES, KEEPS], None),
        ("mlp", [READS], [READS, SEES], "Stage 1 reads fault_flag, .* leave it out"),
        ("mlp", [READS, SEES], [READS, SEES], None),
        ("mlp", [], ['agent.obs_groups.actor=["policy","joint_mask"]'], None),
        ("mlp", [FLAGLESS], [FLAGLESS], None),
        ("mlp", [FLAGLESS], [], "keeps its agent.obs_groups.actor"),
        ("mlp", [], [FLAGLESS, KEEPS], "an actor without the fault flag of its Stage 1 needs a new optimizer"),
        ("mlp", [FLAGLESS], [FLAGLESS, KEEPS], None),
        ("mlp", [], ['agent.obs_groups.actor=["policy","joint_mask","fault_flag","critic"]'], "agent.obs_groups.actor"),
        ("mlp", [], ["agent.actor.distribution_cfg.std_type=log"], "keeps its agent.actor.distribution_cfg.std_type"),
        ("mlp", [], ["agent.actor.distribution_cfg.init_std=0.2", "agent.actor.mask_value=1.0"], None),
    ],
)
def test_a_phase_that_cannot_take_the_weights_before_it_is_named(tmp_path, agent, first, second, words):
    phases = {stage: [{"iterations": 1, "overrides": tokens}] for stage, tokens in ((1, first), (2, second))}
    recipe = read_recipe(written(tmp_path, agent=agent, stages=phases))
    if words is None:
        check_recipe(recipe)
    else:
        with pytest.raises(UmcError, match=f"^recipe tiny: Stage 2, 1: .*{words}"):
            check_recipe(recipe)
        # weights from elsewhere are not those of the phase before it
        phases[2][0]["from"] = "elsewhere.pt"
        check_recipe(read_recipe(written(tmp_path, agent=agent, stages=phases)))


@pytest.mark.parametrize(
    ("evaluation", "words"),
    [
        ({"num_envs": 24, "overrides": ["protocol.steps=1000", "env.scene.terrain=flat", "physics=ovphysx"]}, None),
        ({"num_envs": 23}, "--num_envs 23 is less than the 24 cells"),
        ({"overrides": ["protocol.stpes=3"]}, "unknown key stpes"),
        ({"overrides": ["protocol.num_joints=[13,13]"]}, "there are 12 joints"),
        ({"overrides": ["env.scen.terrain=flat"]}, "no field scen"),
        ({"overrides": ["agent.mirror=true"]}, "the agent comes with the checkpoint"),
    ],
)
def test_the_evaluation_is_checked_before_anything_is_trained(tmp_path, capfd, evaluation, words):
    assert main(["recipe", written(tmp_path, evaluation=evaluation), "--show"]) == (2 if words else 0)
    line = capfd.readouterr().err.splitlines()[-1] if words else ""
    assert line.startswith("error: recipe tiny: evaluation: ") == bool(words)
    assert (words or "") in line


def test_a_recipe_is_shown_on_every_machine_and_trained_where_it_fits(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("umc.tasks.memory.available_bytes", lambda: 1.0e9)
    monkeypatch.setattr("umc.training.recipe_runner.RecipeRun.train", lambda _: pytest.fail("it was trained"))
    path = written(tmp_path, num_envs=7400)
    assert main(["recipe", path, "--show"]) == 0
    assert main(["recipe", path]) == 2
    assert "7400 envs need about" in capfd.readouterr().err


@pytest.mark.parametrize("physics", [None, "newton_mjwarp"])
def test_a_recipe_for_a_gpu_is_shown_where_there_is_none(tmp_path, monkeypatch, capfd, physics):
    monkeypatch.setattr("umc.tasks.task_cfg.num_gpus", lambda: 0)
    path = written(tmp_path, device="cuda", physics=physics)
    assert main(["recipe", path, "--show"]) == 0
    assert capfd.readouterr().out.count(" --device cuda ") == PHASES
    assert main(["recipe", path]) == 2
    assert "no device cuda on this machine" in capfd.readouterr().err


def test_a_recipe_for_a_gpu_that_is_done_needs_one_only_to_be_evaluated(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("umc.tasks.task_cfg.num_gpus", lambda: 0)
    monkeypatch.setattr("umc.training.recipe_runner.run_umc", lambda *_, **__: pytest.fail("it was run"))
    path = written(tmp_path, device="cuda", physics="newton_mjwarp")
    run = RecipeRun(read_recipe(path), Path("logs"), "")
    for number in range(PHASES):
        entry = run._entry(number)
        checkpoint = Path(entry.run_dir, f"model_{number}.pt")
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.touch()
        entry.status, entry.checkpoint = "done", str(checkpoint)
    run._write()
    assert main(["recipe", path]) == 0
    assert "recipe tiny is done" in capfd.readouterr().out
    assert main(["recipe", path, "--evaluate"]) == 2
    assert "evaluation: no device cuda on this machine" in capfd.readouterr().err


def test_an_override_that_is_no_text_is_named_in_a_file_that_extends_another(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: a1_mlp_cpu\noverrides:\n- env.scene.terrain: flat\n")
    with pytest.raises(UmcError, match="overrides"):
        read_recipe(str(path))


def test_paper_recipes_have_the_papers_sizes():
    paper = [name for name in recipe_names() if name.endswith("_paper") and "mt_ftc" not in name]  # has its own code's
    assert len(paper) >= 20
    for name in paper:
        recipe = read_recipe(name)
        rows = paper_settings({"go2": "a1"}.get(recipe.robot, recipe.robot), "training")  # the paper has no Go2
        assert {phase.num_envs for phase in recipe.phases} == {rows["num_envs"]}
        assert recipe.seed == rows["seed"]
        stages = AGENTS[recipe.agent].stages
        assert sum(phase.iterations for phase in recipe.phases) == 2 * STAGE_ITERATIONS
        assert {phase.stage for phase in recipe.phases} == set(stages)


def settings(phase):
    """Overrides of a phase by key, without its engine."""
    tokens = dict(token.split("=", 1) for token in phase.overrides)
    return {key: value for key, value in tokens.items() if key != "physics"}


def test_gpu_recipes_are_those_of_a_cpu_at_16_times_the_envs():
    """4 times the mini-batches, as many iterations, and all other settings."""
    gpu = [name for name in recipe_names() if name.endswith("_gpu") and "_h100_" not in name]
    robots, agents = ("a1", "g1", "h1", "solo8"), ("mlp", "transformer")
    assert {f"{robot}_{agent}_gpu" for robot in robots for agent in agents} < {*gpu}
    known = {*recipe_names()}
    assert UmcPpoRunnerCfg().algorithm.num_mini_batches == DEFAULT_MINI_BATCHES
    for name in gpu:
        recipe, agent = read_recipe(name), "mlp" if "transformer" in name and not name.startswith("a1") else None
        proven = read_recipe(name.replace("transformer", agent or "transformer").replace("_gpu", "_cpu"))
        assert (recipe.device, recipe.physics, recipe.seed) == ("cuda", "newton_mjwarp", proven.seed)
        assert len(recipe.phases) == len(proven.phases)
        for phase, small in zip(recipe.phases, proven.phases, strict=True):
            assert phase.num_envs == 16 * small.num_envs
            assert phase.iterations == small.iterations
            assert (phase.name, phase.task, phase.resumes) == (small.name, small.task, small.resumes)
            assert settings(phase) == settings(small) | {"agent.algorithm.num_mini_batches": "16"}
            if small.source is not None:
                assert phase.source == small.source.model_copy(update={"recipe": phase.source.recipe})
                if small.source.recipe is not None:
                    assert phase.source.recipe == small.source.recipe.replace("_cpu", "_gpu")
                    assert phase.source.recipe in known
        if recipe.ablations is not None:
            assert recipe.ablations == proven.ablations.replace("_cpu", "_gpu")
    # neither what imitates nor another engine has one
    assert not {"a1_transformer_distilled_gpu", "a1_mlp_newton_gpu", "cpu_gpu"} & {*gpu}
    assert read_recipe("a1_mlp_ratio_1110_gpu").phases[0].source.recipe == "a1_mlp_no_privileged_critic_gpu"


def test_the_scale_of_a_recipe_of_ones_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: a1_nm_mlp_cpu\nscale: 0.25\n")
    (small,) = read_recipe("a1_nm_mlp_cpu").phases
    (phase,) = read_recipe(str(path)).phases
    assert (phase.num_envs, phase.iterations, phase.source) == (64, 4 * small.iterations, small.source)
    assert settings(phase) == settings(small) | {"agent.algorithm.num_mini_batches": "2"}
    # what it says itself is not scaled
    path.write_text("extends: cpu\nrobot: g1\nagent: mlp\nscale: 9\nnum_envs: 100\n")
    assert {phase.num_envs for phase in read_recipe(str(path)).phases} == {100}
    assert {phase.iterations for phase in read_recipe(str(path)).phases} == {1000}
    (tmp_path / "next.yaml").write_text(f"extends: {path}\nscale: 4\n")
    (first, _) = read_recipe(str(tmp_path / "next.yaml")).phases
    assert (first.num_envs, first.iterations) == (400, 1000)
    assert settings(first)["agent.algorithm.num_mini_batches"] == "24"
    path.write_text("extends: a1_mlp_curriculum_cpu\nscale: 0.5\n")
    (*_, last) = read_recipe(str(path)).phases
    (*_, whole) = read_recipe("a1_mlp_curriculum_cpu").phases
    curriculum = "agent.curriculum_iterations"
    assert int(settings(last)[curriculum]) == 2 * int(settings(whole)[curriculum])
    growing, mixing = "agent.severity_iterations", "agent.distillation.mixing"
    path.write_text(f"extends: a1_mlp_cpu\noverrides: [{growing}=100, {mixing}=30]\n")
    for scale, iterations in ((0.5, ("200", "60")), (4, ("100", "30"))):
        (tmp_path / "next.yaml").write_text(f"extends: {path}\nscale: {scale}\n")
        (*_, last) = read_recipe(str(tmp_path / "next.yaml")).phases
        assert (settings(last)[growing], settings(last)[mixing]) == iterations
    path.write_text(f"extends: a1_mlp_cpu\nscale: 0.5\noverrides: [{mixing}=0]\n")
    (tmp_path / "next.yaml").write_text(f"extends: {path}\nscale: 0.5\n")
    assert settings(read_recipe(str(tmp_path / "next.yaml")).phases[0])[mixing] == "0"  # never
    path.write_text("extends: a1_nm_mlp_cpu\noverrides: [agent.algorithm.num_mini_batches=few]\n")
    with pytest.raises(UmcError, match="num_mini_batches=few: scale needs a whole number there"):
        read_recipe(str(tmp_path / "next.yaml"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("extends: a1_mlp_cpu\nscale: many\n", "scale is many; it has to be a number between 1/256 and 256"),
        ("extends: a1_mlp_cpu\nscale: true\n", "scale is True; it has to be a number"),
        ("extends: a1_mlp_cpu\nscale: 0\n", "scale is 0; it has to be a number"),
        ("scale: 4\nrobot: a1\n", "scale is that of the recipe that it extends; add extends"),
        ("extends: cpu\nscale: 4\n", "robot is missing"),
        ("extends: OTHER\nscale: 4\n", "there is no num_envs to scale"),
    ],
)
def test_a_wrong_scale_is_one_line(tmp_path, content, words):
    other = written(tmp_path, num_envs=None)
    (tmp_path / "mine.yaml").write_text(content.replace("OTHER", other))
    with pytest.raises(UmcError, match="recipe mine: ") as error:
        read_recipe(str(tmp_path / "mine.yaml"))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_recipe_lies_over_its_family():
    name, agent = "solo8_nm_transformer_small32_cpu", "nm_transformer_small32"
    recipe = read_recipe(f"config/recipes/{name}.yaml")  # a name of a family, as the path that it would have
    assert (recipe.name, recipe.robot, recipe.agent, recipe.device) == (name, "solo8", agent, "cpu")
    (phase,) = recipe.phases
    assert (phase.stage, phase.iterations, phase.task) == (1, 2000, "UMC-Solo8-Stage1")
    assert phase.overrides[0] == "physics=ovphysx"
    own = read_recipe("a1_mlp_cpu")
    assert "env.scene.terrain=flat" in own.phases[0].overrides  # by the family's entry of the robot
    # Stage 2 begins with the third
    assert [phase.resumes for phase in own.phases] == [False, True, False]
    assert own.phases[1].last_iteration == own.phases[0].iterations + own.phases[1].iterations
    # what a phase sets stays for those that follow, unless they set it themselves
    first, second = (dict(token.split("=", 1) for token in phase.overrides) for phase in own.phases[:2])
    assert first.keys() < second.keys()
    assert first["env.rewards.progress.weight"] == second["env.rewards.progress.weight"]
    assert first["env.rewards.track_lin_vel.params.std"] != second["env.rewards.track_lin_vel.params.std"]
    assert read_recipe("a1_mlp_cpu", seed=9).phases[2].seed == 9


def test_a_robot_in_any_case_has_the_settings_of_its_family(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: cpu\nrobot: A1\nagent: nm_mlp\n")
    assert "env.scene.terrain=flat" in read_recipe(str(path)).phases[0].overrides


def test_the_path_of_a_recipe_in_the_repository_is_its_name_elsewhere():
    assert read_recipe("config/recipes/a1_mlp_cpu.yaml") == read_recipe("a1_mlp_cpu")


def test_a_file_of_ones_own_extends_a_recipe(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("extends: a1_mlp_cpu\nnum_envs: 64\noverrides: [env.scene.terrain=perlin]\n")
    recipe = read_recipe(str(path))
    assert recipe.name == "mine"
    assert {phase.num_envs for phase in recipe.phases} == {64}
    assert all("env.scene.terrain=perlin" in phase.overrides for phase in recipe.phases)
    assert not any("env.scene.terrain=flat" in phase.overrides for phase in recipe.phases)
    path.write_text("extends: a1_mlp_cpu\nevaluation: { overrides: [protocol.steps=100, protocol.seed=3] }\n")
    (tmp_path / "next.yaml").write_text(f"extends: {path}\nevaluation: {{ overrides: [protocol.steps=50] }}\n")
    evaluation = read_recipe(str(tmp_path / "next.yaml")).evaluation
    assert (evaluation.num_envs, evaluation.overrides) == (240, ["protocol.seed=3", "protocol.steps=50"])
    (tmp_path / "folder").mkdir()
    path.rename(tmp_path / "folder" / "beside.yaml")
    (tmp_path / "folder" / "next.yaml").write_text("extends: beside.yaml\nevaluation: null\noverrides: null\n")
    evaluation = read_recipe(str(tmp_path / "folder" / "next.yaml")).evaluation
    assert (evaluation.num_envs, evaluation.overrides) == (None, [])
    (tmp_path / "loop.yaml").write_text(f"extends: {tmp_path / 'loop.yaml'}\n")
    with pytest.raises(UmcError, match=r"recipe loop extends itself; .* another name"):
        read_recipe(str(tmp_path / "loop.yaml"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"stags": {}}, "unknown key stags; did you mean stages?"),
        ({"robot": None}, "robot is missing; add it"),
        ({"robot": "a3"}, "unknown robot a3"),
        ({"agent": "mpl"}, "unknown agent mpl; did you mean mlp?"),
        ({"stages": {1: TINY["stages"][1]}}, "stages.2 is missing, and agent mlp is trained in it"),
        ({"stages": {2: TINY["stages"][2]}}, "stages.1 is missing, and agent mlp is trained in it"),
        ({"stages": {1: [], 2: TINY["stages"][2]}}, "Stage 2 has no Stage 1 to start from"),
        ({"stages": {1: [{"name": "walk"}], 2: []}}, "stages.1.0.iterations is missing"),
        ({"stages": {1: [{"iterations": 0}], 2: []}}, "stages.1.0.iterations is 0; input should be greater than 0"),
        ({"stages": {1: [{"iterations": 5, "from": "before"}], 2: []}}, "'from: before' needs a phase before it"),
        ({"stages": {1: [{"iterations": 5, "teacher": {"stage": 2}}], 2: []}}, "'teacher' has to be a policy"),
        ({"stages": {1: [{"iterations": 5, "from": {"stage": 1}}], 2: []}}, "'from' has to be a path"),
        (
            {"stages": {1: [{"iterations": 5, "from": {"recipe": "a", "stage": 3}}], 2: []}},
            "stages.1.0.from.stage is 3",
        ),
        ({"stages": {1: [{"iterations": 5, "teacher": {"recipe": "a", "stage": 3}}], 2: []}}, "teacher.stage is 3"),
        ({"stages": {1: [{"iterations": 5, "name": "a\nb"}], 2: []}}, "holds characters that cannot be printed"),
        ({"agent": "nm_mlp"}, "agent nm_mlp is not trained in Stage 2; leave out stages.2"),
        ({"seed": -1}, "seed is -1"),
        ({"library": "sb3"}, "library is 'sb3'; input should be 'rsl_rl' or 'skrl'"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_mend(tmp_path, changes, words):
    with pytest.raises(UmcError) as error:
        read_recipe(written(tmp_path, **changes))
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert "recipe tiny" in str(error.value)


def test_an_ablation_is_the_unchanged_recipe_from_its_stage_1_on():
    # not of a1_mlp_cpu, whose critic is privileged: the paper's is not
    unchanged = [phase for phase in read_recipe("a1_mlp_no_privileged_critic_cpu").phases if phase.stage == 2]
    varied = read_recipe("a1_mlp_ratio_1110_cpu")
    assert varied.agent == "mlp_ratio_1110"
    assert [phase.agent for phase in varied.phases] == ["mlp_ratio_1110"] * len(unchanged)
    assert varied.phases[0].source == Source(recipe="a1_mlp_no_privileged_critic_cpu", stage=1)
    # who names no other recipe is varied itself
    assert read_recipe("g1_mlp_ratio_1110_cpu").phases[0].source == Source(recipe="g1_mlp_cpu", stage=1)
    as_unchanged = [dataclasses.replace(phase, agent="mlp", source=None) for phase in varied.phases]
    assert as_unchanged == [dataclasses.replace(phase, iterations_before=0) for phase in unchanged]
    # one that starts from scratch cannot borrow the settings of a Stage 2
    with pytest.raises(UmcError, match="no recipe 'g1_mlp_one_stage_cpu'"):
        read_recipe("g1_mlp_one_stage_cpu")


def test_an_unknown_recipe_says_which_was_meant_and_how_to_list_them():
    with pytest.raises(UmcError) as error:
        read_recipe("a1_mlp_cup")
    assert "did you mean a1_mlp_cpu?" in str(error.value)
    assert f"one of the {len(recipe_names())} that umc list recipes shows" in str(error.value)
    for family in ("cpu", "gpu", "paper"):
        with pytest.raises(UmcError, match=f"{family} holds the recipes of all robots"):
            read_recipe(family)


def test_a_later_phase_of_stage_2_keeps_the_flag(tmp_path):
    later = {"iterations": 1, "from": "before", "overrides": [FLAGLESS]}
    recipe = read_recipe(written(tmp_path, agent="mlp", stages={1: [{"iterations": 1}], 2: [{"iterations": 1}, later]}))
    with pytest.raises(UmcError, match=r"Stage 2, 2: .*keeps its agent.obs_groups.actor"):
        check_recipe(recipe)
