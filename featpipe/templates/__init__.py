"""Templates: what to extract, learned from a few samples, and kept up to date from the cache."""
