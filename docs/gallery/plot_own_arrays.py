"""
Data of one's own
=================

Any grey-scale images with any labels: here circles, squares and triangles that Pillow draws, with
names as labels.
"""

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, ImageDraw

from mlpcore import DeformationParameters, OnlineMLPClassifier

random = np.random.default_rng(0)
SIDES = {"circle": 0, "triangle": 3, "square": 4}


def draw(kind):
    """A shape of random size and place as (24, 24) bytes, with some noise."""
    image = Image.new("L", (24, 24))
    radius, angle = random.uniform(5, 8), random.uniform(0, 360)
    centre = random.uniform(10, 14, 2)
    if kind == "circle":
        ImageDraw.Draw(image).ellipse([*(centre - radius), *(centre + radius)], outline=255)
    else:
        ImageDraw.Draw(image).regular_polygon((*centre, radius), SIDES[kind], angle, outline=255)
    noise = random.normal(0, 40, (24, 24))
    return np.clip(np.asarray(image) + noise, 0, 255).astype(np.uint8)


y = random.choice(list(SIDES), 1200)
images = np.stack([draw(kind) for kind in y])

# %%
# Twelve of them. Bytes become numbers in [-1, 1] with a background of -1, as a deformation needs
# them.
figure, grid = plt.subplots(2, 6, figsize=(7, 2.8))
for axes, image, kind in zip(grid.flat, images, y):
    axes.imshow(image)
    axes.set_title(kind)
    axes.axis("off")
plt.show()

X = images.reshape(len(images), -1) / 127.5 - 1

# %%
# Train on 300 of them, with and without deformation, and test on the other 900. A shape may be
# turned further than a digit, so ``beta`` is 45 degrees.
turned = DeformationParameters(alpha=12, beta=45, gamma=20, similar_labels=())
for name, deformation in {"as they are": None, "deformed": turned}.items():
    mlp = OnlineMLPClassifier(
        (100,),
        learning_rate_init=0.005,
        max_iter=100,
        deformation=deformation,
        random_state=0,
    )
    error = 1 - mlp.fit(X[:300], y[:300]).score(X[300:], y[300:])
    print(f"{name:>12}: {error:.1%} of 900 wrong")
print("classes:", *mlp.classes_)
