# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Training's matrix products are float32's, whichever library computes them, unless it asks for bfloat16."""

from __future__ import annotations

import pytest
import torch
from umc.utils import matmul
from umc.utils.errors import UmcError
from umc.utils.matmul import check_bfloat16, matmul_backend, onednn_matmul


@pytest.fixture
def product():
    left, right = torch.randn(512, 300), torch.randn(300, 200)
    return lambda: left @ right


def test_products_stay_float32_and_an_error_leaves_the_switch_as_it_was(product):
    before, exact = torch.backends.mkldnn.matmul.fp32_precision, product()
    with onednn_matmul():
        # sums of 300 products of about 1; factors in bfloat16 would make 0.1
        assert (product() - exact).abs().max() < 1e-4
    with pytest.raises(RuntimeError, match="a run that fails"), onednn_matmul():
        raise RuntimeError("a run that fails")
    assert torch.backends.mkldnn.matmul.fp32_precision == before
    assert torch.equal(product(), exact)


def test_rounded_products_are_not_taken(product, monkeypatch):
    def rounding():
        exact = torch.ones(4, 4)
        return exact * (1 + 2.0**-9) if torch.backends.mkldnn.matmul.fp32_precision == "bf16" else exact

    exact = product()
    monkeypatch.setattr(matmul, "_probe", rounding)
    matmul.onednn_is_exact.cache_clear()
    with onednn_matmul() as fast:
        assert not fast
        assert torch.equal(product(), exact)
    matmul.onednn_is_exact.cache_clear()


@pytest.mark.parametrize(
    ("device", "mode", "maker", "onednn"),
    [
        ("cpu", None, "AuthenticAMD", True),
        ("cpu", None, None, True),
        ("cpu", None, "GenuineIntel", False),
        ("cpu", "max-autotune-no-cudagraphs", "AuthenticAMD", False),
        ("cuda:0", None, "AuthenticAMD", False),
    ],
)
def test_onednn_multiplies_where_it_helps(device, mode, maker, onednn, tmp_path, monkeypatch):
    monkeypatch.setattr(matmul, "onednn_is_exact", lambda: True)
    monkeypatch.setattr(matmul, "CPU_INFO", tmp_path / "cpuinfo")
    if maker is not None:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {maker}\n")
    before = torch.get_float32_matmul_precision()
    with matmul_backend(device, mode):
        assert (torch.backends.mkldnn.matmul.fp32_precision == matmul.ONEDNN) is onednn
        if not onednn:
            assert torch.get_float32_matmul_precision() == before  # raises where torch's switches are mixed


def test_a_training_may_round_its_products(tmp_path, monkeypatch):
    monkeypatch.setattr(matmul, "CPU_INFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("vendor_id\t: GenuineIntel\n")
    before = torch.backends.mkldnn.matmul.fp32_precision
    with matmul_backend("cpu", None, bfloat16=True):
        assert torch.backends.mkldnn.matmul.fp32_precision == matmul.ONEDNN
    assert torch.backends.mkldnn.matmul.fp32_precision == before


@pytest.mark.parametrize(
    ("device", "mode", "exact", "reason"),
    [
        ("cuda:0", None, False, "is for a CPU, not for cuda:0"),
        ("cpu", "default", False, "exclude each other"),
        ("cpu", None, True, "has no instructions for bfloat16"),
    ],
)
def test_products_are_not_rounded_where_that_does_nothing(device, mode, exact, reason, monkeypatch):
    monkeypatch.setattr(matmul, "onednn_is_exact", lambda: exact)
    with pytest.raises(UmcError, match=reason):
        check_bfloat16(device, mode)
    monkeypatch.setattr(matmul, "onednn_is_exact", lambda: False)
    check_bfloat16("cpu", None)
