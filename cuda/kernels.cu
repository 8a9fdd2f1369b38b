// All kernels, in one translation unit: one fatbin, and one library of the emulation.
#include "forward.cu"
#include "backward.cu"
#include "update.cu"
#include "training.cu"
#include "inference.cu"
#include "order.cu"
#include "displacement.cu"
#include "deformation.cu"
