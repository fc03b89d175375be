"""The laboratory: recipes, stores, runs and reports in folders, and the command line.

It adds folders to the calls that take arrays (`Method.fit`, `MacroModel.forecast`, `evaluate`),
and nothing outside imports it.
"""
