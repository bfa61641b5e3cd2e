"""From a page to ranked candidates of a field: features, models, decisions."""
