# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""What cannot be written completely is not written at all."""

import os
import resource

import pytest
from umc.utils.errors import UmcError
from umc.utils.io import write_json, write_torch


@pytest.mark.parametrize("call", ["fsync", "write"])
@pytest.mark.parametrize("write", [write_json, write_torch])
def test_a_full_disk_leaves_what_stood_there(write, call, tmp_path, monkeypatch):
    path = tmp_path / "report"
    write(path, {"a": 1})
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if call == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:  # in the middle of the content
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 5000, hard))
    try:
        with pytest.raises(UmcError, match=r"cannot write .*; choose another folder or free some space"):
            write(path, {"a": list(range(100_000))})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report"]


def test_a_nan_never_reaches_the_file(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "report.json", {"a": float("nan")}, allow_nan=False)
    assert not list(tmp_path.iterdir())
