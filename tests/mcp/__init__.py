"""The relay, the importer and the planning server over real stdio."""
