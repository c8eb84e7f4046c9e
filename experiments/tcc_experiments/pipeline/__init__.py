"""The real pipeline: retrieve, summarise, calculate, each call of it made through a gate.

Text: docs/pipeline.md.  Nothing is imported from the extra `pipeline` before it is used.
"""
