"""Features of texts outside the cache, computed in workers when asked for."""
