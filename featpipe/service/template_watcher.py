"""Deploys changed template files from the event loop, in a thread."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.extraction.deploy import Change, Publication
    from featpipe.extraction.fitted import FittedTemplate

logger = getLogger("featpipe.service")

#: Seconds between two looks at the files.
_WATCH_S = 1.0


class TemplateWatcher:
    """Watches the files of a ``publication``, and publishes changes one at a time."""

    def __init__(self, publication: Publication) -> None:
        self.publication = publication
        self._lock = asyncio.Lock()

    @property
    def templates(self) -> Mapping[str, FittedTemplate]:
        """The templates in use."""
        return self.publication.templates

    @property
    def problem(self) -> str:
        """Why the files cannot be used; "" when they are in use."""
        return self.publication.problem

    async def publish(self) -> Change:
        """Compare the files with the templates in use, and replace these by changed ones.

        Raises:
            TemplateError: they cannot be used; the templates stay as they were.

        """
        async with self._lock:
            return await asyncio.to_thread(self.publication.publish)

    async def watch(self) -> None:
        """Publish changes until cancelled. An error is logged once, not at every look."""
        while True:
            await asyncio.sleep(_WATCH_S)
            if self._lock.locked():
                continue
            async with self._lock:
                await asyncio.to_thread(self.publication.publish_or_log, logger)
