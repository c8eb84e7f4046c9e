"""Pages for people: what ``tcc report`` writes, one self-contained HTML file each."""
