# Copyright (c) 2026, The UMC Developers.
# SPDX-License-Identifier: BSD-3-Clause
"""Draw docs/images/models.png: the masked transformer, and who reads whom. Usage: ./isaaclab.sh -p THIS_FILE."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import FancyBboxPatch
from umc.models import BodyTransformer, JointLayout, MaskedTransformer, TransformerCfg
from umc.robots import A1_CFG, A1_JOINTS
from umc.robots.graph import joint_neighbours

LIVING, CONTEXT, DEAD, PLAIN, INK = "#2f6f9f", "#d08a2e", "#b9413c", "#e9edf1", "#22313f"
FADED = "#f3dcda"
SHOWN = ("FL hip", "FL thigh", "FL calf", "FR hip", "...", "RR calf", "base + flag")
DEAD_JOINT = 1
"""FL thigh: the dead sensor of the picture."""


def box(axes: Axes, place: tuple[float, float, float, float], text: str, face: str, ink: str = INK) -> None:
    """Draw a rounded box with a text in its middle; the place is left, bottom, width and height."""
    x, y, width, height = place
    shape = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=0.12", fc=face, ec=ink, lw=0.9)
    axes.add_patch(shape)
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", color=ink, fontsize=8.5)


def arrow(axes: Axes, start: float, stop: float, y: float, color: str = INK) -> None:
    """Draw an arrow to the right."""
    axes.annotate("", (stop, y), (start, y), arrowprops={"arrowstyle": "-|>", "color": color, "lw": 0.9})


def draw_network(axes: Axes) -> None:
    """Draw the way from observations to actions."""
    axes.set(xlim=(-0.1, 20), ylim=(-0.4, 8.2))
    axes.axis("off")
    heads = {1.9: "what a joint reports", 5.45: "tokenizers\n(one Linear each)"}
    heads |= {8.15: "token + learned\nvector per joint", 12.6: "4 encoder blocks (post-norm)"}
    heads |= {16.75: "detokenizers\n(one Linear each)", 19.05: "action"}
    for x, text in heads.items():
        axes.text(x, 7.65, text, ha="center", va="center", fontsize=9, color=INK, weight="bold")
    for row, name in enumerate(SHOWN):
        y = 6.3 - row * 1.0
        if name == "...":
            for x in (1.9, 5.45, 8.15, 16.75, 19.05):
                axes.text(x, y + 0.3, "...", ha="center", va="center", fontsize=11, color=INK)
            continue
        dead, context = row == DEAD_JOINT, row == len(SHOWN) - 1
        color = DEAD if dead else CONTEXT if context else LIVING
        reads = "0, 0, 0  (sensor dead)" if dead else "position, velocity, last action"
        text = "12 base columns, fault flag (3)" if context else f"{name}: {reads}"
        box(axes, (0.0, y, 3.8, 0.62), text, FADED if dead else "white", color)
        arrow(axes, 3.85, 4.65, y + 0.31, color)
        box(axes, (4.7, y, 1.5, 0.62), f"{15 if context else 3} → 120", PLAIN)
        arrow(axes, 6.25, 7.4, y + 0.31, color)
        box(axes, (7.45, y, 1.4, 0.62), "120", FADED if dead else "white", color)
        arrow(axes, 8.9, 9.75, y + 0.31, color)
        if not context:
            arrow(axes, 15.45, 15.95, y + 0.31, color)
            box(axes, (16.0, y, 1.5, 0.62), "120 → 1", PLAIN)
            arrow(axes, 17.55, 18.55, y + 0.31, color)
            box(axes, (18.6, y, 0.9, 0.62), "target", "white", color)
    axes.add_patch(
        FancyBboxPatch((9.8, 0.2), 5.6, 6.8, boxstyle="round,pad=0,rounding_size=0.2", fc=PLAIN, ec=INK, lw=0.9)
    )
    steps = ("self-attention, 2 heads\nkeys of dead joints are closed", "add, LayerNorm")
    steps += ("Linear 120 → 128, ReLU, Linear 128 → 120", "add, LayerNorm")
    for y, height, text in zip((5.2, 4.25, 2.9, 1.95), (1.25, 0.6, 0.95, 0.6), steps, strict=True):
        box(axes, (10.15, y, 4.9, height), text, "white")
    axes.text(12.6, 1.1, "a dead joint still asks and still acts;\nthe context token is never closed", ha="center",
              va="center", fontsize=8.5, style="italic", color=INK)  # fmt: skip


def readable(network: MaskedTransformer, masked: bool) -> torch.Tensor:
    """Tell who reads whom from the network's own bias (J + 1, J + 1): 0 no edge, 1 open, 2 closed (sensor dead)."""
    tokens = network.layout.num_joints + 1
    graph = network.graph_bias[0, 0] if any(network.along_graph) else torch.zeros(tokens, tokens)
    dead = torch.zeros(1, tokens, dtype=torch.bool)
    dead[0, DEAD_JOINT] = masked
    closed = network._attention_bias(dead, graph)[0, 0]
    return torch.where(graph < 0.0, 0, torch.where(closed.expand(tokens, -1) < 0.0, 2, 1))


def draw_reading(axes: Axes, matrix: torch.Tensor, title: str) -> None:
    """Draw a matrix of readable."""
    axes.imshow(matrix, cmap=ListedColormap(["white", LIVING, DEAD]), vmin=0, vmax=2)
    names = [name.removesuffix("_joint").replace("_", " ") for name in A1_JOINTS] + ["context"]
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=10)
    axes.set_yticks(range(len(names)), names, fontsize=10)
    axes.set_xticks([x - 0.5 for x in range(len(names))], minor=True)
    axes.set_yticks([y - 0.5 for y in range(len(names))], minor=True)
    axes.grid(which="minor", color="#c9d2da", lw=0.5)
    axes.tick_params(which="both", length=0)
    axes.set_title(title, fontsize=11, color=INK)
    axes.set_xlabel("is read (key)", fontsize=10)
    axes.label_outer()  # the rows are the same in all


def main() -> None:
    """Write the picture."""
    layout = JointLayout.term_major(A1_JOINTS, 48, 12, joint_neighbours(A1_CFG, A1_JOINTS))
    figure = plt.figure(figsize=(13, 9.3), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=[1.15, 1.0])
    draw_network(figure.add_subplot(grid[0, :]))
    panels = {
        'attention "full"': readable(MaskedTransformer(layout), masked=True),
        'attention "body"': readable(MaskedTransformer(layout, TransformerCfg(attention="body")), masked=True),
        "BodyTransformer (knows no mask)": readable(BodyTransformer(layout), masked=False),
    }
    for column, (title, matrix) in enumerate(panels.items()):
        axes = figure.add_subplot(grid[1, column])
        draw_reading(axes, matrix, title)
        if column == 0:
            axes.set_ylabel("reads (query)", fontsize=10)
    figure.savefig(Path(__file__).with_name("models.png"), dpi=110)


if __name__ == "__main__":
    main()
