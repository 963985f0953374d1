"""For all of pytest: what is left out, and what a slow machine must not decide."""

from hypothesis import settings

from lapbook.envs.point import has_physics

collect_ignore = [] if has_physics() else ["lapbook/envs/point.py"]  # its examples need PyBullet

settings.register_profile("patient", deadline=None)  # where other things run beside, any example can take long
settings.load_profile("patient")
