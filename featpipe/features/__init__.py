"""Features: strings in, arrays out. Knows no HDF5 and no processes."""
