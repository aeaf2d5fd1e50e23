# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is left, of a machine and of a container, from files such as Linux has them."""

from __future__ import annotations

import pytest
from umc.models.size import check_network, network_bytes
from umc.utils.errors import UmcError
from umc.utils.memory import available_bytes

MEMINFO = "MemTotal:       32000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB\n"
MIB = 2**20


def put(folder, limit=None, usage=None, stat=None):
    """Write the files of a cgroup; return their paths."""
    folder.mkdir()
    paths = tuple(folder / name for name in ("limit", "usage", "stat"))
    for path, text in zip(paths, (limit, usage, stat), strict=True):
        if text is not None:
            path.write_text(text)
    return paths


def test_the_tightest_of_machine_and_containers_counts(tmp_path):
    meminfo, gone = tmp_path / "meminfo", put(tmp_path / "gone")
    assert available_bytes(meminfo, [gone]) is None
    meminfo.write_text(MEMINFO)
    machine = 8_000_000 * 1024
    assert available_bytes(meminfo, [gone]) == machine
    # version 2: "max" is no limit
    assert available_bytes(meminfo, [put(tmp_path / "none", "max\n", f"{MIB}\n", "inactive_file 5\n")]) == machine
    small = put(tmp_path / "v2", f"{100 * MIB}\n", f"{70 * MIB}\n", f"anon 1\ninactive_file {20 * MIB}\n")
    assert available_bytes(meminfo, [small]) == 50 * MIB
    # version 1 counts those below it, too; without a limit it has a number above all memory
    v1 = put(tmp_path / "v1", f"{100 * MIB}", f"{70 * MIB}", f"inactive_file 0\ntotal_inactive_file {10 * MIB}\n")
    assert available_bytes(meminfo, [gone, small, v1]) == 40 * MIB
    assert available_bytes(meminfo, [put(tmp_path / "open", "9223372036854771712", "5", "")]) == machine
    assert available_bytes(tmp_path / "gone", [put(tmp_path / "no_stat", "100", "30")]) == 70
    assert available_bytes(meminfo, [put(tmp_path / "over", "100", "130", "")]) == 0


def test_a_network_is_refused_before_it_is_made_by_the_memory_that_its_weights_need(monkeypatch):
    assert network_bytes({"hidden_dims": [256, 512, 256, 256]}, 51) == pytest.approx(4 * 340_992, rel=0.02)
    # the paper's transformer has 368,804 parameters: blocks are most of them
    blocks = {"hidden_dims": [], "embed_dim": 120, "feedforward_dim": 128, "num_layers": 4}
    assert network_bytes(blocks, 36) == pytest.approx(4 * 368_804, rel=0.1)
    assert network_bytes({"hidden_dims": "wide", "embed_dim": 1e9, "num_layers": None}, 36) == 0
    monkeypatch.setattr("umc.models.size.available_bytes", lambda: 10**9)
    check_network({"hidden_dims": [9000, 9000]}, 12, "agent.actor")
    for copies, sizes in ((4, {"hidden_dims": [9000, 9000]}), (1, {**blocks, "num_layers": 10**9})):
        with pytest.raises(UmcError, match=r"^agent.actor: a network with .* GB of memory, 1.0 GB are free; give smal"):
            check_network(sizes, 12, "agent.actor", copies)
    monkeypatch.setattr("umc.models.size.available_bytes", lambda: None)
    check_network({"hidden_dims": [10**9]}, 12, "agent.actor")
