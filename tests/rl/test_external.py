# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Policies of others get what they read, robot by robot, and the robot gets the joint targets that they mean."""

import io
import warnings
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import dummy_skrl
import pytest
import torch
import yaml
from fresh_policy import WIDTHS, write_fresh
from rsl_rl.models import MLPModel, RNNModel
from tensordict import TensorDict
from torch import nn
from umc.deploy.export import export_checkpoint
from umc.evaluation.checkpoints import read_externals
from umc.rl.distillation import read_teacher
from umc.rl.external import add_group, confirm_code, joint_values, load_external, load_source, read_external
from umc.rl.external_networks import CheckpointNetwork, OnnxNetwork, TorchScriptNetwork, is_torchscript, require_fits
from umc.rl.policy import load_policy, registered_agent
from umc.rl.skrl.packing import PackedEnv
from umc.tasks.task_cfg import resolve_cfgs
from umc.utils.console import quiet
from umc.utils.errors import UmcError

WIDTH, JOINTS, CELLS = 7, 3, 5


def recurrent(width=WIDTH, joints=JOINTS):
    """A recurrent actor of rsl_rl."""
    obs = TensorDict({"policy": torch.zeros(1, width)}, batch_size=[1])
    sizes = {"hidden_dims": [8], "rnn_type": "lstm", "rnn_hidden_dim": CELLS}
    return RNNModel(obs, {"actor": ["policy"]}, "actor", joints, **sizes).eval()


class Hidden(nn.Module):
    """Keeps the sum of all robots' observations."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WIDTH, JOINTS)
        self.register_buffer("total", torch.zeros(WIDTH))

    def forward(self, x):
        self.total += x.sum(0)
        return self.head(x + self.total)


class Smooth(nn.Module):
    """Mixes every action with the one before, which a buffer that broadcasts to all robots keeps."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WIDTH, JOINTS)
        self.register_buffer("before", torch.zeros(1, JOINTS))

    def forward(self, x):
        self.before = 0.8 * self.before + 0.2 * self.head(x)
        return self.before


class Clock(nn.Module):
    """Counts the steps of all robots."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WIDTH, JOINTS)
        self.register_buffer("steps", torch.zeros(1))

    def forward(self, x):
        self.steps += 1.0
        return self.head(x) + self.steps


class Started(nn.Module):
    """Remembers from a first value that is not 0, and reads a constant of the shape of a memory."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WIDTH, JOINTS)
        self.register_buffer("memory", torch.full((1, 1, JOINTS), 2.0))
        self.register_buffer("constant", torch.full((1, 1, WIDTH), 5.0))

    def forward(self, x):
        self.memory[:] = 0.5 * self.memory + self.head(x + self.constant[0]).unsqueeze(0)
        return self.memory.squeeze(0).clone()


def script(module, path):
    torch.jit.script(module).save(str(path))
    return path


def export(model, path, dynamo):
    """Export as rsl_rl does, by either exporter of torch."""
    module = model.as_onnx(False).eval()
    options = {"input_names": module.input_names, "output_names": module.output_names, "verbose": False}
    with warnings.catch_warnings(), quiet():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, module.get_dummy_inputs(), str(path), dynamo=dynamo, **options)
    return path


@pytest.mark.parametrize("kind", [TorchScriptNetwork, OnnxNetwork])
def test_every_robot_has_a_memory_of_its_own(tmp_path, kind):
    model, path = recurrent(), tmp_path / "p"
    file = export(model, path, dynamo=False) if kind is OnnxNetwork else script(model.as_jit().eval(), path)
    robots, steps = 4, 6
    network, alone = kind(file, robots, "cpu"), [kind(file, 1, "cpu") for _ in range(robots)]
    for step in range(steps):
        columns = torch.randn(robots, WIDTH)
        with torch.inference_mode():
            actions = network(columns)
            for robot, single in enumerate(alone):
                assert torch.allclose(actions[robot], single(columns[robot : robot + 1])[0], atol=1e-6)
        if step == 2:
            network.reset(torch.tensor([False, True, False, False]))
            alone[1].reset(None)
    first = torch.randn(robots, WIDTH)
    with torch.inference_mode():
        before = network(first)
        network.reset(None)
        assert not torch.allclose(before, network(first))
        assert torch.allclose(replace(network, num_envs=robots)(first), kind(file, robots, "cpu")(first))


@pytest.mark.parametrize(
    ("module", "reason"),
    [(Hidden, "among others than alone"), (Smooth, "after a reset than at first"), (Clock, "after a reset")],
)
def test_state_that_cannot_be_reset_robot_by_robot_is_refused(tmp_path, module, reason):
    path = script(module(), tmp_path / "p.pt")
    with pytest.raises(UmcError, match=f"other actions {reason}.*package.module:function"):
        require_fits(path, TorchScriptNetwork(path, 4, "cpu"), [WIDTH], "columns", JOINTS)


def test_a_traced_file_that_keeps_to_the_cpu_is_refused_on_another_device(tmp_path):
    class Traced(nn.Module):
        def forward(self, x):
            return x[:, :JOINTS] + torch.zeros(x.shape[0], JOINTS)

    path = tmp_path / "traced.pt"
    torch.jit.trace(Traced(), torch.zeros(2, WIDTH)).save(path)
    require_fits(path, TorchScriptNetwork(path, 4, "cpu"), [WIDTH], "columns", JOINTS)
    with pytest.raises(UmcError, match=r"tensors on the CPU built in.*script the policy"):
        require_fits(path, TorchScriptNetwork(path, 4, "meta"), [WIDTH], "columns", JOINTS)


def test_a_network_is_tried_without_the_rounding_of_a_gpu(tmp_path, monkeypatch):
    """Else a GPU's actions of one robot differ from those of many by more than the tolerance."""
    seen = []
    path = script(nn.Linear(WIDTH, JOINTS), tmp_path / "p.pt")
    call = TorchScriptNetwork.__call__
    flags = torch.backends.cuda.matmul, torch.backends.cudnn

    def watched(self, *columns):
        seen.extend(one.allow_tf32 for one in flags)
        return call(self, *columns)

    monkeypatch.setattr(TorchScriptNetwork, "__call__", watched)
    for one in flags:
        monkeypatch.setattr(one, "allow_tf32", True)
    require_fits(path, TorchScriptNetwork(path, 4, "cpu"), [WIDTH], "columns", JOINTS)
    assert seen
    assert not any(seen)
    assert all(one.allow_tf32 for one in flags)


class Two(nn.Module):
    """Returns actions and something else."""

    def forward(self, x):
        return x[:, :3], x


class Flat(nn.Module):
    """Takes one robot at a time."""

    def forward(self, x):
        return x.reshape(7)[:3].unsqueeze(0)


class Row(nn.Module):
    """Returns no row per robot."""

    def forward(self, x):
        return x[0]


class Acts(nn.Module):
    """Has another method than forward."""

    @torch.jit.export
    def act(self, x):
        return x


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (Two, "returns a tuple; export one that returns the actions alone"),
        (Flat, "runs one robot at a time .*; export it with a dynamic batch"),
        (Row, "does not take the 7 columns of the task .*: for 1 robots it returns shape \\(7,\\)"),
        (Acts, "has no forward method"),
    ],
)
def test_torchscript_that_is_no_policy_is_refused_in_one_line(tmp_path, module, message):
    path = script(module(), tmp_path / "p.pt")
    with pytest.raises(UmcError, match=message) as raised:
        require_fits(path, TorchScriptNetwork(path, 4, "cpu"), [WIDTH], "columns", JOINTS)
    assert "\n" not in str(raised.value)


def onnx_file(path, obs=("robots", WIDTH), kind=None, state=None):
    """Write a file that returns its observation, and a state as it is."""
    from onnx import TensorProto, helper, save

    kind = kind or TensorProto.FLOAT
    given, made = [helper.make_tensor_value_info("obs", kind, obs)], [helper.make_tensor_value_info("act", kind, obs)]
    nodes = [helper.make_node("Identity", ["obs"], ["act"])]
    if state is not None:
        given.append(helper.make_tensor_value_info("h_in", TensorProto.FLOAT, state))
        made.append(helper.make_tensor_value_info("h_out", TensorProto.FLOAT, state))
        nodes.append(helper.make_node("Identity", ["h_in"], ["h_out"]))
    graph = helper.make_graph(nodes, "g", given, made)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"state": (1, 5)}, "input h_in has shape .*; export it with shape \\(layers, robots, cells\\)"),
        ({"state": ("layers", 1, 5)}, "with fixed layers and cells"),
        ({"kind": 11}, "input obs is a tensor\\(double\\); export it in float32"),
        ({"obs": (1, 1, WIDTH)}, "input obs has shape .*; export it with shape \\(robots, columns\\)"),
    ],
)
def test_onnx_files_of_other_shapes_and_types_are_refused_in_one_line(tmp_path, given, message):
    with pytest.raises(UmcError, match=message) as raised:
        OnnxNetwork(onnx_file(tmp_path / "p.onnx", **given), 2, "cpu")
    assert "\n" not in str(raised.value)


def test_a_recurrent_onnx_file_for_one_robot_is_refused_with_what_to_do(tmp_path):
    """rsl_rl's own export by torch's new exporter, which keeps the batch of its example."""
    path = export(recurrent(), tmp_path / "p.onnx", dynamo=True)
    with pytest.raises(UmcError, match=r"runs one robot at a time.*dynamic batch.*dynamo=False") as raised:
        require_fits(path, OnnxNetwork(path, 2, "cpu"), [WIDTH], "columns", JOINTS)
    assert "\n" not in str(raised.value)


def test_a_reset_of_one_robot_leaves_the_others(tmp_path, monkeypatch):
    torch.save({"actor_state_dict": recurrent().state_dict()}, tmp_path / "p.pt")
    network = CheckpointNetwork(tmp_path / "p.pt", 4, "cpu")
    require_fits(network.path, network, [WIDTH], "columns", JOINTS)
    reset = CheckpointNetwork.reset
    monkeypatch.setattr(CheckpointNetwork, "reset", lambda self, envs: reset(self, None))
    with pytest.raises(UmcError, match="after its reset, or that of another"):
        require_fits(network.path, network, [WIDTH], "columns", JOINTS)


def test_memory_starts_from_its_first_value_and_constants_are_kept(tmp_path):
    module = Started()
    path = script(module, tmp_path / "p.pt")
    network, x = TorchScriptNetwork(path, 2, "cpu"), torch.randn(2, WIDTH)
    require_fits(path, network, [WIDTH], "columns", JOINTS)
    with torch.inference_mode():
        first, second = 1.0 + module.head(x + 5.0), None
        assert torch.allclose(network(x), first)
        second = 0.5 * first + module.head(x + 5.0)
        assert torch.allclose(network(x), second)
        network.reset(torch.tensor([True, False]))
        third = 0.5 * second + module.head(x + 5.0)
        assert torch.allclose(network(x), torch.stack([first[0], third[1]]))
        network.reset(None)
        assert torch.allclose(network(x), first)


@pytest.mark.parametrize("kind", ["mlp", "lstm", "gru"])
def test_the_actor_of_a_checkpoint_of_rsl_rl(tmp_path, kind):
    """What rsl_rl's own model gives is what its weights give here, robot by robot."""
    robots, groups = 3, {"actor": ["policy"]}
    obs = TensorDict({"policy": torch.randn(robots, WIDTH)}, batch_size=[robots])
    options = {"hidden_dims": [8, 6], "obs_normalization": True}
    if kind == "mlp":
        model = MLPModel(obs, groups, "actor", JOINTS, **options)
    else:
        model = RNNModel(obs, groups, "actor", JOINTS, rnn_type=kind, rnn_hidden_dim=CELLS, rnn_num_layers=2, **options)
    model.update_normalization(obs)
    model.eval()
    torch.save({"actor_state_dict": model.state_dict(), "iter": 3, "infos": None}, tmp_path / "model_3.pt")
    network = CheckpointNetwork(tmp_path / "model_3.pt", robots, "cpu")
    for step in range(4):
        obs = TensorDict({"policy": torch.randn(robots, WIDTH)}, batch_size=[robots])
        with torch.inference_mode():
            assert torch.allclose(network(obs["policy"]), model(obs), atol=1e-6)
            done = torch.tensor([False, step == 1, False])
            network.reset(done)
            model.reset(done)


def test_the_normalization_that_rsl_rl_2_keeps_beside_its_model(tmp_path):
    layer, mean, std = nn.Linear(WIDTH, JOINTS), torch.randn(1, WIDTH), torch.rand(1, WIDTH) + 0.5
    model = {"actor.0.weight": layer.weight.detach(), "actor.0.bias": layer.bias.detach(), "std": torch.ones(JOINTS)}
    norm = {"_mean": mean, "_var": std**2, "_std": std, "count": torch.tensor(9)}
    torch.save({"model_state_dict": model, "obs_norm_state_dict": norm, "iter": 1}, tmp_path / "model_1.pt")
    columns = torch.randn(4, WIDTH)
    with torch.inference_mode():
        found = CheckpointNetwork(tmp_path / "model_1.pt", 4, "cpu")(columns)
        assert torch.allclose(found, layer((columns - mean) / (std + 0.01)), atol=1e-6)


def test_the_policy_of_a_checkpoint_of_skrl(tmp_path):
    layers = nn.Sequential(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, JOINTS))
    mean, variance = torch.randn(WIDTH), torch.rand(WIDTH) + 0.5
    policy = {
        "log_std_parameter": torch.zeros(JOINTS),
        "net_container.0.weight": layers[0].weight,
        "net_container.0.bias": layers[0].bias,
        "policy_layer.weight": layers[2].weight,
        "policy_layer.bias": layers[2].bias,
        "value_layer.weight": torch.randn(1, 8),
        "value_layer.bias": torch.zeros(1),
    }
    scaler = {"running_mean": mean, "running_variance": variance, "current_count": torch.tensor(3.0)}
    path = tmp_path / "agent.pt"
    torch.save({"policy": {k: v.detach() for k, v in policy.items()}, "observation_preprocessor": scaler}, path)
    columns = 3.0 * torch.randn(4, WIDTH)
    with torch.inference_mode():
        wanted = layers(((columns - mean) / variance.sqrt()).clamp(-5.0, 5.0))
        assert torch.allclose(CheckpointNetwork(path, 4, "cpu", "relu")(columns), wanted, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("separate", [True, False])
def test_the_policy_of_an_agent_that_skrl_trained(tmp_path, separate):
    from skrl.utils.runner.torch import Runner

    env = PackedEnv(dummy_skrl.LabEnv(), dummy_skrl.GROUPS)
    network = {"network": [{"name": "net", "input": "OBSERVATIONS", "layers": [8, 6], "activations": "elu"}]}
    experiment = {"directory": str(tmp_path), "experiment_name": "run", "write_interval": 0, "checkpoint_interval": 8}
    scaler = {"observation_preprocessor": "RunningStandardScaler", "observation_preprocessor_kwargs": None}
    once = {"timesteps": 8, "disable_progressbar": True, "close_environment_at_exit": False}
    cfg = {
        "models": {
            "separate": separate,
            "policy": {"class": "GaussianMixin", **network, "output": "ACTIONS"},
            "value": {"class": "DeterministicMixin", **network, "output": "ONE"},
        },
        "memory": {"class": "RandomMemory", "memory_size": -1},
        "agent": {"class": "PPO", "rollouts": 4, "mini_batches": 2, **scaler, "experiment": experiment},
        "trainer": {"class": "SequentialTrainer", **once},
    }
    runner = Runner(env, cfg)
    runner.run("train")
    agent, obs = runner.agent, 3.0 * torch.randn(5, *env.observation_space.shape)
    agent.enable_training_mode(False)
    with torch.inference_mode():
        wanted = agent.act(obs, None, timestep=9, timesteps=9)[1]["mean_actions"]
        found = CheckpointNetwork(tmp_path / "run" / "checkpoints" / "agent_8.pt", 5, "cpu")(obs)
    assert torch.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "file is missing"),
        ({"file": "absent.pt"}, "no network at"),
        ({"file": "p.pt", "observation": []}, "unknown key observation; did you mean observations"),
        ({"file": "p.pt", "history": 0}, "history is 0"),
        ({"file": "p.pt", "observations": [{"term": "a b"}]}, "observations.0"),
        ({"file": "p.pt", "clip_actions": -1.0}, "clip_actions is -1"),
        ({"file": "p.pt", "observations": [{"term": "a", "clip": [5, -5]}]}, "clip.*give the least value, then"),
        ({"file": "p.pt", "observations": [{"term": "a", "scale": []}]}, "scale"),
        ({"file": "p.pt", "action_scale": 0}, "action_scale.*give another value than 0"),
        ({"file": "p.pt", "action_scale": {".*": 0.0}}, "action_scale.*give another value than 0"),
        ({"file": "p.pt", "history_order": "step"}, "history_order says nothing without a history"),
        ({"file": "p.onnx", "activation": "relu"}, "activation is for checkpoints"),
    ],
)
def test_bad_descriptions_are_refused_in_one_line(tmp_path, content, message):
    (tmp_path / "p.pt").touch()
    (tmp_path / "p.onnx").touch()
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UmcError, match=message) as raised:
        read_external(str(tmp_path / "p.yaml"))
    assert "\n" not in str(raised.value)


def test_what_is_no_policy_is_refused(tmp_path):
    with pytest.raises(UmcError, match=r"walk\.txt names no policy"):
        read_external("walk.txt")
    torch.save({"actor_state_dict": {"w": torch.zeros(3)}}, tmp_path / "p.pt")
    assert not is_torchscript(tmp_path / "p.pt")
    with pytest.raises(UmcError, match="is no TorchScript file"):
        TorchScriptNetwork(tmp_path / "p.pt", 1, "cpu")
    for more in ({}, nn.BatchNorm1d(WIDTH).state_dict()):  # running_mean as skrl's scaler, and no running_variance
        torch.save({"actor_state_dict": {"w": torch.zeros(3), **more}}, tmp_path / "p.pt")
        with pytest.raises(UmcError, match="is no MLP, LSTM or GRU"):
            CheckpointNetwork(tmp_path / "p.pt", 1, "cpu")
    (tmp_path / "p.onnx").write_bytes(b"nothing")
    with pytest.raises(UmcError, match="is no ONNX file"):
        OnnxNetwork(tmp_path / "p.onnx", 1, "cpu")


def test_damaged_and_old_files_are_refused_with_what_to_do(tmp_path):
    weights = {"actor_state_dict": {"0.weight": torch.zeros(3, 7), "0.bias": torch.zeros(3)}}
    torch.save(weights, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(
        UmcError, match=r"no zip file, as torch\.save writes since .* save what torch\.load reads of it"
    ):
        load_source(read_external(str(tmp_path / "old.pt")))
    content = bytearray(script(nn.Linear(WIDTH, JOINTS), tmp_path / "bad.pt").read_bytes())
    directory = content.find(b"PK\x01\x02")
    content[directory : directory + 4] = b"XXXX"
    (tmp_path / "bad.pt").write_bytes(content)
    with pytest.raises(UmcError, match=r"is damaged .*copy it again"):
        read_external(str(tmp_path / "bad.pt"))


def test_layers_of_several_modules_are_no_network_whose_order_is_known(tmp_path):
    def layer(name, width):
        return {f"{name}.0.weight": torch.zeros(JOINTS, width), f"{name}.0.bias": torch.zeros(JOINTS)}

    torch.save({"actor_state_dict": {**layer("mlp", WIDTH), **layer("encoder", JOINTS)}}, tmp_path / "p.pt")
    with pytest.raises(UmcError, match="its layers are of encoder, mlp, in an order that it does not say"):
        CheckpointNetwork(tmp_path / "p.pt", 1, "cpu")
    plain = {f"{number}.{name}": value for number in (0, 2) for name, value in nn.Linear(3, 3).state_dict().items()}
    torch.save({"actor_state_dict": plain}, tmp_path / "p.pt")
    CheckpointNetwork(tmp_path / "p.pt", 1, "cpu")


def test_torchscript_runs_after_a_yes_only(tmp_path, monkeypatch, capsys):
    path = script(nn.Linear(WIDTH, JOINTS), tmp_path / "p.pt")
    assert read_external(str(path)).is_code
    torch.save({"policy": {}}, tmp_path / "weights.pt")
    assert not read_external(str(tmp_path / "weights.pt")).is_code
    for answer, accepted in (("y\n", True), ("n\n", False), ("", False)):
        answers = io.StringIO(answer)
        answers.isatty = lambda: True
        monkeypatch.setattr("sys.stdin", answers)
        with nullcontext() if accepted else pytest.raises(UmcError, match="add --trust"), quiet():
            confirm_code(path)
        assert "is code. Run it?" in capsys.readouterr().err  # standard output is dropped meanwhile
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(UmcError, match="add --trust"):  # no terminal, nobody to ask
        confirm_code(path)


def test_a_term_that_the_task_lacks_is_named_with_those_that_it_has(tmp_path):
    script(nn.Linear(WIDTH, JOINTS), tmp_path / "p.pt")
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"file": "p.pt", "observations": ["joint_poss"]}))
    cfg, _ = resolve_cfgs("UMC-A1-Stage1", None, [])
    with pytest.raises(UmcError, match=r"group policy has no term joint_poss; it has base_lin_vel, .*joint_pos"):
        add_group(cfg, read_external(str(tmp_path / "p.yaml")))


def test_patterns_give_every_joint_one_value():
    names = ["FL_hip_joint", "FL_thigh_joint", "FL_calf_joint"]
    assert joint_values({".*_hip_.*": 0.125, ".*_(thigh|calf)_.*": 0.25}, names) == [0.125, 0.25, 0.25]
    for given, message in (
        ({".*_hip_.*": 0.125, ".*": 0.25}, r"no joint two \(Multiple matches for 'FL_hip_joint'"),
        ({".*": 0.25, "knee": 1.0}, "have to fit joints"),
        ({".*_hip_.*": 0.125}, "FL_thigh_joint has none"),
    ):
        with pytest.raises(UmcError, match=message) as raised:
            joint_values(given, names)
        assert "\n" not in str(raised.value)


def standing(env):
    """Make a policy that stands, and gives what is in its env in the second step."""
    calls = []

    def policy(obs):
        calls.append(obs)
        return torch.zeros(4, 2) if len(calls) == 1 else env.second

    policy.reset = env.resets.append
    return policy


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (torch.zeros(4, 3), r"returned \(4, 3\) in env step 1; return actions of shape \(4, 2\)"),
        (None, "returned NoneType in env step 1"),
        (torch.tensor([[0.0, 0.0]] * 3 + [[0.0, torch.nan]]), "not finite for robot 3 in env step 1"),
    ],
)
def test_actions_of_functions_are_checked(second, message):
    env = SimpleNamespace(second=second, resets=[], action_manager=SimpleNamespace(total_action_dim=2))
    policy = load_external(read_external(f"{__name__}:standing"), env)
    policy.reset(None)
    obs = TensorDict({}, batch_size=[4])
    policy(obs)
    with pytest.raises(UmcError, match=message):
        policy(obs)
    assert env.resets == [None]


def test_what_is_no_function_is_refused_before_the_simulation(tmp_path, monkeypatch):
    (tmp_path / "unfinished_policy.py").write_text("def make(env:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for text, message in (
        ("os:sep", r"os:sep is no function \(str\)"),
        ("os:absent", "^os:absent cannot be imported"),
        ("unfinished_policy:make", r"cannot be imported .*unfinished_policy\.py, line 1"),
    ):
        with pytest.raises(UmcError, match=message):
            load_source(read_external(text))


def test_the_identity_of_a_policy_holds_its_weights_wherever_they_are(tmp_path, monkeypatch):
    import onnx

    path = export(recurrent(), tmp_path / "p.onnx", dynamo=False)
    inside = read_external(str(path)).sha256
    onnx.save(onnx.load(str(path)), str(path), save_as_external_data=True, location="w.data", size_threshold=0)
    external = read_external(str(path))
    assert external.data == (tmp_path / "w.data",)
    content = bytearray(external.data[0].read_bytes())
    content[0] ^= 1
    external.data[0].write_bytes(content)
    assert len({inside, external.sha256, read_external(str(path)).sha256}) == 3
    external.data[0].unlink()
    with pytest.raises(UmcError, match=r"has its weights in w\.data; copy that file beside it"):
        read_external(str(path))
    (tmp_path / "walkers.py").write_text("def walk(env): return None\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = read_external("walkers:walk").sha256
    (tmp_path / "walkers.py").write_text("def walk(env): return abs\n")
    assert read_external("walkers:walk").sha256 != first
    assert read_external("no.such:walk").sha256 == "no.such:walk"


@pytest.mark.parametrize(("term", "width"), [("joint_vel", 12), ("base_ang_vel", 3), ("critic/last_action", 12)])
def test_a_scale_per_column_needs_a_value_for_every_column(tmp_path, term, width):
    script(nn.Linear(WIDTH, JOINTS), tmp_path / "p.pt")
    for count in (width, width + 1):
        terms = [{"term": term, "scale": [0.5] * count}]
        (tmp_path / "p.yaml").write_text(yaml.safe_dump({"file": "p.pt", "observations": terms}))
        cfg, _ = resolve_cfgs("UMC-A1-Stage1", None, [])
        wrong = pytest.raises(UmcError, match=f"the scale of {term} has {count} values, the term has {width} columns")
        with nullcontext() if count == width else wrong:
            add_group(cfg, read_external(str(tmp_path / "p.yaml")))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of an exported policy of A1."""
    folder = tmp_path_factory.mktemp("exported")
    cfg, _ = resolve_cfgs("UMC-A1-Stage2", None, [])
    change = lambda agent: agent.update(clip_actions=7.0)  # noqa: E731
    checkpoint = write_fresh(folder, change=change)
    agent = registered_agent("UMC-A1-Stage2", "rsl_rl_mlp_cfg_entry_point")
    change(agent)
    (folder / "params").mkdir()
    (folder / "params" / "agent.yaml").write_text(yaml.dump(agent))
    export_checkpoint(checkpoint, folder, cfg)
    return folder


@pytest.mark.parametrize(
    ("task", "overrides", "described", "words"),
    [
        ("UMC-Go2-Stage2", [], None, "with robot a1, and the task has go2"),
        ("UMC-G1-Stage2", [], {"action_scale": 0.5}, r"with joints \['FL_hip_joint', .* has \['left_hip"),
        ("UMC-A1-Stage2", ["env.actions.joint_pos.scale=0.125"], None, "action_scale of FL_hip_joint 0.5, .* 0.125"),
        ("UMC-A1-Stage2", ["env.actions.joint_pos.scale=0.125"], {"action_scale": 0.5}, None),
        (
            "UMC-A1-Stage2",
            ["env.scene.robot.init_state.joint_pos={'.*':0.1}"],
            None,
            "action_offset_rad of FL_thigh_joint 0.8, and the task has 0.1",
        ),
        ("UMC-A1-Stage2", ["env.observations.policy.joint_vel.scale=1.0"], None, "the scale of 6. joint_vel_rel 0.05"),
        ("UMC-A1-Stage2", ["env.observations.policy.base_ang_vel=null"], None, "with observations"),
        ("UMC-A1-Stage2", ["env.observations.policy.joint_vel.scale=1.0"], {"observations": ["joint_pos"]}, None),
        ("UMC-A1-Stage1", [], None, None),
    ],
)
def test_an_exported_policy_runs_in_the_task_that_it_was_exported_for(
    exported, tmp_path, task, overrides, described, words
):
    text = str(exported)
    if described is not None:
        text = str(tmp_path / "p.yaml")
        Path(text).write_text(yaml.safe_dump({"file": str(exported), **described}))
    cfg, _ = resolve_cfgs(task, None, overrides)
    with nullcontext() if words is None else pytest.raises(UmcError, match=words):
        (found,) = read_externals([text], task, cfg, trust=False)
        assert found.external.description.clip_actions == 7.0
    robot = task.split("-")[1].lower()
    with nullcontext() if words is None else pytest.raises(UmcError, match=words):
        read_teacher(text, robot, trust=False).add_observations(resolve_cfgs(task, None, overrides)[0])


OWN_TERMS = ["joint_vel", "last_action", "command", "joint_pos", "critic/base_lin_vel"]


def described_policies(physics, folder):
    """Run policies of others in A1's task, and return by how much they miss what they should do."""
    from isaaclab.envs import ManagerBasedRLEnv
    from umc.sim2sim.external import ExternalRunner
    from umc.sim2sim.external_task import describe_external

    torch.manual_seed(1)
    folder = Path(folder)
    cfg, _ = resolve_cfgs("UMC-A1-Stage1", None, [f"physics={physics}", "env.scene.terrain=flat"])
    cfg.scene.num_envs, cfg.sim.device = 4, "cpu"
    cfg.observations.policy.enable_corruption = False
    plain = script(nn.Linear(48, 12), folder / "plain.pt")
    actor = recurrent(48, 12)
    torch.save({"actor_state_dict": actor.state_dict()}, folder / "weights.pt")
    memory = script(actor.as_jit().eval(), folder / "memory.pt")
    own = script(nn.Linear(42, 12), folder / "own.pt")
    past = script(nn.Linear(42 * 3, 12), folder / "past.pt")

    def write(name, **content):
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content))
        return path

    joints = [f"{leg}_{part}_joint" for part in ("calf", "thigh", "hip") for leg in ("RR", "RL", "FR", "FL")]
    factors = [0.1 * number for number in range(12)]
    more = {"joint_vel": {"scale": 0.7, "clip": [-0.5, 0.5]}, "joint_pos": {"scale": factors}}
    terms = [{"term": name, **more.get(name, {})} for name in OWN_TERMS]
    units = {"action_scale": 0.5, "action_offset": {".*_hip_.*": 0.1, ".*_(thigh|calf)_.*": -0.3}}
    history = {"file": past.name, "observations": OWN_TERMS, "history": 3, "joints": joints}
    checkpoint = write_fresh(folder / "fresh", "UMC-A1-Stage1")
    export_checkpoint(checkpoint, folder / "exported", cfg)
    files = {
        "plain": plain,
        "memory": memory,
        "described": write("described", file=own.name, observations=terms, joints=joints, **units),
        "by term": write("by_term", **history),
        "weights": folder / "weights.pt",
        "by step": write("by_step", **history, history_order="step"),
        "exported": folder / "exported",
    }
    externals = read_externals([str(path) for path in files.values()], "UMC-A1-Stage1", cfg, trust=True)
    runners = [ExternalRunner(describe_external(one, cfg), clamp=False) for one in externals]
    env = ManagerBasedRLEnv(cfg)
    policies = [load_external(one.external, env) for one in externals]
    robot, task, linear = env.scene["robot"], env.action_manager.get_term("joint_pos"), torch.jit.load(str(own))
    trained = load_policy(checkpoint, WIDTHS["a1"])
    order = [robot.joint_names.index(name) for name in joints]
    back = [joints.index(name) for name in robot.joint_names]
    offset = torch.tensor([0.1 if "_hip_" in name else -0.3 for name in robot.joint_names])
    last, misses = torch.zeros(4, 12), {}

    def miss(name, one, other):
        misses[name] = max(misses.get(name, 0.0), float((one - other).abs().max()))

    obs, _ = env.reset()
    for step in range(5):
        groups = TensorDict(obs, batch_size=[4])
        acted = dict(zip(files, (policy(groups) for policy in policies), strict=True))
        before, command = env.action_manager.action.clone(), env.command_manager.get_command("base_velocity")
        data = robot.data
        for name, policy, runner in zip(files, policies, runners, strict=True):
            # MuJoCo's runner of the first robot, which has done what the env did
            own_last = before
            if policy._actions.units is not None and before.any():
                own_last = policy._actions.units.own(before)
            places = [robot.joint_names.index(joint) for joint in runner._names]
            runner._action = own_last[0, places].numpy().astype(float)
            runner.linear_velocity = data.root_lin_vel_b.torch[0].numpy().astype(float)
            sensed = data.joint_pos, data.joint_vel, data.root_ang_vel_b, data.projected_gravity_b
            target = runner(*(one.torch[0].numpy() for one in sensed), command[0].numpy())
            task.process_actions(acted[name])
            miss(f"mujoco, {name}", task.processed_actions[0], torch.as_tensor(target))
        miss("exported", acted["exported"], trained(groups))
        with torch.inference_mode():
            miss("memory", acted["memory"], acted["weights"])
            miss("plain", acted["plain"], torch.jit.load(str(plain))(groups["policy"]))
            parts = [
                data.joint_vel.torch[:, order].clamp(-0.5, 0.5) * 0.7,
                last,
                command * torch.tensor([2.0, 2.0, 0.25]),
                (data.joint_pos.torch - data.default_joint_pos.torch[0])[:, order] * torch.tensor(factors),
                data.root_lin_vel_b.torch * 2.0,
            ]
            # what the network meant, in its units and order of joints
            last = linear(torch.cat(parts, dim=1))
            env.action_manager.process_action(acted["described"])
            miss("targets", task.processed_actions, last[:, back] * 0.5 + offset)
        obs = env.step(acted["described"])[0]
        fell = torch.tensor([False, step == 1, False, False])
        for policy in (policies[1], policies[4]):
            policy.reset(fell)
    return misses


@pytest.mark.engine
@pytest.mark.core
def test_policies_read_and_move_what_their_description_says(run_engine, tmp_path):
    misses = run_engine(described_policies, physics="ovphysx", folder=str(tmp_path))
    policies = ("plain", "memory", "described", "by term", "weights", "by step", "exported")
    assert set(misses) == {"plain", "memory", "targets", "exported", *(f"mujoco, {name}" for name in policies)}
    assert max(misses.values()) < 1e-4, misses
    assert misses["exported"] < 1e-5
