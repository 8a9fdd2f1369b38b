"""Displacement fields on a device, and images deformed by them, a few grids at a time."""

from collections.abc import Iterator

from mlpcore.backends.arguments import GRID, IMAGES_PER_GRID, noise_shape
from mlpcore.backends.cuda.driver import CudaDriver
from mlpcore.backends.cuda.launch import CU, Launch, ceil_div, launch
from mlpcore.backends.cuda.memory import DeviceArray
from mlpcore.backends.deforming import Deformation, EpochFields

#: Grids deformed at a time; fewer where their noise would have more floats than this.
GRIDS_AT_A_TIME = 32
NOISE_FLOATS = 1 << 26


def deform(job: Deformation, field: int, values: DeviceArray | None) -> Launch:
    """The launch of a deformation by displacements, or by the fields of grids, at an address.

    Images are float32, or bytes that stand for `values`.
    """
    (n, height, width), (_, in_height, in_width) = job.out.shape, job.images.shape
    return launch(
        "deform_kernel",
        (n, ceil_div(height * width, CU.ELEMENT_THREADS)),
        images=job.images.address,
        values=values.address if values else 0,
        in_height=in_height,
        in_width=in_width,
        first=job.first,
        height=height,
        width=width,
        affine=job.affine.address,
        field=field,
        tiled=isinstance(job.displacement, EpochFields),
        background=job.background,
        out=job.out.address,
    )


class FieldMemory:
    """Memory for the displacement fields of some grids, kept from one epoch to the next."""

    def __init__(self, driver: CudaDriver):
        self._driver = driver
        #: Noise, then fields in its place; and what lies between the two convolutions.
        self.arrays: list[DeviceArray] = []

    def reserve(
        self, height: int, width: int, taps_shape: tuple[int, int], first: int, n: int
    ) -> int:
        """Takes memory for n images of h x w pixels, number `first` and on.

        Returns the number of grids for which it suffices at a time.
        """
        rows, columns = noise_shape(height, width, taps_shape)
        size = 2 * max(rows, GRID * height) * max(columns, GRID * width)
        grids = (first + n - 1) // IMAGES_PER_GRID - first // IMAGES_PER_GRID + 1
        grids = min(grids, GRIDS_AT_A_TIME, max(1, NOISE_FLOATS // size))
        if not self.arrays or len(self.arrays[0]) < grids * size:
            self.arrays = []  # freed before more is taken
            self.arrays = [DeviceArray(self._driver, (grids * size,), "f4") for _ in range(2)]
        return grids

    def field_launches(
        self, height: int, width: int, fields: EpochFields, first_grid: int, n_grids: int
    ) -> list[Launch]:
        """The fields (n_grids, 2, 10 h, 10 w) of grids `first_grid` and on, in reserved memory."""
        noise, middle = (array.address for array in self.arrays)
        rows, columns = noise_shape(height, width, fields.taps.shape)
        (key0, key1), (cell, n_taps), n = fields.key, fields.taps.shape, 2 * n_grids
        drawn = launch(
            "noise_kernel",
            (ceil_div(columns, CU.NOISE_THREADS), ceil_div(rows, CU.NOISE_ROWS), n),
            key0=key0,
            key1=key1,
            epoch=fields.epoch,
            first_grid=first_grid,
            rows=rows,
            columns=columns,
            noise=noise,
        )
        launches, values = [drawn], {"source": noise, "out": middle, "alpha": 1.0}
        values |= {"taps": fields.taps.address, "cell": cell, "n_taps": n_taps}
        # Rows come first where there are fewer of them before the columns, as in the C kernels.
        for down in (True, False) if cell == 1 else (False, True):
            values |= {"down": down, "in_rows": rows, "in_columns": columns}
            rows, columns = (GRID * height, columns) if down else (rows, GRID * width)
            values |= {"out_rows": rows, "out_columns": columns}
            grid = ceil_div(columns, CU.CONVOLVE_X), ceil_div(rows, CU.CONVOLVE_Y), n
            launches.append(launch("convolve_kernel", grid, **values))
            values |= {"source": middle, "out": noise, "alpha": fields.alpha}
        return launches

    def launches(self, job: Deformation, values: DeviceArray | None) -> Iterator[Launch]:
        """Deforms images; `values` are as for `deform`."""
        fields = job.displacement
        if not isinstance(fields, EpochFields):
            yield deform(job, fields.address, values)
            return
        (n, height, width), begin, first = job.out.shape, job.first, job.first
        grids = self.reserve(height, width, fields.taps.shape, first, n)
        while begin < first + n:
            grid = begin // IMAGES_PER_GRID
            end = min(first + n, (grid + grids) * IMAGES_PER_GRID)
            n_grids = (end - 1) // IMAGES_PER_GRID + 1 - grid
            yield from self.field_launches(height, width, fields, grid, n_grids)
            part = slice(begin - first, end - first)
            arrays = {name: getattr(job, name)[part] for name in ("images", "affine", "out")}
            part_job = job._replace(first=begin, **arrays)
            yield deform(part_job, self.arrays[0].address, values)
            begin = end
