"""Compiled simulation kernels: plain functions over arrays, no classes, no allocation inside."""
