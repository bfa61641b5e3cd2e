"""Values of texts under a type: amounts, dates, numbers, folded spellings."""
