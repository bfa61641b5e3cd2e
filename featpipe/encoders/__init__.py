"""Checkpoints, tokenizers, packed forward passes, vectors, entities. No HDF5, no processes."""
