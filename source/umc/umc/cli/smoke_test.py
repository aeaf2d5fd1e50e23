# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc smoke-test``: does everything work on this machine, does its GPU compute what its CPU does, how fast is it?"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from umc.utils.cli import FAILED, as_flags, path
from umc.utils.config import override_key
from umc.utils.console import escape_markdown, markdown_table, quiet, timed
from umc.utils.errors import UmcError
from umc.utils.io import atomic_write
from umc.utils.isaaclab_flags import TRAINING, add_launcher_flags, asks_for_help, check_flags, parse_all, show_help
from umc.utils.naming import LIBRARIES
from umc.utils.process import STOPPED, ChildFailed, command_line, end_with_parent
from umc.utils.provenance import git_state, now, read_progress, versions
from umc.utils.threads import cores

if TYPE_CHECKING:
    from umc.evaluation.device_speed import Speed
    from umc.evaluation.devices import Comparison
    from umc.training.arguments import TrainRequest
    from umc.training.quick import Phases

DESCRIPTION = (
    "Train both stages a little, evaluate and film; compare faults and observations with those of the CPU, and measure "
    "env steps per second and where the host waits for the GPU. One report says it all: please attach it to an issue."
)

EXAMPLES = ("--device cuda", "--task UMC-G1-Stage2 --device cuda --num_envs 8192", "--device cpu")

DEFAULT_TASK, DEFAULT_AGENT = "UMC-A1-Stage2", "mlp"

GPU_ENVS, GPU_ITERATIONS = 4096, 25
"""Sizes on a GPU; on a CPU they are those of ``--quick``."""

REPORT = "smoke_test.md"
"""File of the report, in the folder of the test."""

SHOWN_LINES = 40
"""Lines of a failed command's output in the report."""

HINTS = (
    ("out of memory", "give fewer --num_envs, or end other programs on the GPU"),
    ("graph capture", "env.sim.physics.use_cuda_graph=false runs Newton without a CUDA graph"),
    ("stream is capturing", "env.sim.physics.use_cuda_graph=false runs Newton without a CUDA graph"),
    ("no kernel image", "torch or Warp has no code for this GPU; take one of compute capability 7.5 or newer"),
)
"""Parts of errors that CUDA, torch and Warp give on a GPU, and what to try."""

DRIVER_TIMEOUT_S = 30.0
"""Longest time in which the driver says which GPUs there are [s]."""

MOST_WAITS = 20
"""Places where the host waits that the report lists."""

MORE_PHASES = 3
"""Commands after the pipeline: two recordings, and the speed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``umc smoke-test``."""
    add = parser.add_argument
    add("--task", default=DEFAULT_TASK, help=f"gym id ({DEFAULT_TASK})")
    add("--agent", default=DEFAULT_AGENT, help=f"agent that is trained ({DEFAULT_AGENT})")
    add("--rl_library", choices=LIBRARIES, help="library that trains: rsl_rl (default) or skrl")
    add("--num_envs", type=int, help=f"envs simulated at once ({GPU_ENVS} on a GPU)")
    add("--max_iterations", type=int, help=f"iterations of each stage ({GPU_ITERATIONS} on a GPU)")
    add("--seed", type=int, help="seed of envs and networks")
    add("--device", help="cpu, cuda, cuda:N; the first GPU where there is one, else the CPU")
    add("--logs", type=path, default=Path("logs"), help="folder of all runs (logs)")
    # what a child of the test does
    add("--record", type=Path, help=argparse.SUPPRESS)
    add("--measure", type=Path, help=argparse.SUPPRESS)


def main(argv: list[str]) -> int:
    """Run ``umc smoke-test``; return its exit status."""
    end_with_parent()
    if asks_for_help(argv):
        return show_help(argv, "smoke-test", DESCRIPTION, EXAMPLES, [add_arguments, add_launcher_flags], TRAINING)
    check_flags(argv, [add_arguments])
    if any(token.split("=")[0] in ("--record", "--measure") for token in argv):
        return _simulate(argv)
    from umc.training.arguments import SIZE_KEYS, parse

    defaults = ["--task", DEFAULT_TASK, "--agent", DEFAULT_AGENT]
    given = [*defaults, *argv, "--quick"]
    request = parse(given)
    for flag, key in SIZE_KEYS.items():
        if any(override_key(token) == key for token in request.overrides):
            raise UmcError(f"{key}: give --{flag} in its place")
    with timed("loading packages"), quiet():
        from umc.tasks.task_cfg import pick_device, resolve_cfgs
        from umc.training.plan import add_launcher_options

        device = request.options.device = pick_device(request.options.device)
        add_launcher_options(request, [*given, "--device", device])
        if not any(override_key(token).startswith(("env.scene.terrain", "presets")) for token in request.overrides):
            request.overrides.append("env.scene.terrain=flat")
        resolve_cfgs(request.task, request.agent, request.overrides)
    return _SmokeTest(request, device, argv).run()


class _SmokeTest:
    """Phases of the test, what they found, and the report."""

    def __init__(self, request: TrainRequest, device: str, argv: Sequence[str]) -> None:
        from umc.training import quick

        self._request, self._device, self._argv = request, device, argv
        self._folder = quick.quick_folder(request)
        total = quick.number_of_phases(request) + MORE_PHASES
        self._phases: Phases = quick.Phases(total, self._folder / "output", self._write)
        self._sizes = (quick.NUM_ENVS, quick.ITERATIONS) if device == "cpu" else (GPU_ENVS, GPU_ITERATIONS)
        self._failures: list[str] = []
        self._about = self._machine()
        self._is_over = False
        self._training: dict[str, Any] | None = None
        self._comparison: Comparison | None = None
        self._speed: Speed | None = None

    def run(self) -> int:
        """Run all phases, those after a failed one, too; return the exit status.

        The report is written before and after every command: one that hangs, or is stopped, leaves what is known.
        """
        overrides = list(self._request.overrides)  # the pipeline adds its own
        try:
            self._attempt(self._train)
            self._attempt(lambda: self._compare(overrides))
            self._attempt(lambda: self._measure(overrides))
            self._is_over = True
        finally:
            text = self._write()
            print(f"\n{text}" if self._is_over else "", flush=True)
            place = self._folder / REPORT
            print(f"smoke test {self._result()}; please attach the report to an issue: {place}", flush=True)
        return FAILED if self._failures else 0

    def _attempt(self, part: Callable[[], None]) -> None:
        try:
            part()
        except ChildFailed as failure:
            if failure.code in STOPPED:
                raise
            phase = self._phases.started[-1]
            self._failures.append(f"{phase.name}: {failure}{_reason(phase.log)}")
        except UmcError as error:
            self._failures.append(str(error))

    def _write(self) -> str:
        """Write the report as far as it is known; return its text."""
        text = "\n".join(self._report()) + "\n"
        with atomic_write(self._folder / REPORT) as file:
            file.write(text.encode())
        return text

    def _train(self) -> None:
        from umc.rl.checkpoint import newest_checkpoint
        from umc.training.quick import run_pipeline, trained_in

        try:
            run_pipeline(self._request, self._folder, self._phases, *self._sizes)
        finally:  # a film that fails leaves the speed of the training
            checkpoint = newest_checkpoint(trained_in(self._request))
            self._training = None if checkpoint is None else read_progress(checkpoint.parent)

    def _compare(self, overrides: Sequence[str]) -> None:
        from umc.evaluation.devices import compare, read_recording

        paths = [self._folder / "comparison" / name for name in ("cpu.pt", "device.pt")]
        for device, out in zip(("cpu", self._device), paths, strict=True):
            self._phases.run(f"recording on {device}", "smoke-test", self._flags(overrides, record=out, device=device))
        self._comparison = compare(*map(read_recording, paths))
        self._failures += self._comparison.failures
        if self._device != "cpu" and not any(self._comparison.largest.values()):
            same = f"all observations on {self._device} equal the CPU's to the bit"
            self._failures.append(f"{same}: the engine did not run on the GPU")

    def _measure(self, overrides: Sequence[str]) -> None:
        from umc.evaluation.device_speed import read_speed

        out = self._folder / "speed.json"
        num_envs = self._request.options.num_envs or self._sizes[0]
        flags = self._flags(overrides, measure=out, device=self._device, num_envs=num_envs)
        self._phases.run(f"speed on {self._device}", "smoke-test", flags)
        self._speed = read_speed(out)

    def _flags(self, overrides: Sequence[str], **values: Any) -> list[str]:
        task = f"{self._request.task.rpartition('Stage')[0]}Stage2"  # Stage 1 has no faults
        own = [token for token in overrides if not token.startswith("agent.")]
        return [*as_flags(task=task, **values), *own]

    def _result(self) -> str:
        if self._failures:
            return "failed"
        return "passed" if self._is_over else "unfinished"

    def _report(self) -> list[str]:
        status = {None: "running", 0: "passed"}
        phases = [[one.name, f"{one.seconds:.0f}", status.get(one.code, one.code)] for one in self._phases.started]
        about = {"result": self._result(), **self._about}
        machine = [[name, escape_markdown(str(value))] for name, value in about.items()]
        lines = ["# umc smoke-test", "", *markdown_table(["", ""], machine)]
        lines += ["", "## Phases", "", *markdown_table(["phase", "[s]", "exit status"], phases)]
        lines += ["", "## Comparison with the CPU", ""]
        lines += ["Not made."] if self._comparison is None else _about_comparison(self._comparison)
        lines += ["", "## Speed", "", *self._about_speed()]
        if self._failures:
            lines += ["", "## Failures", "", *(f"- {escape_markdown(line)}" for line in self._failures)]
        for phase in self._phases.started:
            if phase.code != 0 and phase.log is not None and phase.log.is_file():
                shown = phase.log.read_text(errors="replace").splitlines()[-SHOWN_LINES:]
                lines += ["", f"End of the output of {phase.name}:", "", "````text", *shown, "````"]
        return lines

    def _machine(self) -> dict[str, Any]:
        return {
            "command": command_line("smoke-test", self._argv),
            "started": now(),
            "device": self._device,
            "GPUs": _gpus(),
            "CPU cores": cores(),
            "overrides": shlex.join(self._request.overrides),
            "commit": git_state(),
            "versions": ", ".join(f"{name} {version}" for name, version in versions().items()),
        }

    def _about_speed(self) -> list[str]:
        rows: list[list[Any]] = []
        if self._training is not None:
            envs, rate = self._request.options.num_envs, self._training["env_steps_per_s"]
            rows.append([f"training of Stage {self._request.stage}", f"{envs:,}", f"{rate:,.0f}", "", ""])
        speed = self._speed
        if speed is not None:
            used = "" if speed.gpu_bytes is None else f"{speed.gpu_bytes / 1e9:.2f}"
            graph = {None: "", True: "yes", False: "no"}[speed.graph]
            rows.append(["env steps alone, Stage 2", f"{speed.num_envs:,}", f"{speed.rate:,.0f}", used, graph])
        lines = markdown_table(["", "envs", "env-steps/s", "GPU memory in use [GB]", "Newton as a CUDA graph"], rows)
        if speed is None or speed.waits is None:
            return [*lines, "", "Waits of the host for the device: not measured."]
        total = sum(speed.waits.values())
        lines += ["", f"Waits of the host for the device that torch sees: {total} in {speed.steps} env steps.", ""]
        waits = [[escape_markdown(place), count] for place, count in list(speed.waits.items())[:MOST_WAITS]]
        return lines + (markdown_table(["place", "waits"], waits) if waits else [])


def _simulate(argv: list[str]) -> int:
    """Record or measure in this process."""
    with timed("loading packages"), quiet():
        options, overrides = parse_all(argv, [add_arguments])
        from umc.evaluation.device_speed import measure
        from umc.evaluation.devices import RECORDED_ENVS, make_repeatable, record
        from umc.evaluation.session import open_session, without_policy

        session = without_policy(options, overrides, options.task)
        if options.record is not None:
            options.num_envs = RECORDED_ENVS
            make_repeatable(session.env_cfg, options.record.with_suffix(".jsonl"))
        session.env_cfg.scene.num_envs = options.num_envs or session.env_cfg.scene.num_envs
    with open_session(session) as (env, _):
        if options.record is None:
            measure(env, options.measure)
        else:
            record(env, options.record.with_suffix(".jsonl"), options.record)
    return 0


def _about_comparison(found: Comparison) -> list[str]:
    from umc.evaluation import devices as made

    rows = [
        [name, *(f"{values[name]:.2g}" for values in (found.first, found.median, found.largest)), f"{share:.1%}"]
        for name, share in found.within.items()
    ]
    return [
        f"{made.RECORDED_ENVS} robots, half of them in the air, {made.EPISODES} episodes of {made.EPISODE} env steps, "
        f"the same actions. The ledger of faults ({found.ledger_lines} lines, {found.switches} of them switches) has "
        f"to be equal to the bit but for windows, which follow joint positions. So have {' and '.join(made.EXACT)}. "
        f"Other observations may differ by {made.FIRST_TOLERANCE} in the first env step of an episode, and by "
        f"{made.TOLERANCE} in {made.SHARE:.0%} of the robots, each in each episode; on the ground the first "
        f"{made.GROUND_STEPS} env steps count, for windows, too. PhysX has another solver on a GPU: there joints may "
        f"differ by {made.PHYSX_TOLERANCE}, on the ground by {made.PHYSX_GROUND_TOLERANCE}, and the base by "
        f"{made.PHYSX_BASE_FIRST_TOLERANCE} and {made.PHYSX_BASE_TOLERANCE}.",
        "",
        *markdown_table(
            ["observations", "first env step", "median robot", "largest difference", "robots within"], rows
        ),
    ]


def _gpus() -> str:
    """Return name, compute capability, driver and memory of the GPUs, as the driver says."""
    if shutil.which("nvidia-smi") is None:
        return "none (no nvidia-smi)"
    query = ["nvidia-smi", "--query-gpu=name,compute_cap,driver_version,memory.total,memory.used", "--format=csv"]
    try:
        shown = subprocess.run(query, capture_output=True, text=True, check=False, timeout=DRIVER_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"nvidia-smi did not answer in {DRIVER_TIMEOUT_S:.0f} s"
    return "; ".join((shown.stdout or shown.stderr).strip().splitlines())


def _reason(log: Path | None) -> str:
    """Return the last line of a failed command's output, and what to try where the output has a known error."""
    text = "" if log is None or not log.is_file() else log.read_text(errors="replace").strip()
    if not text:
        return ""
    hints = dict.fromkeys(hint for part, hint in HINTS if part in text.lower())
    return "; ".join([f": {text.splitlines()[-1].strip()}", *hints])
