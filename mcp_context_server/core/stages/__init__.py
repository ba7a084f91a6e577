"""The stages: each one looks at a turn and plans an edit, or none."""
