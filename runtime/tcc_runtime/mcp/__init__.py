"""The Model Context Protocol over stdio and HTTP: relay, calls and late answers, lock, metrics."""
