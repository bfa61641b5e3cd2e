"""Roles that take and give arrays."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np


class Sum:
    """Adds an array up, without keeping it."""

    def run(self, payload: dict[str, Any]) -> float:
        return float(payload["array"].sum())


class Total:
    """Adds up the array it is given."""

    def run(self, array: np.ndarray[Any, Any]) -> float:
        return float(array.sum())


class Keeper:
    """Keeps the arrays it was given, as a writer that gathers rows would."""

    def __init__(self) -> None:
        self.kept: list[np.ndarray[Any, Any]] = []

    def run(self, payload: object) -> list[float]:
        if isinstance(payload, np.ndarray):
            self.kept.append(payload)
        elif payload == "forget":
            self.kept.clear()
        return [float(array[0]) for array in self.kept]


class Maker:
    """Makes arrays of a given size, filled with one number."""

    def run(self, payload: tuple[int, float]) -> np.ndarray[Any, Any]:
        size, value = payload
        return np.full(size, value)


class Gate:
    """Tells what arrays are filled with, once another process has written to a named pipe."""

    def __init__(self, path: str) -> None:
        self._path: str | None = path

    def run(self, array: np.ndarray[Any, Any]) -> float:
        if self._path is not None:
            Path(self._path).read_bytes()
            self._path = None
        return float(array[0])


class Random:
    """Draws from numpy's own generator, as libraries do that were never told a seed."""

    def run(self, _: object) -> float:
        time.sleep(0.3)  # so that each of several workers gets a task
        return float(np.random.random())
