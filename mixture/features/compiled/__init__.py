"""What the compiled kernels are called with: Arrow columns by their addresses, plans of features."""
