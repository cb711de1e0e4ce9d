"""What holds for every test: properties are judged by what they find, not by how fast they do."""

from hypothesis import HealthCheck, settings

# A neighbour that has the machine for a moment is no fault of the code: hypothesis's own bounds, of
# 200 ms an example and of how fast examples are drawn, would be timed assertions.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
