"""Documents: from a file's bytes to one text with paragraph and sentence spans. Knows no models."""
