# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""``umc benchmark-speed``: the ratios of the other benchmarks in one table; see docs/benchmarks.md."""

from __future__ import annotations

import argparse
import json
import platform
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from ratios import Row, Table, read_table, slower
from umc.utils.cli import FAILED, Parser, path, run_main
from umc.utils.console import progress_bar
from umc.utils.io import write_json
from umc.utils.isaaclab_flags import asks_for_help, show_help
from umc.utils.outputs import require_writable
from umc.utils.provenance import git_state, now
from umc.utils.threads import cores

DESCRIPTION = """\
Measure on the CPU how fast UMC is beside Isaac Lab's own task, its engines, bare matrix products and BodyTransformer's
public code. The table is printed as Markdown and written as JSON."""

EXAMPLES = ("", "--quick --against benchmarks/speed.json", "--public CLONE --json benchmarks/speed.json")

CPU_INFO, THREADS = Path("/proc/cpuinfo"), "1"
LAST_LINES = 30
"""Lines that are shown of a benchmark that failed."""


@dataclass(frozen=True)
class Part:
    """One benchmark; its ratios are the rows of the table."""

    script: str
    ratio: str
    better: Literal["lower", "higher"]
    flags: str
    """Which rows are measured."""
    full: str
    quick: str
    """How long."""
    minutes: int
    """On two cores of a virtual machine, in full [min]; the time left is estimated with it."""


PARTS = (
    Part(
        *("envs", "env-steps/s of UMC's task / Isaac Lab's", "higher"),
        flags="--robots A1 --num_envs 256",
        full="--rounds 5 --steps 20",
        quick="--rounds 3 --steps 8",
        minutes=3,
    ),
    Part(
        *("step", "env step / bare simulation", "lower"),
        flags="--robots A1 --num_envs 256 1024",
        full="--rounds 5 --steps 10",
        quick="--rounds 3 --steps 5",
        minutes=3,
    ),
    Part(
        *("learning", "update / bare matrix products", "lower"),
        flags=f"--agents mlp transformer --variants plain --threads {THREADS}",
        full="--rounds 4",
        quick="--rounds 2",
        minutes=5,
    ),
    Part(
        *("models", "forward and backward of BodyTransformer / ours", "higher"),
        flags=f"--batch 512 4096 --threads {THREADS}",
        full="--rounds 5",
        quick="--rounds 3",
        minutes=2,
    ),
    Part(
        *("faults", "env step with faults / without", "lower"),
        flags="--num_envs 1024",
        full="--rounds 5 --steps 6",
        quick="--rounds 3 --steps 3",
        minutes=7,
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument
    add("--quick", action="store_true", help="fewer rounds of the same cases")
    add("--public", type=path, help="clone of github.com/carlosferrazza/BodyTransformer: measure its code, too")
    default = Path("outputs") / "benchmarks" / "speed.json"
    add("--json", type=path, default=default, help=f"file to write ({default})")
    add("--against", type=path, help="file of an earlier run: warn, and end with 1, where a ratio is 10 %% slower")


def main(argv: Sequence[str]) -> int:
    """Run the benchmarks; return the exit status."""
    return run_main(_run, argv)


def _run(argv: list[str]) -> int:
    if asks_for_help(argv):
        return show_help(argv, "benchmark-speed", DESCRIPTION, EXAMPLES, [add_arguments])
    parser = Parser(add_help=False)
    add_arguments(parser)
    options = parser.parse_args(argv)
    require_writable(options.json.parent, "--json")
    saved = None if options.against is None else read_table(options.against)
    git = git_state()
    table = Table(
        commit=None if git is None else git["commit"][:7] + (" and changes" if git["dirty"] else ""),
        date=now()[:10],
        command=shlex.join(
            [
                *("umc", "benchmark-speed"),
                *(["--quick"] if options.quick else []),
                *(["--public", "CLONE"] if options.public else []),
            ]
        ),
        cpu=cpu_name(),
        cores=cores(),
        threads=int(THREADS),
        torch=version("torch"),
        rows=[],
    )
    with progress_bar(sum(part.minutes for part in PARTS), "benchmark-speed", "min") as bar:
        for part in PARTS:
            bar.set_description(part.script)
            for case, values in measure(part, options).items():
                table.rows.append(Row(ratio=part.ratio, case=case, better=part.better, values=values))
            write_json(options.json, table.model_dump(), indent=1)  # what is measured stays if a later one fails
            bar.update(part.minutes)
    print(table.markdown(), flush=True)
    losses = [] if saved is None else slower(saved.rows, table.rows)
    for line in losses:
        print(f"warning: {line}", file=sys.stderr)
    return FAILED if losses else 0


def measure(part: Part, options: argparse.Namespace) -> dict[str, list[float]]:
    """Run a benchmark; return its ratios by row."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratios.json"
        flags = f"{part.flags} {part.quick if options.quick else part.full}".split()
        if part.script == "models" and options.public is not None:
            flags += ["--public", str(options.public)]
        command = [sys.executable, str(Path(__file__).with_name(f"{part.script}.py")), *flags, "--json", str(file)]
        child = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if child.returncode != 0:
            last = "\n".join(child.stdout.splitlines()[-LAST_LINES:])
            sys.exit(f"{last}\nerror: benchmarks/{part.script}.py ended with {child.returncode}")
        return json.loads(file.read_text())


def cpu_name() -> str:
    """Return the name of the processor."""
    text = CPU_INFO.read_text() if CPU_INFO.is_file() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
