"""Policy-gradient steps taken by verl's workers on Ray."""
