"""The parts of `scripts/train_small_model.py`.

corpus: which texts may be learnt from.  vocabulary: characters and the tokenizer.  start: character
vectors from counts.  masking, pairs, labels: the samples of the three tasks.  network: one trunk,
three heads.  stages: the training loops.  export: the folder that users load.
"""
