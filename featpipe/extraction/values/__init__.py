"""What a text means: amounts, dates, numbers, folded characters."""
