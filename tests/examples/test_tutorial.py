# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""The notebook runs from top to bottom, and ends with a film."""

from pathlib import Path

import nbformat
import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "tutorial.ipynb"
TIMEOUT_S = 1200
"""Longest run of a cell [s]; a minute on an idle machine."""


def test_the_notebook_is_kept_without_outputs():
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)


@pytest.mark.engine
@pytest.mark.timeout(2 * TIMEOUT_S)
def test_the_tutorial_runs(tmp_path):
    from nbclient import NotebookClient

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=TIMEOUT_S, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = {kind for output in outputs for kind in output.get("data", ())}
    assert {"image/png", "image/gif"} <= shown
    assert not [output for output in outputs if output.get("name") == "stderr"]
