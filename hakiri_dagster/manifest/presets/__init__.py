"""APIs that are known by name: a preset says what a manifest would have to say of `connector = "rest"`."""
