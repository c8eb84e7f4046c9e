"""Sessions by brute force: every resolution of every unknown, as words; and a plain writer."""
