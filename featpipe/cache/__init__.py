"""The cache: documents, texts, features and statistics in one HDF5 file, read and written."""
