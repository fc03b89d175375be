"""Compiled simulation kernels for NVIDIA GPUs, with the arguments of their twins in `kernels`."""
