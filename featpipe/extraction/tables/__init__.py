"""Tables of plain text: their cells, and the headers that label them."""
