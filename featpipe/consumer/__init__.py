"""The consumer: takes messages from a broker's queue, extracts, and sends the answers.

Guarantees:

- A message is acknowledged after the broker has confirmed its answer. If the consumer or the
  connection dies in between, the message comes again and its answer is sent twice.
- A message without an answer (invalid, unreadable, too slow) goes to the dead-letter queue with its
  reason, and is then acknowledged.
- Content that was answered before under the same templates is answered from the journal.
- `Consumer.stop` finishes the messages in hand; fetched messages that were not begun go back.

One thread works between the broker and the pool.
"""

from featpipe.consumer.consumer import Consumer, ConsumerSettings

__all__ = ["Consumer", "ConsumerSettings"]
