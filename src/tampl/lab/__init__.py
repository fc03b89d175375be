"""The laboratory: everything that lives in folders."""
