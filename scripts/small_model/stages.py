"""The training loop that every stage runs: fixed steps, checkpoints, exact resumption.

Guarantees: a step's samples depend on (seed, stage, step) alone, so a run that was interrupted and
resumed has the same samples as one that was not; a checkpoint is written aside and renamed, so a
killed run leaves the previous one whole.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable
    from pathlib import Path

    from small_model.network import Network

Losses = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Stage:
    """What is learnt, for how long; `loss(network, rng)` draws samples, returns named losses."""

    name: str
    n_steps: int
    rate: float
    loss: Callable[[Network, np.random.Generator], tuple[Losses, dict[str, float]]]
    warm_up: int = 60
    falls: bool = False  # the rate falls to nothing over the stage instead of staying

    def rate_at(self, step: int) -> float:
        """Linear warm-up, then constant or a half cosine down."""
        if step < self.warm_up:
            return self.rate * (step + 1) / self.warm_up
        if not self.falls:
            return self.rate
        done = (step - self.warm_up) / max(self.n_steps - self.warm_up, 1)
        return self.rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * done)))


@dataclass(frozen=True)
class Run:
    """Where and how: folder of checkpoints, seed, device, bf16 or not."""

    folder: Path
    seed: int
    device: str
    is_mixed: bool
    every: int = 50

    def precision(self) -> contextlib.AbstractContextManager[object]:
        """Forward passes in bfloat16 where the machine multiplies it faster."""
        return torch.autocast(self.device.partition(":")[0], torch.bfloat16, enabled=self.is_mixed)


def make_optimiser(network: Network, rate: float) -> torch.optim.AdamW:
    """Weight decay on matrices only; embeddings, which begin well placed, learn at a third."""
    groups = [
        {"params": [], "weight_decay": 0.02, "share": 1.0},
        {"params": [], "weight_decay": 0.0, "share": 1.0},
        {"params": [], "weight_decay": 0.0, "share": 0.3},
    ]
    for name, value in network.named_parameters():
        place = 2 if "embeddings." in name else int(value.ndim < 2)
        groups[place]["params"].append(value)  # type: ignore[attr-defined] # a list, by construction
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-6, fused=True)


def run_stage(stage: Stage, network: Network, run: Run, say: Callable[[str], None]) -> float:
    """Train `network` through the stage, from its last checkpoint if there is one; -> seconds."""
    optimiser = make_optimiser(network, stage.rate)
    first = _resume(stage, network, optimiser, run)
    network.train()
    started, recent = time.perf_counter(), {}
    for step in range(first, stage.n_steps):
        for group in optimiser.param_groups:
            group["lr"] = stage.rate_at(step) * group["share"]
        rng = np.random.default_rng([run.seed, sum(stage.name.encode()), step])
        with run.precision():
            losses, figures = stage.loss(network, rng)
        torch.stack(list(losses.values())).sum().backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        for name, value in {**{k: float(v.detach()) for k, v in losses.items()}, **figures}.items():
            recent[name] = 0.96 * recent.get(name, value) + 0.04 * value
        if (step + 1) % 50 == 0:
            figures_text = "  ".join(f"{name} {value:.3f}" for name, value in recent.items())
            seconds = (time.perf_counter() - started) / (step + 1 - first)
            say(f"{stage.name} {step + 1}/{stage.n_steps}  {figures_text}  {seconds:.2f} s/step")
        if (step + 1) % run.every == 0 or step + 1 == stage.n_steps:
            save_checkpoint(stage.name, step + 1, network, optimiser, run)
    return time.perf_counter() - started


def checkpoint_path(folder: Path, stage: str, step: int) -> Path:
    """One file for each kept step: a longer run of the same recipe goes on from it."""
    return folder / f"{stage}-{step:06}.pt"


def save_checkpoint(
    stage: str, step: int, network: Network, optimiser: torch.optim.Optimizer, run: Run
) -> None:
    """Weights and optimiser state, written aside and renamed."""
    path = checkpoint_path(run.folder, stage, step)
    state = {"network": network.state_dict(), "optimiser": optimiser.state_dict(), "step": step}
    torch.save(state, path.with_suffix(".part"))
    path.with_suffix(".part").rename(path)
    for old in sorted(run.folder.glob(f"{stage}-*.pt"))[:-3]:
        if int(old.stem.rpartition("-")[2]) % 600:
            old.unlink()


def _resume(stage: Stage, network: Network, optimiser: torch.optim.Optimizer, run: Run) -> int:
    steps = sorted(int(p.stem.rpartition("-")[2]) for p in run.folder.glob(f"{stage.name}-*.pt"))
    steps = [step for step in steps if step <= stage.n_steps]
    if not steps:
        return 0
    path = checkpoint_path(run.folder, stage.name, steps[-1])
    state = torch.load(path, map_location=run.device, weights_only=True)
    network.load_state_dict(state["network"])
    optimiser.load_state_dict(state["optimiser"])
    return int(state["step"])
