"""Specifications of encoders, transitions, readouts and decoders, one module each."""
