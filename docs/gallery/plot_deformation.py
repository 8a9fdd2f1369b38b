"""
What a deformation does
=======================

Each epoch shows the network different versions of the same digits. See them, and the displacement
fields that make them.
"""

import matplotlib.pyplot as plt
import numpy as np

from mlpcore import DeformationParameters, backends, dataset, deformation

data = dataset.load(download=False)  # MNIST where it is found
backend = backends.get("cpu")
parameters = DeformationParameters(sigma=6, alpha=36, beta=15, gamma=15)

# %%
# One image of each of five digits, undeformed and in five epochs. The seed, the epoch and the index
# of an image determine its deformation: ask again, in any order, and it is the same.
indices = np.array([np.flatnonzero(data.train_labels == digit)[0] for digit in (2, 3, 4, 5, 8)])
images, labels = data.train_images[indices], data.train_labels[indices]

figure, grid = plt.subplots(5, 6, figsize=(7, 5.8))
for epoch, column in enumerate(grid.T, -1):
    shown = images
    if epoch >= 0:
        shown = deformation.deform_selected(
            images, indices, labels, parameters, seed=0, epoch=epoch, backend=backend
        )
    column[0].set_title("original" if epoch < 0 else f"epoch {epoch + 1}")
    for axes, image in zip(column, shown):
        axes.imshow(image)
        axes.axis("off")
plt.show()

# %%
# Each pixel of the new image takes its value from another place in the old one. The arrows lead
# from there to the pixel. The elastic part is random noise, smoothed by a Gaussian of ``sigma``
# pixels and scaled by ``alpha``. The affine part rotates or shears by up to ``beta`` degrees, and
# stretches by up to ``gamma`` percent.
parts = {
    "elastic": DeformationParameters(beta=0, gamma=0),
    "turned or sheared": DeformationParameters(alpha=0, gamma=0),
    "stretched": DeformationParameters(alpha=0, beta=0),
    "all": parameters,
}
one, label = indices[2:3], labels[2:3]
height, width = data.image_shape
y, x = np.mgrid[1:height:3, 1:width:3]
arrows = {"angles": "xy", "scale_units": "xy", "scale": 1, "color": "#D55E00", "width": 0.008}
figure, grid = plt.subplots(1, 4, figsize=(7, 2.1))
for axes, (name, part) in zip(grid, parts.items()):
    shown = deformation.deform_selected(images[2:3], one, label, part, 0, 4, backend)[0]
    dx, dy = deformation.displacements((height, width), one, label, part, 0, 4, backend)[0]
    axes.imshow(shown, vmax=2)
    axes.quiver(x + dx[y, x], y + dy[y, x], -dx[y, x], -dy[y, x], **arrows)
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    axes.set_title(name, size="small")
    axes.axis("off")
plt.show()
