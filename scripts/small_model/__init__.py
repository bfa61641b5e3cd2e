"""The parts of `scripts/train_small_model.py`.

corpus: which texts may be learnt from.  vocabulary: characters and the tokenizer.  start: character
vectors from counts.  bags: weights of characters.  meanings: word vectors, with lexicon: synonyms
and words that ask; contrast: how both learn from pairs.  masking, labels (with grammar, gazetteer,
frames and values): samples.  shape, network: one trunk and what it is asked.  joint: entities,
masked words and meanings together.  stages: the training loop.  transitions: which label follows
which.  export: the folder that users load.
"""
