"""File formats: canonical JSON, the container, artifacts, ledgers, and numbers as text."""
