"""Rules that are not of single states: the calls, widths of counts, C7 and C8."""
