"""From trees to the core: nodes of statements, declarations, and what words mean."""
