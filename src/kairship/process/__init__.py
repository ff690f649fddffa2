"""What every process of the plane has in common: logs, signals, what it says of itself, and its certificate."""
