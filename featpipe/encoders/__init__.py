"""Checkpoints, tokenizers, packed forward passes, vectors and entities. Knows no HDF5 or processes."""
