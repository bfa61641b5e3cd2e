"""Checkpoints, tokenizers and packed forward passes: texts in, vectors and entities out."""
