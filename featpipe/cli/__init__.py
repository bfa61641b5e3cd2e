"""The command line: one file per command; each reads arguments, calls the library and prints."""
