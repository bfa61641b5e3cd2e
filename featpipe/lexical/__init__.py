"""Words, terms and BM25 scores. Knows no models, HDF5 or processes."""
