"""One module per file format; each turns bytes into text blocks."""
