"""The watcher: a publication in an event loop, which it never holds up."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from featpipe.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from featpipe.extraction.deploy import Change, Publication
    from featpipe.extraction.fitted import FittedTemplate

logger = getLogger("featpipe.service")

#: Seconds between two looks at the files.
_WATCH_S = 1.0


class TemplateWatcher:
    """Watches the files of a ``publication``, and publishes what changes."""

    def __init__(self, publication: Publication) -> None:
        self.publication = publication
        self._lock = asyncio.Lock()

    @property
    def templates(self) -> Mapping[str, FittedTemplate]:
        """What is at work."""
        return self.publication.templates

    @property
    def problem(self) -> str:
        """Why the files are not what is at work, "" if they are."""
        return self.publication.problem

    async def publish(self) -> Change:
        """Look at the files now.

        Raises:
            TemplateError: they cannot be used; everything is as it was.

        """
        async with self._lock:
            return await asyncio.to_thread(self.publication.publish)

    async def watch(self) -> None:
        """Publish whatever changes, until cancelled."""
        while True:
            await asyncio.sleep(_WATCH_S)
            if self._lock.locked():
                continue
            problem = self.problem
            try:
                change = await self.publish()
            except TemplateError as error:
                if error.message != problem:
                    logger.warning("the templates are as they were: %s", error.message)
                continue
            if change.changed or change.removed:
                logger.info("templates changed: %s", ", ".join(change.changed + change.removed))
