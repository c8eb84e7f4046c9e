"""Accounts that several runs, threads and processes draw on."""
