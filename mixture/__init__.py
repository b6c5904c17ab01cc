"""Learn: which row comes next, which tower learns from it, what the model has seen."""
