"""A provider's refusal: read, understood, and answered with the next step."""
