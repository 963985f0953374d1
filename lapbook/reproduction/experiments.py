"""What `python -m lapbook reproduce` can run, one module each: settings, and what turns one setting into a record."""

from lapbook.reproduction import coefficients, exact, options, point, public, race, recorded, shaping, table1
from lapbook.reproduction.common import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    "table1": table1.EXPERIMENT,
    "public": public.EXPERIMENT,
    "point": point.EXPERIMENT,
    "options": options.EXPERIMENT,
    "shaping": shaping.EXPERIMENT,
    "coefficients": coefficients.EXPERIMENT,
    "race": race.EXPERIMENT,
    "recorded": recorded.EXPERIMENT,
    "exact": exact.EXPERIMENT,
}
