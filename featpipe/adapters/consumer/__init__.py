"""The queue consumer: documents arrive as messages, values leave as messages.

Guarantees:

- A message is acknowledged only after its answer, or its dead letter, is with the broker: whatever
  dies in between, it comes again (at least once).
- The same content under the same template is computed once: its answer is kept in a journal by
  content key, and a message that comes again is answered with the same bytes.
- A message that cannot be answered goes to the dead-letter queue with its reason, once; it does not
  come back, and does not hold up the others.
- Asked to stop, it takes nothing new, finishes what it holds, and gives the rest back.
"""
