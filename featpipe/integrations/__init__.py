"""Integrations with other libraries, one module each; each needs its own extra."""
