"""Properties are about results; how long one example takes on a busy machine says nothing."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
