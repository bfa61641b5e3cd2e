"""Vectors and entities of texts that a cache does not hold, computed when asked for."""
