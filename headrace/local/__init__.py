"""What runs a pipeline's processes on this machine: the demo and the benchmarks share it."""
