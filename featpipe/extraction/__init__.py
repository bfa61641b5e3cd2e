"""Templates, samples, fitted fields and what they extract."""
