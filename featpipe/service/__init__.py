"""The extraction service: documents in over HTTP, values with their places out.

Guarantees:

- Models are loaded in workers of the pool; this process imports no torch. A document that kills
  its worker fails its own request only; a worker killed from outside fails none.
- Every request ends, with its answer or at its deadline with an error.
- Memory is bounded: bodies by size while they arrive, queued work by number and weight (429).
- No path from a client is ever opened: documents are texts, uploads, or ids in the cache.
- SIGTERM ends readiness first, and then lets requests in flight finish.
"""
