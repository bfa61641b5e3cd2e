"""The engine: spawned workers by role. Knows no text, torch or HDF5."""
