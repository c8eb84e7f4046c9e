"""Pictures of artifacts: DOT, Mermaid, SVG drawn here, and a page to look around in."""
