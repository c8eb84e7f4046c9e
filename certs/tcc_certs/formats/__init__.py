"""Files and their texts: canonical JSON, the container, artifacts, ledgers; numbers as digits."""
