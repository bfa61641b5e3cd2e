"""The dictionary: one HDF5 file of keyed rows. Knows no torch and no documents."""
