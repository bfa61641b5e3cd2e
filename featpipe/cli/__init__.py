"""The command line: a command reads its arguments, calls the library and prints."""
