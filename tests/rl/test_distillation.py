# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A student acts as its teacher does, and its run says whom it imitates."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from dummy_robot import DummyRobotEnv, build_runner, mean_action, with_terms
from dummy_training import planned, put_checkpoint
from fresh_policy import write_fresh
from isaaclab_rl.rsl_rl import RslRlVecEnvWrapper
from isaaclab_tasks.utils import load_cfg_from_registry
from tensordict import TensorDict
from torch import nn
from umc.deploy.export import export_checkpoint
from umc.rl.checkpoint import read_checkpoint
from umc.rl.distillation import LABELS, Distillation, DistillationRunner, TeacherEnvWrapper, read_teacher
from umc.rl.symmetry import mirror_of
from umc.rl.transfer import load_stage1_weights
from umc.training.arguments import parse
from umc.training.plan import add_launcher_options, add_teacher, needs_stage1
from umc.utils.errors import UmcError


class TaughtDummy(DummyRobotEnv):
    """A robot whose teacher acts by its observation."""

    def __init__(self, robot):
        super().__init__(robot)
        table = torch.randn(48, 12, generator=torch.Generator().manual_seed(3))
        self.groups[LABELS] = (self.groups["policy"] @ table).tanh()
        self.executed = []

    def step(self, actions):
        self.executed.append(actions.clone())
        return super().step(actions)


def student(folder, monkeypatch, mirror=False, **options) -> Any:
    def change(cfg):
        cfg.distillation.samples, cfg.distillation.batch_size = 32, 16
        cfg.mirror = mirror
        for name, value in options.items():
            setattr(cfg.distillation, name, value)

    monkeypatch.setattr("dummy_training.UmcRunner", DistillationRunner)
    return build_runner(folder, "mlp", env=with_terms(TaughtDummy("A1"), "A1"), change=change)


def test_a_student_learns_its_teachers_actions_and_its_own_returns(tmp_path, monkeypatch):
    runner = student(tmp_path, monkeypatch, mixing=0)
    labels = runner.env.groups[LABELS]
    before, noise = mean_action(runner), noise_of(runner)
    assert (before - labels).square().mean() > 0.1
    critic = read_checkpoint(save(runner, tmp_path / "model_0.pt"))["critic_state_dict"]
    runner.train(60)
    assert (mean_action(runner) - labels).square().mean() < 0.01
    assert torch.equal(noise_of(runner), noise)  # Stage 2 explores with it
    # every step of the student earns the same, and values are discounted over an episode of 4 steps
    last = read_checkpoint(save(runner, tmp_path / "model_60.pt"))
    assert any(not torch.equal(value, critic[name]) for name, value in last["critic_state_dict"].items())
    with torch.inference_mode():
        values = runner.alg.critic(runner.env.groups).squeeze(1)
    reward = -(mean_action(runner) - 0.5).square().sum(1)
    assert (values / reward).min() > 1.0


def test_with_mirror_a_student_does_in_the_mirror_what_its_teacher_does(tmp_path, monkeypatch):
    def lopsided(folder, mirror):
        runner = student(tmp_path / folder, monkeypatch, mirror=mirror, mixing=0)
        runner.train(60)
        image, obs = mirror_of(runner.env), runner.env.get_observations()
        wanted = image.actions(obs[LABELS])
        return (mean_action(runner, **image.observations(obs)) - wanted).square().mean().item()

    assert lopsided("with", True) < 0.02 < 0.1 < lopsided("without", False)


def noise_of(runner):
    return next(v.clone() for name, v in runner.alg.actor.state_dict().items() if "std" in name)


def save(runner, path):
    runner.save(str(path))
    return path


@pytest.mark.parametrize(("activation", "said"), [(nn.Tanh(), 1), (nn.Identity(), 0)])
def test_a_teacher_that_acts_beyond_the_bounds_of_its_student_is_remarked_on_once(
    tmp_path, monkeypatch, capsys, activation, said
):
    runner = student(tmp_path, monkeypatch)
    runner.env.groups[LABELS] *= 3.0
    runner.alg.actor.core.output_activation = activation
    runner.train(2)
    assert capsys.readouterr().out.count("the actor's end at 1 (tanh); set agent.actor.output_activation=null") == said


def test_ppo_goes_on_from_a_student(tmp_path, monkeypatch):
    runner = student(tmp_path / "one", monkeypatch)
    (tmp_path / "one").mkdir(exist_ok=True)
    runner.train(2)
    monkeypatch.undo()
    ppo = build_runner(tmp_path / "two", "mlp")
    load_stage1_weights(ppo, tmp_path / "one" / "model_1.pt", "a1", "mlp")
    critic = runner.alg.critic.state_dict()
    assert all(torch.equal(value, critic[name]) for name, value in ppo.alg.critic.state_dict().items())
    healthy = {"joint_mask": torch.zeros(4, 12), "fault_flag": torch.full((4, 3), -1.0)}
    assert torch.allclose(mean_action(ppo, **healthy), mean_action(runner, **healthy), atol=1e-5)


def test_the_teacher_acts_less_and_less(tmp_path, monkeypatch):
    runner = student(tmp_path, monkeypatch, mixing=2)
    labels = runner.env.groups[LABELS]
    runner.train(3)
    same = [(actions == labels).all(dim=1).float().mean().item() for actions in runner.env.executed]
    assert same[:4] == [1.0] * 4
    assert 0.0 < sum(same[4:8]) < 4.0
    assert same[8:] == [0.0] * 4


def test_a_student_learns_from_the_newest_samples_only(tmp_path, monkeypatch):
    runner = student(tmp_path, monkeypatch, samples=40)  # two rollouts of 4 envs x 4 steps
    obs = runner.env.groups
    for value in range(3):
        for name in obs.keys():  # noqa: SIM118 - a TensorDict iterates over rows
            runner.alg.storage.observations[name].fill_(value)
        runner.alg._remember()
    assert runner.alg._seen["policy"][..., 0].flatten().tolist() == [2.0] * 16 + [1.0] * 16
    assert runner.alg._filled == 2


def test_a_resumed_student_does_not_overfit_to_its_first_rollouts(tmp_path, monkeypatch):
    steps = []
    monkeypatch.setattr(Distillation, "_learn_labels", lambda self: steps.append(self.done) or torch.zeros(()))
    first = student(tmp_path, monkeypatch, samples=64, updates=8)  # four rollouts of 4 envs x 4 steps
    last = first.train(6)
    assert [steps.count(done) for done in range(6)] == [8] * 6
    again = student(tmp_path, monkeypatch, samples=64, updates=8)
    again.resume(str(last))
    again.train(11)
    assert [steps.count(done) for done in range(6, 11)] == [2, 4, 6, 8, 8]


class RecallingDummy(TaughtDummy):
    """A teacher that does at every step of an episode what the robot observed at its first."""

    num_envs = 16

    def __init__(self, robot):
        super().__init__(robot)
        for group in self.groups.values():
            group.zero_()
        self.groups["policy"][:, 0] = torch.linspace(-1.0, 1.0, self.num_envs)
        self.groups[LABELS] = self.groups["policy"][:, :1].expand(-1, 12).clone()
        self.number = self.groups["policy"][:, 0].clone()

    def step(self, actions):
        _, rewards, dones, extras = super().step(actions)
        done = dones.bool()
        self.number = torch.where(done, -self.number, self.number)
        self.groups["policy"][:, 0] = torch.where(done, self.number, 0.0)
        self.groups[LABELS] = self.number.unsqueeze(1).expand(-1, 12).clone()
        return self.groups.clone(), rewards, dones, extras


def test_a_student_with_memory_learns_what_its_teacher_remembers(tmp_path, monkeypatch):
    def change(cfg):
        cfg.num_steps_per_env = 6  # not whole episodes: what is remembered from the rollout before matters
        cfg.distillation.mixing, cfg.distillation.samples, cfg.distillation.batch_size = 0, 16 * 6 * 4, 96
        cfg.actor.hidden_dims = [32]
        cfg.mirror = True  # has no effect here: this env, which has no mirror image, is not refused

    monkeypatch.setattr("dummy_training.UmcRunner", DistillationRunner)
    runner: Any = build_runner(tmp_path, "gru", env=RecallingDummy("A1"), change=change)
    runner.train(60)
    env, errors = runner.env, []
    with torch.inference_mode():
        for _ in range(8):
            obs = env.get_observations()
            actions = runner.alg.actor(obs)
            errors.append((actions - obs[LABELS]).square().mean())
            _, _, dones, _ = env.step(actions)
            runner.alg.actor.reset(dones)
    assert max(errors) < 0.05  # 0.36 without memory


class Remembering:
    """A teacher that counts its calls and what it forgets."""

    def __init__(self):
        self.calls, self.forgotten = 0, []

    def __call__(self, obs):
        self.calls += 1
        return torch.full((4, 12), float(self.calls))

    def reset(self, envs):
        self.forgotten.append(None if envs is None else envs.tolist())


@pytest.fixture
def inner(monkeypatch):
    """The env that TeacherEnvWrapper wraps."""
    env = DummyRobotEnv("A1")
    monkeypatch.setattr(RslRlVecEnvWrapper, "__init__", lambda *_: None)
    monkeypatch.setattr(RslRlVecEnvWrapper, "unwrapped", env)
    monkeypatch.setattr(RslRlVecEnvWrapper, "get_observations", lambda _: env.groups)
    monkeypatch.setattr(RslRlVecEnvWrapper, "step", lambda _, actions: env.step(actions))
    return env


def test_a_teacher_that_remembers_is_asked_once_per_step(inner):
    teacher = Remembering()
    inner.groups["external_policy_0"] = TensorDict({"a": torch.zeros(4, 3)}, batch_size=[4])
    env = TeacherEnvWrapper(None, None, SimpleNamespace(load=lambda _: teacher, group="external_policy_0"))  # type: ignore
    for _ in range(2):
        obs = env.get_observations()
    assert teacher.calls == 1
    assert set(obs.keys()) == {"policy", "joint_mask", "fault_flag", "critic", LABELS}
    for step in range(4):
        obs = env.step(torch.zeros(4, 12))[0]
        assert obs[LABELS][0, 0] == step + 2
    assert env.get_observations() is obs
    assert teacher.forgotten == [None, *[[False] * 4] * 3, [True] * 4]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("umc.rl.transfer.pretrained_file", lambda *_: None)
    torch.jit.script(nn.Linear(48, 12)).save(str(tmp_path / "walk.pt"))
    return tmp_path


def request_of(stage, *more):
    argv = ["--task", f"UMC-A1-Stage{stage}", "--agent", "mlp", "--device", "cpu", *more]
    request = parse(argv)
    add_launcher_options(request, argv)
    add_teacher(request)
    return request


TASK = "UMC-A1-Stage1"
WALK = ("--teacher", "walk.pt", "--trust")


def test_a_policy_of_others_is_imitated_in_both_stages_and_sees_what_working_sensors_report(place):
    for stage in (1, 2):
        plan = planned("--task", f"UMC-A1-Stage{stage}", "--agent", "mlp", "--device", "cpu", *WALK)
        assert plan.agent_cfg.max_iterations == plan.agent_cfg.distillation.iterations == 150
        assert plan.start_from is None
        group = plan.env_cfg.observations.external_policy_0
        assert group.enable_corruption is False
        names = [term.func.__name__ for term in vars(group).values() if hasattr(term, "func")]
        assert {"joint_pos_rel", "joint_vel_rel", "last_action"} < set(names)
        assert not {"joint_sensor", "imu_sensor"} & set(names)


def test_an_exported_folder_is_a_teacher_and_a_run_folder_is_its_last_checkpoint(place):
    fresh = write_fresh(place / "fresh", task=TASK, model="mlp", change=None)
    export_checkpoint(fresh, place / "exported", load_cfg_from_registry(TASK, "env_cfg_entry_point"))
    teacher = read_teacher("exported", "a1", trust=False)
    assert teacher.groups == ("joint_mask", "fault_flag")
    assert teacher.source.path.name == "policy.onnx"
    put_checkpoint(place / "own")
    assert read_teacher("own", "a1", trust=False).source.name == "model_5.pt"
    torch.jit.script(nn.Linear(48, 12)).save(place / "own" / "model_7.pt")
    assert read_teacher("own", "a1", trust=True).source.path.name == "model_7.pt"


def test_a_function_is_a_teacher_that_reads_the_groups_of_the_actor(inner):
    teacher = read_teacher(f"{__name__}:constant", "a1", trust=False)
    cfg = SimpleNamespace(observations=SimpleNamespace(policy=None))
    teacher.add_observations(cfg)
    assert vars(cfg.observations) == {"policy": None}
    obs = TeacherEnvWrapper(None, None, teacher).get_observations()
    assert set(obs.keys()) == {"policy", "joint_mask", "fault_flag", "critic", LABELS}
    assert (obs[LABELS] == 0.25).all()


def constant(env):
    return lambda obs: torch.full((env.num_envs, 12), 0.25)


def test_a_policy_that_saw_faults_is_imitated_under_faults(place):
    own = put_checkpoint(place / "own", stage=2, task="UMC-A1-Stage2")
    request = request_of(2, "--teacher", str(own.parent))
    assert not needs_stage1(request)
    plan = planned("--task", "UMC-A1-Stage2", "--agent", "mlp", "--device", "cpu", "--teacher", str(own))
    assert plan.start_from is None
    assert not hasattr(plan.env_cfg.observations, "external_policy_0")


def test_a_teacher_whose_actions_mean_something_else_is_refused_and_a_start_is_remarked_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scale = "env.actions.joint_pos.scale=0.5"
    overrides = [scale, "env.observations.critic.joint_pos.scale=2.0", "env.episode_length_s=10.0"]
    path = str(write_fresh(tmp_path / "own", "UMC-A1-Stage1", env_overrides=overrides))
    argv = ("--agent", "mlp", "--device", "cpu")
    teacher = ("--task", "UMC-A1-Stage1", *argv, "--teacher", path)
    with pytest.raises(UmcError, match=rf"and this run has {scale}; give this run the teacher's"):
        planned(*teacher)
    planned(*teacher, scale)
    start = ("--task", "UMC-A1-Stage2", *argv, "--checkpoint", path)
    assert [line for line in planned(*start).remarks if scale in line]
    assert not [line for line in planned(*start, scale).remarks if scale in line]


@pytest.mark.parametrize(
    ("stage", "more", "message"),
    [
        (1, ("--teacher", "walk.pt"), r"walk\.pt is code \(TorchScript\); add --trust"),
        (1, ("--teacher", "damaged.pt"), r"damaged\.pt is no zip file.*copy it again"),
        (1, ("--teacher", "nothing.onnx"), r"no network at nothing\.onnx"),
        (2, ("--teacher", "own"), r"was trained without faults; imitate it with --task UMC-A1-Stage1"),
        (1, (*WALK, "--rl_library", "skrl"), r"--teacher needs --rl_library rsl_rl"),
        (1, (*WALK, "--resume"), r"has no teacher; leave out --teacher"),
    ],
)
def test_teachers_that_cannot_be(place, stage, more, message):
    (place / "damaged.pt").write_bytes(b"nothing")
    record = {"task": "UMC-A1-Stage1", "agent": "rsl_rl_mlp_cfg_entry_point", "seed": 1, "overrides": []}
    record |= {"num_envs": 4, "max_iterations": 9, "agent_overrides": []}
    put_checkpoint(place / "own", record=record)
    if "--resume" in more:
        more = (*more, "--checkpoint", "own/model_5.pt")
    with pytest.raises(UmcError, match=message):
        planned(*("--task", f"UMC-A1-Stage{stage}", "--agent", "mlp", "--device", "cpu", *more))
