"""Policies of language 1.2 by the sentences of their definition: meaning, text, chance."""
