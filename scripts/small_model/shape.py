"""How the dimensions of a token are shared out.

LEXICAL and REST are written by the embeddings alone: no layer adds to them, so the mean over tokens
is a weighted bag of characters whatever the layers learn. FEATURES begin as what a character is
(its neighbours, its use in dictionary words), BLANK as nothing, PLACES as where it stands; layers
write into these three. What a token knows of its neighbours has to fit there, and in MEANT, a part
of BLANK, stands at the end what its word means.
"""

LEXICAL = 416
REST = 4
FEATURES = 60
BLANK = 128
MEANING = 96  # of BLANK: what the last layer says of a token's word, heard in a mean
PLACES = 32
WIDTH = LEXICAL + REST + FEATURES + BLANK + PLACES
KEPT = LEXICAL + REST
MEANT = slice(KEPT + FEATURES, KEPT + FEATURES + MEANING)

LAYERS = 3
HEAD = 64  # dimensions of an attention head
INNER = 832  # of the feed-forward part

#: Raw sizes that LayerNorm brings to a root mean square of about one, lexical part of length one.
FEATURE_SIZE = 0.045
PLACE_SIZE = 0.05
#: The last LayerNorm turns what is neither lexical nor meaning down to this, and `export` further:
#: there for entities, unheard in a mean.
QUIET = 0.2
