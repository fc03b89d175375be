"""The one conditional flow with a closed form: z_next ~ N(z, sigma^2), independent of epsilon.

With u_s = (1 - s) epsilon + s z_next the pair (u_s, z_next - epsilon) is Gaussian, and the best
prediction of the velocity is its conditional mean

    v*(u, s; z) = z + (s sigma^2 - (1 - s)) / D (u - s z),    D = (1 - s)^2 + s^2 sigma^2,

which leaves the variance sigma^2 / D. Its mean over s ~ U(0, 1) is sigma pi / 2. The flow of v* is
w(s) = s z + sqrt(D) w(0): it carries w(0) to z + sigma w(0).
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class GaussianFlow:
    sigma: float

    def variance(self, s):
        return (1 - s) ** 2 + (s * self.sigma) ** 2

    def velocity(self, u, s, z):
        slope = (s * self.sigma**2 - (1 - s)) / self.variance(s)
        return z + slope * (u - s * z)

    @property
    def loss(self):
        return self.sigma * math.pi / 2
