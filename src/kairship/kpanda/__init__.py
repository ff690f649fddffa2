"""Container management: the clusters that are known, and what is collected of them."""
