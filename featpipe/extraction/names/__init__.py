"""What fields and parties are called: synonyms, patterns of names, labels in any layout."""
