"""Results as text and JSON: one module per verb."""
