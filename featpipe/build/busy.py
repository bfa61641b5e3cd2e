"""The share of a build in which its cards computed, and what kept them from it, in words."""

from __future__ import annotations

from dataclasses import dataclass

#: A card that computes for a smaller share of the build waits for the host; a note tells for what.
ENOUGH = 0.9


@dataclass(frozen=True, slots=True)
class CardTimes:
    """Seconds of a build that were spent on its cards' behalf, by all of its encode workers."""

    cards: tuple[str, ...]
    """One for each worker; a card that serves two is named twice."""
    build_s: float
    """Of the whole build, by the clock."""
    tasks_s: float
    """In which workers held a task; each worker's count."""
    tokenize_s: float
    """Of these, spent on tokens."""
    card_s: float
    """In which a card computed for some worker."""

    @property
    def share(self) -> float | None:
        """Of the build, in [0, 1], on average over the cards; None without a card."""
        n_cards = len(set(self.cards))
        if not n_cards or self.build_s <= 0:
            return None
        return min(1.0, self.card_s / (n_cards * self.build_s))

    def describe(self) -> str:
        """A note on the share, and below `ENOUGH` on the stage that was the limit."""
        share = self.share
        if share is None:
            return ""
        note = f"cards computed for {share:.0%} of the build"
        return note if share >= ENOUGH else f"{note}: {self._name_limit()}"

    def _name_limit(self) -> str:
        without_task_s = len(self.cards) * self.build_s - self.tasks_s
        on_host_s = self.tasks_s - self.card_s
        if without_task_s >= on_host_s:
            return (
                "their workers waited for texts to be read or rows to be written; more processes"
                " may read documents (BuildSettings.n_prepare_workers)"
            )
        share = self.tokenize_s / self.tasks_s
        repeated = " ".join(f"--device {card}" for card in (*self.cards, self.cards[0]))
        return (
            f"their workers' own processor time was the limit ({share:.0%} of it for tokens);"
            f" give a card one worker more: {repeated}"
        )
