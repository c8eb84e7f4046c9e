"""Batches in shards: many runs over one artifact by any executor, a part of the folder each shard.

Text: docs/batch.md.  Start at :mod:`tcc.batches.making`: a batch on one page.
"""
