"""Builds the Cython core and the C kernels, each instruction set with its own flags."""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

C_SOURCES = Path("cpu_simd")

#: The CUDA kernels, which are compiled when they are first used, and where an installed package has
#: them.
CUDA_SOURCES, INSTALLED_CUDA = Path("cuda"), Path("mlpcore/backends/cuda/kernels")

#: One file per instruction set. A file whose flags the compiler lacks is compiled without them and
#: defines an empty table; the instruction set is then reported as missing when it is asked for.
INSTRUCTION_SETS = {
    "scalar": ["-fno-tree-vectorize", "-fno-tree-slp-vectorize"],
    "sse2": ["-msse2"],
    "neon": [],
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx512f"],
}

#: The other files are built for the plainest CPU of its kind.
BASELINE = sorted({path.stem for path in C_SOURCES.glob("*.c")} - set(INSTRUCTION_SETS))

#: Products and sums are fused where the code says so and nowhere else.
C_FLAGS = [
    "-std=gnu11",
    "-O3",
    "-Wextra",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fvisibility=hidden",
]
LINK_FLAGS = ["-pthread"]

#: On Windows Zig compiles, unless CC names another Clang for MinGW. MSVC lacks POSIX threads and
#: GCC's attributes and built-in functions. GCC for Windows does not align AVX's vectors on the
#: stack as its own instructions want them (its bug 54412).
WINDOWS = sys.platform == "win32"
if WINDOWS:
    os.environ.setdefault("CC", f'"{Path(sys.executable).as_posix()}" -m ziglang cc')

#: Sanitizers, as in "address,undefined"; such a build stays apart from others.
SANITIZERS = os.environ.get("MLPCORE_SANITIZE", "")
BUILD_BASE = "build"
if SANITIZERS:
    C_FLAGS.remove("-O3")  # with which unrolled kernels and their checks take minutes to compile
    C_FLAGS += ["-O1", "-g1", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all"]
    # What these two see is an access that AddressSanitizer sees, too, and their code takes long.
    C_FLAGS += [f"-fsanitize={SANITIZERS}", "-fno-sanitize=null,object-size"]
    LINK_FLAGS += [f"-fsanitize={SANITIZERS}"]
    BUILD_BASE = f"build/{SANITIZERS.replace(',', '-')}"


#: Cython's code only calls the kernels. Optimised like them it takes longer to compile than all.
EXTENSION_FLAGS = [{"-O3": "-O1", "-O1": "-O0"}.get(flag, flag) for flag in C_FLAGS]


class BuildExt(build_ext):
    """Compiles extensions and C kernels at the same time, then links them.

    The CUDA kernels are copied as they are.
    """

    def finalize_options(self):
        super().finalize_options()
        self.parallel = True

    def run(self):
        super().run()
        if not (self.inplace or getattr(self, "editable_mode", False)):
            installed = Path(self.build_lib) / INSTALLED_CUDA
            shutil.copytree(
                CUDA_SOURCES,
                installed,
                ignore=shutil.ignore_patterns("emulation"),
                dirs_exist_ok=True,
            )

    def build_extension(self, ext):
        if ext.name == "mlpcore.backends.simd":
            ext.extra_objects = self.compile_kernels()
        super().build_extension(ext)

    def compile_kernels(self):
        """The object files: an iterator, which waits for the compiler."""
        files = {
            name: [f for f in flags if self.accepts(f)] for name, flags in INSTRUCTION_SETS.items()
        }
        files |= dict.fromkeys(BASELINE, ())
        (Path(self.build_temp) / C_SOURCES).mkdir(parents=True, exist_ok=True)
        pool = ThreadPoolExecutor(os.cpu_count())
        return chain.from_iterable(pool.map(self.compile_c, files, files.values()))

    def compile_c(self, name, flags):
        return self.compiler.compile(
            [str(C_SOURCES / f"{name}.c")],
            output_dir=self.build_temp,
            extra_postargs=[*C_FLAGS, *flags],
            depends=[str(p) for p in C_SOURCES.glob("*.h")],
        )

    def accepts(self, flag):
        """Whether the compiler knows a flag. SIMD flags are for x86-64 alone."""
        with tempfile.TemporaryDirectory() as folder:
            probe = Path(folder) / "probe.c"
            probe.write_text("int probe;\n")
            arguments = ["-Werror", flag, "-c", str(probe), "-o", f"{folder}/probe.o"]
            tried = subprocess.run([*self.compiler.compiler_so, *arguments], capture_output=True)
        return tried.returncode == 0


class BuildCore(BuildExt):
    """Compiles the C core alone, without Python's headers: `make cross` does, for other systems.

    Nothing of it runs, so nothing is optimised: it takes a quarter of the time.
    """

    def run(self):
        build_ext.run(self)

    def compile_c(self, name, flags):
        return super().compile_c(name, [*flags, "-O0", "-fno-sanitize=undefined"])

    def build_extensions(self):
        list(self.compile_kernels())


def extension(name):
    return Extension(
        name,
        [f"{name.replace('.', '/')}.pyx"],
        include_dirs=[str(C_SOURCES)],
        depends=["setup.py", *(str(p) for p in C_SOURCES.glob("*.[ch]"))],
        extra_compile_args=EXTENSION_FLAGS,
        extra_link_args=LINK_FLAGS,
    )


setup(
    ext_modules=cythonize(
        [
            extension("mlpcore.network.network"),
            extension("mlpcore.estimators.stream_network"),
            extension("mlpcore.backends.simd"),
        ],
        language_level=3,
        build_dir="build/cython",
    ),
    cmdclass={"build_ext": BuildExt, "build_core": BuildCore},
    options={
        "build": {"build_base": BUILD_BASE},
        "build_ext": {"compiler": "mingw32"} if WINDOWS else {},
    },
)
