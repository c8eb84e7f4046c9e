"""Tests of the kernel and the engine for exact questions."""
