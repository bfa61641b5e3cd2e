"""Sentences and headings that say a value without a label, and what a label would call it."""
