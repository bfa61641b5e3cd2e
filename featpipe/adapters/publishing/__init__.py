"""Publishing: how changed template files come to work in workers that run.

Guarantees:

- Workers only ever see templates that load and are fitted, whatever happens in the files; a worker
  that starts anew sees the same as the others. No model is loaded again.
- What cannot be used leaves everything as it was, and says why.
- A field that was fitted once, by whatever process of this user, is not fitted again: the next
  start reads it back.
"""
