# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The commands start without torch._dynamo and other modules that they do not use, which work once they are used."""

import subprocess
import sys

PROGRAM = """
import sys
from umc.utils.lazy_imports import LATER, _Later, defer_unused_imports
defer_unused_imports()
import isaaclab.actuators.newton, newton, rsl_rl.runners, torch, trimesh
from tensordict import TensorDict
from torch import nn

network = nn.Linear(2, 1)
optimizer = torch.optim.Adam(network.parameters())
network(torch.ones(1, 2)).sum().backward()
optimizer.step()
waiting = {name for name in (*LATER, "torch._dynamo") if type(sys.modules[name]) is _Later}
assert waiting == {*LATER, "torch._dynamo"}, waiting
assert not {"sympy", "torch._dynamo.utils", "newton._src.controllers"} & set(sys.modules)

from newton.ik import IKSolver  # a name
assert newton.sensors.SensorContact  # an attribute
assert not any(type(sys.modules[name]) is _Later for name in ("newton.ik", "newton.sensors"))
import trimesh.transformations  # a submodule
assert trimesh.Trimesh and trimesh.transformations.identity_matrix

double = torch.compile(lambda values: values["x"] * 2.0, backend="eager", fullgraph=True)
assert double(TensorDict({"x": torch.ones(2)}, [2])).tolist() == [2.0, 2.0]
from torch._dynamo.trace_rules import is_callable_allowed
import tensordict.base
assert is_callable_allowed(tensordict.base._foreach_copy_compiled)
step = torch.optim.Optimizer.add_param_group.__wrapped__
assert not hasattr(step, "__dynamo_disable")
optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
assert step.__dynamo_disable is not step
optimizer.step()
print("works")
"""

FAILS_ONCE = """
import pathlib, sys, threading
from umc.utils import lazy_imports
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(folder))
(folder / "slow.py").write_text(
    "import pathlib, slow, time\\nassert not hasattr(slow, 'value')\\ntime.sleep(0.3)\\n"
    f"flag = pathlib.Path({str(folder / 'flag')!r})\\nif not flag.exists(): flag.touch(); 1 / 0\\nvalue = 5\\n"
)
lazy_imports.LATER = ("slow",)
lazy_imports.defer_unused_imports()
import slow
try:
    slow.value
except ZeroDivisionError:
    print("failed")
found = []
threads = [threading.Thread(target=lambda: found.append(slow.value)) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found)
"""


def test_an_error_is_raised_again_and_threads_wait(tmp_path):
    command = [sys.executable, "-c", FAILS_ONCE, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout == "failed\n[5, 5, 5]\n", done.stderr


def test_modules_are_loaded_once_they_are_used():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "works\n", done.stderr
