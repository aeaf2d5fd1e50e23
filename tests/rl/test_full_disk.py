# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""A disk that is full ends a training in one line, with exit status 2, and leaves the checkpoints that are there."""

import resource

import dummy_training as dummy
import pytest
from umc.rl.checkpoint import checkpoints_in, read_checkpoint
from umc.utils.cli import run_main

SMALLER_THAN_A_CHECKPOINT = 20_000
"""Bytes of a file; the checkpoints of the dummy training have 30,000."""


@pytest.mark.parametrize("limit", [1, SMALLER_THAN_A_CHECKPOINT])
def test_a_full_disk_ends_training_in_one_line(limit, tmp_path, capsys):
    """No file can be written to any more from iteration 2 on, or a checkpoint only in part."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(step):
        if step == 9:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))

    runner = dummy.build(tmp_path, dummy.DummyEnv(on_step=fill), dummy.agent(save_interval=1))
    capsys.readouterr()
    try:
        status = run_main(lambda _: int(runner.train(50).exists()), [])
        printed = capsys.readouterr().err
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    lines = [line for line in printed.splitlines() if line.strip()]
    assert status == 2
    assert len(lines) == 1, printed
    assert lines[0].startswith("error: cannot write")
    assert "File too large" in lines[0]
    assert [path.name for path in checkpoints_in(tmp_path)] == ["model_0.pt", "model_1.pt"]
    assert [read_checkpoint(path)["iter"] for path in checkpoints_in(tmp_path)] == [0, 1]
    assert not list(tmp_path.glob(".*"))
