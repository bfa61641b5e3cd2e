"""Faces to other libraries, one file each; each needs its own extra."""
