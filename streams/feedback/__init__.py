"""What people and programs say of a rollout after it: requests as rewards (pure), targets looked up in the view."""
