"""What content costs in tokens: estimated, reported, and one corrected by the other."""
