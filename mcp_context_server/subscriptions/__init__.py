"""Subscriptions to resources: who listens, who is told, and what is looked after meanwhile."""
