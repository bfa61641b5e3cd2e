"""The extraction service: documents in over HTTP, values with their places out.

Guarantees:

- Models live in workers of the pool; this process imports no torch. A document that kills its
  worker costs its own request, and a killed worker costs none.
- Every request ends: by its answer, or by its deadline with a clear error.
- Memory is bounded: bodies by size while they arrive, waiting work by number and weight (429).
- No path that a client names is ever opened: texts, uploads, and documents of the cache by id.
- SIGTERM finishes what is in flight; readiness ends first.
"""
