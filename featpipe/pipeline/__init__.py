"""The pipeline: the only package that knows documents, features, pool and store."""
