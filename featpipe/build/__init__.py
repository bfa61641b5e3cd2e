"""Building a cache: plan, intake, queue, workers, progress."""
